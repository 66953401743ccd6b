package federated

import (
	"fmt"

	"parley/method"
	"parley/methods/factors/halves"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
)

// SumNumbers is how many numbers add up to a site's answer about d features, where only totals over
// sites are told: the number of subjects, Σ y, Σ y yᵀ, how many cells of each feature were filled, and the log-likelihood.
func SumNumbers(d int) int { return 2 + 2*d + d*(d+1)/2 }

// Raw is the answer as numbers that add up over sites: all its subjects are one set, which has all features.
func (a *FitAnswer) Raw(set options.Setup) ([]float64, error) {
	d := set.Layout.Features()
	out := make([]float64, SumNumbers(d))
	if len(a.Blocks) == 0 { // the site has fewer subjects than the plan's minimum
		return out, nil
	}
	b := &a.Blocks[0] // a feature that the site lacks is filled for all its subjects, which no whole study's is
	if len(a.Blocks) != 1 || len(b.Mean) != d || len(b.Scatter) != d*(d+1)/2 {
		return nil, fmt.Errorf("%d sets of subjects, the first with %d of %d features, where one has all", len(a.Blocks), len(b.Mean), d)
	}
	out[0], out[1] = b.N, a.LogLik
	copy(out[2+d:], b.Filled)
	at := 0
	for i := range d {
		out[2+i] = b.N * b.Mean[i]
		for j := i; j < d; j++ {
			out[2+2*d+at] = b.Scatter[at] + b.N*b.Mean[i]*b.Mean[j]
			at++
		}
	}
	return out, nil
}

// AnswerOf is the inverse of [FitAnswer.Raw], of all subjects.
func AnswerOf(set options.Setup, sums []float64) (*FitAnswer, error) {
	d := set.Layout.Features()
	if len(sums) != SumNumbers(d) {
		return nil, fmt.Errorf("%d sums of %d features", len(sums), d)
	}
	n := sums[0]
	if !(n >= 1) {
		return &FitAnswer{}, nil
	}
	b := ppca.Block{Features: set.Layout.AllFeatures(), N: n, Mean: make([]float64, d), Scatter: make([]float64, d*d), Filled: make([]float64, d)}
	out := &FitAnswer{LogLik: sums[1]}
	for i := range d {
		b.Mean[i], b.Filled[i] = sums[2+i]/n, sums[2+d+i]
		out.Filled += b.Filled[i]
	}
	if out.Filled == 0 {
		b.Filled = nil
	}
	at := 2 + 2*d
	for i := range d {
		for j := i; j < d; j++ {
			x := sums[at] - n*b.Mean[i]*b.Mean[j]
			if i == j {
				x = max(x, 0)
			}
			b.Scatter[i*d+j], b.Scatter[j*d+i] = x, x
			at++
		}
	}
	out.Blocks = []options.Block{options.PackBlock(&b)}
	return out, nil
}

// endTotals ends a study of totals, in which no site is asked how well the model describes it: by its sums the coordinator
// knows how well it describes all subjects. What was filled counts as its expectation.
func (c way) endTotals(s *halves.State, prior *ppca.Prior, sums []ppca.Block) error {
	s.Phase = method.Done
	if err := c.Finish(s, prior); err != nil {
		return err
	}
	model, err := s.Model.Params.Unpack(c.Layout)
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
