package fedmvppca

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"parley/methods/factors/factorstest"
	"parley/methods/factors/ppca"
	"parley/privacy/account"
)

// clippedDifferences is what Algorithm 2 of the paper computes for one view
// before it adds noise: the difference to the global parameters, each part
// clipped to norm g = constant × standard deviation of its prior, and the
// scale of the noise. It draws nothing and protects nothing by itself.
type clippedDifferences struct {
	Mu, W      []float64 // clipped differences of μ and W (by rows)
	Noise      float64   // clipped difference of the noise variance
	ClipMu     float64   // g of each part
	ClipW      float64
	ClipNoise  float64
	SDMu, SDW  float64 // standard deviation of the Gaussian noise per entry
	ScaleNoise float64 // scale of the Laplace noise
}

// clipDifference clips the difference between a site's parameters and the
// prior for view k. A prior whose noise variance has no finite spread (α ≤ 2)
// has no clipping bound and is refused.
func clipDifference(l ppca.Layout, site *ppca.Params, prior *ppca.Prior, k int, epsilon, delta, constant float64) (*clippedDifferences, error) {
	if k < 0 || k >= l.Views() || l.Noise != ppca.NoisePerView || site.Rank != prior.Rank {
		return nil, fmt.Errorf("no view %d with one noise variance and %d factors", k, prior.Rank)
	}
	view, err := l.FeaturesOf([]int{k})
	if err != nil {
		return nil, err
	}
	if !ppca.ContainsAll(site.Features, view) || !ppca.ContainsAll(prior.Features, view) {
		return nil, fmt.Errorf("view %d is not observed at the site, or unknown to the prior", k)
	}
	factor, _, err := account.ZhaoGaussian(epsilon, delta)
	if err != nil {
		return nil, err
	}
	if !(constant > 0) || math.IsInf(constant, 0) {
		return nil, fmt.Errorf("clipping constant %v is not positive and finite", constant)
	}
	variance := ppca.InverseGammaVariance(prior.Alpha[k], prior.Beta[k])
	if math.IsInf(variance, 0) {
		return nil, fmt.Errorf("the prior noise variance of view %d has no finite spread (alpha %v, needs more than 2)", k, prior.Alpha[k])
	}
	lo, hi := l.View(k)
	q := prior.Rank
	c := &clippedDifferences{
		ClipMu:    constant * math.Sqrt(prior.VarMu[k]),
		ClipW:     constant * math.Sqrt(prior.VarW[k]),
		ClipNoise: constant * math.Sqrt(variance),
	}
	c.SDMu, c.SDW, c.ScaleNoise = factor*2*c.ClipMu, factor*2*c.ClipW, 2*c.ClipNoise/epsilon
	c.Mu = clippedDifference(site.Mu[lo:hi], prior.Mu[lo:hi], c.ClipMu)
	c.W = clippedDifference(site.W[lo*q:hi*q], prior.W[lo*q:hi*q], c.ClipW)
	c.Noise = clippedDifference(site.Noise[k:k+1], prior.Noise[k:k+1], c.ClipNoise)[0]
	return c, nil
}

// clippedDifference returns x − center, scaled down to the given norm if longer.
func clippedDifference(x, center []float64, bound float64) []float64 {
	d := make([]float64, len(x))
	s := 0.0
	for i := range x {
		d[i] = x[i] - center[i]
		s += d[i] * d[i]
	}
	if norm := math.Sqrt(s); norm > bound {
		for i := range d {
			d[i] *= bound / norm
		}
	}
	return d
}

func TestClippingNeedsABound(t *testing.T) {
	l := factorstest.Shape(t, ppca.NoisePerView, 2, 3)
	r := rand.New(rand.NewPCG(52, 1))
	tr := factorstest.NewTruth(r, l, 1, 0.5)
	prior := factorstest.Must(ppca.Weak(l, &tr.P))(t)
	if _, err := clipDifference(l, &tr.P, prior, 0, 1, 1e-5, 1); err != nil {
		t.Fatal(err)
	}
	prior.Alpha[0] = 2
	if _, err := clipDifference(l, &tr.P, prior, 0, 1, 1e-5, 1); err == nil {
		t.Error("a prior without finite variance was accepted")
	}
	for _, c := range [][3]float64{{0, 1e-5, 1}, {1, 0, 1}, {1, 0.5, 1}, {math.NaN(), 1e-5, 1}, {1, 1e-5, 0}} {
		if _, err := clipDifference(l, &tr.P, prior, 1, c[0], c[1], c[2]); err == nil {
			t.Errorf("epsilon, delta, constant %v were accepted", c)
		}
	}
}
