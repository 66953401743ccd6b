package regression

import (
	"math"

	"parley/methods/regression/glm"
	"parley/methods/regression/options"
	"parley/methods/regression/predict"
	"parley/privacy"
	"parley/privacy/account"
)

// common is what both halves know of a plan.
type common struct {
	*options.Setup
	noised *sums // what sites release
}

func newCommon(s *options.Setup) (*common, error) {
	c := &common{Setup: s}
	var err error
	c.noised, err = c.protect()
	return c, err
}

// sums are what every site releases: in each round one noised natural
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
