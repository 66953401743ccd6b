package dppvi

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"parley/dataset"
	"parley/internal/wire"
	"parley/method"
	"parley/methods/regression/glm"
	"parley/methods/regression/predict"
	"parley/privacy"
	"parley/privacy/account"
	"parley/problem"
	"parley/study"
)

// protection is what one site releases: so many updates of one kind of noised sum, and perhaps one more for the report.
type protection struct {
	updates int
	sum     privacy.Sum  // of one update
	quality *privacy.Sum // how well outcomes are predicted; nil if nothing is spent on it
}

const sumPublished = "gradients of the local free energy"

// updateOf is the arithmetic of a site with so many rows.
func (c *common) updateOf(rows int) *gradients {
	return &gradients{Likelihood: expectationsOf(c.Likelihood), Columns: c.Encoding.Width(), Rows: rows,
		updateSettings: *c.own.Update}
}

// protect has the noise of the paper, and as many updates as its accountant allows.
func (c *common) protect(site string) (*protection, error) {
	pr := c.Plan.Privacy
	total := *pr.Total
	if c.own.Update.DeltaByRows {
		if total.Delta = paperDelta(c.own.rowsOf(site)); total.Delta > pr.Total.Delta {
			return nil, problem.Problem{Where: "privacy.total.delta",
				What: fmt.Sprintf("%v is less than the published δ of site %s with %d rows, %v", pr.Total.Delta, site,
					c.own.rowsOf(site), total.Delta),
				Hint: fmt.Sprintf("delta: %v or more, which the promise then says of every site; or leave out "+
					"update.delta_by_rows", total.Delta)}
		}
	}
	p := &protection{}
	if d := pr.Diagnostics; d > 0 {
		m := account.Mechanism{Kind: account.Gaussian, Noise: 1, Rate: 1, Diameter: 2, Count: 1}
		factor, err := account.Scale([]account.Mechanism{m}, pr.Adjacency,
			account.Budget{Epsilon: d * total.Epsilon, Delta: d * total.Delta})
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
		return nil, problem.Problem{Where: "privacy.total",
			What: fmt.Sprintf("the published accountant allows %d rows not a single update at (ε %v, δ %v)",
				c.own.rowsOf(site), total.Epsilon, total.Delta),
			Hint: "a larger total, more update.noise, or name: regression"}
	}
	p.updates = min(n, c.own.Rounds*len(c.Plan.Sites))
	p.sum = privacy.Sum{Name: sumPublished, Unit: privacy.Subject, Form: privacy.Vectors,
		Blocks: []int{2 * c.Weights()}, Bound: *c.own.Clip, Kept: true, Mechanism: m}
	return p, nil
}

// common is what both halves know of a plan.
type common struct {
	glm.Frame
	own   *Options
	prior glm.Gaussian
	// protected is what sites release under differential privacy; nil without it.
	protected map[string]*protection
}

