package mvppca

import (
	"context"
	"fmt"
	"math"

	"parley/dataset"
	"parley/internal/wire"
	"parley/method"
	"parley/methods/mvppca/moments"
	"parley/methods/mvppca/options"
	"parley/methods/mvppca/ppca"
	"parley/methods/mvppca/use"
	"parley/privacy"
	"parley/privacy/account"
	"parley/study"
)

// statisticsPlan is what every site releases, by the plan alone.
type statisticsPlan struct {
	*moments.Statistics
	layout  ppca.Layout
	minimum int
	sums    []privacy.Sum // overview, coarse and fine moments
	check   *privacy.Sum  // diagnostics of the model; nil where the plan spends nothing on them
}

// newStatisticsPlan plans the releases of a site, and calibrates their noise so
// that together they keep the plan's total.
func newStatisticsPlan(p *study.Plan, o *options.Options, l ppca.Layout) (*statisticsPlan, error) {
	var ranges [][2]float64
	for _, v := range p.Views {
		for _, f := range v.Features {
			if f.Range == nil {
				return nil, fmt.Errorf("feature %s of view %s has no range, and mechanism %q needs one", f.Name, v.Name, options.MechanismStatistics)
			}
			ranges = append(ranges, *f.Range)
		}
	}
	st, err := moments.NewStatistics(l, ranges, o.Statistics.Minimum)
	if err != nil {
		return nil, err
	}
	out := &statisticsPlan{Statistics: st, layout: l, minimum: o.Statistics.Minimum}
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
func (p *statisticsPlan) request() privacy.Request {
	r := privacy.Request{Protection: privacy.Differential, Sums: p.sums, PatternMinimum: p.minimum}
	d := p.sums[1].Blocks[0]
	for i, what := range []string{
		"noised number of subjects per pattern of present views, and how far each view spreads",
		"noised count, sums and second moments of the features, per released pattern",
		"the same about what the sum before told, strong directions squeezed",
	} {
		values := p.sums[i].Blocks[0]
		if i > 0 {
			values = p.Slots() * d * (d + 1) / 2
		}
		r.Contents = append(r.Contents, privacy.Content{What: what, Values: values})
	}
	features := d - 2
	r.Contents = append(r.Contents, privacy.Content{
		What:   "what follows from the noised sums: which patterns were released, and where the next sum looked",
		Values: p.Slots() * (p.layout.Views()*2 + 8 + 4*features + min(features/2, moments.MaxAxes)*(features+2)),
	})
	return r
}

// statisticsTask asks for the release: the plan says all of it.
type statisticsTask struct{}

// statisticsAnswer is what a site sends beside its sums. The lenses follow from
// the sums, but are sent, so that processors that round otherwise see the same
// ones.
type statisticsAnswer struct {
	Lenses []lensMessage `cbor:"lenses"` // those of the coarse sum, then as many of the fine one
}

// statisticsRecord is what the coordinator keeps of a site's release.
type statisticsRecord struct {
	Overview privacy.Noised `cbor:"overview" json:"overview"`
	Coarse   privacy.Noised `cbor:"coarse" json:"coarse"` // blocks of the released patterns alone, in the order of the lenses
	Fine     privacy.Noised `cbor:"fine" json:"fine"`
	Lenses   []lensMessage  `cbor:"lenses" json:"lenses"`
}

// lensMessage is a Lens as it travels and is kept.
type lensMessage struct {
	Views    []int       `cbor:"views" json:"views"`
	Numbers  wire.Vector `cbor:"numbers" json:"numbers"` // count, its variance, bound, constant
	Scale    wire.Vector `cbor:"scale" json:"scale"`
	Centre   wire.Vector `cbor:"centre" json:"centre"`
	Axes     wire.Vector `cbor:"axes" json:"axes"`
	Squeeze  wire.Vector `cbor:"squeeze" json:"squeeze"`
	Strength wire.Vector `cbor:"strength" json:"strength"`
}

func packLens(n *moments.Lens) lensMessage {
	return lensMessage{n.Views, wire.Vector{n.Count, n.CountVar, n.Bound, n.Constant}, n.Scale, n.Centre, n.Axes, n.Squeeze, n.Strength}
}

func (m *lensMessage) lens() (moments.Lens, error) {
	if len(m.Numbers) != 4 {
		return moments.Lens{}, fmt.Errorf("a lens has %d numbers of its own, not 4", len(m.Numbers))
	}
	return moments.Lens{Views: m.Views, Count: m.Numbers[0], CountVar: m.Numbers[1], Bound: m.Numbers[2], Constant: m.Numbers[3],
		Scale: m.Scale, Centre: m.Centre, Axes: m.Axes, Squeeze: m.Squeeze, Strength: m.Strength}, nil
}

// release makes the three sums, each guided by the noised ones before it.
func (p *statisticsPlan) release(ctx context.Context, s *privacy.Session) (*statisticsAnswer, error) {
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
	focused, err := p.Focus(lenses, floatBlocks(coarse), coarse.SD())
	if err != nil {
		return nil, err
	}
	if _, err := p.moments(ctx, s, moments.SumFine, focused); err != nil {
		return nil, err
	}
	a := new(statisticsAnswer)
	for _, list := range [][]moments.Lens{lenses, focused} {
		for i := range list {
			a.Lenses = append(a.Lenses, packLens(&list[i]))
		}
	}
	return a, nil
}

// moments makes the blocks of a sum that have a lens: the others would be noise
// alone.
func (p *statisticsPlan) moments(ctx context.Context, s *privacy.Session, name string, lenses []moments.Lens) (*privacy.Noised, error) {
	write := p.Contribution(lenses)
	return s.First(ctx, name, len(lenses), func(row *dataset.Row, v []float64) int { return write(row.Views, v) })
}

func floatBlocks(n *privacy.Noised) (out [][]float64) {
	for i := range n.Blocks() {
		out = append(out, n.Floats(i))
	}
	return out
}

// released checks a release against what was declared.
func (p *statisticsPlan) released(a *statisticsRecord) (*moments.Released, error) {
	n := len(a.Lenses) / 2
	if n < 1 || n > p.Slots() || len(a.Lenses) != 2*n {
		return nil, fmt.Errorf("%d lenses for two sums of at most %d patterns", len(a.Lenses), p.Slots())
	}
	for i, sum := range []*privacy.Noised{&a.Overview, &a.Coarse, &a.Fine} {
		if err := sum.Check(p.sums[i]); err != nil {
			return nil, err
		}
		if i > 0 && sum.Blocks() != n {
			return nil, fmt.Errorf("sum %q has %d blocks for %d lenses", p.sums[i].Name, sum.Blocks(), n)
		}
	}
	r := &moments.Released{CoarseBlocks: floatBlocks(&a.Coarse), FineBlocks: floatBlocks(&a.Fine), CoarseSD: a.Coarse.SD(), FineSD: a.Fine.SD()}
	for i := range a.Lenses {
		lens, err := a.Lenses[i].lens()
		if err != nil {
			return nil, err
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
func (p *statisticsPlan) follows(r *moments.Released, overview []float64, sd float64) error {
	coarse, err := p.Lenses(overview, sd)
	if err != nil {
		return err
	}
	if len(coarse) != len(r.Coarse) {
		return fmt.Errorf("%d patterns, and the overview leads to %d", len(r.Coarse), len(coarse))
	}
	fine, err := p.Focus(coarse, r.CoarseBlocks, r.CoarseSD)
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

// statisticsRounds makes the model of noised sums, released once, and asks for its
// diagnostics if the plan spends a share on them.
type statisticsRounds struct {
	*coordinator
	noised *statisticsPlan // what every site releases
}

// newStatisticsRounds is the coordinator of a study of noised statistics.
func newStatisticsRounds(p *study.Plan, o *options.Options, l ppca.Layout, noised *statisticsPlan) *statisticsRounds {
	c := &statisticsRounds{coordinator: &coordinator{plan: p, opts: o, layout: l}, noised: noised}
	c.way = c
	return c
}

func (c *statisticsRounds) steps() int {
	if c.noised.check != nil {
		return 2
	}
	return 1
}

func (c *statisticsRounds) begin(s *state) ([]method.Task, method.Info, error) {
	return c.ask(s, options.TaskStatistics, func(string) (any, error) { return statisticsTask{}, nil })
}

func (c *statisticsRounds) advance(s *state) ([]method.Task, method.Info, error) {
	switch s.Phase {
	case options.TaskStatistics:
		return c.statistics(s)
	case options.TaskCheck:
		return c.checked(s)
	}
	return nil, nil, fmt.Errorf("unknown phase %q", s.Phase)
}

func (c *statisticsRounds) receive(a method.Contribution) ([]byte, error) {
	switch a.Kind {
	case options.TaskStatistics:
		sent := new(statisticsAnswer)
		if err := wire.Unmarshal(a.Body, sent); err != nil {
			return nil, err
		}
		x := &statisticsRecord{Lenses: sent.Lenses}
		for i, to := range []*privacy.Noised{&x.Overview, &x.Coarse, &x.Fine} {
			sum, err := a.Sum(c.noised.sums[i].Name)
			if err != nil {
				return nil, err
			}
			*to = *sum
		}
		r, err := c.noised.released(x)
		if err == nil {
			err = c.noised.follows(r, x.Overview.Floats(0), x.Overview.SD())
		}
		return keep(x, err)
	case options.TaskCheck:
		if err := bodiless(a); err != nil {
			return nil, err
		}
		sum, err := a.Sum(moments.SumDiagnostics)
		if err != nil {
			return nil, err
		}
		x := &checkAnswer{Sum: *sum}
		return keep(x, x.check(c.noised))
	}
	return nil, fmt.Errorf("no such task")
}

// estimatesSpread implements rounds: noised statistics differ between sites by their
// noise above all.
func (c *statisticsRounds) estimatesSpread() bool { return false }

func (c *statisticsRounds) describe(s *state, m *use.Model) {
	m.Explains(s.Pooled.explained())
	m.Doubts(s.Doubt)
}

// statistics makes the model of what all sites released. Nothing after this
// costs anything, but for the diagnostics if the plan spends a share on them.
func (c *statisticsRounds) statistics(s *state) ([]method.Task, method.Info, error) {
	var releases []moments.Released
	sites, all, err := answers(c.coordinator, s, func(_ string, a *statisticsRecord) error {
		r, err := c.noised.released(a)
		if err == nil {
			releases = append(releases, *r)
		}
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	repaired, err := moments.Repair(c.layout, releases, c.plan.Seed)
	if err != nil {
		return nil, nil, fmt.Errorf("repairing the sums: %w", err)
	}
	fit, err := repaired.Fit(c.opts.Latent)
	if err != nil {
		return nil, nil, fmt.Errorf("fitting one model to all sites: %w", err)
	}
	if s.Doubt, err = repaired.Uncertainty(fit); err != nil {
		return nil, nil, err
	}
	model, err := ppca.Weak(c.layout, &fit.Params)
	if err != nil {
		return nil, nil, err
	}
	if err := c.canonical(s, model); err != nil {
		return nil, nil, err
	}
	explained, err := ppca.NewExplained(c.layout, &model.Params, repaired.Blocks())
	if err != nil {
		return nil, nil, err
	}
	s.Pooled = pooledOf(explained)
	for i, name := range sites {
		s.site(name).Released = all[i]
	}
	info := method.Info{"iterations": float64(fit.Iterations), "subjects, noised": math.Round(subjectsOf(releases))}
	if c.noised.check != nil {
		tasks, err := c.askCheck(s)
		return tasks, info, err
	}
	s.Phase = phaseDone
	return nil, info, nil
}

// subjectsOf is the noised number of subjects behind some releases, not below 0.
func subjectsOf(releases []moments.Released) (n float64) {
	for i := range releases {
		for _, lens := range releases[i].Fine {
			n += lens.Count
		}
	}
	return max(n, 0)
}

// subjectsSD is the standard deviation of the noise in it.
func subjectsSD(releases []moments.Released) float64 {
	variance := 0.0
	for i := range releases {
		for _, lens := range releases[i].Fine {
			variance += lens.CountVar
		}
	}
	return math.Sqrt(variance)
}
