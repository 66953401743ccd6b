package federated

import (
	"context"
	"fmt"
	"slices"

	"parley/dataset"
	"parley/method"
	"parley/methods/factors/fitted"
	"parley/methods/factors/halves"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
	"parley/privacy"
)

// Site is a site's half of a federated study.
func Site(set options.Setup, name string) *halves.Site {
	return halves.NewSite(set, name, siteWay{set})
}

// siteWay is a site's part of the exchanges.
type siteWay struct{ options.Setup }

func (h siteWay) Request(string) (privacy.Request, error) {
	d := h.Layout.Features()
	r := privacy.Request{Protection: privacy.Unprotected}
	sets := 1 << min(h.Layout.Views(), 16) // of views, each in half of them
	half := max(sets/2, 1)
	r.Say(2*sets, "number of subjects, for each set of views that are described together")
	r.Say((d+2)*sets/2+1, "which features these have")
	r.Say(min(d*(d+5)/2*half, ppca.LargestExact*sets+3*d*half), fmt.Sprintf("mean and scatter matrix of each set, "+
		"or principal directions that give it; of fewer than %d subjects only together with others, if the site has "+
		"others, which several exchanges together may tell apart; where subjects are fewer than features, whoever "+
		"has a person's values can tell from it whether the person is among them", ppca.Fewest))
	r.Say(2+d*half, "number of missing values that were filled in, and of each feature of each set; "+
		"log-likelihood of the subjects")
	return r, nil
}

func (h siteWay) Run(ctx context.Context, t method.Task, s *privacy.Session, half *halves.Site) (any, error) {
	if t.Kind != options.TaskFit {
		return nil, fmt.Errorf("unknown task %q", t.Kind)
	}
	return halves.Open(t, func(task *FitTask) (any, error) {
		return half.Exact(ctx, s, task.Scale.Effects, func(*ppca.RowSums, dataset.Source) (any, error) {
			blocks, _, err := half.Scaled(&task.Scale)
			if err != nil {
				return nil, err
			}
			model, err := h.model(task)
			if err != nil {
				return nil, err
			}
			return h.sums(blocks, model)
		})
	})
}

// sums is the site's answer. The model fills what subjects lack, if there is one.
func (h siteWay) sums(blocks []ppca.Block, model *ppca.Params) (*FitAnswer, error) {
	said, err := h.describe(model, blocks)
	if err != nil {
		return nil, fmt.Errorf("adding up the site's subjects: %w", err)
	}
	answer := &FitAnswer{Filled: said.Filled, LogLik: said.LogLik}
	for i := range said.Blocks {
		answer.Blocks = append(answer.Blocks, options.PackBlock(&said.Blocks[i]))
	}
	return answer, nil
}

func (h siteWay) describe(model *ppca.Params, blocks []ppca.Block) (*ppca.Description, error) {
	if h.Plan.Privacy.Secure() {
		return ppca.Totals(h.Layout, model, blocks, totalSets(h.Setup))
	}
	return ppca.Describe(h.Layout, model, blocks)
}

// model is the one by which the site fills cells, about a mean of its own where sites have such.
func (h siteWay) model(t *FitTask) (*ppca.Params, error) {
	if t.Model == nil {
		return nil, nil
	}
	model, err := t.Model.Unpack(h.Layout)
	if err != nil {
		return nil, err
	}
	if err := h.CheckRank(model.Rank); err != nil {
		return nil, err
	}
	if t.Offset != nil {
		if err := t.Offset.CheckMean(h.Layout); err != nil {
			return nil, err
		}
	}
	return atSite(model, t.Offset), nil
}

// Sums is what sites say of their rows on a common scale: first, or, if a number of factors is given, once what
// subjects lack was filled by a model of so many that has settled. Filled is how many values they lack.
func Sums(set options.Setup, scale *ppca.Scale, rows []*ppca.RowSums,
	rank int) (sites [][]ppca.Block, filled float64, err error) {
	c, o := way{halves.Common{Setup: set.With(max(rank, 1))}}, &record{Fit: new(outcome)}
	var sent *ppca.Params
	var means *options.SiteMeans
	for {
		var logLik, subjects float64
		sites, filled = nil, 0
		for i, sums := range rows {
			blocks, _, err := sums.Scaled(set.Frame, scale)
			if err != nil {
				return nil, 0, err
			}
			answer, err := (siteWay{c.Setup}).sums(blocks, atSite(sent, means.At(set.Plan.Sites[i])))
			if err != nil {
				return nil, 0, err
			}
			own, err := answer.blocks(set)
			if err != nil {
				return nil, 0, err
			}
			sites = append(sites, own)
			filled, logLik = filled+answer.Filled, logLik+answer.LogLik
			for k := range own {
				subjects += own[k].N
			}
		}
		if rank == 0 || filled == 0 || len(o.LogLik) >= set.Options.Rounds {
			return sites, filled, nil
		}
		found, offsets, differ, err := fitSums(c.Setup, sites, sent)
		if err != nil {
			return nil, 0, err
		}
		if means = nil; differ {
			means = options.PackSiteMeans(set.Plan.Sites, offsets)
		}
		next := &found.Params
		if sent != nil {
			o.LogLik = append(o.LogLik, logLik/subjects)
			if next = c.next(o, sent, &found.Params); o.Fit.Moved < settledBy {
				return sites, filled, nil
			}
		}
		sent = next
	}
}

// atSite is a model about the means of one site.
func atSite(model *ppca.Params, offset *options.Offset) *ppca.Params {
	if model == nil || offset == nil {
		return model
	}
	p := model.Clone()
	for _, j := range p.Features {
		p.Mu[j] += offset.Mean[j]
	}
	return &p
}