// newCommon works out what a plan says to the halves of the given sites.
func newCommon(p *study.Plan, sites []string) (*common, error) {
	o, ok := p.Method.Options.(*Options)
	if !ok {
		return nil, fmt.Errorf("the plan's options are of method %s, not of %s", p.Method.Name, Name)
	}
	c := &common{own: o, Frame: glm.Frame{Plan: p, Outcome: o.Outcome, Likelihood: o.likelihood(),
		Encoding: encodingOf(o, p)}}
	err := c.Encoding.Check()
	if err != nil {
		return nil, err
	}
	if c.prior = priorOf(o, &c.Frame); !p.Privacy.Differential() {
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

// draws are the random numbers that the plan's seed has for a purpose at a site.
func (c *common) draws(purpose, site string, n int) *rand.Rand {
	return method.Draws("pvi %d %s %q %d", c.Plan.Seed, purpose, site, n)
}

func (c *common) global() bool { return c.own.Algorithm == algorithmGlobal }

// TaskUpdate asks for a refinement of the site's factor. Tasks are named in the words that progress and logs show.
const TaskUpdate = "update"

const (
	taskScale  = "scale"  // moments for common units of numbers
	taskAssess = "assess" // how well the model predicts the site's outcomes
)

// scale brings numbers to common units, in the plan's order.
type scale struct {
	Centre wire.Vector `cbor:"centre"`
	Scale  wire.Vector `cbor:"scale"`
}

// scaleTask asks for moments of the plan's numbers.
type scaleTask struct{}

// updateTask asks for one update. What a site does with it is decided by the plan
// that it agreed to: the task brings the coordinator's state and chooses nothing.
type updateTask struct {
	Scale  *scale       `cbor:"scale"`
	Q      glm.Gaussian `cbor:"q"`
	Factor glm.Gaussian `cbor:"factor"` // the site's own
	Update int          `cbor:"update"` // the site's count, from 1
}

// updateAnswer is where the local optimisation led from q: the quotient of the two, before damping.
type updateAnswer struct {
	Change glm.Gaussian `cbor:"change"`
}

// stepAnswer is a step of Global VI: the change of means and of logarithms of variances.
type stepAnswer struct {
	Step wire.Vector `cbor:"step"`
}

// assessTask asks how well the model predicts; it is what sites get back, too.
type assessTask struct {
	Scale *scale       `cbor:"scale"`
	Q     glm.Gaussian `cbor:"q"`
}

// Bounds on every number that passes between the halves, beside those of package options: a site's factor is
// bounded by itself, so that posteriors, which hold one factor of each site, stay within taskLargest, which sites
// demand of tasks. So a factor that the coordinator takes never makes another site refuse.
const (
	taskLargest = 1e75
	// factorSure is how many times as sure as the prior a factor may be: beyond about 1e16, the prior is below the
	// rounding of the posterior, and nothing is left of it when the factor is taken out again.
	factorSure = 1e14
	// factorFar is how far from 0 a factor may draw a weight, in standard deviations of the prior times the factor:
	// beyond about 1e9, steps of an optimum to 1e-7 standard deviations are below the rounding of its mean.
	factorFar = 1e8
)

// bounded reports entries of a Gaussian that no honest coordinator sends.
func bounded(g glm.Gaussian) error {
	for j, l := range g.Lambda {
		if !glm.Inside(g.Eta[j], -taskLargest, taskLargest) || !glm.Inside(l, -taskLargest, taskLargest) {
			return fmt.Errorf("natural parameters %v and %v of weight %d are beyond ±%v", g.Eta[j], l, j, taskLargest)
		}
	}
	return nil
}

// boundedDensity reports in addition what is no density over the plan's weights, or has precisions that no honest
// coordinator sends.
func (c *common) boundedDensity(what string, g glm.Gaussian) error {
	err := g.CheckProper(c.Weights())
	for j, l := range g.Lambda {
		if err == nil && !(l >= 1/taskLargest) {
			err = fmt.Errorf("precision %v of weight %d is below %v", l, j, 1/taskLargest)
		}
	}
	if err == nil {
		err = bounded(g)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// workable reports a factor of an exact or published update that leads where no site could work. It depends on this
// factor alone, so that no site answers for what another one has sent.
func workable(factor, prior glm.Gaussian) error {
	if err := factor.Check(len(prior.Lambda)); err != nil {
		return err
	}
	for j, l := range factor.Lambda {
		least := prior.Lambda[j]
		if far := factorFar * math.Sqrt(least+l); !glm.Inside(l, 0, factorSure*least) ||
			!glm.Inside(factor.Eta[j], -far, far) {
			return fmt.Errorf("with precision %v and precision × mean %v of weight %d the factor is beyond all measure",
				l, factor.Eta[j], j)
		}
	}
	return nil
}

// scaled returns the encoding with the constants that the sites' moments tell; s is nil if the plan has them.
func (c *common) scaled(s *scale) (*glm.Encoding, error) {
	if standard := c.own.Scaling == glm.ScaleStandard; standard != (s != nil) {
		return nil, fmt.Errorf("a scale is missing, or the plan has one itself")
	}
	if s == nil {
		return &c.Encoding, nil
	}
	e, err := c.Encoding.Scaled(c.Numbers(), s.Centre, s.Scale)
	if err != nil {
		return nil, err
	}
	return e, e.Check()
}

// names are those of the plan's numbers.
func (c *common) names() (names []string) {
	for _, j := range c.Numbers() {
		names = append(names, c.Encoding.Columns[j].Name)
	}
	return names
}

// moments are those of the numbers of a site's rows.
func (c *common) moments(ctx context.Context, data dataset.Source) (*glm.Moments, error) {
	b, err := c.Encoding.Bind(data.Schema(), nil)
	if err != nil {
		return nil, err
	}
	numbers := c.Numbers()
	m := glm.NewMoments(len(numbers))
	for row, err := range data.Rows(ctx) {
		if err != nil {
			return nil, err
		}
		for i, j := range numbers {
			m.Add(i, b.Cell(row, j))
		}
	}
	return &m, nil
}

// pool makes one scale of the moments of several sites.
func (c *common) pool(sites []*glm.Moments) (*scale, error) {
	names := c.names()
	all := glm.NewMoments(len(names))
	for _, m := range sites {
		all.Merge(m)
	}
	centre, sd, err := all.Scale(names)
	return &scale{centre, sd}, err
}
