package dppvi

import (
	"fmt"

	"parley/methods/regression/options"
	"parley/methods/regression/predict"
	"parley/privacy"
	"parley/privacy/account"
	"parley/problem"
	"parley/study"
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

// updateOf is the arithmetic of a site with so many rows.
func (c *common) updateOf(rows int) *gradients {
	return &gradients{Likelihood: expectationsOf(c.Likelihood), Columns: c.Encoding.Width(), Rows: rows, updateSettings: *c.own.Update}
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
	m := c.updateOf(c.own.rowsOf(site)).Mechanism()
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

// common is what both halves know of a plan.
type common struct {
	*options.Setup
	own *Options
	// protected is what sites release under differential privacy; nil without it.
	protected map[string]*protection
}

// setup is what a plan says, as a regression has it.
func setup(p *study.Plan) (*options.Setup, *Options, error) {
	o, ok := p.Method.Options.(*Options)
	if !ok {
		return nil, nil, fmt.Errorf("the plan's options are of method %s, not of %s", p.Method.Name, Name)
	}
	s, err := options.Of(p, o.regression())
	return s, o, err
}

// newCommon works out what a plan says to the halves of the given sites.
func newCommon(p *study.Plan, sites []string) (*common, error) {
	s, o, err := setup(p)
	if err != nil {
		return nil, err
	}
	c := &common{Setup: s, own: o}
	if !p.Privacy.Differential() {
		return c, nil
	}
	c.protected = map[string]*protection{}
	for _, site := range sites {
		if c.protected[site], err = c.protect(site); err != nil {
			return nil, fmt.Errorf("site %s: %w", site, err)
		}
	}
	return c, nil
}

func (c *common) global() bool { return c.own.Algorithm == algorithmGlobal }
