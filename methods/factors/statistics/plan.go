// Package statistics is the way to fit under differential privacy: each site releases
// clipped and noised sums over its subjects once, and the coordinator makes the model of
// them. Use [Coordinator] and [Site], and [ReadReleased] for another model of the same
// releases. What a site sends follows from its noised sums and the plan alone; the sums
// themselves, and what is made of them, are package moments.
package statistics

import (
	"context"
	"fmt"
	"slices"

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
	check  *privacy.Sum  // diagnostics of the model; nil where the plan spends nothing on them
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
			if f.Range == nil {
				return nil, fmt.Errorf("feature %s of view %s has no range, and mechanism %q needs one", f.Name, v.Name, options.MechanismStatistics)
			}
			ranges = append(ranges, *f.Range)
		}
	}
	st, err := moments.NewStatistics(l, ranges, o.Patterns.At(p, site))
	if err != nil {
		return nil, err
	}
	out := &declared{Statistics: st, layout: l}
	all := st.Sums()
	if share := p.Privacy.Diagnostics; share > 0 {
		check, err := besides(l, all, p.Privacy.Adjacency, share)
		if err != nil {
			return nil, err
		}
		all = append(all, check)
	}
	factor, err := account.Scale(mechanisms(all), p.Privacy.Adjacency, *p.Privacy.Total)
	if err != nil {
		return nil, fmt.Errorf("splitting the plan's total over the sums: %w", err)
	}
	for i := range all {
		all[i].Mechanism.Noise = account.RoundUp(all[i].Mechanism.Noise * factor)
	}
	if p.Privacy.Diagnostics > 0 {
		out.check, all = &all[len(all)-1], all[:len(all)-1]
	}
	out.sums = all
	return out, nil
}

// request is what a site asks its gate for.
func (p *declared) request() privacy.Request {
	r := privacy.Request{Protection: privacy.Differential, Sums: p.sums}
	for i, what := range []string{
		"noised number of subjects per pattern of present views, and how far each view spreads",
		"noised count, sums and second moments of the features, per pattern",
		"the same about what the sum before told, strong directions squeezed",
	} {
		r.Contents = append(r.Contents, privacy.Content{What: what, Values: p.sums[i].Entries()})
	}
	lenses := 0
	for _, views := range p.Patterns() {
		features := p.layout.Width(views)
		lenses += len(views)*2 + 8 + 4*features + min(features/2, moments.MaxAxes)*(features+2)
	}
	r.Contents = append(r.Contents, privacy.Content{What: "what follows from the noised sums: where the next sum looked", Values: lenses})
	return r
}

// release makes the three sums, each guided by the noised ones before it.
func (p *declared) release(ctx context.Context, s *privacy.Session) (*Answer, error) {
	overview, err := s.Sum(ctx, moments.SumOverview, func(row *dataset.Row, v []float64) int { return p.Overview(row.Views, v) })
	if err != nil {
		return nil, err
	}
	lenses, err := p.Lenses(overview.Floats(0), overview.SD())
	if err != nil {
		return nil, err
	}
	coarse, err := p.moments(ctx, s, moments.SumCoarse, lenses)
	if err != nil {
		return nil, err
	}
	focused, err := p.RefineWhitening(lenses, floatBlocks(coarse), coarse.SD())
	if err != nil {
		return nil, err
	}
	if _, err := p.moments(ctx, s, moments.SumFine, focused); err != nil {
		return nil, err
	}
	a := new(Answer)
	for _, list := range [][]moments.Whitening{lenses, focused} {
		for i := range list {
			a.Lenses = append(a.Lenses, packLens(&list[i]))
		}
	}
	return a, nil
}

// moments makes a sum, through a lens for each pattern.
func (p *declared) moments(ctx context.Context, s *privacy.Session, name string, lenses []moments.Whitening) (*privacy.Noised, error) {
	write := p.Contribution(lenses)
	return s.Sum(ctx, name, func(row *dataset.Row, v []float64) int { return write(row.Views, v) })
}

func floatBlocks(n *privacy.Noised) (out [][]float64) {
	for i := range n.Blocks() {
		out = append(out, n.Floats(i))
	}
	return out
}

// released checks a release against what was declared.
func (p *declared) released(a *siteSums) (*moments.Released, error) {
	n := len(p.Patterns())
	if len(a.Lenses) != 2*n {
		return nil, fmt.Errorf("%d lenses for two sums of %d patterns", len(a.Lenses), n)
	}
	for i, sum := range []*privacy.Noised{&a.Overview, &a.Coarse, &a.Fine} {
		if err := sum.Check(p.sums[i]); err != nil {
			return nil, err
		}
	}
	r := &moments.Released{CoarseBlocks: floatBlocks(&a.Coarse), FineBlocks: floatBlocks(&a.Fine), CoarseSD: a.Coarse.SD(), FineSD: a.Fine.SD()}
	for i := range a.Lenses {
		lens, err := a.Lenses[i].lens()
		if err != nil {
			return nil, err
		}
		if want := p.Patterns()[i%n]; !slices.Equal(lens.Views, want) {
			return nil, fmt.Errorf("lens %d is of views %v, and the plan's pattern is %v", i, lens.Views, want)
		}
		if i < n {
			r.Coarse = append(r.Coarse, lens)
		} else {
			r.Fine = append(r.Fine, lens)
		}
	}
	return r, r.Check(p.layout)
}

// follows demands that the lenses of a release are what its sums lead to, but
// for what other processors round: then the moments are what the sums are, and
// not whatever a lens could make of them. Directions are free, for those of equal
// strength are: how strong they are is not.
func (p *declared) follows(r *moments.Released, overview []float64, sd float64) error {
	coarse, err := p.Lenses(overview, sd)
	if err != nil {
		return err
	}
	fine, err := p.RefineWhitening(coarse, r.CoarseBlocks, r.CoarseSD)
	if err != nil {
		return err
	}
	for i := range coarse {
		if err := r.Coarse[i].Like(&coarse[i]); err != nil {
			return fmt.Errorf("coarse lens %d: %w", i, err)
		}
		if err := r.Fine[i].Like(&fine[i]); err != nil {
			return fmt.Errorf("fine lens %d: %w", i, err)
		}
	}
	return nil
}
