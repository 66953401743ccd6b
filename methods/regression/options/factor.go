package options

import (
	"fmt"
	"math"
	"slices"

	"parley/internal/wire"
	"parley/method"
	"parley/methods/regression/glm"
	"parley/privacy"
)

// SiteFactor is what a coordinator knows of a site whose factor it keeps, in a posterior that is
// the prior times the factors of all sites: so no change can be in q and not in a factor.
type SiteFactor struct {
	Factor  Gaussian     `cbor:"factor"`
	From    Gaussian     `cbor:"from"`  // q as the site was sent it with the update that it works on
	Asked   int          `cbor:"asked"` // updates asked for
	Folded  int          `cbor:"folded"`
	Moved   float64      `cbor:"moved"`  // by its last update, before damping: see moved
	Before  float64      `cbor:"before"` // the same of the update before that
	Moments *ScaleAnswer `cbor:"moments"`
}

// Waits says whether an update of the site is on its way.
func (r *SiteFactor) Waits() bool { return r.Asked > r.Folded }

// Factors are those of all sites before any update.
func (s *Setup) Factors() map[string]*SiteFactor {
	sites := map[string]*SiteFactor{}
	for _, name := range s.Plan.Sites {
		sites[name] = &SiteFactor{Factor: Pack(glm.Flat(s.Weights()))}
	}
	return sites
}

// CheckFactors refuses factors that no sites' answers can have left.
func (s *Setup) CheckFactors(sites map[string]*SiteFactor) error {
	for _, name := range s.Plan.Sites {
		if sites[name] == nil {
			return fmt.Errorf("the state has no site %s", name)
		}
	}
	return method.Kept(sites, s.Plan.Sites, "record", func(r *SiteFactor) error {
		if r.Asked < 0 || r.Folded < 0 || r.Folded > r.Asked || !(r.Moved >= 0) || !(r.Before >= 0) {
			return fmt.Errorf("%d updates asked for, %d folded, that moved it by %v and %v", r.Asked, r.Folded, r.Before, r.Moved)
		}
		if _, err := r.Factor.Factor(s.Weights()); err != nil {
			return fmt.Errorf("factor: %w", err)
		}
		if r.Waits() {
			if _, err := r.From.Density(s.Weights()); err != nil {
				return fmt.Errorf("q: %w", err)
			}
		}
		if r.Moments == nil {
			return nil
		}
		return r.Moments.Check(s.Counted())
	})
}

// PoolFactors makes a common scale from the sites' moments, which are then forgotten.
func (s *Setup) PoolFactors(sites map[string]*SiteFactor) (*Scale, error) {
	var moments []*ScaleAnswer
	for _, site := range s.Plan.Sites {
		if r := sites[site]; r.Moments != nil {
			moments = append(moments, r.Moments)
			r.Moments = nil
		}
	}
	return s.Pool(moments)
}

// List returns the factors in the plan's order.
func (s *Setup) List(sites map[string]*SiteFactor) (factors []glm.Gaussian) {
	for _, name := range s.Plan.Sites {
		factors = append(factors, sites[name].Factor.Unchecked())
	}
	return factors
}

// Product is the prior times the factors.
func (s *Setup) Product(sites map[string]*SiteFactor) (glm.Gaussian, error) {
	q := s.Prior
	for _, f := range s.List(sites) {
		q = q.Times(f)
	}
	return q, q.CheckProper(s.Weights())
}

// Ask is the task of a site's next update, from q.
func (r *SiteFactor) Ask(scale *Scale, q glm.Gaussian) UpdateTask {
	r.Asked++
	r.From = Pack(q)
	return UpdateTask{Scale: scale, Q: Pack(q), Factor: r.Factor, Update: r.Asked}
}

// OpenModel checks what makes predictions against the plan.
func (s *Setup) OpenModel(scale *Scale, m Gaussian) (e *glm.Encoding, q glm.Gaussian, err error) {
	if e, err = s.Scaled(scale); err != nil {
		return nil, q, err
	}
	if q, err = m.Density(s.Weights()); err == nil {
		err = boundedDensity(q)
	}
	if err != nil {
		return nil, q, fmt.Errorf("q: %w", err)
	}
	return e, q, nil
}

// OpenUpdate checks the task of one update, of at most so many, against the plan. Every number has
// a bound, so that none can lead a computation out of what it was made for; that a task is refused
// does not depend on the site's rows. With a cavity, q is divided by the site's own factor.
func (s *Setup) OpenUpdate(t *UpdateTask, most int, cavity bool) (q, factor glm.Gaussian, err error) {
	if t.Update < 1 || t.Update > most {
		return q, factor, fmt.Errorf("update %d: the plan has 1 to %d", t.Update, most)
	}
	if _, q, err = s.OpenModel(t.Scale, t.Q); err != nil {
		return q, factor, err
	}
	if factor, err = t.Factor.Factor(s.Weights()); err == nil {
		err = bounded(factor)
	}
	if err != nil {
		return q, factor, fmt.Errorf("factor: %w", err)
	}
	if !cavity {
		return q, factor, nil
	}
	rest := q.Over(factor)
	if err = rest.CheckProper(s.Weights()); err == nil {
		err = boundedDensity(rest)
	}
	if err != nil {
		return q, factor, fmt.Errorf("cavity: %w", err)
	}
	return q, factor, nil
}

// ScaleSays is what a [ScaleAnswer] tells.
func (s *Setup) ScaleSays() privacy.Content {
	return privacy.Content{What: "number of values, mean and sum of squared deviations of each number", Values: 3 * len(s.Numbers())}
}

