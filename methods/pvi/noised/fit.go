package noised

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// fit climbs the posterior of a logistic regression by noised sums of clipped gradients.
// All that it knows of rows it has from those sums and a [gram].
type fit struct {
	Rounds   int       `cbor:"rounds"` // sums there will be
	Round    int       `cbor:"round"`  // sums taken in
	Mean     []float64 `cbor:"mean"`   // weights at which the next sum is asked for
	Before   []float64 `cbor:"before"`
	Gradient []float64 `cbor:"gradient"` // filtered, at Before
	Noise    float64   `cbor:"noise"`    // variance of its entries; 0 before any
	Clip     float64   `cbor:"clip"`     // of the next sum
	Clipped  float64   `cbor:"clipped"`  // of Gradient
	Trace    []float64 `cbor:"trace"`    // root mean square over rows of each step in activations
}

// The rule by which the fit goes; none of it looks at data.
const (
	least    = 0.5  // weight of a new gradient among the first few
	pace     = 0.8  // share of a Newton step that is made
	farthest = 1.0  // root mean square over rows of a step in activations
	target   = 0.95 // share of gradients that are short enough
	follow   = 0.15 // largest change of ln clip
	flattest = 0.5  // eigenvalue of the Hessian, in rows
)

// newFit begins with all weights 0, for so many rounds.
func newFit(c *columns, rounds int) *fit {
	return &fit{Rounds: rounds, Mean: make([]float64, c.width()), Clip: c.reach() / 2}
}

// Forget drops the filtered gradient: the next sum is of other rows.
func (f *fit) Forget() { f.Gradient, f.Noise = nil, 0 }

// Take takes in one sum over all rows of what [score] writes at Mean, with noise of
// standard deviation sd on every entry. The prior is N(0, 1/precision) of each weight.
//
// With u the filtered gradient less its clip bias, V its noise's variance and H the
// Hessian, the truth w has u ~ N(H(w − m), H + V): its own sampling variance is H. So the
// step from m is that of a posterior (Bernstein and Sheldon, 2019, in one Newton step)
//
//	Δ = (Λ₀ + H (H+V)⁻¹ H)⁻¹ (H (H+V)⁻¹ u − Λ₀ m).
func (f *fit) Take(g *gram, precision, sum []float64, sd float64) {
	d := len(f.Mean)
	at := g.expect(f.Mean, f.Clip)
	fresh := make([]float64, d)
	for j := range fresh {
		fresh[j] = f.Clip*sum[j] - at.Bias[j]
	}
	f.filter(g, at, fresh, f.Clip*f.Clip*sd*sd)
	f.Clipped, f.Before = f.Clip, slices.Clone(f.Mean)
	f.adapt(g, sum[d]/(counted*g.Rows)+0.5, sd/(counted*g.Rows))

	values, vectors := eigen(at.Hessian)
	noise := make([]float64, d)
	for k := range values {
		values[k], noise[k] = max(values[k], flattest), f.Noise
	}
	_, spread := posterior(values, values, vectors, noise, precision, f.Gradient, f.Mean)
	along := g.path(f, vectors)
	sure := g.sure(f.Mean, spread)
	for k, h := range values {
		along[k] = math.Pow(h, 1-sure) * math.Pow(along[k], sure)
	}
	step, _ := posterior(values, along, vectors, noise, precision, f.Gradient, f.Mean)
	far := math.Sqrt(max(mat.Inner(step, g.Matrix, step)/g.Rows, 0))
	times := pace
	if far > farthest {
		times *= farthest / far
	}
	for j := range f.Mean {
		f.Mean[j] += times * step.AtVec(j)
	}
	f.Trace = append(f.Trace, times*far)
	f.Round++
}

// sure is the share of the variance of activations that is not what the posterior's
// covariance makes of it.
func (g *gram) sure(mean []float64, covariance *mat.SymDense) float64 {
	m := mat.NewVecDense(len(mean), mean)
	var both mat.Dense
	both.Mul(covariance, g.Matrix)
	return max(1-mat.Trace(&both)/max(mat.Inner(m, g.Matrix, m), 1e-9), 0)
}

// path is the Hessian averaged between all weights 0 and where the fit is, along the given
// directions. Once labels are nearly certain, the Hessian at the fit hardly says anything,
// while gradients on the way have told these directions well: noise is then weighed
// against the path's, as far as the way was not noise itself.
func (g *gram) path(f *fit, vectors *mat.Dense) []float64 {
	d := len(f.Mean)
	out := make([]float64, d)
	for _, q := range [...]struct{ at, weight float64 }{{0.1127, 0.2778}, {0.5, 0.4444}, {0.8873, 0.2778}} {
		m := slices.Clone(f.Mean)
		for j := range m {
			m[j] *= q.at
		}
		h := g.expect(m, f.Clipped).Hessian
		for k := range d {
			u := vectors.ColView(k)
			out[k] += q.weight * max(mat.Inner(u, h, u), flattest)
		}
	}
	return out
}

