package predict

import (
	"math"
	"testing"

	"parley/internal/wire"
	"parley/methods/regression/glm"
)

// personPeriods are those of two periods and two columns of any numbers.
func personPeriods(t *testing.T, weight float64) *Periods {
	t.Helper()
	d := glm.NewDesign(4)
	for i, x := range []float64{1e300, -1e-300, 1, -2, 1e200} {
		for k := range int32(2) {
			if err := d.Append(glm.Row{Index: []int32{0, 1, 2 + k}, Value: []float64{x, float64(i), 1}, Weight: weight}, float64(2*(i%2)-1)); err != nil {
				t.Fatal(err)
			}
		}
	}
	q, err := glm.NewNormal([]float64{1e150, -3, 0, 1}, []float64{1e100, 0, 1, 0, 0, 1, 0, 0, 0, 1})
	if err != nil {
		t.Fatal(err)
	}
	return PeriodsOf(glm.Logistic{}, q, nil, d, 2)
}

// Whatever rows are, their sums by period pass, add up, and are looked into; rows with weights that
// are no numbers of people leave those by column out, for all sites, and others count as so many.
func TestPeriodsTakeAnyNumber(t *testing.T) {
	s, weighted := personPeriods(t, 1), personPeriods(t, 1.5)
	three, huge := personPeriods(t, 3), personPeriods(t, 1e12)
	if err := three.Check(2, 2); err != nil || three.Rows[0] != 15 || three.Events[1] != 6 || math.Abs(three.Score[1]-3*s.Score[1]) > 1e-12 {
		t.Errorf("%+v, %v", three, err)
	}
	if err := huge.Check(2, 2); err != nil || huge.Rows[0] != 5 || len(huge.Score) > 0 {
		t.Errorf("%+v, %v", huge, err)
	}
	for _, x := range []*Periods{s, weighted} {
		if err := x.Check(2, 2); err != nil || x.Rows[0] != 5 || x.Events[1] != 2 {
			t.Errorf("%+v, %v", x, err)
		}
	}
	all := poolPeriods(poolPeriods(nil, s), s)
	if all.Rows[0] != 10 || all.Score[1] != 2*s.Score[1] {
		t.Errorf("%+v", all)
	}
	all.Changing(0, 2)
	all.Changing(1, 2)
	if both := poolPeriods(all, weighted); both.Rows[0] != 15 || len(both.Score) > 0 || len(both.stretches(0)) > 0 {
		t.Errorf("%+v", both)
	}
}

func TestPeriodsThatNoRowsGive(t *testing.T) {
	for name, change := range map[string]func(s *Periods){
		"few periods":     func(s *Periods) { s.Net = s.Net[:1] },
		"few columns":     func(s *Periods) { s.Third = s.Third[:3] },
		"none of one sum": func(s *Periods) { s.Score = nil },
		"half a row":      func(s *Periods) { s.Rows[0] = 4.5 },
		"many events":     func(s *Periods) { s.Events[0] = 6 },
		"many rows":       func(s *Periods) { s.Rows[1] = 1e12 },
		"large residual":  func(s *Periods) { s.Net[0] = 6 },
		"variance":        func(s *Periods) { s.Variance[0] = -1 },
		"square":          func(s *Periods) { s.Second[3] = -1 },
		"no number":       func(s *Periods) { s.First[3] = math.NaN() },
		"enormous":        func(s *Periods) { s.Fourth[3] = math.MaxFloat64 },
		"all":             func(s *Periods) { *s = Periods{Rows: wire.Vector{1}} },
	} {
		s := personPeriods(t, 1)
		change(s)
		if s.Check(2, 2) == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
