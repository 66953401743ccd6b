// Package local runs a whole study in one process: the coordinator and every
// site, joined by function calls. Everything else is as it is over a network:
// tasks, releases and the history pass as their encoded bytes, each site has
// a store and a gate of its own, and a run that was killed continues.
package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"parley/dataset"
	"parley/engine"
	"parley/engine/host"
	"parley/internal/files"
	"parley/method"
	"parley/privacy"
	"parley/privacy/ledger"
	"parley/privacy/policy"
	"parley/problem"
	"parley/sitestore"
	"parley/study"
)

// Config describes a run.
type Config struct {
	Plan      *study.Plan
	Methods   method.Registry
	Data      map[string]dataset.Source   // of every site of the plan
	Summaries map[string]*dataset.Summary // of these data, where they are known already
	// Dir keeps the sites' stores and the coordinator's checkpoint, so that the
	// run can be continued. Without it everything is kept in memory and lost.
	Dir string
	// Stores, if set, keeps the sites' stores instead of Dir: with their ledgers,
	// which add up over all studies that name the same folder.
	Stores string
	// Policy is that of every site; nil for [privacy.SimulationPolicy], which
	// protects nobody.
	Policy  *policy.Policy
	Observe func(engine.Event) // may be nil
}

// CheckpointName is the coordinator's file in Config.Dir.
const CheckpointName = "checkpoint"

// StoresIn is the folder of the sites' stores in Config.Dir.
func StoresIn(dir string) string { return filepath.Join(dir, "sites") }

// StorePath is the store of a site in a folder of stores.
func StorePath(stores, site string) string { return filepath.Join(stores, site, "site.db") }

// lockName is the file that keeps a second run out of Config.Dir.
const lockName = "run.lock"

// Outcome is what a run comes to, with the sites that it came from.
type Outcome struct {
	*engine.Outcome
	config Config
	hosts  map[string]*host.Host
}

// Run runs the study to its end, or until ctx ends.
func Run(ctx context.Context, c Config) (out *Outcome, err error) {
	m, ok := c.Methods.Lookup(c.Plan.Method.Name)
	if !ok {
		return nil, fmt.Errorf("method %q is not known", c.Plan.Method.Name)
	}
	coordinator, err := method.ForPlan(m, c.Plan).Coordinator(c.Plan)
	if err != nil {
		return nil, err
	}
	digest, err := c.Plan.Digest()
	if err != nil {
		return nil, err
	}
	run := &engine.Coordinator{
		Study: digest.String(), Revision: m.Revision(), Sites: c.Plan.Sites, Quorum: c.Plan.Quorum, Method: coordinator,
		Requests: map[string][]privacy.Listed{}, Links: map[string]engine.Link{}, Observe: c.Observe, Simulation: true,
	}
	if c.Dir != "" {
		lock, err := hold(c.Dir)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, lock.Release()) }()
		run.Checkpoints = engine.FileCheckpoints(filepath.Join(c.Dir, CheckpointName))
	}
	out = &Outcome{config: c, hosts: map[string]*host.Host{}}
	rounds, err := host.Rounds(m, c.Plan, run.Requests)
	if err != nil {
		return nil, err
	}
	var refusals []error
	for _, name := range c.Plan.Sites {
		s, err := c.store(name)
		if err != nil {
			return nil, fmt.Errorf("site %s: %w", name, err)
		}
		defer func() { err = errors.Join(err, s.Close()) }()
		h, err := c.host(name, s)
		if err != nil {
			return nil, err
		}
		out.hosts[name], h.Rounds = h, rounds
		site, err := h.Open(ctx, c.Plan)
		switch {
		case errors.Is(err, privacy.ErrRefused):
			refusals = append(refusals, fmt.Errorf("site %s: %w", name, err))
			run.Links[name] = refusing{&engine.Refusal{Public: err.Error(), Err: err}}
		case err != nil:
			return nil, fmt.Errorf("site %s: %w", name, err)
		default:
			site.AnswerAfter = 0 // nobody times a simulation
			run.Links[name] = &Link{Site: site}
		}
	}
	if stay := len(c.Plan.Sites) - len(refusals); stay < c.Plan.Quorum {
		return nil, fmt.Errorf("before the first round: %d of %d sites would take part, and the plan's quorum is "+
			"%d:\n%w",
			stay, len(c.Plan.Sites), c.Plan.Quorum, errors.Join(refusals...))
	}
	out.Outcome, err = run.Run(ctx)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// host is a site's side of the run.
