package predict

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"parley/internal/testkit"
	"parley/internal/wire"
	"parley/method"
	"parley/methods/regression/glm"
)

// personPeriods are those of two periods and two columns of any numbers.
func personPeriods(t *testing.T, weight float64) *Periods {
	t.Helper()
	d := glm.NewDesign(4)
	for i, x := range []float64{1e300, -1e-300, 1, -2, 1e200} {
		for k := range int32(2) {
			testkit.Do(t, d.Append(glm.Row{Index: []int32{0, 1, 2 + k}, Value: []float64{x, float64(i), 1},
				Weight: weight}, float64(2*(i%2)-1)))
		}
	}
	q := testkit.Get(glm.NewNormal([]float64{1e150, -3, 0, 1}, []float64{1e100, 0, 1, 0, 0, 1, 0, 0, 0, 1}))(t)
	return PeriodsOf(glm.Logistic{}, q, nil, d, 2)
}

func passes(s *Periods) error {
	if err := method.CheckSums(newPeriods(2, 4), s, glm.MostRows*rowLargest); err != nil {
		return err
	}
	return s.check()
}

// Whatever rows are, their sums by period pass, add up, and are looked into; weights count as so many rows.
func TestPeriodsTakeAnyNumber(t *testing.T) {
	s, three := personPeriods(t, 1), personPeriods(t, 3)
	both := newPeriods(2, 4)
	method.AddSums(both, s)
	method.AddSums(both, three)
	for n, x := range map[float64]*Periods{5: s, 15: three, 20: both} {
		if rows, events := x.Count(); passes(x) != nil || rows[0] != n || events[1] != n*2/5 {
			t.Errorf("%v: %v, %v, %v", n, rows, events, passes(x))
		}
		x.Changes(2, glm.Isotropic(4, 0, 1), 1)
	}
}

func TestPeriodsThatNoRowsGive(t *testing.T) {
	for name, change := range map[string]func(s *Periods){
		"few periods":     func(s *Periods) { s.Risk = s.Risk[:scoreBins] },
		"few columns":     func(s *Periods) { s.Second = s.Second[:3] },
		"none of one sum": func(s *Periods) { s.Score = nil },
		"many events":     func(s *Periods) { s.Events[0] = 6 },
		"rows":            func(s *Periods) { s.Risk[0] = -1 },
		"no number":       func(s *Periods) { s.First[3] = math.NaN() },
		"enormous":        func(s *Periods) { s.Second[3] = math.MaxFloat64 },
		"all":             func(s *Periods) { *s = Periods{Risk: wire.Vector{1}} },
	} {
		s := personPeriods(t, 1)
		change(s)
		if passes(s) == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// survivors are people with two numbers who are seen through up to six periods, and what was drawn for them.
func survivors(t *testing.T, r *rand.Rand, n int, change float64) (d *glm.Design, x [][2]float64, last []int,
	event []bool) {
	t.Helper()
	d = glm.NewDesign(8)
	for range n {
		own := [2]float64{r.NormFloat64(), r.NormFloat64()}
		stop := 1 + r.IntN(6)
		for k := range 6 {
			y := -1.0
			if r.Float64() < 1/(1+math.Exp(2-(0.8+change*float64(k))*own[0]+0.5*own[1])) {
				y = 1
			}
			row := glm.Row{Index: []int32{0, 1, int32(2 + k)}, Value: []float64{own[0], own[1], 1}, Later: k > 0}
			testkit.Do(t, d.Append(row, y))
			if y > 0 || k+1 == stop {
				x, last, event = append(x, own), append(last, k), append(event, y > 0)
				break
			}
		}
	}
	return d, x, last, event
}

// mode is the posterior of a logistic regression by Newton's method.
func mode(t *testing.T, d *glm.Design, columns func(glm.Row) glm.Row, width int) (glm.Normal, float64) {
	t.Helper()
	w, value := make([]float64, width), 0.0
	var covariance []float64
	for range 30 {
		g, h := make([]float64, width), make([]float64, glm.Triangle(width))
		value = 0
		for i := range d.Rows() {
			row, y := columns(d.Row(i)), d.Outcome(i)
			f, _ := row.Activation(w, w)
			first := [1]float64{}
			v, curve := glm.Logistic{}.LogLik(y, []float64{f}, first[:])
			value += v
			for a, j := range row.Index {
				g[j] += first[0] * row.Value[a]
				for b := range a + 1 {
					h[glm.Packed(int(j), int(row.Index[b]))] += curve * row.Value[a] * row.Value[b]
				}
			}
		}
		inverse, _ := glm.PseudoInverse(glm.Symmetric(h, width))
		covariance = glm.Lower(inverse)
		for i := range w {
			for j := range g {
				w[i] += inverse.At(i, j) * g[j]
			}
		}
	}
	q := testkit.Get(glm.NewNormal(w, covariance))(t)
	return q, value
}

// The score test of a change is near the ratio of likelihoods with and without that term, p values are even where
// nothing changes, and concordance is that of all pairs but for bins.
func TestChangesAndConcordance(t *testing.T) {
	same := func(r glm.Row) glm.Row { return r }
	with := func(r glm.Row) glm.Row {
		k := float64(r.Index[2] - 2)
		return glm.Row{Index: append(append([]int32(nil), r.Index...), 8),
			Value: append(append([]float64(nil), r.Value...), k*r.Value[0])}
	}
	small, studies := 0, 120
	for i := range studies {
		r := rand.New(rand.NewPCG(uint64(i), 51))
		change := 0.0
		if i < 5 {
			change = -0.3
		}
		d, x, last, event := survivors(t, r, 300, change)
		q, value := mode(t, d, same, 8)
		s := PeriodsOf(glm.Logistic{}, q, nil, d, 6)
		each, all := s.Changes(2, glm.Isotropic(8, 0, 1e9), 1)
		if each[0].Free != 1 || all.Free != 2 {
			t.Fatalf("%+v, %+v", each, all)
		}
		if each[1].P < 0.1 {
			small++
		}
		if i >= 5 {
			continue
		}
		_, wider := mode(t, d, with, 9)
		if ratio := 2 * (wider - value); math.Abs(each[0].ChiSquared-ratio) > 0.1*ratio || each[0].Slope > 0 {
			t.Errorf("a score test of %v, and a ratio of %v", each[0], ratio)
		}
		right, pairs := 0.0, 0.0
		for a := range x {
			for b := range x {
				if event[a] && (last[b] > last[a] || last[b] == last[a] && !event[b]) {
					pairs++
					if (x[a][0]-x[b][0])*q.Mean[0]+(x[a][1]-x[b][1])*q.Mean[1] > 0 {
						right++
					}
				}
			}
		}
		if c := s.Concordance(); math.Abs(c-right/pairs) > 0.003 {
			t.Errorf("a concordance of %v, of pairs %v", c, right/pairs)
		}
	}
	if most := (distuv.Binomial{N: float64(studies), P: 0.1}); most.Survival(float64(small)) < 0.001 ||
		most.CDF(float64(small)) < 0.001 {
		t.Errorf("%d of %d p values below .1", small, studies)
	}
}
