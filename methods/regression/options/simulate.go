package options

import (
	"context"
	"crypto/sha256"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"parley/dataset"
	"parley/method"
	"parley/methods/regression/glm"
	"parley/problem"
	"parley/study"
)

// Simulate draws what [method.Simulator] asks for. The population is one of the plan's
// model: outcomes follow from a weighted sum of features and from nothing else.
//
// A number is normal. With a public range its standard deviation is an eighth of
// that, its mean within a tenth of the range from the middle, and what would lie
// outside lies at the end; with constants it has their centre and scale. A
// category's frequencies are drawn so that all are equally likely. Weights are
// normal, the same for a standard deviation of a number as for a level of a
// category, and are scaled so that of an activation's variance, its own noise
// included (π²/3 of a logistic model, π²/6 for each class of a softmax one,
// noise_variance of a linear one), the share c.Noise is noise. Where the model has a
// column that can carry it, activations have a mean within one standard deviation
// of that noise from 0, so that classes differ in frequency.
//
// Offsets are 0. What has no private form is not drawn: a curve of budgets is of private plans.
//
// All sites draw from one population.
func (s *Setup) Simulate(c method.Simulation) (*method.Simulated, error) {
	if c.Subjects < 1 || c.Held < 1 || !(c.Noise > 0 && c.Noise < 1) {
		return nil, problem.Problem{What: fmt.Sprintf("%d subjects and %d held out, with %v of the variance as noise, cannot be drawn", c.Subjects, c.Held, c.Noise),
			Hint: "at least one of each, and a share between 0 and 1"}
	}
	population := populationOf(s, c)
	of := func(who string, n int) dataset.Source {
		return subjects{population, n, func() *rand.Rand { return rng(c.Seed, who) }}
	}
	out := &method.Simulated{Sites: map[string]dataset.Source{}, Held: of("held out", c.Held)}
	for _, site := range s.Plan.Sites {
		out.Sites[site] = of("site "+site, c.Subjects)
	}
	return out, nil
}

// rng returns the random numbers of simulated subjects.
func rng(seed uint64, who string) *rand.Rand {
	return rand.New(rand.NewChaCha8(sha256.Sum256(fmt.Appendf(nil, "pvi imagines %d %q", seed, who))))
}

// population is what simulated subjects are drawn from.
type population struct {
	schema   dataset.Schema
	features [][]feature // by view
	bias     []float64   // of activations
	options  *Options
	outcome  int // subject column
	offset   int // another one, or −1 where the plan has none
}

// feature is a number, or a category if it has frequencies.
type feature struct {
	mean, sd, low, high float64     // of a number, which stays between low and high
	until               []float64   // cumulated frequencies of a category's levels
	weights             [][]float64 // of each activation: one for the standardised number, or one for each level
}

// populationOf draws the population.
func populationOf(s *Setup, c method.Simulation) *population {
	r := rng(c.Seed, "population")
	k := s.Likelihood.Activations()
	column := func(name string) int { return slices.Index(s.Plan.Subjects, name) }
	m := &population{schema: s.Plan.Schema(), bias: make([]float64, k), options: s.Options, outcome: column(s.Options.Outcome.Column), offset: column(s.Options.Offset)}
	noise := noiseVariance(s.Likelihood)
	// Without an intercept or a category, activations are 0 where all numbers are
	// at their centres: then the population must be so too.
	carried := s.Options.Intercept || len(s.Numbers()) < len(s.Encoding.Columns)
	mean, variance := make([]float64, k), make([]float64, k)
	at := 0
	for _, v := range s.Plan.Views {
		var features []feature
		for i := range v.Features {
			f := featureOf(s, &v.Features[i], &s.Encoding.Columns[at], carried, r)
			at++
			for a, w := range f.weights {
				first, second := f.moments(w)
				mean[a] += first
				variance[a] += second - first*first
			}
			features = append(features, f)
		}
		m.features = append(m.features, features)
	}
	for a := range k {
		times := 0.0 // nothing varies: there is no signal to scale
		if variance[a] > 0 {
			times = math.Sqrt((1 - c.Noise) / c.Noise * noise / variance[a])
		}
		for _, features := range m.features {
			for _, f := range features {
				for l := range f.weights[a] {
					f.weights[a][l] *= times
				}
			}
		}
		if carried {
			m.bias[a] = (2*r.Float64()-1)*math.Sqrt(noise) - times*mean[a]
		}
	}
	return m
}