// sumNumbers is how many numbers add up to what sites say of a set of subjects with d features: their number, the
// log-likelihood, Σ y, how many cells of each feature were filled, and Σ y yᵀ.
func sumNumbers(d int) int { return 2 + 2*d + d*(d+1)/2 }

// SumNumbers is how many numbers a site's answer has where only totals over sites are told.
func SumNumbers(set options.Setup) (n int) {
	for _, features := range totalSets(set) {
		n += sumNumbers(len(features))
	}
	return n
}

// totalSets are the features of the sets of subjects that all sites describe alike: those of the plan's patterns,
// and one that has all. They are in the order of their views.
func totalSets(set options.Setup) (sets [][]int) {
	l := set.Layout
	all := l.ViewsOf(l.AllFeatures())
	patterns := set.Options.Patterns.At(set.Plan, "")
	if !slices.ContainsFunc(patterns, func(views []int) bool { return len(views) == len(all) }) {
		patterns = append(patterns, all)
	}
	slices.SortFunc(patterns, slices.Compare)
	for _, views := range patterns {
		features, err := l.FeaturesOf(views)
		if err != nil {
			panic(err) // views of the plan
		}
		sets = append(sets, features)
	}
	return sets
}

// Raw is the answer as numbers that add up over sites, of one set after the other.
func (a *FitAnswer) Raw(set options.Setup) ([]float64, error) {
	var out []float64
	blocks := a.Blocks
	for _, features := range totalSets(set) {
		d := len(features)
		out = append(out, make([]float64, sumNumbers(d))...)
		if len(blocks) == 0 || len(blocks[0].Mean) != d {
			continue // nobody has the set
		}
		b := &blocks[0] // a feature that the site lacks is filled for all its subjects, which no whole study's is
		runs, err := ppca.FeaturesOf(b.Runs, set.Layout)
		if err != nil {
			return nil, err
		}
		if len(b.Scatter) != d*(d+1)/2 {
			return nil, fmt.Errorf("%d numbers for the scatter of %d features, where there are %d", len(b.Scatter),
				d, d*(d+1)/2)
		}
		if !slices.Equal(runs, features) {
			continue
		}
		raw := out[len(out)-sumNumbers(d):]
		if raw[0] = b.N; len(blocks) == len(a.Blocks) {
			raw[1] = a.LogLik
		}
		copy(raw[2+d:], b.Filled)
		at := 0
		for i := range d {
			raw[2+i] = b.N * b.Mean[i]
			for j := i; j < d; j++ {
				raw[2+2*d+at] = b.Scatter[at] + b.N*b.Mean[i]*b.Mean[j]
				at++
			}
		}
		blocks = blocks[1:]
	}
	if len(blocks) > 0 {
		return nil, fmt.Errorf("%d sets of subjects that are none of the plan's", len(blocks))
	}
	return out, nil
}

// AnswerOf is the inverse of [FitAnswer.Raw], of all subjects.
func AnswerOf(set options.Setup, sums []float64) (*FitAnswer, error) {
	if n := SumNumbers(set); len(sums) != n {
		return nil, fmt.Errorf("%d sums, where there are %d", len(sums), n)
	}
	out := &FitAnswer{}
	for _, features := range totalSets(set) {
		d := len(features)
		raw := sums[:sumNumbers(d)]
		sums = sums[len(raw):]
		n := raw[0]
		out.LogLik += raw[1]
		if !(n >= 1) {
			continue
		}
		b := ppca.Block{Features: features, N: n, Mean: make([]float64, d), Scatter: make([]float64, d*d),
			Filled: make([]float64, d)}
		filled := 0.0
		for i := range d {
			b.Mean[i] = raw[2+i] / n
			filled += raw[2+d+i]
			b.Filled[i] = min(raw[2+d+i], n-1) // of all only where a few subjects of one site are by themselves
		}
		if out.Filled += filled; filled == 0 {
			b.Filled = nil
		}
		at := 2 + 2*d
		for i := range d {
			for j := i; j < d; j++ {
				x := raw[at] - n*b.Mean[i]*b.Mean[j]
				if i == j {
					x = max(x, 0)
				}
				b.Scatter[i*d+j], b.Scatter[j*d+i] = x, x
				at++
			}
		}
		out.Blocks = append(out.Blocks, options.PackBlock(&b))
	}
	return out, nil
}

// endTotals ends a study of totals, in which no site is asked how well the model describes it: by its sums the
// coordinator knows how well it describes all subjects. What was filled counts as its expectation.
func (c way) endTotals(s *halves.State, model *ppca.Params, sums []ppca.Block) error {
	s.Phase = method.Done
	if err := c.Finish(s, model); err != nil {
		return err
	}
	model, err := s.Model.Unpack(c.Layout)
	if err != nil {
		return err
	}
	x, err := ppca.NewExplained(c.Layout, model, sums)
	if err != nil {
		return err
	}
	a := fitted.Pooled(x)
	a.AbsError = make([]float64, c.Layout.Views())
	views := make([]int, c.Layout.Views())
	for k := range views {
		views[k] = k
	}
	a.Patterns = ppca.PackPatterns([]ppca.Pattern{{Views: views, Subjects: x.Subjects, Share: 1}})
	s.LogLik = x.LogLik / x.Subjects
	if o := recordOf(s); len(o.LogLik) > 0 { // of cells that subjects have
		s.LogLik = o.LogLik[len(o.LogLik)-1]
	}
	a.LogLik, s.OfTotals = s.LogLik*x.Subjects, a
	return nil
}
