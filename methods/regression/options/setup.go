package options

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"parley/internal/stats"
	"parley/internal/wire"
	"parley/method"
	"parley/methods/regression/glm"
	"parley/study"
)

// Setup is what both halves know from the plan.
type Setup struct {
	glm.Frame
	Options *Options
	Prior   glm.Gaussian
}

// New works out what a plan says.
func New(p *study.Plan) (*Setup, error) {
	opts, ok := p.Method.Options.(*Options)
	if !ok {
		return nil, fmt.Errorf("the plan's options are of method %s, not of regression", p.Method.Name)
	}
	s := &Setup{Options: opts, Frame: glm.Frame{Plan: p, Outcome: opts.Outcome, Likelihood: opts.Family(),
		Encoding: encodingOf(opts, p)}}
	if err := s.Encoding.Check(); err != nil {
		return nil, err
	}
	s.Prior = s.prior(&s.Encoding, 1, 0)
	return s, nil
}

// prior is that of the weights of an encoding, with variances in units of unit, and of an intercept
// around mean: where the outcome's zero is then decides nothing. A function of a spline has
// its variance by what it varies beyond the others.
func (s *Setup) prior(e *glm.Encoding, unit, mean float64) glm.Gaussian {
	d := e.Width()
	g := glm.Isotropic(s.Likelihood.Activations()*d, 0, unit*s.Options.PriorVariance)
	alone := e.Alone()
	for j := range g.Lambda {
		g.Lambda[j] *= alone[j%d]
		if j%d >= e.FeatureWidth() {
			g.Lambda[j] = 1 / (unit * s.Options.InterceptVariance)
			g.Eta[j] = mean * g.Lambda[j]
		}
	}
	return g
}

// mostOffset bounds what is added to the logarithm of odds or of a rate: e³⁰ is about 10¹³. Offsets within a range
// narrower than leastOffsets change nothing, and its prior would drown all others.
const mostOffset, leastOffsets = 30, 0.001

// encodingOf makes a column of every feature of the plan, which may have faults, and its other terms.
func encodingOf(o *Options, p *study.Plan) glm.Encoding {
	e := glm.Encoding{Intercept: o.Likelihood != glm.LikelihoodHazard, // where every period has one
		Periods: o.Outcome.Cuts, Offset: o.Offset, OffsetRange: o.OffsetRange, Cluster: o.Cluster,
		Interactions: o.Interactions}
	if w := o.Weights; w != nil {
		if e.Weight = w.Column; o.Survey() {
			e.WeightUnit = 1
		}
	}
	if o.Offset != "" && o.Likelihood != glm.LikelihoodLinear {
		e.OffsetLimit = mostOffset
	}
	missing := glm.Fallback{Rule: o.Missing}
	for _, v := range p.Views {
		for _, f := range v.Features {
			c := glm.Column{Name: f.Name, Centre: 0, Scale: 1}
			switch {
			case f.Kind == study.Category:
				c = glm.Column{Name: f.Name, Levels: f.Levels}
				// Which level it is without a name decides nothing before the sites have counted them.
				c.Reference = cmp.Or(append([]string{o.Reference(f.Name)}, f.Levels...)...)
			case f.Range != nil && (o.Scaling == glm.ScaleRange || o.Scaling == glm.ScaleStandard &&
				p.Privacy.Differential()):
				c = glm.FromRange(f.Name, f.Range[0], f.Range[1])
			case o.Scaling == glm.ScaleConstants:
				for _, k := range o.Constants {
					if k.Feature == f.Name {
						c.Centre, c.Scale = k.Centre, k.Scale
					}
				}
			}
			for _, k := range o.Splines {
				if k.Feature == f.Name {
					c.Knots = k.Knots
				}
			}
			c.Missing = missing
			if len(c.Levels) == 0 && p.Privacy.Differential() {
				c.Bounded, c.Limit = false, o.Limit()
			}
			e.Columns = append(e.Columns, c)
		}
	}
	return e
}

// Density is a normal density over weights as it travels and is kept, with the variance of a number's noise, where that
// is estimated.
type Density struct {
	Mean       wire.Vector `cbor:"mean"`
	Covariance wire.Vector `cbor:"covariance"` // its lower triangle by rows
	Noise      float64     `cbor:"noise,omitempty"`
}

