package halves

import (
	"context"
	"fmt"

	"parley/dataset"
	"parley/methods/factors/moments"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
	"parley/privacy"
	"parley/privacy/account"
)

// declared is what a site releases, by the plan alone.
type declared struct {
	*moments.Statistics
	layout ppca.Layout
	sums   []privacy.Sum // overview, coarse and fine moments
}

// declaredBy are what the sites of a plan release, by name. Sites with the same
// patterns of views release the same.
func declaredBy(set options.Setup) (map[string]*declared, error) {
	all, same := map[string]*declared{}, map[string]*declared{}
	for _, site := range set.Plan.Sites {
		key := fmt.Sprint(set.Options.Patterns.At(set.Plan, site))
		if same[key] == nil {
			d, err := newDeclared(set, site)
			if err != nil {
				return nil, err
			}
			same[key] = d
		}
		all[site] = same[key]
	}
	return all, nil
}

// newDeclared plans the releases of a site, and calibrates their noise so
// that together they keep the plan's total.
func newDeclared(set options.Setup, site string) (*declared, error) {
	p, o, l := set.Plan, set.Options, set.Layout
	var ranges [][2]float64
	for _, v := range p.Views {
		for _, f := range v.Features {
			ranges = append(ranges, *f.Range)
		}
	}
	st, err := moments.NewStatistics(l, ranges, o.Patterns.At(p, site))
	if err != nil {
		return nil, err
	}
	out := &declared{Statistics: st, layout: l}
	all := st.Sums()
	factor, err := p.Privacy.Scale(mechanisms(all))
	if err != nil {
		return nil, fmt.Errorf("splitting the plan's total over the sums: %w", err)
	}
	for i := range all {
		all[i].Mechanism.Noise = account.RoundUp(all[i].Mechanism.Noise * factor)
	}
	out.sums = all
	return out, nil
}

func mechanisms(sums []privacy.Sum) (ms []account.Mechanism) {
	for _, s := range sums {
		ms = append(ms, s.Mechanism)
	}
	return ms
}

// kinds are the tasks that ask for the sums, in their order.
var kinds = []string{options.TaskOverview, options.TaskCoarse, options.TaskFine}

// request is what the task of a kind, by its place, releases.
func (p *declared) request(at int) privacy.Request {
	what := []string{
		"noised number of subjects per pattern of present views, how far each view spreads, and sum and number of " +
			"missing values of each feature",
		"noised count, sums and second moments of the features, per pattern",
		"the same about what the sums of all sites told before, strong directions squeezed",
	}[at]
	return privacy.Request{Protection: privacy.Differential, Sums: p.sums[at : at+1],
		Contents: []privacy.Content{{What: what, Values: p.sums[at].Entries()}}}
}

// release makes such a sum: the overview by the plan alone, and each sum of moments through a whitening for each
// pattern.
func (p *declared) release(ctx context.Context, at int, task *sumTask, s *privacy.Session) error {
	write := p.Overview
	if at > 0 {
		for i := range task.Whitenings {
			if err := task.Whitenings[i].Check(p.layout); err != nil {
				return err
			}
		}
		own, err := p.Own(task.Whitenings)
		if err != nil {
			return err
		}
		write = p.Contribution(own)
	}
	_, err := s.Sum(ctx, p.sums[at].Name, func(row *dataset.Row, v []float64) int { return write(row.Views, v) })
	return err
}

// overviewed is what a site's overview tells.
func (p *declared) overviewed(overview *privacy.Noised) moments.Overviewed {
	return moments.Overviewed{Patterns: p.Patterns(), Sums: overview.Floats(0), SD: overview.SD()}
}

// released reads the sums that a site has given, which were made through these whitenings, and checks them
// against what was declared.
func (p *declared) released(sums []*privacy.Noised, whitenings [2][]moments.Whitening) (moments.Released, error) {
	for i, sum := range sums {
		if err := sum.Check(p.sums[i]); err != nil {
			return nil, err
		}
	}
	overview := p.overviewed(sums[0])
	counts, variance := overview.Counts()
	r := make(moments.Released, len(counts))
	for i := range r {
		r[i].Count, r[i].CountVar = counts[i], variance
	}
	for i, sum := range sums[1:] {
		own, err := p.Own(whitenings[i])
		if err != nil {
			return nil, err
		}
		for k := range r {
			m := moments.Moments{Whitening: &own[k], Sums: sum.Floats(k), SD: sum.SD()}
			if i == 0 {
				r[k].Coarse = m
			} else {
				r[k].Fine = m
			}
		}
	}
	if len(sums) < len(kinds) {
		return r, nil
	}
	return r, r.Check(p.layout)
}

// sumTask asks for a sum. It is the same at every site.
type sumTask struct {
	// Whitenings of moments, of every pattern that a site can have; none for the overview, which the plan says all of.
	Whitenings []moments.Whitening `cbor:"lenses,omitempty"`
}
