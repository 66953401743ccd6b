package between

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"parley/methods/factors/factorstest"
	"parley/methods/factors/ppca"
)

// TestObjectiveIsTheRestrictedLikelihood compares with the formula written out, for
// features that share rows, noise, both or neither, at variances from none to many times
// what the sites know.
func TestObjectiveIsTheRestrictedLikelihood(t *testing.T) {
	for _, noise := range []ppca.Noise{ppca.NoisePerView, ppca.NoisePerFeature} {
		for _, holes := range []float64{0, 0.1} {
			l := factorstest.Shape(t, noise, 7, 4)
			r := rand.New(rand.NewPCG(71, 1))
			tr := factorstest.NewTruth(r, l, 3, 0.1)
			var messages []Message
			for c, rows := range differingSites(r, tr, 4, 50, 0.3, 0.5) {
				if holes > 0 {
					rows = factorstest.Hole(r, rows, holes)
				}
				if c == 3 {
					factorstest.Lacking(l, rows, 1)
				}
				h := factorstest.Must(NewSite(l, factorstest.BlocksOf(t, l, rows), factorstest.Must(ppca.Weak(l, &tr.P))(t), nil))(t)
				for range 3 {
					if err := h.Step(); err != nil {
						t.Fatal(err)
					}
				}
				messages = append(messages, *factorstest.Must(h.Message())(t))
			}
			for k := range l.Views() {
				for _, v := range [][2]float64{{0, 0}, {0, 0.2}, {0.2, 0}, {0.05, 0.3}, {3, 1e-3}, {1e-6, 1e4}, {1e4, 0}, {1e8, 1e8}} {
					got, rows, err := Restricted(l, messages, k, v[0], v[1])
					if err != nil {
						t.Fatal(err)
					}
					want, wantRows := restricted(t, l, messages, k, v[0], v[1])
					if e := math.Abs(got-want) / (1 + math.Abs(want)); !(e < 1e-8) {
						t.Errorf("noise %d, holes %v, view %d, variances %v: %v, want %v", noise, holes, k, v, got, want)
					}
					if e := factorstest.Worst(wantRows, rows); len(rows) != len(wantRows) || !(e < 1e-7) {
						t.Errorf("noise %d, holes %v, view %d, variances %v: rows differ by %.1e", noise, holes, k, v, e)
					}
				}
			}
		}
	}
}

// restricted is the objective without shortcuts, and W and μ, feature by feature in the
// order of the view.
func restricted(t *testing.T, l ppca.Layout, messages []Message, view int, varW, varMu float64) (total float64, rows []float64) {
	t.Helper()
	q1, group := messages[0].Rank+1, l.GroupOf()
	lo, hi := l.View(view)
	for j := lo; j < hi; j++ {
		sum, right := mat.NewDense(q1, q1, nil), mat.NewVecDense(q1, nil)
		var inverses []*mat.Dense
		var ys []*mat.VecDense
		for i := range messages {
			m := &messages[i]
			for k, f := range m.Features {
				if f != j {
					continue
				}
				var a, inverse mat.Dense
				if err := a.Inverse(mat.NewDense(q1, q1, append([]float64(nil), m.R[m.Class[k]*q1*q1:][:q1*q1]...))); err != nil {
					t.Fatal(err)
				}
				a.Scale(m.Noise[group[j]], &a)
				for c := range q1 {
					v := varW
					if c == q1-1 {
						v = varMu
					}
					a.Set(c, c, a.At(c, c)+v)
				}
				if err := inverse.Inverse(&a); err != nil {
					t.Fatal(err)
				}
				y := mat.NewVecDense(q1, append([]float64(nil), m.Y[k*q1:][:q1]...))
				var ay mat.VecDense
				ay.MulVec(&inverse, y)
				right.AddVec(right, &ay)
				sum.Add(sum, &inverse)
				total += math.Log(mat.Det(&a)) / 2
				inverses, ys = append(inverses, &inverse), append(ys, y)
			}
		}
		total += math.Log(mat.Det(sum)) / 2
		var w mat.VecDense
		if err := w.SolveVec(sum, right); err != nil {
			t.Fatal(err)
		}
		for i, y := range ys {
			var d, ad mat.VecDense
			d.SubVec(y, &w)
			ad.MulVec(inverses[i], &d)
			total += mat.Dot(&d, &ad) / 2
		}
		rows = append(rows, w.RawVector().Data...)
	}
	return total, rows
}
