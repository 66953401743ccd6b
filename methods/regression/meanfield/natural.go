package meanfield

import (
	"context"
	"math"

	"parley/dataset"
	"parley/method"
	"parley/methods/regression/glm"
	"parley/methods/regression/options"
	"parley/methods/regression/predict"
	"parley/methods/regression/report"
	"parley/privacy"
	"parley/privacy/account"
)

// sums are what every site releases under differential privacy: in each round one noised natural
// gradient over all of its rows ([glm.Natural]), and perhaps once how well outcomes are predicted.
type sums struct {
	update  privacy.Sum
	quality *privacy.Sum
}

const sumNatural = "gradients of the log-likelihood"

func (c *common) natural() glm.Natural {
	return glm.Natural{Likelihood: c.Likelihood, Columns: c.Encoding.Width()}
}

// protect makes every site's sums cost the plan's total together.
func (c *common) protect() (*sums, error) {
	pr := c.Plan.Privacy
	update := account.Mechanism{Kind: account.Gaussian, Noise: 1, Rate: 1, Diameter: 2, Count: c.Options.Rounds}
	all := []account.Mechanism{update}
	if d := pr.Diagnostics; d > 0 {
		// Squares of signal over noise add up, so that these are the shares of the total.
		all = append(all, account.Mechanism{Kind: account.Gaussian, Noise: math.Sqrt((1 - d) / d / float64(c.Options.Rounds)), Rate: 1, Diameter: 2, Count: 1})
	}
	factor, err := account.Scale(all, pr.Adjacency, *pr.Total)
	if err != nil {
		return nil, err
	}
	update.Noise, update.Count = account.RoundUp(factor), 1
	out := &sums{update: privacy.Sum{Name: sumNatural, Unit: privacy.Unit(pr.Unit), Form: privacy.Vectors, Blocks: []int{c.natural().Len()}, Bound: *c.Options.Clip, Mechanism: update}}
	if len(all) > 1 {
		noise := all[1]
		noise.Noise = account.RoundUp(noise.Noise * factor)
		out.quality = predict.Sum(noise)
	}
	return out, nil
}

// tempered is the posterior, which tempers the factors by what noise they hold ([glm.NoiseAware]).
func (c coordinator) tempered(s *report.Factors) glm.Gaussian {
	noise := make([]float64, len(c.Plan.Sites))
	for i := range noise {
		noise[i] = c.noised.update.Mechanism.Noise
	}
	return glm.NoiseAware(c.Prior, c.List(s.Sites), glm.NoiseVariance(*c.Options.Clip, noise, c.Options.Rounds))
}

// release makes the one sum.
func (h *site) release(ctx context.Context, q glm.Gaussian, s *privacy.Session, b *glm.Binding) error {
	contribution := h.natural().Contribution(q)
	if h.noised.update.Unit != privacy.WholeSite {
		_, err := s.Sum(ctx, sumNatural, h.OverRows(b, contribution))
		return err
	}
	_, err := s.Whole(ctx, sumNatural, func(data dataset.Source, v []float64) error {
		read := h.Setup.Reader(b)
		for row, err := range data.Rows(ctx) {
			if err != nil {
				return err
			}
			if x, y, ok := read(row); ok {
				contribution(x, y, v)
			}
		}
		return nil
	})
	return err
}

// foldNoised moves the site's factor by a noised natural gradient at the q that it was
// sent. The noise of an honest site may be anything: no integers are refused, and
// what they lead to is cut where nobody could go on from it.
func (c coordinator) foldNoised(r *options.SiteFactor, in method.Contribution) error {
	noised, err := method.OnlySum(in, sumNatural)
	if err != nil {
		return err
	}
	sum := noised.Floats(0)
	for i := range sum {
		sum[i] = glm.Clamp(sum[i], options.FactorLargest)
	}
	factor := r.Factor.Unchecked()
	change, err := c.natural().Change(r.From.Unchecked(), factor, c.Options.Damping, r.Folded, sum)
	if err != nil {
		return err
	}
	factor = factor.Times(change)
	for j := range factor.Eta {
		factor.Eta[j], factor.Lambda[j] = glm.Clamp(factor.Eta[j], options.FactorLargest), glm.Clamp(factor.Lambda[j], options.FactorLargest)
	}
	r.Factor = options.Pack(factor)
	return nil
}
