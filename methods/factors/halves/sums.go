package halves

import (
	"cmp"
	"fmt"
	"slices"

	"gonum.org/v1/gonum/floats"

	"parley/method"
	"parley/methods/factors/between"
	"parley/methods/factors/fitted"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
	"parley/privacy"
)

// sayFit adds the numbers of a [ppca.Description] to what is released: upper bounds.
func sayFit(r *privacy.Request, h options.Setup) {
	d := h.Layout.Features()
	sets := 1 << min(h.Layout.Views(), 16) // of views, each in half of them
	half := max(sets/2, 1)
	r.Say(2*sets, "number of subjects, for each set of views that are described together")
	r.Say((d+3)*sets/2+1, "which features these have")
	bound, most, along := h.Bound(nil, nil), h.Most, ""
	if !bound.Triangle(d) {
		most = max(most, d*(1+bound.Along.Count))
		along = fmt.Sprintf("or, where these are more than %d numbers, sums of squares, and of products of each "+
			"feature with %d combinations of features that the task names; ", h.Most, bound.Along.Count)
	}
	r.Say(min(d*(d+5)/2*half, most*sets+3*d*half), fmt.Sprintf("mean and scatter matrix of each set, or principal "+
		"directions that give it; %sof fewer than %d subjects only together with others, if the site has others, "+
		"which several exchanges together may tell apart; where subjects are fewer than features, whoever has a "+
		"person's values can tell from it whether the person is among them", along, ppca.Fewest))
	r.Say(2+d*half, "number of missing values that were filled in, and of each feature of each set; "+
		"log-likelihood of the subjects")
}

// describe is the site's answer. The model fills what subjects lack, if there is one.
func describe(h options.Setup, model *ppca.Params, beside []float64, blocks []ppca.Block) (*ppca.Description, error) {
	bound, given := h.Bound(model, beside), [][]int(nil)
	if h.Options.OnePopulation() {
		if h.Plan.Privacy.Secure() || h.Options.Rounds > 0 { // what sets that add up lack, exchanges fill
			given = h.TotalSets()
		}
		if model == nil {
			model = ppca.Uncorrelated(h.Layout)
		}
	}
	return ppca.Describe(h.Layout, model, blocks, given, bound)
}

// model is the one by which a site fills cells, about a mean of its own where sites have such.
func (t *FitTask) model(h options.Setup) (*ppca.Params, error) {
	if t.Model == nil {
		return nil, nil
	}
	if err := cmp.Or(t.Model.Check(h.Layout), h.CheckRank(t.Model.Rank)); err != nil {
		return nil, err
	}
	if t.Offset != nil {
		if err := t.Offset.CheckMean(h.Layout); err != nil {
			return nil, err
		}
	}
	return atSite(t.Model, t.Offset), nil
}

// Sums is what sites say of their rows on a common scale: first, or, if a number of factors is given, once a model of
// so many has settled. Again says whether another model would have them say something else.
func Sums(set options.Setup, scale *ppca.Scale, rows []*ppca.RowSums,
	rank int) (sites [][]ppca.Block, again bool, err error) {
	c, o := Coordinator{Setup: set.With(max(rank, 1))}, new(fitState)
	var sent *ppca.Params
	var means *between.Offsets
	for {
		got := &answered{names: set.Plan.Sites}
		for i, sums := range rows {
			model := atSite(sent, means.At(set.Plan.Sites[i]))
			said, err := describe(c.Setup, model, o.Beside, sums.In(scale))
			if err == nil {
				err = take(c.Setup, said, c.Bound(sent, o.Beside).Along)
			}
			if err != nil {
				return nil, false, err
			}
			got.add(c.Layout, said)
		}
		if rank == 0 || !got.again() || len(o.LogLik) >= set.Options.Rounds {
			return got.sites, got.again(), nil
		}
		found, err := c.exchange(o, got, sent, sent)
		if err != nil || sent != nil && found.moved < settledBy {
			return got.sites, got.again(), err
		}
		sent, means = found.next, found.about
	}
}

// atSite is a model about the means of one site.
func atSite(model *ppca.Params, offset *between.SiteOffset) *ppca.Params {
	if model == nil || offset == nil {
		return model
	}
	p := model.Clone()
	for _, j := range p.Features {
		p.Mu[j] += offset.Mean[j]
	}
	return &p
}

