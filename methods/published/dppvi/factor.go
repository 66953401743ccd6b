package dppvi

import (
	"fmt"
	"math"

	"parley/methods/regression/glm"
)

// siteFactor is what a coordinator knows of a site whose factor it keeps, in a posterior that is
// the prior times the factors of all sites: so no change can be in q and not in a factor.
type siteFactor struct {
	Factor  glm.Gaussian `cbor:"factor"`
	From    glm.Gaussian `cbor:"from"`  // q as the site was sent it with the update that it works on
	Asked   int          `cbor:"asked"` // updates asked for
	Folded  int          `cbor:"folded"`
	Moved   float64      `cbor:"moved"`  // by its last update, before damping: see moved
	Before  float64      `cbor:"before"` // the same of the update before that
	Moments *glm.Moments `cbor:"moments"`
}

// waits says whether an update of the site is on its way.
func (r *siteFactor) waits() bool { return r.Asked > r.Folded }

// factors are those of all sites before any update.
func (c *common) factors() map[string]*siteFactor {
	sites := map[string]*siteFactor{}
	for _, name := range c.Plan.Sites {
		sites[name] = &siteFactor{Factor: flat(c.Weights())}
	}
	return sites
}

// poolFactors makes a common scale from the sites' moments, which are then forgotten.
func (c *common) poolFactors(sites map[string]*siteFactor) (*scale, error) {
	var moments []*glm.Moments
	for _, site := range c.Plan.Sites {
		if r := sites[site]; r.Moments != nil {
			moments = append(moments, r.Moments)
			r.Moments = nil
		}
	}
	return c.pool(moments)
}

// product is the prior times the factors.
func (c *common) product(sites map[string]*siteFactor) (glm.Gaussian, error) {
	q := c.prior
	for _, name := range c.Plan.Sites {
		q = times(q, sites[name].Factor)
	}
	return q, q.CheckProper(c.Weights())
}

// ask is the task of a site's next update, from q.
func (r *siteFactor) ask(scale *scale, q glm.Gaussian) updateTask {
	r.Asked++
	r.From = q
	return updateTask{Scale: scale, Q: q, Factor: r.Factor, Update: r.Asked}
}

// openModel checks what makes predictions against the plan.
func (c *common) openModel(scale *scale, q glm.Gaussian) (*glm.Encoding, error) {
	e, err := c.scaled(scale)
	if err != nil {
		return nil, err
	}
	return e, c.boundedDensity("q", q)
}

// optimum is the exact update: it finds the optimum of the local free energy.
func (c *common) optimum(q, factor glm.Gaussian, d *glm.Design) (*updateAnswer, error) {
	local := freeEnergy{Likelihood: expectationsOf(c.Likelihood), Data: d, Cavity: over(q, factor)}
	// Counts that are far from what others expect come nearer by a factor of e in a step.
	target, info, err := local.Optimum(q, 1000)
	if err != nil {
		return nil, err
	}
	if !info.Converged {
		return nil, fmt.Errorf("%w: after %d steps the last was %.1e standard deviations", glm.ErrNotConverged,
			info.Steps, info.Step)
	}
	return &updateAnswer{Change: over(target, q)}, nil
}

// moved says how far a change leads from q: the largest shift of a mean, in
// standard deviations, or of the logarithm of a precision.
func moved(q, change glm.Gaussian) float64 {
	far := 0.0
	for j, l := range q.Lambda {
		next := l + change.Lambda[j]
		shift := (q.Eta[j]+change.Eta[j])/next - q.Eta[j]/l
		far = max(far, math.Abs(shift)*math.Sqrt(l), math.Abs(math.Log(next/l)))
	}
	if !glm.Finite(far) { // a change that belongs to another q may lead beyond this one
		return math.MaxFloat64
	}
	return far
}

// closeEnough is how far from its end, in standard deviations, a fit counts as converged: as close as a joint one.
const closeEnough = 0.01