func (c *Config) host(site string, s host.Store) (*host.Host, error) {
	data, ok := c.Data[site]
	if !ok {
		return nil, fmt.Errorf("site %s has no data", site)
	}
	policy := privacy.SimulationPolicy()
	if c.Policy != nil {
		policy = *c.Policy
	}
	return &host.Host{Site: site, Methods: c.Methods, Data: data, Summary: c.Summaries[site], Store: s, Policy: policy},
		nil
}

// hold keeps other processes out of a run's folder.
func hold(dir string) (*files.Lock, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	lock, err := files.Acquire(filepath.Join(dir, lockName))
	if errors.Is(err, files.ErrHeld) {
		return nil, problem.Problem{File: dir, What: "another process runs this study here",
			Hint: "wait for it; or choose another directory with --out"}
	}
	return lock, err
}

// siteStore is what a site keeps, durable or not.
type siteStore interface {
	host.Store
	io.Closer
}

// stores is the folder of the sites' stores; empty if they are kept in memory.
func (c *Config) stores() string {
	if c.Stores == "" && c.Dir != "" {
		return StoresIn(c.Dir)
	}
	return c.Stores
}

// store opens what a site keeps.
func (c *Config) store(site string) (siteStore, error) {
	switch {
	case c.Stores != "": // ledgers that add up over studies outlive the machine's power
		return sitestore.Open(StorePath(c.Stores, site))
	case c.Dir != "":
		return sitestore.Open(StorePath(StoresIn(c.Dir), site), sitestore.Quick())
	}
	return sitestore.NewMemory(), nil
}

// Link calls a site in the same process.
type Link struct {
	Site *engine.Site
	have int // records of the history that the site has kept, as far as is known
}

// Exchange implements [engine.Link].
func (l *Link) Exchange(ctx context.Context, task []byte, past engine.History) (engine.Reply, error) {
	for {
		a, err := l.Site.Handle(ctx, task, past.Since(l.have))
		var behind *engine.BehindError
		if errors.As(err, &behind) && behind.Have < l.have {
			l.have = behind.Have
			continue
		}
		if err != nil {
			return engine.Reply{}, err
		}
		l.have = a.Records
		return engine.Reply{Release: a.Release.Bytes(), Ledger: a.Ledger, Records: a.Records}, nil
	}
}

// refusing is a site that does not take part.
type refusing struct{ reason *engine.Refusal }

func (r refusing) Exchange(context.Context, []byte, engine.History) (engine.Reply, error) {
	return engine.Reply{}, r.reason
}

// SiteReport is what a site's own people may see at the end.
type SiteReport struct {
	Result *method.Result
	Ledger *ledger.Ledger // nil if the site's store was not kept
}

// SiteReports makes what each site's own people may see, from what the
// coordinator shared with it, and the site's own rows and ledger.
func (o *Outcome) SiteReports(ctx context.Context) (map[string]*SiteReport, error) {
	reports := map[string]*SiteReport{}
	for _, name := range o.config.Plan.Sites {
		share, ok := o.Shares[name]
		if !ok {
			continue // it left the study
		}
		r := &SiteReport{}
		var err error
		if r.Result, err = o.hosts[name].Report(ctx, o.config.Plan, share); err != nil {
			return nil, fmt.Errorf("reporting to site %s: %w", name, err)
		}
		if stores := o.config.stores(); stores != "" {
			err := sitestore.Look(StorePath(stores, name), func(s *sitestore.Store) error {
				r.Ledger, err = ledger.Read(s)
				return err
			})
			if err != nil {
				return nil, fmt.Errorf("site %s: %w", name, err)
			}
		}
		reports[name] = r
	}
	return reports, nil
}
