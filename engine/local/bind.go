package local

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley/dataset"
	"parley/privacy/policy"
	"parley/problem"
	"parley/study"
)

// Binding is a plan's sites with their data.
type Binding struct {
	Data   map[string]dataset.Source
	Census map[string]*dataset.Census // of these data
	Policy *policy.Policy             // of every site; nil if the plan names none
	Notes  problem.List               // what the sites' operators should know and nothing fails for
}

// Bind opens the data and the policy that the plan's local section names and
// lets every site compare its columns with the plan. What is wrong at any site comes back as
// one problem.List.
func Bind(ctx context.Context, p *study.Plan) (*Binding, error) {
	if p.Local == nil {
		return nil, problem.List{{Where: "local", What: "the plan does not say where this process finds data",
			Hint: "add a local section with data and split, or with a folder for each site"}}
	}
	b := &Binding{Data: map[string]dataset.Source{}, Census: map[string]*dataset.Census{}}
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
	return b, b.look(ctx, p)
}

// Fingerprint identifies the data of all sites, SHA-256 in hexadecimal: what was begun
// with them does not go on with others.
func (b *Binding) Fingerprint() string {
	all := sha256.New()
	for _, site := range slices.Sorted(maps.Keys(b.Census)) {
		fmt.Fprintf(all, "%q %x\n", site, b.Census[site].Fingerprint)
	}
	return hex.EncodeToString(all.Sum(nil))
}

// look reads every site once, for what only all sites together can show: a
// feature that is constant everywhere is an error, at one site a note; so is a
// pair of views that nobody has both of.
func (b *Binding) look(ctx context.Context, p *study.Plan) error {
	type span struct{ low, high float64 }
	everywhere := map[string]span{}
	observed := map[string]int64{}
	constant := map[string][]string{}         // sites where a feature does not vary
	doubted := map[problem.Problem][]string{} // sites of which the same is to be said
	var order []problem.Problem
	lacks := map[string][]string{}
	var wrong problem.List
	for _, site := range p.Sites {
		s, err := dataset.Describe(ctx, b.Data[site])
		if list := (problem.List)(nil); errors.As(err, &list) {
			wrong = append(wrong, list...)
			continue
		}
		if err != nil {
			return fmt.Errorf("site %s: %w", site, err)
		}
		b.Census[site] = s.Census
		doubts := s.Doubts()
		if !p.Privacy.Differential() {
			doubts = append(doubts, s.SmallCells()...)
		}
		for _, doubt := range doubts {
			if doubted[doubt] == nil {
				order = append(order, doubt)
			}
			doubted[doubt] = append(doubted[doubt], site)
		}
		for _, v := range s.Views {
			if v.Subjects == 0 {
				lacks[site] = append(lacks[site], v.Name)
				b.Notes.Add(problem.Problem{Where: "site " + site, What: "lacks the view " + v.Name, Hint: "if it has it, the file is missing or named differently"})
			}
			for _, f := range v.Features {
				m := f.Moments
				if m == nil {
					continue
				}
				name := "view " + v.Name + ", feature " + f.Name
				all, seen := everywhere[name]
				if !seen {
					all = span{m.Min, m.Max}
				}
				observed[name] += f.Observed
				everywhere[name] = span{min(all.low, m.Min), max(all.high, m.Max)}
				if m.Min == m.Max && f.Observed > 1 { // one value never varies, and few subjects are a note of their own
					constant[name] = append(constant[name], site)
				}
			}
		}
	}
	if err := wrong.Err(); err != nil {
		return err
	}
	for _, doubt := range order {
		switch sites := doubted[doubt]; {
		case len(sites) == 1:
			doubt.Where = "site " + sites[0] + ", " + doubt.Where
		case len(sites) == len(p.Sites):
			doubt.Where = "all sites, " + doubt.Where
		default:
			doubt.Where = "sites " + strings.Join(sites, ", ") + ", " + doubt.Where
		}
		b.Notes.Add(doubt)
	}
	for _, v := range p.Views {
		for _, f := range v.Features {
			name := "view " + v.Name + ", feature " + f.Name
			sites := constant[name]
			switch all, seen := everywhere[name]; {
			case f.Kind != study.Number:
			case !seen:
				wrong.Add(problem.Problem{Where: name, What: "no site has a single value of it", Hint: "leave it out of the plan"})
			case all.low == all.high && observed[name] < dataset.SmallCell: // whose value it is would be told
				wrong.Add(problem.Problem{Where: name, What: fmt.Sprintf("it has a value at %d subjects only, and it is the same", observed[name]), Hint: "leave it out of the plan"})
			case all.low == all.high:
				wrong.Add(problem.Problem{Where: name, What: fmt.Sprintf("it is %v for every subject of every site", all.low), Hint: "leave it out of the plan"})
			case len(sites) > 0:
				b.Notes.Add(problem.Problem{Where: name, What: "it does not vary at " + strings.Join(sites, ", ")})
			}
		}
	}
	b.Notes = append(b.Notes, study.Unshared(p, lacks)...)
	return wrong.Err()
}

// open opens one data set as the plan describes it; nil if something is wrong.
func (b *Binding) open(ctx context.Context, p *study.Plan, site, path string, wrong *problem.List) (*dataset.Dir, error) {
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
