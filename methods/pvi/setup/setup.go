// Package setup is what both halves of pvi know from the plan before anything is sent:
// [New] works it out, at the coordinator and at every site alike. Rows are read through
// it, so that all that see them bring them to the same columns.
package setup

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"

	"parley/methods/pvi/gvi"
	"parley/methods/pvi/options"
	"parley/study"
)

// Setup is what both halves know from the plan, whichever its variant is.
type Setup struct {
	Plan       *study.Plan
	Options    *options.Options
	Likelihood gvi.Likelihood
	Encoding   gvi.Encoding // with constants still to come where scaling is standard
	Prior      gvi.Gaussian
}

// New works out what a plan says.
func New(p *study.Plan) (*Setup, error) {
	opts, ok := p.Method.Options.(*options.Options)
	if !ok {
		return nil, fmt.Errorf("the plan's options are of method %s, not of pvi", p.Method.Name)
	}
	s := &Setup{Plan: p, Options: opts, Likelihood: opts.Family(), Encoding: encodingOf(opts, p)}
	if err := s.Encoding.Check(); err != nil {
		return nil, err
	}
	s.Prior = gvi.Isotropic(s.Weights(), 0, opts.PriorVariance)
	names, groups := s.Encoding.Features(), s.Encoding.Groups()
	for j := range s.Prior.Eta {
		for _, k := range opts.Priors {
			if i := j % len(names); k.Of(names[i], groups[i]) {
				s.Prior.Eta[j], s.Prior.Lambda[j] = k.Mean/k.Variance, 1/k.Variance
			}
		}
	}
	return s, nil
}

// Weights returns the number of weights, of all activations.
func (s *Setup) Weights() int { return s.Likelihood.Activations() * s.Encoding.Width() }

// encodingOf makes a column of every feature of the plan, and its other terms.
func encodingOf(o *options.Options, p *study.Plan) gvi.Encoding {
	e := gvi.Encoding{Intercept: o.Intercept, Periods: o.Outcome.Cuts, Offset: o.Offset, Weight: o.Weight}
	for _, t := range o.Interactions {
		e.Interactions = append(e.Interactions, gvi.Interaction(t))
	}
	missing := gvi.Fallback{Rule: gvi.FallbackRule(o.Missing)}
	for _, v := range p.Views {
		for _, f := range v.Features {
			c := gvi.Column{Name: f.Name, Centre: 0, Scale: 1}
			switch {
			case f.Kind == study.Category:
				c = gvi.Column{Name: f.Name, Levels: f.Levels}
			case o.Scaling == options.ScaleRange:
				c = gvi.FromRange(f.Name, f.Range[0], f.Range[1])
			case o.Scaling == options.ScaleConstants:
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
			e.Columns = append(e.Columns, c)
		}
	}
	return e
}

// Draws returns the random numbers that the plan's seed has for a purpose at a
// site: nothing else decides them.
func Draws(p *study.Plan, purpose, site string, n int) *rand.Rand {
	return rand.New(rand.NewChaCha8(sha256.Sum256(fmt.Appendf(nil, "pvi %d %s %q %d", p.Seed, purpose, site, n))))
}
