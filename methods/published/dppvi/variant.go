package dppvi

import (
	"context"
	"fmt"

	"parley/methods/regression/glm"
	"parley/methods/regression/halves"
	"parley/methods/regression/options"
	"parley/methods/regression/predict"
	"parley/privacy"
	"parley/privacy/account"
	"parley/problem"
)

var _ halves.Private = paper{}

// New is variant published.
func New(c *halves.Common) halves.Variant { return paper{halves.Product{Common: c}} }

// paper is DP-PVI with the settings of the paper, for comparison: every update is an
// [Update].
type paper struct{ halves.Product }

const sumPublished = "gradients of the local free energy"

// update is the arithmetic of a site.
func (s paper) update(site string) *Update {
	return &Update{Likelihood: s.Likelihood, Columns: s.Encoding.Width(), Rows: s.Options.RowsOf(site), Published: *s.Options.Published}
}

// Updates adds up what the sites' totals allow.
func (s paper) Updates() (n int) {
	for _, p := range s.Protected {
		n += p.Updates
	}
	return n
}

// Protection has the noise of the paper, and as many updates as its
// accountant allows.
func (s paper) Protection(site string) (*halves.Protection, error) {
	pr := s.Plan.Privacy
	total := *pr.Total
	if s.Options.Published.DeltaByRows {
		if total.Delta = Delta(s.Options.RowsOf(site)); total.Delta > pr.Total.Delta {
			return nil, problem.Problem{Where: "privacy.total.delta", What: fmt.Sprintf("%v is less than the published δ of site %s with %d rows, %v", pr.Total.Delta, site, s.Options.RowsOf(site), total.Delta),
				Hint: fmt.Sprintf("delta: %v or more, which the promise then says of every site; or leave out published.delta_by_rows", total.Delta)}
		}
	}
	p := &halves.Protection{}
	if d := pr.Diagnostics; d > 0 {
		m := account.Mechanism{Kind: account.Gaussian, Noise: 1, Rate: 1, Diameter: 2, Count: 1}
		factor, err := account.Scale([]account.Mechanism{m}, pr.Adjacency, account.Budget{Epsilon: d * total.Epsilon, Delta: d * total.Delta})
		if err != nil {
			return nil, err
		}
		m.Noise = account.RoundUp(factor)
		p.Quality = predict.Sum(m)
		total = account.Budget{Epsilon: (1 - d) * total.Epsilon, Delta: (1 - d) * total.Delta}
	}
	m := s.update(site).Mechanism()
	n, err := allowed(m, total)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, problem.Problem{Where: "privacy.total", What: fmt.Sprintf("the published accountant allows %d rows not a single update at (ε %v, δ %v)", s.Options.RowsOf(site), total.Epsilon, total.Delta),
			Hint: "a larger total, more published.noise, or variant: partitioned"}
	}
	p.Updates = min(n, s.Options.Rounds*len(s.Plan.Sites))
	p.Sum = privacy.Sum{Name: sumPublished, Unit: privacy.Subject, Form: privacy.Vectors, Blocks: []int{2 * s.Weights()}, Bound: *s.Options.Clip, Kept: true, Mechanism: m}
	return p, nil
}

// Release takes the steps of one update.
func (s paper) Release(ctx context.Context, u *halves.Update, session *privacy.Session, b *glm.Binding) (any, []byte, error) {
	sum := func(contribution func(glm.Row, float64, []float64)) ([]float64, error) {
		noised, err := session.Sum(ctx, sumPublished, s.OverRows(b, contribution))
		if err != nil {
			return nil, err
		}
		return noised.Floats(0), nil
	}
	target, carry, err := s.update(u.Site).Refine(u.Q, u.Factor, u.Carried, options.Draws(s.Plan, "activations", u.Site, u.Number), sum)
	if err != nil {
		return nil, nil, err
	}
	change := target.Over(u.Q)
	if refined, _, _ := glm.Refine(u.Factor, glm.Flat(s.Weights()), change, s.Options.Damping); options.Workable(refined, s.Prior) != nil {
		change = glm.Flat(s.Weights()) // nobody could go on from there, and the coordinator would refuse it
	}
	return options.UpdateAnswer{Change: options.Pack(change)}, carry, nil
}