// filter combines a new gradient with those before, carried to here by the Hessian half way
// and to this clip by the ratio of what it leaves: the Kalman filter of a gradient that
// moves as the model says.
func (f *fit) filter(g *gram, at *curvature, fresh []float64, variance float64) {
	if f.Noise == 0 {
		f.Gradient, f.Noise = fresh, variance
		return
	}
	moved := f.carried(g, at)
	if f.Clip != f.Clipped {
		ratio := at.Mean / max(g.expect(f.Mean, f.Clipped).Mean, 1e-9)
		for j := range moved {
			moved[j] *= ratio
		}
		f.Noise *= ratio * ratio
	}
	weight := f.Noise / (f.Noise + variance)
	if f.Round < burn(f.Rounds) {
		weight = max(weight, least)
	}
	for j := range moved {
		f.Gradient[j] = (1-weight)*moved[j] + weight*fresh[j]
	}
	f.Noise = (1-weight)*(1-weight)*f.Noise + weight*weight*variance
}

// carried is the filtered gradient as it is at Mean, still of its own clip.
func (f *fit) carried(g *gram, at *curvature) []float64 {
	d := len(f.Mean)
	before := g.expect(f.Before, f.Clipped)
	here := at
	if f.Clip != f.Clipped {
		here = g.expect(f.Mean, f.Clipped)
	}
	out := slices.Clone(f.Gradient)
	for i := range d {
		for j := range d {
			out[i] -= (here.Hessian.At(i, j) + before.Hessian.At(i, j)) / 2 * (f.Mean[j] - f.Before[j])
		}
	}
	return out
}

// adapt moves the clip towards the target's quantile of gradients' norms, of which short is
// the share below it, with standard error se (Andrew et al., 2021).
func (f *fit) adapt(g *gram, short, se float64) {
	most := g.Columns.reach() / 2
	off := min(max((short-target)/(1-target+se), -1), 1)
	f.Clip = min(max(f.Clip*math.Exp(-follow*off), most/2), most)
}

// posterior is the step from mean and the covariance, for a Hessian with these eigenvalues
// and vectors, and noise of these variances in its basis, which is weighed against along.
func posterior(values, along []float64, vectors *mat.Dense, noise, precision, gradient, mean []float64) (*mat.VecDense, *mat.SymDense) {
	d := len(values)
	informed, trusted := make([]float64, d), make([]float64, d)
	for k, h := range values {
		trusted[k] = along[k] / (along[k] + noise[k])
		informed[k] = h * trusted[k]
	}
	p := compose(vectors, informed)
	var right, turned mat.VecDense
	turned.MulVec(vectors.T(), mat.NewVecDense(d, gradient))
	for k := range trusted {
		turned.SetVec(k, turned.AtVec(k)*trusted[k])
	}
	right.MulVec(vectors, &turned)
	for j, l := range precision {
		p.SetSym(j, j, p.At(j, j)+l)
		right.SetVec(j, right.AtVec(j)-l*mean[j])
	}
	// By eigenvalues, which rounding cannot make smaller than the prior's: sums from a
	// hostile site may be of any size.
	own, basis := eigen(p)
	for k := range own {
		own[k] = 1 / max(own[k], slices.Min(precision))
	}
	covariance := compose(basis, own)
	var step mat.VecDense
	step.MulVec(covariance, &right)
	return &step, covariance
}

// sweeps are how often the posterior's own variance enters the error of its Hessian.
const sweeps = 4

// Posterior returns mean and covariance of all weights. Beside the noise of the gradient
// and its sampling variance, the covariance holds the error of the Gram matrix: the
// gradient at the truth differs from what the Hessian makes of w − m by
// κ₀ (G − Ĝ)(w − m), of which half the variance counts, as m is where others vanish.
// Width is the median ratio of its standard deviations to those without noise.
func (f *fit) Posterior(g *gram, precision []float64) (mean []float64, covariance *mat.SymDense, width float64) {
	d := len(f.Mean)
	at := g.expect(f.Mean, f.Clipped)
	values, vectors := eigen(at.Hessian)
	noise := make([]float64, d)
	for k := range values {
		values[k] = max(values[k], flattest)
	}
	_, exact := posterior(values, values, vectors, noise, precision, f.Gradient, f.Mean)
	for k := range noise {
		noise[k] = f.Noise
	}
	_, covariance = posterior(values, values, vectors, noise, precision, f.Gradient, f.Mean)
	for range sweeps {
		var off mat.VecDense
		variances := mat.NewVecDense(d, nil)
		for j := range d {
			variances.SetVec(j, covariance.At(j, j))
		}
		off.MulVec(g.Error, variances)
		for k := range noise {
			noise[k] = f.Noise
			for j := range d {
				u := vectors.At(j, k)
				noise[k] += at.Mean * at.Mean / 2 * u * u * off.AtVec(j)
			}
		}
		_, covariance = posterior(values, values, vectors, noise, precision, f.Gradient, f.Mean)
	}
	ratios := make([]float64, d)
	for j := range ratios {
		ratios[j] = math.Sqrt(covariance.At(j, j) / exact.At(j, j))
	}
	slices.Sort(ratios)
	return slices.Clone(f.Mean), covariance, ratios[d/2]
}