// Normal returns the density of what was checked.
func (d Density) Normal() glm.Normal {
	q, _ := glm.NewNormal(d.Mean, d.Covariance)
	return q
}

// CheckDensity refuses one that no honest coordinator sends.
func (s *Setup) CheckDensity(d *Density) error {
	if len(d.Mean) != s.Weights() {
		return fmt.Errorf("%d means of %d weights", len(d.Mean), s.Weights())
	}
	q, err := glm.NewNormal(d.Mean, d.Covariance)
	for j, m := range q.Mean {
		if err == nil && (!glm.Inside(m, -glm.FactorLargest, glm.FactorLargest) ||
			!glm.Inside(q.Variance[j], 0, glm.FactorLargest)) {
			err = fmt.Errorf("mean %v and variance %v of weight %d are beyond ±%v", m, q.Variance[j], j,
				glm.FactorLargest)
		}
	}
	return cmp.Or(err, s.CheckNoise(d.Noise))
}

// CheckNoise refuses a variance of a number's noise that is not the plan's.
func (s *Setup) CheckNoise(noise float64) error {
	if s.Options.Estimated() != (noise != 0) || noise != 0 && !glm.Inside(noise, 1/glm.TaskLargest, glm.TaskLargest) {
		return fmt.Errorf("a noise variance of %v", noise)
	}
	return nil
}

// At returns the likelihood where its noise is estimated, as it is so far.
func (s *Setup) At(noise float64) glm.Likelihood {
	if s.Options.Estimated() {
		return glm.Linear{Variance: noise}
	}
	return s.Likelihood
}

// The tasks, in the words that progress and logs show.
const (
	TaskScale  = "scale"  // sums for common units of numbers
	TaskAssess = "assess" // how well the model predicts the site's outcomes
)

// Scale brings numbers to common units: one entry for each number of the plan, in its order.
type Scale struct {
	Centre wire.Vector `cbor:"centre"`
	Scale  wire.Vector `cbor:"scale"`
	// Joint posteriors: the reference of each category, as a place among its levels, and the variance of the outcome,
	// of which the prior is in units, 1 if it is not; and the outcome's mean, about which the intercept's prior is.
	References []int   `cbor:"references,omitempty"`
	Outcome    float64 `cbor:"outcome,omitempty"`
	Mean       float64 `cbor:"mean,omitempty"`
	Weight     float64 `cbor:"weight,omitempty"` // the mean of a sample's weights, which are divided by it
}

// Check reports a scale that no honest coordinator sends.
func (m *Scale) Check() error {
	if m.Outcome != 0 && !glm.Inside(m.Outcome, 1/glm.TaskLargest, glm.TaskLargest) ||
		!glm.Inside(m.Mean, -glm.FactorLargest, glm.FactorLargest) {
		return fmt.Errorf("the variance %v or the mean %v of the outcome is beyond all measure", m.Outcome, m.Mean)
	}
	if m.Weight != 0 && !glm.Inside(m.Weight, 1/glm.FactorLargest, glm.FactorLargest) {
		return fmt.Errorf("a mean weight of %v is beyond all measure", m.Weight)
	}
	return nil
}

// ScaleAnswer holds the moments of every number of the plan, of a model of a number also those of the outcome, last,
// and how often each level of each category was observed; and of an outcome that is a class each one's rows.
type ScaleAnswer struct {
	glm.Moments
	Levels  wire.Vector `cbor:"levels,omitempty"`
	ByClass []ClassSums `cbor:"by_class,omitempty"`
	// Parts are of what adds up over sites, five for each number: see [ScaleAnswer.Sum].
	Parts []float64 `cbor:"parts,omitempty"`
}

// ClassSums describe rows of one class: how many there are, how many have each number of the plan and the sum of it,
// and how many each level.
type ClassSums struct {
	Rows   float64     `cbor:"rows"`
	N      wire.Vector `cbor:"n"`
	Sums   wire.Vector `cbor:"sums" sums:"signed"`
	Levels wire.Vector `cbor:"levels,omitempty"`
}

