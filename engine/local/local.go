// Package local runs a whole study in one process: the coordinator and every
// site, joined by function calls. Everything else is as it is over a network:
// tasks, releases and the manifest pass as their encoded bytes, each site has
// a store and a gate of its own, and a run that was killed continues.
package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"parley/dataset"
	"parley/engine"
	"parley/method"
	"parley/privacy"
	"parley/sitestore"
	"parley/study"
)

// Config describes a run.
type Config struct {
	Plan    *study.Plan
	Methods method.Registry
	Data    map[string]dataset.Source // of every site of the plan
	// Dir keeps the sites' stores and the coordinator's checkpoint, so that the
	// run can be continued. Without it everything is kept in memory and lost.
	Dir string
	// Stores, if set, keeps the sites' stores instead of Dir: with their ledgers,
	// which add up over all studies that name the same folder.
	Stores string
	// Policy is that of every site; nil for [privacy.SimulationPolicy], which
	// protects nobody.
	Policy  *privacy.Policy
	Observe func(engine.Event) // may be nil
}

// CheckpointName is the coordinator's file in Config.Dir.
const CheckpointName = "checkpoint"

// StoresIn is the folder of the sites' stores in Config.Dir.
func StoresIn(dir string) string { return filepath.Join(dir, "sites") }

// StorePath is the store of a site in a folder of stores.
func StorePath(stores, site string) string { return filepath.Join(stores, site, "site.db") }

// Run runs the study to its end, or until ctx ends.
func Run(ctx context.Context, c Config) (out *engine.Outcome, err error) {
	m, ok := c.Methods.Lookup(c.Plan.Method.Name)
	if !ok {
		return nil, fmt.Errorf("method %q is not known", c.Plan.Method.Name)
	}
	coordinator, err := m.Coordinator(c.Plan)
	if err != nil {
		return nil, err
	}
	digest, err := c.Plan.Digest()
	if err != nil {
		return nil, err
	}
	run := &engine.Coordinator{
		Study: digest.String(), Sites: c.Plan.Sites, Quorum: c.Plan.Quorum, Method: coordinator,
		Links: map[string]engine.Link{}, Observe: c.Observe,
	}
	if c.Dir != "" {
		run.Checkpoints = engine.FileCheckpoints(filepath.Join(c.Dir, CheckpointName))
	}
	var refusals []error
	for _, name := range c.Plan.Sites {
		data, ok := c.Data[name]
		if !ok {
			return nil, fmt.Errorf("site %s has no data", name)
		}
		half, err := m.Site(c.Plan, name)
		if err != nil {
			return nil, fmt.Errorf("site %s: %w", name, err)
		}
		s, err := c.openStore(name)
		if err != nil {
			return nil, fmt.Errorf("site %s: %w", name, err)
		}
		defer func() { err = errors.Join(err, s.Close()) }()
		terms, policy, err := c.terms(ctx, name, data)
		if err != nil {
			return nil, fmt.Errorf("site %s: %w", name, err)
		}
		switch err := agree(m, c.Plan, terms, policy, s); {
		case errors.Is(err, privacy.ErrRefused):
			refusals = append(refusals, fmt.Errorf("site %s: %w", name, err))
			run.Links[name] = refusing{err}
		case err != nil:
			return nil, fmt.Errorf("site %s: %w", name, err)
		default:
			gate := privacy.NewGate(terms, policy, s, data)
			run.Links[name] = link{&engine.Site{Name: name, Study: digest.String(), Half: half, Manifest: s, Gate: gate}}
		}
	}
	if stay := len(c.Plan.Sites) - len(refusals); stay < c.Plan.Quorum {
		return nil, fmt.Errorf("before the first round: %d of %d sites would take part, and the plan's quorum is %d:\n%w",
			stay, len(c.Plan.Sites), c.Plan.Quorum, errors.Join(refusals...))
	}
	return run.Run(ctx)
}

// store is what a site keeps, durable or not.
type store interface {
	privacy.Journal
	engine.ManifestKeeper
	io.Closer
}

func (c *Config) openStore(site string) (store, error) {
	stores := c.Stores
	switch {
	case stores == "" && c.Dir == "":
		return sitestore.NewMemory(), nil
	case stores == "":
		stores = StoresIn(c.Dir)
	}
	return sitestore.Open(StorePath(stores, site))
}

// link calls a site in the same process.
type link struct{ site *engine.Site }

func (l link) Exchange(ctx context.Context, task []byte) ([]byte, error) {
	r, err := l.site.Handle(ctx, task)
	if err != nil {
		return nil, err
	}
	return r.Bytes(), nil
}

// SiteReports makes what each site's own people may see, from what the
// coordinator shared with it and the site's own rows.
func SiteReports(ctx context.Context, c Config, shares map[string][]byte) (map[string]*method.Result, error) {
	m, ok := c.Methods.Lookup(c.Plan.Method.Name)
	if !ok {
		return nil, fmt.Errorf("method %q is not known", c.Plan.Method.Name)
	}
	reports := map[string]*method.Result{}
	for _, name := range c.Plan.Sites {
		share, ok := shares[name]
		if !ok {
			continue // it left the study
		}
		half, err := m.Site(c.Plan, name)
		if err != nil {
			return nil, fmt.Errorf("site %s: %w", name, err)
		}
		if reports[name], err = half.Report(ctx, share, c.Data[name]); err != nil {
			return nil, fmt.Errorf("reporting to site %s: %w", name, err)
		}
	}
	return reports, nil
}