// ChangeSays is what an [UpdateAnswer] of an exact optimum tells.
func (s *Setup) ChangeSays() privacy.Content {
	return privacy.Content{What: "change of the posterior's precision and precision × mean of each weight that the site's rows ask for", Values: 2 * s.Weights()}
}

// Optimum is the exact update: it finds the optimum of the local free energy.
func (s *Setup) Optimum(q, factor glm.Gaussian, d *glm.Design) (*UpdateAnswer, error) {
	local := glm.Local{Likelihood: s.Likelihood, Data: d, Cavity: q.Over(factor)}
	// Counts that are far from what others expect come nearer by a factor of e in a step.
	target, info, err := local.Optimum(q, glm.Solve{MaxSteps: 1000})
	if err != nil {
		return nil, err
	}
	if !info.Converged {
		return nil, fmt.Errorf("%w: after %d steps the last was %.1e standard deviations", glm.ErrNotConverged, info.Steps, info.Step)
	}
	return &UpdateAnswer{Change: Pack(target.Over(q))}, nil
}

// FoldChange moves the site's factor by the change that its answer asks for, where the posterior
// is q, and returns in how many weights it was projected.
func (s *Setup) FoldChange(r *SiteFactor, in method.Contribution, q glm.Gaussian) (projected int, err error) {
	a := new(UpdateAnswer)
	if err := method.DecodeAnswer(in, a); err != nil {
		return 0, err
	}
	change, err := a.Change.Factor(s.Weights())
	if err != nil {
		return 0, err
	}
	// Damping and projection need the quotient of the optimum and q alone.
	factor, applied, projected := glm.Refine(r.Factor.Unchecked(), glm.Flat(s.Weights()), change, s.Options.Damping)
	if err := Workable(factor, s.Prior); err != nil {
		return 0, fmt.Errorf("after this answer: %w", err)
	}
	r.Factor = Pack(factor)
	r.Before, r.Moved = r.Moved, moved(q, applied)/s.Options.Damping
	return projected, nil
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

// Near is how far from its end, in standard deviations, a fit counts as converged: as close
// as a joint one.
const Near = 0.01

// Settled says whether none of the sites' last updates moved q by more than the tolerance, nor
// would all later ones together move it far: many small steps are a long way.
func (s *Setup) Settled(sites map[string]*SiteFactor, staying []string) bool {
	if s.Options.Tolerance == nil {
		return false
	}
	for _, site := range staying {
		if r := sites[site]; r.Folded == 0 || r.Moved > *s.Options.Tolerance {
			return false
		}
	}
	return s.Remaining(sites, staying) <= Near
}

// Remaining estimates how far q is from where updates would lead it, in standard deviations. Steps
// of partitioned inference shrink by nearly the same factor ρ from one of a site's updates to
// the next, so that those still to come add up to ρ/(1 − ρ) times the last (Aitken's
// extrapolation). Infinite where steps do not shrink, or a site has made only one.
func (s *Setup) Remaining(sites map[string]*SiteFactor, staying []string) float64 {
	last, before := 0.0, 0.0
	for _, site := range staying {
		r := sites[site]
		if r.Folded == 0 {
			return math.Inf(1)
		}
		last, before = last+s.Options.Damping*r.Moved, before+s.Options.Damping*r.Before
	}
	switch rest := before - last; {
	case last < Near*1e-4: // rounding
		return 0
	case rest > 0:
		return last * max(last/rest, 1)
	}
	return math.Inf(1)
}

// Trace is what updates of all sites did.
type Trace struct {
	Folded    int          `cbor:"folded"`
	LastKL    float64      `cbor:"last_kl"`   // the divergence that the last one made
	Projected int          `cbor:"projected"` // how many weights a factor was projected in, over all updates
	Points    []tracePoint `cbor:"points"`
	Stride    int          `cbor:"stride"` // of the points; 0 is 1
}

// tracePoint is what one update did.
type tracePoint struct {
	Update int     `cbor:"update"` // the study's count, from 1
	KL     float64 `cbor:"kl"`     // of the new q from the old, in nats
}

// maxTrace bounds what a checkpoint holds of a long study.
const maxTrace = 1000

// Check refuses a trace that no study has left.
func (t *Trace) Check() error {
	if t.Folded < 0 || t.Projected < 0 || t.Stride < 0 || len(t.Points) > maxTrace {
		return fmt.Errorf("a trace of %d updates, with %d projections and %d points", t.Folded, t.Projected, len(t.Points))
	}
	return nil
}

// Follow keeps a point; of a long study only every second, fourth, …
func (t *Trace) Follow(before, after glm.Gaussian) error {
	kl, err := after.KL(before)
	if err != nil {
		return fmt.Errorf("after this answer: %w", err)
	}
	if !glm.Finite(kl) { // precisions so far apart that their quotient has no digits
		kl = math.MaxFloat64
	}
	t.Folded++
	t.LastKL = kl
	stride := max(t.Stride, 1)
	if t.Folded%stride != 0 {
		return nil
	}
	t.Points = append(t.Points, tracePoint{t.Folded, kl})
	if len(t.Points) > maxTrace {
		t.Stride = 2 * stride
		t.Points = slices.DeleteFunc(t.Points, func(p tracePoint) bool { return p.Update%t.Stride != 0 })
	}
	return nil
}

// Shared is what sites get of a fit.
func (s *Setup) Shared(scale *Scale, q glm.Gaussian) ([]byte, error) {
	return wire.Marshal(AssessTask{Scale: scale, Q: Pack(q)})
}
