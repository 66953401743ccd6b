package halves

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
// between them, as the expected information of complete data has it.
func (s step) moved() (nats float64) {
	for i, x := range s.found {
		nats += (x - s.sent[i]) * (x - s.sent[i]) / 2
	}
	return nats
}

// flatten writes a model as numbers in which distances mean about the same everywhere: loadings and
// means in units of another's noise, and logarithms of noise variances over √2. Factors are turned to those of
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
			x = append(x, math.Log(p.Noise[g])/math.Sqrt2)
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
			p.Noise[g] = math.Exp(x[at] * math.Sqrt2)
			at++
		}
	}
	return &p
}

// furthest is how many times an exchange's own change an extrapolation goes at most.
const furthest = 20

// near is how far, in units of noise and as a root mean square over the numbers, an extrapolation goes at most, if it
// goes further than an exchange does: further away it may be no model of these data.
const near = 0.1

// astray is by how much extrapolations go less far after one that made cells less likely, and further after another:
// after two of the former they go less than twice as far as an exchange does, by which the likelihood cannot fall near
// its maximum (Salakhutdinov and Roweis 2003), so that they do not go round without end.
const astray = 4

// extrapolate is the model to try next after some steps of a fixed-point iteration, the last of which is the latest,
// by Anderson's method of type I (Fang and Saad 2009): in the space of the last moves, by the Jacobian J of the
// changes that these show, which is about symmetric in the numbers of [flatten], to where the change would vanish.
// Where an eigenvalue of J is above zero, changes grow: the likelihood has a saddle there, and it goes away from that.
func extrapolate(steps []step, reach float64) []float64 {
	n := len(steps) - 1
	out := slices.Clone(steps[n].found)
	if n == 0 {
		return out
	}
	size := len(out)
	less := func(x, y []float64) []float64 { return floats.SubTo(make([]float64, size), x, y) }
	last := less(steps[n].found, steps[n].sent)
	moves, changes := mat.NewDense(size, n, nil), mat.NewDense(size, n, nil)
	for i := range n {
		move := less(steps[i+1].sent, steps[i].sent)
		moves.SetCol(i, move)
		changes.SetCol(i, less(less(steps[i+1].found, steps[i].found), move))
	}
	var svd mat.SVD
	var basis, v, inBasis, j, jt mat.Dense
	if !svd.Factorize(moves, mat.SVDThin) {
		return out
	}
	svd.UTo(&basis)
	svd.VTo(&v)
	inBasis.Mul(mat.NewDiagDense(n, svd.Values(nil)), v.T())
	j.Mul(basis.T(), changes)
	if jt.Solve(inBasis.T(), j.T()) != nil {
		return out
	}
	both := mat.NewSymDense(n, nil)
	for a := range n {
		for b := range a + 1 {
			both.SetSym(a, b, (jt.At(a, b)+jt.At(b, a))/2)
		}
	}
	var e mat.EigenSym
	if !e.Factorize(both, true) {
		return out
	}
	var vectors mat.Dense
	var along, move, times, further mat.VecDense
	e.VectorsTo(&vectors)
	along.MulVec(basis.T(), mat.NewVecDense(size, last))
	move.MulVec(vectors.T(), &along)
	for i, x := range e.Values(nil) {
		move.SetVec(i, move.AtVec(i)*min(1/math.Abs(x), reach))
	}
	along.MulVec(&vectors, &move)
	if times.SolveVec(&inBasis, &along) != nil {
		return out
	}
	moves.Add(moves, changes)
	further.MulVec(moves, &times)
	step := further.RawVector().Data
	change := floats.Norm(last, 2)
	most := max(change, min(reach*change, near*math.Sqrt(float64(size))))
	floats.AddScaled(out, min(1, most/floats.Norm(step, 2)), step)
	return out
}