// featureOf draws a feature and its unscaled weights.
func featureOf(s *Setup, f *study.Feature, c *glm.Column, carried bool, r *rand.Rand) feature {
	own := feature{mean: c.Centre, sd: c.Scale, low: math.Inf(-1), high: math.Inf(1)}
	levels := max(1, len(c.Levels))
	sum := 0.0 // gaps between exponential numbers: a flat Dirichlet distribution
	for range c.Levels {
		sum += r.ExpFloat64()
		own.until = append(own.until, sum)
	}
	for l := range own.until {
		own.until[l] /= sum
	}
	if f.Range != nil {
		own.low, own.high = f.Range[0], f.Range[1]
		if s.Options.Scaling != ScaleConstants {
			own.mean, own.sd = own.low/2+own.high/2, (own.high-own.low)/8
			if offset := 2*r.Float64() - 1; carried {
				own.mean += 0.8 * own.sd * offset
			}
		}
	}
	for range s.Likelihood.Activations() {
		w := make([]float64, levels)
		for l := range w {
			w[l] = r.NormFloat64()
		}
		own.weights = append(own.weights, w)
	}
	return own
}

// noiseVariance is that of an activation around what features say, where an
// outcome is thought of as the largest noised activation, or its sign.
func noiseVariance(l glm.Likelihood) float64 {
	switch l := l.(type) {
	case glm.Linear:
		return l.Variance
	case glm.Softmax: // Gumbel
		return math.Pi * math.Pi / 6
	}
	return math.Pi * math.Pi / 3 // logistic
}

// moments returns the mean and the mean square of what the feature adds to an
// activation with the given weights.
func (f *feature) moments(w []float64) (first, second float64) {
	if f.until == nil {
		return 0, w[0] * w[0]
	}
	last := 0.0
	for l, u := range f.until {
		first += (u - last) * w[l]
		second += (u - last) * w[l] * w[l]
		last = u
	}
	return first, second
}

// draw returns a value, and adds what it says to activations.
func (f *feature) draw(r *rand.Rand, activations []float64) (value float64) {
	level, units := 0, 1.0
	if f.until != nil {
		u := r.Float64()
		level, _ = slices.BinarySearch(f.until, u)
		level = min(level, len(f.until)-1) // the last frequency may be a rounding error below 1
		value = float64(level)
	} else {
		value = min(max(f.mean+f.sd*r.NormFloat64(), f.low), f.high)
		units = (value - f.mean) / f.sd
	}
	for a := range activations {
		activations[a] += f.weights[a][level] * units
	}
	return value
}

// outcomeOf draws an outcome, as it is written.
func (m *population) outcomeOf(activations []float64, r *rand.Rand) string {
	levels := m.options.Outcome.Levels
	switch m.options.Likelihood {
	case LikelihoodLinear:
		return strconv.FormatFloat(activations[0]+math.Sqrt(*m.options.NoiseVariance)*r.NormFloat64(), 'g', -1, 64)
	case LikelihoodSoftmax:
		best, most := 0, math.Inf(-1)
		for k, a := range activations {
			if x := a - math.Log(r.ExpFloat64()); x > most { // −ln of an exponential number is Gumbel's
				best, most = k, x
			}
		}
		return levels[best]
	}
	if r.Float64() < 1/(1+math.Exp(-activations[0])) {
		return levels[1]
	}
	return levels[0]
}

// subjects are those of a population, drawn anew whenever they are read.
type subjects struct {
	*population
	n      int
	random func() *rand.Rand
}

// Schema implements [dataset.Source].
func (m subjects) Schema() dataset.Schema { return m.schema }

// Rows implements [dataset.Source].
func (m subjects) Rows(ctx context.Context) iter.Seq2[*dataset.Row, error] {
	return func(yield func(*dataset.Row, error) bool) {
		r := m.random()
		activations := make([]float64, len(m.bias))
		row := &dataset.Row{Views: make([][]float64, len(m.features)), Subject: make([]string, len(m.schema.Subject))}
		for v := range row.Views {
			row.Views[v] = make([]float64, len(m.features[v]))
		}
		for i := range m.n {
			if err := ctx.Err(); err != nil {
				yield(nil, err)
				return
			}
			row.ID = fmt.Sprintf("imagined-%09d", i+1)
			copy(activations, m.bias)
			for v, features := range m.features {
				for j := range features {
					row.Views[v][j] = features[j].draw(r, activations)
				}
			}
			row.Subject[m.outcome] = m.outcomeOf(activations, r)
			if m.offset >= 0 {
				row.Subject[m.offset] = "0"
			}
			if !yield(row, nil) {
				return
			}
		}
	}
}
