package options

import (
	"context"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"

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
	return method.Draws("pvi imagines %d %q", seed, who)
}

// population is what simulated subjects are drawn from.
type population struct {
	schema   dataset.Schema
	features [][]feature // by view
	times    float64     // what features add is scaled by
	bias     float64     // of activations
	levels   []string
	outcome  int // subject column
	offset   int // likewise, of numbers between ends, if there are any
	ends     *[2]float64
	// Of a number, what activations of 0 and one more stand for: centre and unit.
	centre, unit float64
}

// feature draws a value, and what it adds to the activation before that is scaled.
type feature func(r *rand.Rand) (value, adds float64)

// populationOf draws the population.
func populationOf(s *Setup, c method.Simulation) *population {
	r := rng(c.Seed, "population")
	m := &population{schema: s.Plan.Schema(), levels: s.Options.Outcome.Levels,
		outcome: slices.Index(s.Plan.Subjects, s.Options.Outcome.Column),
		offset:  slices.Index(s.Plan.Subjects, s.Options.Offset), ends: s.Options.OffsetRange}
	noise := math.Pi * math.Pi / 3 // of an activation whose sign is the outcome
	if s.Options.Likelihood == glm.LikelihoodLinear {
		noise, m.unit = 1, math.Sqrt(c.Noise)
		if r := s.Options.Outcome.Range; r != nil {
			m.centre, m.unit = r[0]/2+r[1]/2, m.unit*(r[1]-r[0])/8
		}
	}
	mean, variance, at := 0.0, 0.0, 0
	for _, v := range s.Plan.Views {
		var features []feature
		for i := range v.Features {
			f, first, second := featureOf(s, &v.Features[i], &s.Encoding.Columns[at], r)
			mean, variance, at = mean+first, variance+second-first*first, at+1
			features = append(features, f)
		}
		m.features = append(m.features, features)
	}
	if variance > 0 { // else there is no signal to scale
		m.times = math.Sqrt((1 - c.Noise) / c.Noise * noise / variance)
	}
	m.bias = (2*r.Float64()-1)*math.Sqrt(noise) - m.times*mean
	return m
}

// featureOf draws a feature: a number that stays within its range, or a category with frequencies from a flat
// Dirichlet distribution, and the mean and the mean square of what it adds.
func featureOf(s *Setup, f *study.Feature, c *glm.Column, r *rand.Rand) (draw feature, first, second float64) {
	var until, weights []float64 // of levels
	sum := 0.0                   // gaps between exponential numbers
	for range c.Levels {
		sum += r.ExpFloat64()
		until = append(until, sum)
	}
	mean, sd, low, high := c.Centre, c.Scale, math.Inf(-1), math.Inf(1)
	if f.Range != nil {
		low, high = f.Range[0], f.Range[1]
		if s.Options.Scaling != glm.ScaleConstants {
			mean, sd = low/2+high/2, (high-low)/8
			mean += 0.8 * sd * (2*r.Float64() - 1)
		}
	}
	for range max(1, len(c.Levels)) {
		weights = append(weights, r.NormFloat64())
	}
	if until == nil {
		return func(r *rand.Rand) (value, adds float64) {
			value = min(max(mean+sd*r.NormFloat64(), low), high)
			return value, weights[0] * ((value - mean) / sd)
		}, 0, weights[0] * weights[0]
	}
	last := 0.0
	for l, w := range weights {
		share := (until[l] - last) / sum
		first, second, last = first+share*w, second+share*w*w, until[l]
	}
	return func(r *rand.Rand) (value, adds float64) {
		level, _ := slices.BinarySearch(until, r.Float64()*sum)
		level = min(level, len(until)-1) // a rounding error may be beyond the last
		return float64(level), weights[level]
	}, first, second
}

// draw returns an outcome.
func (m *population) draw(activation float64, r *rand.Rand) string {
	if m.unit > 0 {
		return fmt.Sprint(m.centre + m.unit*(activation+r.NormFloat64()))
	}
	odds, sum, last := make([]float64, len(m.levels)), 0.0, float64(len(m.levels)-1)
	for k := range odds {
		sum += math.Exp(activation * (float64(k)/last - 0.5))
		odds[k] = sum
	}
	level, _ := slices.BinarySearch(odds, r.Float64()*sum)
	return m.levels[min(level, len(m.levels)-1)]
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
			activation := m.bias
			for v, features := range m.features {
				for j := range features {
					value, adds := features[j](r)
					row.Views[v][j], activation = value, activation+m.times*adds
				}
			}
			if ends := m.ends; ends != nil {
				moves := (ends[1] - ends[0]) * (r.Float64() - 0.5)
				row.Subject[m.offset] = fmt.Sprint(ends[0]/2 + ends[1]/2 + moves)
				if m.unit > 0 { // in which an offset of a number is not
					moves /= m.unit
				}
				activation += moves
			}
			row.Subject[m.outcome] = m.draw(activation, r)
			if !yield(row, nil) {
				return
			}
		}
	}
}