// Raw is the answer to a task as numbers that add up over sites, of one set after the other.
func Raw(set options.Setup, a *ppca.Description, task *FitTask) ([]float64, error) {
	model, err := task.model(set)
	if err != nil {
		return nil, err
	}
	var out []float64
	blocks, bound := a.Blocks, set.Bound(model, task.Beside)
	for _, features := range set.TotalSets() {
		d := len(features)
		raw := make([]float64, bound.Sums(d))
		out = append(out, raw...)
		if len(blocks) == 0 || !slices.Equal(blocks[0].Features, features) {
			continue // nobody has the set
		}
		b := &blocks[0]
		raw = out[len(out)-len(raw):]
		if raw[0] = b.N; len(blocks) == len(a.Blocks) {
			raw[1] = a.LogLik
		}
		floats.AddScaled(raw[2:2+d], b.N, b.Mean)
		copy(raw[2+d:], b.Filled)
		if rest := raw[2+2*d:]; !bound.Triangle(d) {
			if b.Products == nil { // of subjects who do not scatter
				*b = b.Along(bound.Along)
			}
			b.AboutZero(bound.Along, false)
			copy(rest[copy(rest, b.Diag):], b.Products)
		} else {
			*b = b.Dense()
			for i := range d {
				for j := i; j < d; j++ {
					rest[0], rest = b.Scatter[i*d+j]+b.N*b.Mean[i]*b.Mean[j], rest[1:]
				}
			}
		}
		blocks = blocks[1:]
	}
	if len(blocks) > 0 {
		return nil, fmt.Errorf("%d sets of subjects that are none of the plan's", len(blocks))
	}
	return out, nil
}

// flat is the share of a feature's squares, and of those of all, below which what a mean leaves of them is rounding.
const flat = 1e-9

// AnswerOf is the inverse of [Raw], of all subjects, but for products with directions: these are still of
// values and not of deviations from the mean.
func AnswerOf(set options.Setup, sums []float64) (*ppca.Description, error) {
	if n := set.SumNumbers(); len(sums) != n {
		return nil, fmt.Errorf("%d sums, where there are %d", len(sums), n)
	}
	out, bound := &ppca.Description{}, set.Bound(nil, nil)
	for _, features := range set.TotalSets() {
		d := len(features)
		raw := sums[:bound.Sums(d)]
		sums = sums[len(raw):]
		n := raw[0]
		out.LogLik += raw[1]
		if !(n >= 1) {
			continue
		}
		b := ppca.Block{Features: features, N: n, Mean: make([]float64, d), Filled: slices.Clone(raw[2+d:][:d])}
		floats.ScaleTo(b.Mean, 1/n, raw[2:][:d])
		if out.Filled += floats.Sum(b.Filled); slices.Max(b.Filled) == 0 {
			b.Filled = nil
		}
		if rest := raw[2+2*d:]; bound.Triangle(d) {
			b.Scatter = make([]float64, d*d)
			for i := range d {
				for j := i; j < d; j++ {
					x := rest[0] - n*b.Mean[i]*b.Mean[j]
					if i == j && x < flat*(n+rest[0]) {
						x = 0
					}
					b.Scatter[i*d+j], b.Scatter[j*d+i], rest = x, x, rest[1:]
				}
			}
		} else {
			b.Diag, b.Products = rest[:d], rest[d:]
		}
		out.Blocks = append(out.Blocks, b)
	}
	return out, nil
}

// endTotals ends a study of totals, in which no site is asked how well the model describes it: by its sums the
// coordinator knows how well it describes all subjects. What was filled counts as its expectation.
func (c Coordinator) endTotals(s *State, got *answered) error {
	s.Phase = method.Done
	if err := c.Finish(s, s.Model); err != nil {
		return err
	}
	x, logLik, subjects, err := ppca.NewExplained(c.Layout, s.Model, got.sites[0])
	if err != nil {
		return err
	}
	if got.again() {
		logLik = got.logLik // of cells that subjects have
	}
	a := &fitted.Assessment{Explained: *x, LogLik: logLik}
	views := make([]int, c.Layout.Views())
	for k := range views {
		views[k] = k
	}
	a.Patterns = []ppca.Pattern{{Views: views, Subjects: int(subjects), Share: 1}}
	s.LogLik, s.OfTotals = logLik/subjects, a
	return nil
}
