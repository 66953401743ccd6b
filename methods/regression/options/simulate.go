package options

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"

	"parley/dataset"
	"parley/method"
	"parley/methods/regression/glm"
	"parley/problem"
	"parley/study"
)

// Simulate draws what [method.Simulator] asks for, all sites from one population of the plan's model, of a number or
// of classes, which stand at even distances along one activation. A number is normal: with a public range its
// standard deviation is an eighth of that, and its mean within a tenth of the range from the middle; with constants
// it has their centre and scale. Weights are normal, the same for a standard deviation of a number as for a level,
// and scaled so that of an activation's variance, its own noise included, the share c.Noise is noise. Offsets are
// uniform over their range, and add what they are more than its middle.
func (s *Setup) Simulate(c method.Simulation) (*method.Simulated, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	if l := s.Options.Likelihood; !slices.Contains([]string{glm.LikelihoodLogistic, glm.LikelihoodSoftmax,
		glm.LikelihoodLinear}, l) {
		return nil, problem.Problem{Where: "method.likelihood",
			What: fmt.Sprintf("subjects of a %s model are not drawn", l), Hint: "an outcome of levels, or a number"}
	}
	population := s.population(c)
	of := func(who string, n int) dataset.Source {
		return method.Drawn{Columns: s.Plan.Schema(), N: n, Draw: population.subject,
			Random: func() *rand.Rand { return rng(c.Seed, who) }}
	}
	out := &method.Simulated{Sites: map[string]dataset.Source{}, Held: of("held out", c.Held)}
	for _, site := range s.Plan.Sites {
		out.Sites[site] = of("site "+site, c.Subjects)
	}
	return out, nil
}

// rng returns the random numbers of simulated subjects.
func rng(seed uint64, who string) *rand.Rand {
	return method.Draws("pvi imagines %d %q", seed, who)
}

// population is what simulated subjects are drawn from.
type population struct {
	*Setup
	encoding glm.Encoding
	features [][]func(r *rand.Rand) float64 // by view
	weights  []float64                      // of the design's columns
	noise    float64                        // variance of an activation's own
	// Of a number, what activations of 0 and one more stand for: centre and unit.
	centre, unit float64
}

// population draws it.
func (s *Setup) population(c method.Simulation) *population {
	r := rng(c.Seed, "population")
	m := &population{Setup: s, encoding: s.Encoding, noise: math.Pi * math.Pi / 3} // of one whose sign is the outcome
	if s.Options.Likelihood == glm.LikelihoodLinear {
		m.noise, m.unit = 1, math.Sqrt(c.Noise)
		if r := s.Options.Outcome.Range; r != nil {
			m.centre, m.unit = r[0]/2+r[1]/2, m.unit*(r[1]-r[0])/8
		}
	}
	m.encoding.Columns = nil
	for _, v := range s.Plan.Views {
		var features []func(r *rand.Rand) float64
		for i := range v.Features {
			column := s.Encoding.Columns[len(m.encoding.Columns)]
			features = append(features, s.feature(&v.Features[i], &column, r))
			m.encoding.Columns = append(m.encoding.Columns, column)
		}
		m.features = append(m.features, features)
	}
	m.weights = make([]float64, m.encoding.Width())
	for j := range m.encoding.FeatureWidth() {
		m.weights[j] = r.NormFloat64()
	}
	const pilots = 10_000 // subjects by whom the activation is scaled
	sum, squares := 0.0, 0.0
	for range pilots {
		_, a := m.draw(r)
		sum, squares = sum+a, squares+a*a
	}
	mean, times := sum/pilots, 0.0
	if variance := squares/pilots - mean*mean; variance > 0 { // else there is no signal to scale
		times = math.Sqrt((1 - c.Noise) / c.Noise * m.noise / variance)
	}
	floats.Scale(times, m.weights)
	m.weights[len(m.weights)-1] = (2*r.Float64()-1)*math.Sqrt(m.noise) - times*mean // the intercept
	return m
}

// feature makes a column one of a number that stays within its range, or of a category with frequencies from a flat
// Dirichlet distribution, and draws from it.
func (s *Setup) feature(f *study.Feature, c *glm.Column, r *rand.Rand) func(r *rand.Rand) float64 {
	if len(c.Levels) > 0 {
		var until []float64
		sum := 0.0 // gaps between exponential numbers
		for range c.Levels {
			sum += r.ExpFloat64()
			until = append(until, sum)
		}
		return func(r *rand.Rand) float64 { return float64(within(until, r.Float64()*sum)) }
	}
	mean, sd, low, high := c.Centre, c.Scale, math.Inf(-1), math.Inf(1)
	if f.Range != nil {
		low, high = f.Range[0], f.Range[1]
		if s.Options.Scaling != glm.ScaleConstants {
			mean, sd = low/2+high/2, (high-low)/8
			mean += 0.8 * sd * (2*r.Float64() - 1)
		}
	}
	*c = glm.Column{Name: c.Name, Centre: mean, Scale: sd, Knots: c.Knots}
	return func(r *rand.Rand) float64 { return min(max(mean+sd*r.NormFloat64(), low), high) }
}

// within is the place of a number below the last among ends that ascend.
func within(until []float64, x float64) int {
	k, _ := slices.BinarySearch(until, x)
	return min(k, len(until)-1) // a rounding error may be beyond the last
}

// draw returns a subject's cells and their activation.
func (m *population) draw(r *rand.Rand) (views [][]float64, activation float64) {
	for _, features := range m.features {
		var cells []float64
		for _, feature := range features {
			cells = append(cells, feature(r))
		}
		views = append(views, cells)
	}
	var x glm.Row
	_ = m.encoding.Encode(slices.Concat(views...), &x) // which what was drawn fits
	activation, _ = x.Activation(m.weights, m.weights)
	return views, activation
}

// subject draws one: see [method.Drawn].
func (m *population) subject(r *rand.Rand, row *dataset.Row) {
	var activation float64
	row.Views, activation = m.draw(r)
	if ends := m.Options.OffsetRange; ends != nil {
		moves := (ends[1] - ends[0]) * (r.Float64() - 0.5)
		row.Subject[slices.Index(m.Plan.Subjects, m.Options.Offset)] = fmt.Sprint(ends[0]/2 + ends[1]/2 + moves)
		if m.unit > 0 { // in which an offset of a number is not
			moves /= m.unit
		}
		activation += moves
	}
	outcome := &row.Subject[slices.Index(m.Plan.Subjects, m.Outcome.Column)]
	if m.unit > 0 {
		*outcome = fmt.Sprint(m.centre + m.unit*(activation+r.NormFloat64()))
		return
	}
	levels, sum := m.Outcome.Levels, 0.0
	var odds []float64
	for k := range levels {
		sum += math.Exp(activation * (float64(k)/float64(len(levels)-1) - 0.5))
		odds = append(odds, sum)
	}
	*outcome = levels[within(odds, r.Float64()*sum)]
}
