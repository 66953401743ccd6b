package federated

import (
	"fmt"
	"slices"

	"parley/method"
	"parley/methods/factors/halves"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
)

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
		runs, err := options.FeaturesOf(b.Runs, set.Layout)
		if err != nil {
			return nil, err
		}
		if len(b.Scatter) != d*(d+1)/2 {
			return nil, fmt.Errorf("%d numbers for the scatter of %d features, where there are %d", len(b.Scatter), d, d*(d+1)/2)
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
		b := ppca.Block{Features: features, N: n, Mean: make([]float64, d), Scatter: make([]float64, d*d), Filled: make([]float64, d)}
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

// endTotals ends a study of totals, in which no site is asked how well the model describes it: by its sums the coordinator
// knows how well it describes all subjects. What was filled counts as its expectation.
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
	a := options.Pooled(x)
	a.AbsError = make([]float64, c.Layout.Views())
	views := make([]int, c.Layout.Views())
	for k := range views {
		views[k] = k
	}
	a.Patterns = options.PackPatterns([]ppca.Pattern{{Views: views, Subjects: x.Subjects, Share: 1}})
	s.LogLik = x.LogLik / x.Subjects
	if o := recordOf(s); len(o.LogLik) > 0 { // of cells that subjects have
		s.LogLik = o.LogLik[len(o.LogLik)-1]
	}
	a.LogLik, s.OfTotals = s.LogLik*x.Subjects, a
	return nil
}
