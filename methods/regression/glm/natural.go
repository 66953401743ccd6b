package glm

import (
	"fmt"
	"math"
)

// Natural is the private update that wins by far where it was measured: one natural
// gradient step on the site's factor from one noised sum over all of its rows.
//
// The gradient of Σᵢ E_q ln p(yᵢ | xᵢ, w) by the natural parameters of q = N(m, diag v)
// is itself a factor, with precision λ̂ = −2 ∂/∂v and precision × mean ∂/∂m + λ̂ m
// (Khan and Lin, 2017, arXiv:1703.04265): the likelihood as q sees it. A factor that
// equals its own estimate is a fixed point of partitioned variational inference. A
// row contributes
//
//	( ∂/∂m_j E ln p , −2 ∂/∂v_j E ln p )  for all weights j,
//
// 2P numbers without the divergence's part, which is known without any row. So the
// release does not depend on how many rows there are, and is at rate 1: for the
// same privacy, noise on a sum of all rows weighs less than on one of a sample.
//
// As all sites take the step from one q, the noised sums add up to that of a central
// analysis, however unequal sites are, with the noise of all of them.
type Natural struct {
	Likelihood Likelihood
	Columns    int
}

// Constants of [Natural], chosen by measurement on the census data; results
// change little within a factor of two. More rounds come nearer to the optimum and
// bring more noise, so that from 25 to 40 the difference is not seen.
const (
	naturalDecay   = 0.05 // of the damping: ρ/(1 + 0.05 k) at the k-th update from 0 on
	naturalMemory  = 0.1  // least weight of a new curvature against those before
	naturalDoubt   = 3    // see tempering
	NaturalRounds  = 30   // updates of every site
	naturalLargest = 0.5  // damping at most
)

// NaturalBound returns the default clipping bound, for rows with the given number
// of entries that are not zero, such as declared features and intercept: ½ √entries.
// With entries around 1 it is about the length of the gradient of a row that is
// predicted wrongly with a probability of one half.
func NaturalBound(entries int) float64 { return math.Sqrt(float64(entries)) / 2 }

// NaturalDamping returns the default share of the step that is taken at first. With
// at most so many entries in a row, the Hessian scaled by its diagonal has no
// eigenvalue above that number, by Cauchy's inequality, so that steps cannot grow
// by going back and forth. Classes of a softmax likelihood weigh on each other, which
// can double it: count every entry twice there.
func NaturalDamping(entries int) float64 { return min(naturalLargest, 2/float64(entries)) }

// Len returns the length 2P of a contribution.
func (n Natural) Len() int { return 2 * n.Likelihood.Activations() * n.Columns }

// Contribution returns what a row contributes at q, a density: derivatives by the P
// means, then P curvatures. They are not clipped. The function keeps scratch space
// of its own and allocates nothing; it is for one goroutine.
func (n Natural) Contribution(q Gaussian) func(x Row, y float64, v []float64) {
	k, d := n.Likelihood.Activations(), n.Columns
	mean, variance := q.Moments()
	a, c, first := make([]float64, k), make([]float64, k), make([]float64, 2*k)
	return func(x Row, y float64, v []float64) {
		for i := range k {
			a[i], c[i] = x.Activation(mean[i*d:], variance[i*d:])
		}
		n.Likelihood.Slopes(y, a, c, first)
		for i := range k {
			x.addSlopes(v[i*d:], v[(k+i)*d:], first[i], -2*first[k+i])
		}
	}
}

// Change returns by what the site's factor is to be multiplied after its update
// number k, from 0 on, at q with the noised sum of its contributions. Means and
// curvatures move at rates of their own:
//
//	λ′ = λ + max(0.1, 1/(k+1)) (λ̂ − λ)
//	η′ = η + damping/(1 + 0.05 k) (ĝ + λ m − η) + (λ′ − λ) m
//
// so that a new curvature alone leaves the mean m of q where it is. Noise may make a
// factor's precision negative; that is for [NoiseAware] to judge, which sees all of
// them, and not projected away, which would bias their sum.
func (n Natural) Change(q, factor Gaussian, damping float64, k int, sum []float64) (Gaussian, error) {
	p := len(q.Eta)
	if len(sum) != 2*p {
		return Gaussian{}, fmt.Errorf("a sum of %d numbers for %d weights, want two for each", len(sum), p)
	}
	step, memory := damping/(1+naturalDecay*float64(k)), max(naturalMemory, 1/float64(k+1))
	out := Flat(p)
	for j := range p {
		m := q.Eta[j] / q.Lambda[j]
		out.Lambda[j] = memory * (sum[p+j] - factor.Lambda[j])
		out.Eta[j] = step*(sum[j]+factor.Lambda[j]*m-factor.Eta[j]) + out.Lambda[j]*m
	}
	return out, out.Check(p)
}

// tempering returns for each weight the power s in [0, 1] to which noised factors
// count: with precision Λ of their product and noise of the given variance V on the
// sum of gradients,
//
//	s = Λ/(Λ + 3V)  or 0 where Λ ≤ 0.
//
// An observed gradient g + N(0, V) says where the optimum is, with variance
// 1/Λ + V/Λ²: it has the precision Λ·Λ/(Λ + V) and not Λ. So a weight that few rows
// speak of stays at its prior, instead of being moved by noise as far as the few rows
// would allow. The 3 is for the noise of steps that overlap in time.
func tempering(factors []Gaussian, variance float64) []float64 {
	var s []float64
	for _, t := range factors {
		if s == nil {
			s = make([]float64, len(t.Lambda))
		}
		for j, l := range t.Lambda {
			s[j] += l
		}
	}
	for j, l := range s {
		s[j] = 0
		if l > 0 {
			s[j] = l / (l + naturalDoubt*variance)
		}
	}
	return s
}

// NoiseAware returns the posterior approximation given factors of [Natural] with
// noise, prior · Π t_mˢ: see [tempering]. Its precision is nowhere below the prior's.
// Without noise it is the product of partitioned variational inference. All factors
// are tempered alike, as a site that holds most rows of one class must not count for
// less.
func NoiseAware(prior Gaussian, factors []Gaussian, variance float64) Gaussian {
	q := prior.Clone()
	for j, s := range tempering(factors, variance) {
		if s == 0 {
			continue
		}
		eta, lambda := 0.0, 0.0
		for _, t := range factors {
			eta += t.Eta[j]
			lambda += t.Lambda[j]
		}
		q.Eta[j] += s * eta
		q.Lambda[j] += s * lambda
	}
	return q
}

// NoiseVariance returns V of [tempering]: the variance of the noise on the sum over
// all sites of one gradient, if each site had spent everything on one release. Noise
// holds the standard deviation of each site's releases in units of the bound.
func NoiseVariance(bound float64, noise []float64, releases int) float64 {
	v := 0.0
	for _, n := range noise {
		v += bound * n * bound * n / float64(releases)
	}
	return v
}