// NewScaleAnswer is that of no rows.
func (s *Setup) NewScaleAnswer() *ScaleAnswer {
	names, levels := s.Counted()
	a := &ScaleAnswer{Moments: glm.NewMoments(len(names)), Levels: make(wire.Vector, levels)}
	if s.Outcome.Event == "" && !s.Options.Random() && s.Options.Offset == "" { // else no gradient would tell them
		for range s.Outcome.Levels {
			a.ByClass = append(a.ByClass, s.newClassSums())
		}
	}
	return a
}

func (s *Setup) newClassSums() ClassSums {
	_, levels := s.Counted()
	n := len(s.Numbers())
	return ClassSums{N: make(wire.Vector, n), Sums: make(wire.Vector, n), Levels: make(wire.Vector, levels)}
}

// CheckMoments refuses what no rows can give.
func (s *Setup) CheckMoments(a *ScaleAnswer) error {
	names, _ := s.Counted()
	if err := a.Moments.Check(names); err != nil {
		return err
	}
	if err := method.CheckSums(s.NewScaleAnswer(), a, glm.MostRows*glm.Largest*glm.Largest); err != nil {
		return err
	}
	right := true
	whole := func(n, most float64) { right = right && n == math.Trunc(n) && glm.Inside(n, 0, most) }
	rest := slices.Concat(a.N[:len(s.Numbers())], a.Levels) // of no class
	for _, n := range rest {
		whole(n, glm.MostRows)
	}
	for _, of := range a.ByClass {
		whole(of.Rows, glm.MostRows)
		for i, n := range slices.Concat(of.N, of.Levels) {
			whole(n, of.Rows)
			rest[i] -= n
		}
	}
	if !right || a.ByClass != nil && floats.Norm(rest, 1) > 0 {
		return fmt.Errorf("counts that no rows have, or of classes that do not add up to those of all")
	}
	return nil
}

// Sum turns means into what adds up over sites.
func (a *ScaleAnswer) Sum() {
	a.Parts = nil
	for i, n := range a.N {
		parts := stats.Parts(n, a.Mean[i])
		a.Mean[i], a.Parts = parts[0], append(a.Parts, parts[1:]...)
	}
}

// Centre is the inverse of [ScaleAnswer.Sum], of all sites.
func (a *ScaleAnswer) Centre() {
	for i, n := range a.N {
		x, between := a.Parts[5*i:], 0.0
		a.Mean[i], between = stats.Together(n, [6]float64{a.Mean[i], x[0], x[1], x[2], x[3], x[4]})
		a.Squares[i] += between
	}
	a.Parts = nil
}

// Family returns the likelihood.
func (o *Options) Family() glm.Likelihood {
	switch o.Likelihood {
	case glm.LikelihoodSoftmax:
		return glm.Softmax{Classes: len(o.Outcome.Levels)}
	case glm.LikelihoodLinear:
		if o.NoiseVariance == nil { // to be estimated
			return glm.Linear{Variance: 1}
		}
		return glm.Linear{Variance: *o.NoiseVariance}
	case glm.LikelihoodPoisson:
		return glm.Poisson{}
	}
	if o.Link == LinkCloglog {
		return glm.Cloglog{}
	}
	return glm.Logistic{} // of subjects, or of person-periods
}

// Estimated says whether the variance of the outcome around its expectation is estimated.
func (o *Options) Estimated() bool {
	return o.Likelihood == glm.LikelihoodLinear && o.NoiseVariance == nil
}

// Unit names what rows of the design matrix are: subject, or person-period.
func (o *Options) Unit() string {
	if o.Likelihood == glm.LikelihoodHazard {
		return "person-period"
	}
	return "subject"
}

// Numeric says whether the outcome is a number, and not a class or the time until an event.
func (o *Options) Numeric() bool {
	return o.Likelihood == glm.LikelihoodLinear || o.Likelihood == glm.LikelihoodPoisson
}

// Classes names the activations: the levels of a softmax likelihood, and else one without a name.
func (o *Options) Classes() []string {
	if o.Likelihood == glm.LikelihoodSoftmax {
		return o.Outcome.Levels
	}
	return []string{""}
}

// Random says whether every site has a random intercept.
func (o *Options) Random() bool { return o.SiteEffects == effectsRandom }
