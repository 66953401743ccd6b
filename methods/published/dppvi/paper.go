package dppvi

import (
	"context"
	"fmt"

	"parley/methods/regression/glm"
	"parley/methods/regression/options"
	"parley/methods/regression/predict"
	"parley/privacy"
	"parley/privacy/account"
	"parley/problem"
)

// protection is what one site releases: so many updates of one kind of noised sum, and perhaps
// one more for the report.
type protection struct {
	updates int
	sum     privacy.Sum  // of one update
	quality *privacy.Sum // how well outcomes are predicted; nil if nothing is spent on it
}

// request declares one use of a protected site's sum.
func (*protection) request(sum privacy.Sum) privacy.Request {
	r := privacy.Request{Protection: privacy.Differential, Sums: []privacy.Sum{sum}}
	if sum.Kept {
		r.Contents = []privacy.Content{{What: "change of the posterior that the noised gradients lead to", Values: sum.Blocks[0]}}
	}
	return r
}

const sumPublished = "gradients of the local free energy"

// updateOf is the arithmetic of a site.
func (c *common) updateOf(site string) *noisedUpdate {
	return &noisedUpdate{Likelihood: c.Likelihood, Columns: c.Encoding.Width(), Rows: c.own.rowsOf(site), updateSettings: *c.own.Update}
}

// protect has the noise of the paper, and as many updates as its accountant allows.
func (c *common) protect(site string) (*protection, error) {
	pr := c.Plan.Privacy
	total := *pr.Total
	if c.own.Update.DeltaByRows {
		if total.Delta = paperDelta(c.own.rowsOf(site)); total.Delta > pr.Total.Delta {
			return nil, problem.Problem{Where: "privacy.total.delta", What: fmt.Sprintf("%v is less than the published δ of site %s with %d rows, %v", pr.Total.Delta, site, c.own.rowsOf(site), total.Delta),
				Hint: fmt.Sprintf("delta: %v or more, which the promise then says of every site; or leave out update.delta_by_rows", total.Delta)}
		}
	}
	p := &protection{}
	if d := pr.Diagnostics; d > 0 {
		m := account.Mechanism{Kind: account.Gaussian, Noise: 1, Rate: 1, Diameter: 2, Count: 1}
		factor, err := account.Scale([]account.Mechanism{m}, pr.Adjacency, account.Budget{Epsilon: d * total.Epsilon, Delta: d * total.Delta})
		if err != nil {
			return nil, err
		}
		m.Noise = account.RoundUp(factor)
		p.quality = predict.Sum(m)
		total = account.Budget{Epsilon: (1 - d) * total.Epsilon, Delta: (1 - d) * total.Delta}
	}
	m := c.updateOf(site).Mechanism()
	n, err := allowed(m, total)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, problem.Problem{Where: "privacy.total", What: fmt.Sprintf("the published accountant allows %d rows not a single update at (ε %v, δ %v)", c.own.rowsOf(site), total.Epsilon, total.Delta),
			Hint: "a larger total, more update.noise, or name: pvi"}
	}
	p.updates = min(n, c.own.Rounds*len(c.Plan.Sites))
	p.sum = privacy.Sum{Name: sumPublished, Unit: privacy.Subject, Form: privacy.Vectors, Blocks: []int{2 * c.Weights()}, Bound: *c.own.Clip, Kept: true, Mechanism: m}
	return p, nil
}

// release takes the steps of one update.
func (h *site) release(ctx context.Context, u *updating, session *privacy.Session, b *glm.Binding) (any, []byte, error) {
	sum := func(contribution func(glm.Row, float64, []float64)) ([]float64, error) {
		noised, err := session.Sum(ctx, sumPublished, h.OverRows(b, contribution))
		if err != nil {
			return nil, err
		}
		return noised.Floats(0), nil
	}
	target, carry, err := h.updateOf(h.name).Refine(u.q, u.factor, u.carried, options.Draws(h.Plan, "activations", h.name, u.number), sum)
	if err != nil {
		return nil, nil, err
	}
	change := target.Over(u.q)
	if refined, _, _ := glm.Refine(u.factor, glm.Flat(h.Weights()), change, h.own.Damping); options.Workable(refined, h.Prior) != nil {
		change = glm.Flat(h.Weights()) // nobody could go on from there, and the coordinator would refuse it
	}
	return options.UpdateAnswer{Change: options.Pack(change)}, carry, nil
}
