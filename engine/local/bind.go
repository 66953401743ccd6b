package local

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"parley/dataset"
	"parley/privacy/ledger"
	"parley/privacy/policy"
	"parley/problem"
	"parley/study"
)

// Binding is a plan's sites with their data.
type Binding struct {
	Data      map[string]dataset.Source
	Summaries map[string]*dataset.Summary // of these data
	Policy    *policy.Policy              // of every site; nil if the plan names none
	cost      *ledger.Cost                // nil if it is not known
	Notes     problem.List                // what the sites' operators should know and nothing fails for
}

// Bind opens the data and the policy that the plan's local section names and
// lets every site compare its columns with the plan. What is wrong at any site comes back as
// one problem.List. The notes say what its promise of privacy is worth where cost, that of the plan, is given.
func Bind(ctx context.Context, p *study.Plan, cost *ledger.Cost) (*Binding, error) {
	if p.Local == nil {
		return nil, problem.List{{Where: "local", What: "the plan does not say where this process finds data",
			Hint: "add a local section with data and split, or with a folder for each site"}}
	}
	b := &Binding{cost: cost, Data: map[string]dataset.Source{}, Summaries: map[string]*dataset.Summary{}}
	if p.Local.Policy != "" {
		rules, err := policy.Load(p.Local.Policy)
		if err != nil {
			return nil, err
		}
		b.Policy = &rules
	}
	if p.Local.Data != "" {
		return b, b.split(ctx, p)
	}
	var wrong problem.List
	for _, site := range p.Sites {
		dir, err := b.open(ctx, p, site, p.Local.Sites[site], &wrong)
		if err != nil {
			return nil, err
		}
		if dir == nil {
			continue
		}
		b.Data[site] = dir
	}
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	if err := b.look(ctx, p); err != nil {
		return b, err
	}
	for _, site := range p.Sites {
		if dir, ok := b.Data[site].(*dataset.Dir); ok {
			b.incomplete("site "+site, dir)
		}
	}
	return b, nil
}

// incomplete notes how many subjects of a data set take no part.
func (b *Binding) incomplete(where string, dir *dataset.Dir) {
	for _, p := range dir.LeftOut() {
		p.Where = where + ", " + p.Where
		b.Notes.Add(p)
	}
}

// Fingerprint identifies the data of all sites, SHA-256 in hexadecimal: what was begun
// with them does not go on with others.
func (b *Binding) Fingerprint() string {
	all := sha256.New()
	for _, site := range slices.Sorted(maps.Keys(b.Summaries)) {
		fmt.Fprintf(all, "%q %x\n", site, b.Summaries[site].Census.Fingerprint)
	}
	return hex.EncodeToString(all.Sum(nil))
}

// open opens one data set as the plan describes it; nil if something is wrong.
func (b *Binding) open(ctx context.Context, p *study.Plan, site, path string,
	wrong *problem.List) (*dataset.Dir, error) {
	schema := p.Schema()
	dir, err := dataset.Open(ctx, path, dataset.Options{Schema: &schema})
	if err != nil {
		list, ok := err.(problem.List)
		if !ok {
			return nil, fmt.Errorf("site %s: %w", site, err)
		}
		*wrong = append(*wrong, list...)
		return nil, nil
	}
	b.Notes = append(b.Notes, dir.Warnings()...)
	return dir, nil
}