// settled says whether none of the sites' last updates moved q by more than the tolerance, nor
// would all later ones together move it far: many small steps are a long way.
func (c *common) settled(sites map[string]*siteFactor, staying []string) bool {
	if c.own.Tolerance == nil {
		return false
	}
	for _, site := range staying {
		if r := sites[site]; r.Folded == 0 || r.Moved > *c.own.Tolerance {
			return false
		}
	}
	return c.remaining(sites, staying) <= closeEnough
}

// remaining estimates how far q is from where updates would lead it, in standard deviations. Steps
// of partitioned inference shrink by nearly the same factor ρ from one of a site's updates to
// the next, so that those still to come add up to ρ/(1 − ρ) times the last (Aitken's
// extrapolation). Infinite where steps do not shrink, or a site has made only one.
func (c *common) remaining(sites map[string]*siteFactor, staying []string) float64 {
	last, before := 0.0, 0.0
	for _, site := range staying {
		r := sites[site]
		if r.Folded == 0 {
			return math.Inf(1)
		}
		last, before = last+c.own.Damping*r.Moved, before+c.own.Damping*r.Before
	}
	switch rest := before - last; {
	case last < closeEnough*1e-4: // rounding
		return 0
	case rest > 0:
		return last * max(last/rest, 1)
	}
	return math.Inf(1)
}

// trace is what updates of all sites did.
type trace struct {
	Folded    int     `cbor:"folded"`
	LastKL    float64 `cbor:"last_kl"`   // the divergence that the last one made
	Projected int     `cbor:"projected"` // how many weights a factor was projected in, over all updates
}

// follow counts an update.
func (t *trace) follow(before, after glm.Gaussian) error {
	kl, err := divergence(after, before)
	if err != nil {
		return fmt.Errorf("after this answer: %w", err)
	}
	if t.Folded, t.LastKL = t.Folded+1, kl; !glm.Finite(kl) { // precisions whose quotient has no digits
		t.LastKL = math.MaxFloat64
	}
	return nil
}

// divergence returns KL(g‖h) = ½ Σ [ln(λ/κ) + κ/λ + κ (m − n)² − 1] in
// nats, of densities with precisions λ and κ and means m and n.
func divergence(g, h glm.Gaussian) (float64, error) {
	d := len(g.Eta)
	for _, x := range []glm.Gaussian{g, h} {
		if err := x.CheckProper(d); err != nil {
			return 0, err
		}
	}
	kl := 0.0
	for j := range d {
		diff := g.Eta[j]/g.Lambda[j] - h.Eta[j]/h.Lambda[j]
		// r − 1 − ln r for the ratio r of variances, without cancellation near 1.
		x := (h.Lambda[j] - g.Lambda[j]) / g.Lambda[j]
		kl += (x - math.Log1p(x) + h.Lambda[j]*diff*diff) / 2
	}
	return kl, nil
}

// refine replaces a site's factor t after its local optimisation has led from q to target: t·(target/q)^damping, set
// to 1 in every weight where its precision would be negative. As factors never take precision away, the product of the
// prior and any of them stays a density, and so does every cavity. It returns the new factor, the change by which q is
// to be multiplied (equation 5), and in how many weights the factor was projected so.
func refine(t, q, target glm.Gaussian, damping float64) (factor, change glm.Gaussian, projected int) {
	change = power(over(target, q), damping)
	factor = times(t, change)
	for j, l := range factor.Lambda {
		if l < 0 {
			factor.Eta[j], factor.Lambda[j] = 0, 0
			projected++
		}
	}
	if projected > 0 {
		change = over(factor, t)
	}
	return factor, change, projected
}

// informationOf is what a factor says: the sum over weights of the precision it
// adds in units of the prior's, a measure of what each site contributed.
func informationOf(factor, prior glm.Gaussian) float64 {
	s := 0.0
	for j, l := range factor.Lambda {
		s += l / prior.Lambda[j]
	}
	return s
}
