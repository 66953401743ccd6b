package ppca_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"parley/methods/factors/factorstest"
	"parley/methods/factors/ppca"

	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"
)

// rotation draws an orthogonal q × q matrix, reflections included.
func rotation(r *rand.Rand, q int) []float64 {
	m := make([]float64, q*q)
	for i := range m {
		m[i] = r.NormFloat64()
	}
	for c := range q { // Gram and Schmidt
		for range 2 {
			for b := range c {
				s := 0.0
				for i := range q {
					s += m[i*q+c] * m[i*q+b]
				}
				for i := range q {
					m[i*q+c] -= s * m[i*q+b]
				}
			}
		}
		s := 0.0
		for i := range q {
			s += m[i*q+c] * m[i*q+c]
		}
		for i := range q {
			m[i*q+c] /= math.Sqrt(s)
		}
	}
	return m
}

func TestCanonicalFormForgetsTheRotation(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		q := rapid.IntRange(1, 4).Draw(rt, "q")
		l := drawLayout(rt, q, ppca.Noise(rapid.IntRange(0, 1).Draw(rt, "noise")))
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 5))
		p := factorstest.NewTruth(r, l, q, 0.5).P
		turned := factorstest.Must(p.Rotate(rotation(r, q)))(t)
		a, ea, qa, err := ppca.Canonical(l, &p)
		if err != nil {
			rt.Fatal(err)
		}
		b, eb, _, err := ppca.Canonical(l, turned)
		if err != nil {
			rt.Fatal(err)
		}
		if e := factorstest.Worst(ea, eb); e > 1e-11 {
			rt.Fatalf("eigenvalues differ by %.1e", e)
		}
		if !slices.IsSortedFunc(ea, func(x, y float64) int { return int(math.Copysign(1, y-x)) }) {
			rt.Fatalf("eigenvalues %v do not fall", ea)
		}
		gap := 1.0
		for i := 1; i < q; i++ {
			gap = min(gap, ea[i-1]/ea[i]-1)
		}
		if e := factorstest.Worst(a.W, b.W); e > 1e-10/gap {
			rt.Fatalf("loadings differ by %.1e with eigenvalues %v", e, ea)
		}
		if e := factorstest.Worst(factorstest.Covariance(l, &p, p.Features), factorstest.Covariance(l, a, p.Features)); e > 1e-12 {
			rt.Fatalf("the covariance changed by %.1e", e)
		}
		again := factorstest.Must(p.Rotate(qa))(t)
		if factorstest.Worst(again.W, a.W) != 0 {
			rt.Fatal("the rotation returned is not the one applied")
		}
	})
}

func TestPrincipalAnglesForgetTheRotation(t *testing.T) {
	l := factorstest.Shape(t, ppca.NoisePerFeature, 5, 4)
	r := rand.New(rand.NewPCG(31, 1))
	p := factorstest.NewTruth(r, l, 3, 0.5).P
	turned := factorstest.Must(p.Rotate(rotation(r, 3)))(t)
	if a := factorstest.Must(ppca.PrincipalAngles(weightedColumns(l, turned), weightedColumns(l, &p)))(t); slices.Max(a) > 1e-12 {
		t.Errorf("angles of a rotated copy: %v", a)
	}
}

// weightedColumns is Ψ^-½ W.
func weightedColumns(l ppca.Layout, p *ppca.Params) *mat.Dense {
	return mat.NewDense(len(p.Features), p.Rank, ppca.Weighted(l, p))
}

func TestPrincipalAnglesAreKnown(t *testing.T) {
	l := factorstest.Shape(t, ppca.NoisePerFeature, 3)
	at := func(angle float64) *ppca.Params { // the plane of e₁ and e₂ turned about e₁
		return &ppca.Params{
			Features: []int{0, 1, 2}, Rank: 2, Mu: make([]float64, 3), Noise: []float64{4, 1, 1},
			W: []float64{2, 1, math.Cos(angle), 3 * math.Cos(angle), math.Sin(angle), 3 * math.Sin(angle)},
		}
	}
	for _, want := range []float64{1e-9, 0.3, 1.2} {
		got := factorstest.Must(ppca.PrincipalAngles(weightedColumns(l, at(want)), weightedColumns(l, at(0))))(t)
		if math.Abs(got[0]) > 1e-9*want+1e-15 && got[0] > 1e-14 || math.Abs(got[1]-want) > 1e-13 {
			t.Errorf("angles %v, want 0 and %v", got, want)
		}
	}
}
