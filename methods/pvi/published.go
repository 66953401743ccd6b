package pvi

import (
	"context"
	"fmt"

	"parley/methods/pvi/gvi"
	"parley/methods/pvi/published"
	"parley/privacy"
	"parley/privacy/account"
	"parley/problem"
)

// paper is DP-PVI with the settings of the paper, for comparison; its arithmetic is
// package published.
type paper struct{ product }

const sumPublished = "gradients of the local free energy"

// update is the arithmetic of a site.
func (s paper) update(site string) *published.Update {
	return &published.Update{Likelihood: s.likelihood, Columns: s.encoding.Width(), Rows: s.opts.RowsOf(site), Options: *s.opts.Published}
}

// updates adds up what the sites' totals allow.
func (s paper) updates() (n int) {
	for _, p := range s.protected {
		n += p.updates
	}
	return n
}

// protection has the noise of the paper, and as many updates as its
// accountant allows.
func (s paper) protection(site string) (*protection, error) {
	pr := s.plan.Privacy
	total := *pr.Total
	p := &protection{}
	if d := pr.Diagnostics; d > 0 {
		m := account.Mechanism{Kind: account.Gaussian, Noise: 1, Rate: 1, Diameter: 2, Count: 1}
		factor, err := account.Scale([]account.Mechanism{m}, pr.Adjacency, account.Budget{Epsilon: d * total.Epsilon, Delta: d * total.Delta})
		if err != nil {
			return nil, err
		}
		m.Noise = account.RoundUp(factor)
		p.quality = qualitySum(m)
		total = account.Budget{Epsilon: (1 - d) * total.Epsilon, Delta: (1 - d) * total.Delta}
	}
	m := s.update(site).Mechanism()
	n, err := published.Updates(m, total)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, problem.Problem{Where: "privacy.total", What: fmt.Sprintf("the published accountant allows %d rows not a single update at (ε %v, δ %v)", s.opts.RowsOf(site), total.Epsilon, total.Delta),
			Hint: "a larger total, more published.noise, or variant: partitioned"}
	}
	p.updates = min(n, s.opts.Rounds*len(s.plan.Sites))
	p.sum = privacy.Sum{Name: sumPublished, Unit: privacy.Subject, Form: privacy.Vectors, Blocks: []int{2 * s.weights()}, Bound: *s.opts.Clip, Kept: true, Mechanism: m}
	return p, nil
}

// release takes the steps of one update.
func (s paper) release(ctx context.Context, h *site, t *updateTask, q, factor gvi.Gaussian, session *privacy.Session, b *gvi.Binding) (any, []byte, error) {
	sum := func(contribution func(gvi.Row, float64, []float64)) ([]float64, error) {
		noised, err := session.Sum(ctx, sumPublished, h.overRows(b, contribution))
		if err != nil {
			return nil, err
		}
		return noised.Floats(0), nil
	}
	target, carry, err := s.update(h.name).Refine(q, factor, session.State(), draws(h.plan, "activations", h.name, t.Update), sum)
	if err != nil {
		return nil, nil, err
	}
	change := target.Over(q)
	if refined, _, _ := gvi.Refine(factor, gvi.Flat(h.weights()), change, h.opts.Damping); h.workable(refined) != nil {
		change = gvi.Flat(h.weights()) // nobody could go on from there, and the coordinator would refuse it
	}
	return updateAnswer{Change: packGaussian(change)}, carry, nil
}
