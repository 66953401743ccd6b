package assess

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"

	"parley/methods/factors/ppca"
)

const (
	// directions is how many perturbations [Rotated] draws: standard errors have a standard
	// deviation of 1/√(2·directions), 3.5 %.
	directions = 400
	// small is the size of a perturbation of the factors among each other, in radians.
	small = 1e-4
)

// Rotated returns standard errors of loadings that were rotated, W T by rows, d × q. Rotate
// finds T from standardised loadings, those of the features that the model describes by rows;
// model, strengths, fourths and patterns are as for [Of].
//
// It is the delta method: the square root of the mean square of the derivative of W T in
// directions drawn from the law that [Of] has for W in large samples, of the rotation as well as
// of the loadings. Derivatives are numerical, so any smooth rotation will do (compare Archer
// and Jennrich, "Estimated standard errors for rotated factor loadings", 1973). Directions are
// the same for the same arguments.
func Rotated(l ppca.Layout, p *ppca.Params, strengths []float64, fourths Fourths, patterns []Pattern, rotate func(standardised []float64) ([]float64, error)) ([]float64, error) {
	if err := p.Check(l); err != nil {
		return nil, err
	}
	if err := checkFactors(p.Rank, strengths, fourths); err != nil {
		return nil, err
	}
	for _, s := range strengths {
		if !(s > leastStrength) {
			return nil, fmt.Errorf("a factor of strength %v tells nothing of its loadings", s)
		}
	}
	w := newPerturbed(l, p, strengths, newTold(l, p, strengths, fourths, patterns))
	squares := make([]float64, len(p.Features)*p.Rank)
	if _, err := w.each(rotate, func(step float64, fitted, moved axes) {
		for i, x := range moved.loadings {
			slope := (x - fitted.loadings[i]) / step
			squares[i] += slope * slope / directions
		}
	}); err != nil {
		return nil, err
	}
	out := make([]float64, len(p.W))
	for i, j := range p.Features {
		for f := range p.Rank {
			out[j*p.Rank+f] = w.n.few(j, p.Rank) * math.Sqrt(squares[i*p.Rank+f])
		}
	}
	return out, nil
}

// axes are rotated loadings, and T by which they are.
type axes struct{ loadings, t []float64 }

// scores is T⁻¹, by which scores are rotated; not ok where two axes are nearly one.
func (a axes) scores(q int) (*mat.Dense, bool) {
	r := new(mat.Dense)
	return r, r.Inverse(mat.NewDense(q, q, slices.Clone(a.t))) == nil
}

// each rotates the loadings as they are and after a small step in each of the directions, the same for the
// same model.
func (w *perturbed) each(rotate func([]float64) ([]float64, error), yield func(step float64, fitted, moved axes)) (fitted axes, err error) {
	if fitted, err = w.rotated(0, rotate); err != nil {
		return axes{}, err
	}
	rng := rand.New(rand.NewPCG(uint64(len(w.p.Features)), uint64(w.p.Rank)))
	for range directions {
		step := w.draw(rng)
		moved, err := w.rotated(step, rotate)
		if err != nil {
			return axes{}, err
		}
		yield(step, fitted, moved)
	}
	return fitted, nil
}

// perturbed is a model with one direction in which sampling moves it. Loadings and variances
// are in units of the features' noise.
type perturbed struct {
	p         *ppca.Params
	strengths []float64
	n         *told
	noise     []float64 // p
	u         []float64 // p × q: U
	rest      []float64 // p: 1 − |u_j|²

	loading  []float64 // p × q: direction of Ψ^−½W
	variance []float64 // p: of the features' variances
	free     *noise    // nil where the noise counts as known
	delta    []float64 // groups: relative, of the noise
}

