// Package statistics is the way to fit under differential privacy: each site releases
// three clipped and noised sums over its subjects, and the coordinator makes the model of
// them. Use [Coordinator] and [Site], and [ReadReleased] for another model of the same
// releases. All sites are asked the same, by what the sums of all of them told before, and
// answer with noised sums alone; the sums themselves, and what is made of them, are package
// moments.
package statistics

import (
	"context"
	"fmt"
	"slices"

	"parley/dataset"
	"parley/internal/wire"
	"parley/method"
	"parley/methods/factors/halves"
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
			if f.Range == nil {
				return nil, fmt.Errorf("feature %s of view %s has no range, and mechanism %q needs one", f.Name, v.Name,
					options.MechanismStatistics)
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

// request is what a site asks its gate for.
func (p *declared) request(kind string) (privacy.Request, error) {
	at := slices.Index(kinds, kind)
	if at < 0 {
		return privacy.Request{}, fmt.Errorf("unknown task %q", kind)
	}
	what := []string{
		"noised number of subjects per pattern of present views, and how far each view spreads",
		"noised count, sums and second moments of the features, per pattern",
		"the same about what the sums of all sites told before, strong directions squeezed",
	}[at]
	return privacy.Request{Protection: privacy.Differential, Sums: p.sums[at : at+1],
		Contents: []privacy.Content{{What: what, Values: p.sums[at].Entries()}}}, nil
}

// overview makes the first sum.
func (p *declared) overview(ctx context.Context, s *privacy.Session) error {
	_, err := s.Sum(ctx, moments.SumOverview, func(row *dataset.Row, v []float64) int {
		return p.Overview(row.Views, v)
	})
	return err
}

// moments makes a sum of moments, through a whitening for each pattern.
func (p *declared) moments(ctx context.Context, s *privacy.Session, name string, t *MomentsTask) error {
	all, err := unpackWhitenings(p.layout, t.Whitenings)
	if err != nil {
		return err
	}
	own, err := p.Own(all)
	if err != nil {
		return err
	}
	write := p.Contribution(own)
	_, err = s.Sum(ctx, name, func(row *dataset.Row, v []float64) int { return write(row.Views, v) })
	return err
}

// overviewed is what a site's overview tells.
func (p *declared) overviewed(a *siteSums) moments.Overviewed {
	return moments.Overviewed{Patterns: p.Patterns(), Sums: a.Overview.Floats(0), SD: a.Overview.SD()}
}

// released reads the first sums of a site that were made through these whitenings, and checks them
// against what was declared.
func (p *declared) released(a *siteSums, sums int, whitenings [2][]moments.Whitening) (moments.Released, error) {
	if sums < 1 {
		return nil, fmt.Errorf("sums that nobody has asked for")
	}
	for i, sum := range []*privacy.Noised{&a.Overview, &a.Coarse, &a.Fine}[:sums] {
		if err := sum.Check(p.sums[i]); err != nil {
			return nil, err
		}
	}
	overview := p.overviewed(a)
	counts, variance := overview.Counts()
	r := make(moments.Released, len(counts))
	for i := range r {
		r[i].Count, r[i].CountVar = counts[i], variance
	}
	for i, all := range whitenings[:max(0, sums-1)] {
		own, err := p.Own(all)
		if err != nil {
			return nil, err
		}
		for k := range r {
			if x := &r[k]; i == 0 {
				x.Coarse, x.CoarseSums, x.CoarseSD = &own[k], a.Coarse.Floats(k), a.Coarse.SD()
			} else {
				x.Fine, x.FineSums, x.FineSD = &own[k], a.Fine.Floats(k), a.Fine.SD()
			}
		}
	}
	if sums < len(kinds) {
		return r, nil
	}
	return r, r.Check(p.layout)
}

// OverviewTask asks for the first sum: the plan says all of it.
type OverviewTask struct{}

// MomentsTask asks for the coarse or the fine sum. It is the same at every site.
type MomentsTask struct {
	Whitenings []whiteningMessage `cbor:"lenses"` // of every pattern that a site can have
}

// siteSums is what the coordinator keeps of a site's sums, as far as they have come.
type siteSums struct {
	Overview privacy.Noised `cbor:"overview" json:"overview"`
	Coarse   privacy.Noised `cbor:"coarse" json:"coarse"` // a block per pattern of the site, in the plan's order
	Fine     privacy.Noised `cbor:"fine" json:"fine"`
}

// whiteningMessage is a whitening as it travels and is kept.
type whiteningMessage struct {
	Views    []int       `cbor:"views" json:"views"`
	Bound    float64     `cbor:"bound" json:"bound"`
	Constant float64     `cbor:"constant" json:"constant"`
	Scale    wire.Vector `cbor:"scale" json:"scale"`
	Centre   wire.Vector `cbor:"centre" json:"centre"`
	Axes     wire.Vector `cbor:"axes" json:"axes,omitempty"`
	Squeeze  wire.Vector `cbor:"squeeze" json:"squeeze,omitempty"`
	Strength wire.Vector `cbor:"strength" json:"strength,omitempty"`
}

func packWhitenings(all []moments.Whitening) (m []whiteningMessage) {
	for _, n := range all {
		m = append(m, whiteningMessage{n.Views, n.Bound, n.Constant, n.Scale, n.Centre, n.Axes, n.Shrinkage,
			n.Strength})
	}
	return m
}

func unpackWhitenings(l ppca.Layout, all []whiteningMessage) (whitenings []moments.Whitening, err error) {
	for _, m := range all {
		n := moments.Whitening{Views: m.Views, Bound: m.Bound, Constant: m.Constant,
			Scale: m.Scale, Centre: m.Centre, Axes: m.Axes, Shrinkage: m.Squeeze, Strength: m.Strength}
		if err := n.Check(l); err != nil {
			return nil, err
		}
		whitenings = append(whitenings, n)
	}
	return whitenings, nil
}

// Site is a site's half of a study of noised statistics.
func Site(set options.Setup, name string) (*halves.Site, error) {
	noised, err := newDeclared(set, name)
	if err != nil {
		return nil, err
	}
	return halves.NewSite(set, name, siteWay{set, noised}), nil
}

// siteWay is a site's part where the mechanism is statistics.
type siteWay struct {
	options.Setup
	noised *declared // what it releases
}

func (h siteWay) Request(kind string) (privacy.Request, error) {
	return h.noised.request(kind)
}

func (h siteWay) Run(ctx context.Context, t method.Task, s *privacy.Session, _ *halves.Site) (any, error) {
	at := slices.Index(kinds, t.Kind)
	switch at {
	case -1:
		return nil, fmt.Errorf("unknown task %q", t.Kind)
	case 0:
		return halves.Open(t, func(*OverviewTask) (any, error) { return nil, h.noised.overview(ctx, s) })
	}
	return halves.Open(t, func(task *MomentsTask) (any, error) {
		return nil, h.noised.moments(ctx, s, h.noised.sums[at].Name, task)
	})
}
