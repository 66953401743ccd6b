package federated

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"parley/methods/factors/ppca"
)

// remembered is how many exchanges back an extrapolation looks.
const remembered = 4

// settledBy is by how many nats a subject, about, an exchange moves a model that has settled.
const settledBy = 1e-6

// step is a model that was sent to sites, and the one that was fitted to what they then said.
type step struct{ sent, found []float64 }

// newStep is a step in the units of a model.
func newStep(l ppca.Layout, sent, found, units *ppca.Params) step {
	return step{flatten(l, sent, units), flatten(l, found, units)}
}

// moved is about how many nats a subject lie between the models: half the squared length of what is
// between them, as the expected information of complete data has it. Either is like the one given.
func (s step) moved(like *ppca.Params) (nats float64) {
	loadings := len(like.Features) * (like.Rank + 1)
	for i, x := range s.found {
		d := x - s.sent[i]
		if i < loadings {
			nats += d * d / 2
		} else {
			nats += d * d / 4
		}
	}
	return nats
}

// flatten writes a model as numbers in which distances mean about the same everywhere: loadings and
// means in units of another's noise, and logarithms of noise variances. Factors are turned to those of
// the other, so that models can be subtracted.
func flatten(l ppca.Layout, p, units *ppca.Params) (x []float64) {
	q, group, turn := p.Rank, l.GroupOf(), mat.NewDense(p.Rank, p.Rank, nil)
	for _, j := range p.Features {
		w, b := mat.NewVecDense(q, p.W[j*q:][:q]), mat.NewVecDense(q, units.W[j*q:][:q])
		turn.RankOne(turn, 1/units.Noise[group[j]], w, b)
	}
	var svd mat.SVD // the rotation that brings W closest to the other (Schönemann 1966)
	rotated := p
	if svd.Factorize(turn, mat.SVDFull) {
		var u, v, r mat.Dense
		svd.UTo(&u)
		svd.VTo(&v)
		r.Mul(&u, v.T())
		if turned, err := p.Rotate(r.RawMatrix().Data); err == nil {
			rotated = turned
		}
	}
	for _, j := range p.Features {
		unit := 1 / math.Sqrt(units.Noise[group[j]])
		for _, w := range rotated.W[j*q:][:q] {
			x = append(x, w*unit)
		}
		x = append(x, p.Mu[j]*unit)
	}
	for g, used := range p.Groups(l) {
		if used {
			x = append(x, math.Log(p.Noise[g]))
		}
	}
	return x
}

// unflatten makes a model of the numbers again.
func unflatten(l ppca.Layout, x []float64, units *ppca.Params) *ppca.Params {
	p, q, group := units.Clone(), units.Rank, l.GroupOf()
	for _, j := range p.Features {
		unit := math.Sqrt(units.Noise[group[j]])
		for a := range q {
			p.W[j*q+a] = x[a] * unit
		}
		p.Mu[j] = x[q] * unit
		x = x[q+1:]
	}
	at := 0
	for g, used := range p.Groups(l) {
		if used {
			p.Noise[g] = math.Exp(x[at])
			at++
		}
	}
	return &p
}

// extrapolate is the model to try next after some steps of a fixed-point iteration, the last of which is
// the latest, by Anderson's method (Walker and Ni, SIAM Journal on Numerical Analysis 2011): the mixture
// of the models found whose changes cancel best.
func extrapolate(steps []step) []float64 {
	n := len(steps) - 1
	out := slices.Clone(steps[n].found)
	if n == 0 {
		return out
	}
	size := len(out)
	change := func(i int) []float64 {
		f := make([]float64, size)
		floats.SubTo(f, steps[i].found, steps[i].sent)
		return f
	}
	last := change(n)
	differences := mat.NewDense(size, n, nil)
	for i := range n {
		d := change(i + 1)
		floats.Sub(d, change(i))
		differences.SetCol(i, d)
	}
	var gamma mat.VecDense
	if err := gamma.SolveVec(differences, mat.NewVecDense(size, last)); err != nil {
		return out
	}
	for i := range n {
		for k := range out {
			out[k] -= gamma.AtVec(i) * (steps[i+1].found[k] - steps[i].found[k])
		}
	}
	return out
}
