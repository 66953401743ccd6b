package options

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"

	"parley/methods/regression/glm"
	"parley/study"
)

// Setup is what both halves know from the plan.
type Setup struct {
	Plan       *study.Plan
	Options    *Options
	Likelihood glm.Likelihood
	Encoding   glm.Encoding // with constants still to come where scaling is standard
	Prior      glm.Gaussian
}

// New works out what a plan says.
func New(p *study.Plan) (*Setup, error) {
	opts, ok := p.Method.Options.(*Options)
	if !ok {
		return nil, fmt.Errorf("the plan's options are of method %s, not of pvi", p.Method.Name)
	}
	return Of(p, opts)
}

// Of works out what a plan says whose options amount to opts.
func Of(p *study.Plan, opts *Options) (*Setup, error) {
	s := &Setup{Plan: p, Options: opts, Likelihood: opts.Family(), Encoding: encodingOf(opts, p)}
	if err := s.Encoding.Check(); err != nil {
		return nil, err
	}
	s.Prior = s.prior(&s.Encoding, 1, 0)
	return s, nil
}

// prior is that of the weights of an encoding, with variances in units of unit, and of an intercept
// around mean: where the outcome's zero is then decides nothing. A function of a spline has
// its variance by what it varies beyond the others, but under the mean field, which cannot allow for that.
func (s *Setup) prior(e *glm.Encoding, unit, mean float64) glm.Gaussian {
	d := e.Width()
	g := glm.Isotropic(s.Likelihood.Activations()*d, 0, unit*s.Options.PriorVariance)
	names, groups, alone := e.Features(), e.Groups(), e.Alone()
	for j := range g.Lambda {
		name, group := names[j%d], groups[j%d]
		if s.Options.Joint() {
			g.Lambda[j] *= alone[j%d]
		}
		if group == glm.InterceptGroup || group == glm.PeriodGroup {
			g.Lambda[j] = 1 / (unit * s.Options.InterceptVariance)
			g.Eta[j] = mean * g.Lambda[j]
		}
		for _, p := range s.Options.Priors {
			if p.Of(name, group) {
				g.Eta[j], g.Lambda[j] = p.Mean/p.Variance, 1/p.Variance
			}
		}
	}
	return g
}

// Weights returns the number of weights, of all activations.
func (s *Setup) Weights() int { return s.Likelihood.Activations() * s.Encoding.Width() }

// mostOffset bounds what is added to the logarithm of odds or of a rate: e³⁰ is about 10¹³.
const mostOffset = 30

// encodingOf makes a column of every feature of the plan, and its other terms.
func encodingOf(o *Options, p *study.Plan) glm.Encoding {
	e := glm.Encoding{Intercept: o.Intercept, Periods: o.Outcome.Cuts, Offset: o.Offset, Cluster: o.Cluster}
	if w := o.Weights; w != nil {
		if e.Weight = w.Column; o.Survey() {
			e.WeightUnit = 1
		}
	}
	for _, t := range o.Interactions {
		e.Interactions = append(e.Interactions, glm.Interaction(t))
	}
	if o.Offset != "" && o.Likelihood != LikelihoodLinear {
		e.OffsetLimit = mostOffset
	}
	missing := glm.Fallback{Rule: glm.FallbackRule(o.Missing)}
	for _, v := range p.Views {
		for _, f := range v.Features {
			c := glm.Column{Name: f.Name, Centre: 0, Scale: 1}
			switch {
			case f.Kind == study.Category:
				c = glm.Column{Name: f.Name, Levels: f.Levels}
				if o.Coding == codingReference {
					// Which level it is without a name decides nothing before the sites have counted them.
					c.Reference = cmp.Or(o.Reference(f.Name), f.Levels[0])
				}
			case o.Scaling == ScaleRange || o.Scaling == ScaleStandard && o.Noised(p):
				c = glm.FromRange(f.Name, f.Range[0], f.Range[1])
			case o.Scaling == ScaleConstants:
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
			if len(c.Levels) == 0 && o.Noised(p) {
				c.Bounded, c.Limit = false, Farthest
			}
			e.Columns = append(e.Columns, c)
		}
	}
	return e
}

// Farthest is how many scales a number of a private fit is from its centre, at most, so that no row weighs so
// much that gradients must be clipped to a few of them.
const Farthest = 4

// Draws returns the random numbers that the plan's seed has for a purpose at a
// site: nothing else decides them.
func Draws(p *study.Plan, purpose, site string, n int) *rand.Rand {
	return rand.New(rand.NewChaCha8(sha256.Sum256(fmt.Appendf(nil, "pvi %d %s %q %d", p.Seed, purpose, site, n))))
}
