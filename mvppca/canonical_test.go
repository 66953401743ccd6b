package mvppca

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

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
		l := drawLayout(rt, q, Noise(rapid.IntRange(0, 1).Draw(rt, "noise")))
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 5))
		p := newTruth(r, l, q, 0.5).p
		turned := must(p.Rotate(rotation(r, q)))(t)
		a, ea, qa, err := Canonical(l, &p)
		if err != nil {
			rt.Fatal(err)
		}
		b, eb, _, err := Canonical(l, turned)
		if err != nil {
			rt.Fatal(err)
		}
		if e := worst(ea, eb); e > 1e-11 {
			rt.Fatalf("eigenvalues differ by %.1e", e)
		}
		if !slices.IsSortedFunc(ea, func(x, y float64) int { return int(math.Copysign(1, y-x)) }) {
			rt.Fatalf("eigenvalues %v do not fall", ea)
		}
		gap := 1.0
		for i := 1; i < q; i++ {
			gap = min(gap, ea[i-1]/ea[i]-1)
		}
		if e := worst(a.W, b.W); e > 1e-10/gap {
			rt.Fatalf("loadings differ by %.1e with eigenvalues %v", e, ea)
		}
		if e := worst(covariance(l, &p, p.Features), covariance(l, a, p.Features)); e > 1e-12 {
			rt.Fatalf("the covariance changed by %.1e", e)
		}
		again := must(p.Rotate(qa))(t)
		if worst(again.W, a.W) != 0 {
			rt.Fatal("the rotation returned is not the one applied")
		}
	})
}

func TestAlignUndoesARotation(t *testing.T) {
	l := layout(t, NoisePerFeature, 5, 4)
	r := rand.New(rand.NewPCG(31, 1))
	p := newTruth(r, l, 3, 0.5).p
	turned := must(p.Rotate(rotation(r, 3)))(t)
	back := must(turned.Rotate(must(Align(l, turned, &p))(t)))(t)
	if e := worst(p.W, back.W); e > 1e-12 {
		t.Errorf("alignment is off by %.1e", e)
	}
	if a := must(PrincipalAngles(l, turned, &p))(t); slices.Max(a) > 1e-12 {
		t.Errorf("angles of a rotated copy: %v", a)
	}
}

func TestPrincipalAnglesAreKnown(t *testing.T) {
	l := layout(t, NoisePerFeature, 3)
	at := func(angle float64) *Params { // the plane of e₁ and e₂ turned about e₁
		return &Params{
			Features: []int{0, 1, 2}, Rank: 2, Mu: make([]float64, 3), Noise: []float64{4, 1, 1},
			W: []float64{2, 1, math.Cos(angle), 3 * math.Cos(angle), math.Sin(angle), 3 * math.Sin(angle)},
		}
	}
	for _, want := range []float64{1e-9, 0.3, 1.2} {
		got := must(PrincipalAngles(l, at(want), at(0)))(t)
		if math.Abs(got[0]) > 1e-9*want+1e-15 && got[0] > 1e-14 || math.Abs(got[1]-want) > 1e-13 {
			t.Errorf("angles %v, want 0 and %v", got, want)
		}
	}
}

func TestRotatingASiteTurnsItsFactors(t *testing.T) {
	l := layout(t, NoisePerView, 4, 3)
	r := rand.New(rand.NewPCG(32, 1))
	s := SiteState{Params: newTruth(r, l, 2, 0.5).p, Nu: []float64{1, -2}, Xi: []float64{2, 0.5, 0.5, 1}}
	turned := must(s.Rotate(rotation(r, 2)))(t)
	// The site's own mean W ν + μ and covariance W Ξ Wᵀ must not change.
	for j := range l.Features() {
		want := s.W[j*2]*s.Nu[0] + s.W[j*2+1]*s.Nu[1]
		got := turned.W[j*2]*turned.Nu[0] + turned.W[j*2+1]*turned.Nu[1]
		v := quadratic(s.Xi, 2, s.W[j*2:][:2], s.W[j*2:][:2])
		u := quadratic(turned.Xi, 2, turned.W[j*2:][:2], turned.W[j*2:][:2])
		if math.Abs(want-got) > 1e-13 || math.Abs(u-v) > 1e-12 {
			t.Errorf("feature %d: mean %v, was %v; variance %v, was %v", j, got, want, u, v)
		}
	}
}
