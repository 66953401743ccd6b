// Package melba draws the synthetic data of Balelli, Silva and Lorenzi (MELBA 2022:012),
// section 4.1: three views of 15, 8 and 10 features that a few factors explain, and two
// groups of subjects, of whom one is moved in latent space.
package melba

import (
	"fmt"
	"math"
	"math/rand/v2"

	"parley/dataset"
)

// Dims are the numbers of features.
var Dims = []int{15, 8, 10}

var (
	reach    = []float64{10, 5, 15} // W and μ of each view are uniform on ± this
	variance = []float64{2, 1, 3}   // of the noise of each view
)

// Moved says whether subject i of n is in the group that is moved: five eighths are.
func Moved(i, n int) bool { return 8*i < 5*n }

// Features are the loadings, mean and standard deviation of noise of every feature, the
// views one after the other.
type Features struct {
	W      [][]float64
	Mu, SD []float64
}

// Draw draws the features for q factors. The noise variances are those of the paper
// times noise.
func Draw(rng *rand.Rand, q int, noise float64) Features {
	var f Features
	for k, d := range Dims {
		for range d {
			f.W = append(f.W, uniform(rng, q, reach[k]))
			f.Mu = append(f.Mu, uniform(rng, 1, reach[k])[0])
			f.SD = append(f.SD, math.Sqrt(noise*variance[k]))
		}
	}
	return f
}

// Shift draws by how much the moved group lies elsewhere in latent space.
func Shift(rng *rand.Rand, q int) []float64 { return uniform(rng, q, 10) }

func uniform(rng *rand.Rand, n int, within float64) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = within * (2*rng.Float64() - 1)
	}
	return v
}

// Subject draws W (x + move) + μ + noise.
func (f *Features) Subject(rng *rand.Rand, move []float64) []float64 {
	x, t := make([]float64, len(move)), make([]float64, len(f.Mu))
	for a, m := range move {
		x[a] = m + rng.NormFloat64()
	}
	for j, w := range f.W {
		t[j] = f.Mu[j] + f.SD[j]*rng.NormFloat64()
		for a, v := range x {
			t[j] += w[a] * v
		}
	}
	return t
}

// Schema names views of so many features v1, v2, …, and the features of the first v1_1,
// v1_2, ….
func Schema(dims []int) (s dataset.Schema) {
	for k, d := range dims {
		v := dataset.View{Name: fmt.Sprintf("v%d", k+1)}
		for j := range d {
			v.Columns = append(v.Columns, dataset.Column{Name: fmt.Sprintf("v%d_%d", k+1, j+1)})
		}
		s.Views = append(s.Views, v)
	}
	return s
}

// Views divides a subject's values among views of so many features.
func Views(dims []int, values []float64) (views [][]float64) {
	for _, d := range dims {
		views, values = append(views, values[:d:d]), values[d:]
	}
	return views
}
