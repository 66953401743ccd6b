package graffl

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"parley/methods/graffl/mixture"
)

// shape is what the components of made-up mixtures are like.
type shape string

const (
	shapeNormal  shape = "normal"  // standard deviations of 0.7 to 1.3, weights that fall to half
	shapeWeights shape = "weights" // each component has a third of the weight of the one before
	shapeSpreads shape = "spreads" // components are 0.5 to 1.6 times as wide
	shapeTails   shape = "tails"   // rows have Student's law with 4 degrees of freedom
	shapeNoise   shape = "noise"   // the last feature is the same in all components
	shapeSites   shape = "sites"   // rows are divided among sites by component
)

var allShapes = []shape{shapeNormal, shapeWeights, shapeSpreads, shapeTails, shapeNoise, shapeSites}

func shapeNames() string {
	var all []string
	for _, s := range allShapes {
		all = append(all, string(s))
	}
	return strings.Join(all, ",")
}

func shapesOf(text string) (all []shape, err error) {
	for name := range strings.SplitSeq(text, ",") {
		if !slices.Contains(allShapes, shape(name)) {
			return nil, fmt.Errorf("shape %q: want some of %s", name, shapeNames())
		}
		all = append(all, shape(name))
	}
	return all, nil
}

// truth draws a mixture whose nearest means are as far apart as the cell says, with
// variances from 0.5 to 1.6 and weights that fall from the first to half of it, but for what
// the shape changes.
func (c mixtureCell) truth(r *rand.Rand) mixture.Mixture {
	m := mixture.NewMixture(c.components, c.dim)
	for far := math.Inf(1); far > mixtureBox-1; {
		least := math.Inf(1)
		for i := range m.Means {
			if m.Means[i] = r.NormFloat64(); c.shape == shapeNoise && i%c.dim == c.dim-1 {
				m.Means[i] = 0
			}
		}
		for a := range c.components {
			for b := range a {
				least = min(least, math.Sqrt(mixture.SquaredDistance(m.Mean(a), m.Mean(b))))
			}
		}
		far = 0
		for i := range m.Means {
			if c.components > 1 {
				m.Means[i] *= c.apart / least
			}
			far = max(far, math.Abs(m.Means[i]))
		}
	}
	sum := 0.0
	for k := range c.components {
		at := float64(k) / float64(max(c.components-1, 1))
		m.Weights[k] = 2 - at
		if c.shape == shapeWeights {
			m.Weights[k] = math.Pow(3, -float64(k))
		}
		sum += m.Weights[k]
		for i := range c.dim {
			m.Cov(k)[i*c.dim+i] = 0.5 + 1.1*r.Float64()
			if c.shape == shapeSpreads {
				m.Cov(k)[i*c.dim+i] *= math.Pow(0.5*math.Pow(3.2, at), 2)
			}
		}
		if c.shape == shapeNoise {
			m.Cov(k)[c.dim*c.dim-1] = 1
		}
	}
	for k := range m.Weights {
		m.Weights[k] /= sum
	}
	return m
}

// simulate draws the rows of all sites.
func (c mixtureCell) simulate(truth mixture.Mixture, r *rand.Rand) []float64 {
	of := make([]int, c.rows)
	for i := range of {
		of[i] = mixture.Pick(r, truth.Weights)
	}
	if c.shape == shapeSites {
		slices.Sort(of)
	}
	rows := make([]float64, 0, c.rows*c.dim)
	for _, k := range of {
		wide := 1.0
		if c.shape == shapeTails {
			square := 0.0
			for range 4 {
				z := r.NormFloat64()
				square += z * z
			}
			wide = math.Sqrt(2 / square) // a variance of 4/χ² is 2 on average
		}
		for i, mean := range truth.Mean(k) {
			rows = append(rows, mean+wide*math.Sqrt(truth.Cov(k)[i*c.dim+i])*r.NormFloat64())
		}
	}
	return rows
}
