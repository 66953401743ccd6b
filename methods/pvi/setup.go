package pvi

import (
	"crypto/sha256"
	"fmt"
	"math"
	"math/rand/v2"

	"parley/dataset"
	"parley/methods/pvi/gvi"
	"parley/methods/pvi/options"
	"parley/study"
)

// setup is what both halves know from the plan.
type setup struct {
	plan       *study.Plan
	opts       *options.Options
	likelihood gvi.Likelihood
	encoding   gvi.Encoding // with constants still to come where scaling is standard
	prior      gvi.Gaussian
	// variant is the plan's; either exact or private is the same.
	variant variant
	exact   exactVariant
	private privateVariant
	// protected is what sites release under differential privacy; nil without it.
	protected map[string]*protection
}

// newSetup works out what a plan says to the halves of the given sites.
func newSetup(p *study.Plan, sites []string) (*setup, error) {
	opts, ok := p.Method.Options.(*options.Options)
	if !ok {
		return nil, fmt.Errorf("the plan's options are of method %s, not of pvi", p.Method.Name)
	}
	s := &setup{plan: p, opts: opts, likelihood: opts.Family()}
	s.encoding = encodingOf(opts, p)
	if err := s.encoding.Check(); err != nil {
		return nil, err
	}
	s.prior = gvi.Isotropic(s.weights(), 0, opts.PriorVariance)
	s.choose()
	return s, s.protect(sites)
}

// weights returns the number of weights, of all activations.
func (s *setup) weights() int { return s.likelihood.Activations() * s.encoding.Width() }

// encodingOf makes a column of every feature of the plan.
func encodingOf(o *options.Options, p *study.Plan) gvi.Encoding {
	e := gvi.Encoding{Intercept: o.Intercept}
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
			c.Missing = missing
			e.Columns = append(e.Columns, c)
		}
	}
	return e
}

// numbers lists the columns of the encoding that are numbers.
func (s *setup) numbers() (columns []int) {
	for i := range s.encoding.Columns {
		if len(s.encoding.Columns[i].Levels) == 0 {
			columns = append(columns, i)
		}
	}
	return columns
}

// scaled returns the encoding with constants that the sites released together;
// nil if the plan has them all.
func (s *setup) scaled(m *scaleMessage) (*gvi.Encoding, error) {
	numbers := s.numbers()
	if s.opts.Scaling != options.ScaleStandard {
		if m != nil {
			return nil, fmt.Errorf("constants of a scale that the plan gives itself")
		}
		return &s.encoding, nil
	}
	if m == nil || len(m.Centre) != len(numbers) || len(m.Scale) != len(numbers) {
		return nil, fmt.Errorf("a scale for %d numbers is missing, or is of others", len(numbers))
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	e := s.encoding
	e.Columns = append([]gvi.Column(nil), e.Columns...)
	for i, j := range numbers {
		e.Columns[j].Centre, e.Columns[j].Scale = m.Centre[i], m.Scale[i]
	}
	return &e, e.Check()
}

// pool makes one scale of the moments of several sites, which were checked. It
// fails only where all sites together have nothing to scale a number by.
func (s *setup) pool(moments []*scaleAnswer) (*scaleMessage, error) {
	m := &scaleMessage{}
	for i, j := range s.numbers() {
		var n, mean, squares float64
		for _, a := range moments {
			if a.N[i] == 0 {
				continue
			}
			// Chan, Golub and LeVeque (1979): nothing cancels.
			d, all := a.Mean[i]-mean, n+a.N[i]
			squares += a.Squares[i] + d*d*n*a.N[i]/all
			mean += d * a.N[i] / all
			n = all
		}
		sd := math.Sqrt(squares / n)
		if !(sd >= 1/factorLargest) || !gvi.Finite(sd) || !gvi.Finite(mean) {
			return nil, fmt.Errorf("feature %s: of %v values the mean is %v and the standard deviation %v, so that it cannot be scaled; if it is constant, leave it out of the plan", s.encoding.Columns[j].Name, n, mean, sd)
		}
		m.Centre, m.Scale = append(m.Centre, mean), append(m.Scale, sd)
	}
	return m, nil
}

// bind reads rows of the site's data by an encoding.
func (s *setup) bind(e *gvi.Encoding, schema dataset.Schema) (*gvi.Binding, error) {
	return e.Bind(schema, &s.opts.Outcome)
}

// draws returns the random numbers that the plan's seed has for a purpose at a
// site: nothing else decides them.
func draws(p *study.Plan, purpose, site string, n int) *rand.Rand {
	return rand.New(rand.NewChaCha8(sha256.Sum256(fmt.Appendf(nil, "pvi %d %s %q %d", p.Seed, purpose, site, n))))
}
