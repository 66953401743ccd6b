package fitted

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"parley/dataset"
	"parley/internal/testkit"
	"parley/method"
	"parley/methods/factors/factorstest"
	"parley/methods/factors/ppca"
)

// steadyTruth has factors whose strengths differ clearly, but for the last two.
func steadyTruth(t testing.TB, r *rand.Rand) factorstest.Truth {
	tr := factorstest.NewTruth(r, factorstest.Shape(t, ppca.NoisePerView, 30, 20), 4, 0.5)
	for j := 0; j < len(tr.P.W); j += 4 {
		for a, size := range []float64{4, 2, 0.9, 0.85} {
			tr.P.W[j+a] *= size
		}
	}
	return tr
}

func compared(t testing.TB, a, b *Model) *comparison {
	t.Helper()
	account := testkit.Get(a.Compare(b))(t)
	return account.Value.(*comparison)
}

// TestFactorsAreMatchedWhateverTheirOrderSignAndScaling: the second model is
// the first with its factors in another order and mirrored, and every feature
// in another scale.
func TestFactorsAreMatchedWhateverTheirOrderSignAndScaling(t *testing.T) {
	r := rand.New(rand.NewPCG(95, 1))
	tr := steadyTruth(t, r)
	a := modelOf(t, tr, r)
	b := testkit.Get(LoadModel(testkit.Get(a.Encode())(t)))(t)
	order, sign := []int{2, 0, 3, 1}, []float64{-1, 1, 1, -1}
	for k := range b.Views {
		for i := range b.Views[k].Features {
			f := &b.Views[k].Features[i]
			old := slices.Clone(f.Loadings)
			grow := 1.7 // one for all, as the view has one noise variance
			for c := range old {
				f.Loadings[c] = sign[c] * old[order[c]] * grow
			}
			f.Noise *= grow * grow
			f.Mean = (f.Mean + 1) * grow
			f.Shift -= 1 / f.Factor
			f.Factor *= grow
		}
	}
	c := compared(t, a, b)
	if c.Features != 50 || len(c.Only[0])+len(c.Only[1]) != 0 || len(c.Matches) != 4 {
		t.Fatalf("%+v", c)
	}
	for _, m := range c.Matches {
		if order[m.B-1] != m.A-1 || math.Abs(m.Correlation-sign[m.B-1]) > 1e-9 {
			t.Errorf("%+v", m)
		}
	}
	for _, angle := range c.Angles {
		if angle > 1e-5 {
			t.Errorf("angles %v", c.Angles)
		}
	}
}

// TestHalvesOfOnePopulation: fits to two samples agree in the factors that
// stand apart, and those that do not are said not to be comparable.
func TestHalvesOfOnePopulation(t *testing.T) {
	r := rand.New(rand.NewPCG(96, 1))
	tr := steadyTruth(t, r)
	half := func() *Model {
		fit := testkit.Get(ppca.Fit(tr.L, factorstest.BlocksOf(t, tr.L, tr.Subjects(r, 400)), 4, nil,
			ppca.FitOptions{}))(t)
		m := modelOf(t, factorstest.Truth{L: tr.L, P: fit.Params}, rand.New(rand.NewPCG(97, 1)))
		return m
	}
	c := compared(t, half(), half())
	for i, m := range c.Matches {
		if i < 2 && !(m.Comparable && m.A == m.B && math.Abs(m.Correlation) > 0.98) || i >= 2 && m.Comparable {
			t.Errorf("%+v", m)
		}
	}
	if worst := slices.Max(c.Angles); worst > 20 || c.Angles[0] < 0.01 {
		t.Errorf("angles %v", c.Angles)
	}
	other := compared(t, half(), modelOf(t, steadyTruth(t, r), r))
	if slices.Max(other.Angles) < 30 {
		t.Errorf("another population: %+v", other)
	}
}

func TestModelsOfDifferentShapeAreCompared(t *testing.T) {
	r := rand.New(rand.NewPCG(98, 1))
	l := factorstest.Shape(t, ppca.NoisePerView, 6, 4)
	a, b := modelOf(t, factorstest.NewTruth(r, l, 3, 0.5), r), modelOf(t, factorstest.NewTruth(r, l, 2, 0.5), r)
	b.Views[0].Features[1].Name, b.Views[1].Name = "renamed", "view9"
	account := testkit.Get(a.Compare(b))(t)
	c := account.Value.(*comparison)
	if c.Features != 5 || len(c.Only[0]) != 5 || len(c.Only[1]) != 5 || len(c.Matches) != 2 || len(c.Angles) != 2 {
		t.Fatalf("%+v", c)
	}
	if !strings.Contains(account.Notes.Error(), "model A: 5 features of it not compared") ||
		!strings.Contains(account.Notes.Error(), "view0/renamed") {
		t.Errorf("notes %v", account.Notes)
	}
	for _, v := range b.Views {
		for i := range v.Features {
			v.Features[i].Name += "x"
		}
	}
	if _, err := a.Compare(b); err == nil || !strings.Contains(err.Error(), "no feature in common") {
		t.Errorf("got %v", err)
	}
	b.Scaling = ppca.ScaleSiteRange
	if _, err := a.Compare(b); err == nil || !strings.Contains(err.Error(), "no common unit") {
		t.Errorf("got %v", err)
	}
	if _, err := a.Compare(otherModel{}); err == nil ||
		!strings.Contains(err.Error(), "a model of factors cannot be compared with one of other") {
		t.Errorf("got %v", err)
	}
}

type otherModel struct{}

func (otherModel) Method() string         { return "other" }
func (otherModel) Schema() dataset.Schema { return dataset.Schema{} }

var _ method.Model = otherModel{}