func newPerturbed(l ppca.Layout, p *ppca.Params, strengths []float64, n *told) *perturbed {
	q, group, subjects := p.Rank, l.GroupOf(), []float64(nil)
	w := &perturbed{p: p, strengths: strengths, n: n, loading: make([]float64, len(p.Features)*q), variance: make([]float64, len(p.Features))}
	for _, j := range p.Features {
		psi, rest := p.Noise[group[j]], 1.0
		for f, s := range strengths {
			u := p.W[j*q+f] / math.Sqrt(psi*s)
			w.u = append(w.u, u)
			rest -= u * u
		}
		w.noise, w.rest = append(w.noise, psi), append(w.rest, max(0, rest))
		subjects = append(subjects, n.feature[j])
	}
	w.free = newNoise(l, p, strengths, w.u, subjects)
	return w
}

// draw sets a direction and returns how far to go.
func (w *perturbed) draw(rng *rand.Rand) (step float64) {
	q := len(w.strengths)
	z, turn, most := make([]float64, q*q), make([]float64, q*q), 1.0
	for f, s := range w.strengths {
		for b := range f + 1 {
			x := math.Sqrt(w.n.fourths.variance(f, b, q)/w.n.pair[f*q+b]) * rng.NormFloat64()
			z[f*q+b], z[b*q+f] = x, x
			if b == f {
				turn[f*q+f] = (1 + s) * x / (2 * s)
			} else {
				apart := math.Sqrt(rotation(1+s, 1+w.strengths[b])) * x
				if s < w.strengths[b] {
					apart = -apart
				}
				turn[f*q+b], turn[b*q+f] = apart, -apart
			}
			most = max(most, math.Abs(turn[f*q+b]))
		}
	}
	outside := make([]float64, len(w.loading)) // drawn, less what lies in the factors
	inside := make([]float64, q*q)
	for i := range w.rest {
		for f := range q {
			x := rng.NormFloat64()
			outside[i*q+f] = x
			for b := range q {
				inside[b*q+f] += w.u[i*q+b] * x
			}
		}
	}
	for i, j := range w.p.Features {
		u := w.u[i*q:][:q]
		variance := w.rest[i] * math.Sqrt(2/w.n.feature[j]) * rng.NormFloat64()
		for f, s := range w.strengths {
			g := outside[i*q+f]
			for b, x := range u {
				g -= x * inside[b*q+f]
			}
			g /= math.Sqrt(w.n.factor[j*q+f])
			x := math.Sqrt((1+s)/s) * g
			variance += 2 * math.Sqrt(1+s) * u[f] * g
			for b, v := range u {
				x += math.Sqrt(s) * turn[f*q+b] * v
				variance += math.Sqrt((1+s)*(1+w.strengths[b])) * u[f] * v * z[f*q+b]
			}
			w.loading[i*q+f] = x
		}
		w.variance[i] = variance
	}
	if w.free != nil {
		w.delta = w.free.draw(rng, w.scaled(), w.loading, w.variance)
	}
	return small / most
}

// scaled is Ψ^−½W.
func (w *perturbed) scaled() []float64 {
	v := slices.Clone(w.u)
	for i := range v {
		v[i] *= math.Sqrt(w.strengths[i%len(w.strengths)])
	}
	return v
}

// rotated is the rotated loadings so far along the direction, those of described features.
func (w *perturbed) rotated(step float64, rotate func([]float64) ([]float64, error)) (axes, error) {
	q := len(w.strengths)
	loadings, standardised, out := make([]float64, len(w.loading)), make([]float64, len(w.loading)), make([]float64, len(w.loading))
	for i := range w.rest {
		total := 1 + step*w.variance[i]
		for f, s := range w.strengths {
			v := math.Sqrt(s) * w.u[i*q+f]
			total += v * v
			loadings[i*q+f] = math.Sqrt(w.noise[i]) * (v + step*w.loading[i*q+f])
		}
		for f := range q {
			standardised[i*q+f] = loadings[i*q+f] / math.Sqrt(w.noise[i]*total)
		}
	}
	t, err := rotate(standardised)
	if err != nil {
		return axes{}, err
	}
	for i := range w.rest {
		for f := range q {
			for b := range q {
				out[i*q+f] += loadings[i*q+b] * t[b*q+f]
			}
		}
	}
	return axes{out, t}, nil
}
