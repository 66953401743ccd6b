package dataset

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// Values that a site has standardised are recognised by their sums, rounded as files are; those of a
// population of mean 0 and deviation 1 are not, however many: of three features, one set of
// three million would be.
func TestStandardisedIsToldFromStandardNormal(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 11))
	sums := func(rows [][]float64) (n, mean, squares []float64) {
		for _, x := range rows {
			m, s := 0.0, 0.0
			for _, v := range x {
				m += v / float64(len(x))
			}
			for _, v := range x {
				s += (v - m) * (v - m)
			}
			n, mean, squares = append(n, float64(len(x))), append(mean, m), append(squares, s)
		}
		return n, mean, squares
	}
	for _, size := range []int{10, 300, 20000} {
		for range 20 {
			raw, by, less := make([][]float64, 3), make([][]float64, 3), make([][]float64, 3)
			for j := range raw {
				for range size {
					raw[j] = append(raw[j], r.NormFloat64())
				}
			}
			n, mean, squares := sums(raw)
			if Standardised(n, mean, squares) {
				t.Errorf("%d values of a standard normal law are called standardised", size)
			}
			for j := range raw {
				for _, x := range raw[j] {
					z := (x - mean[j]) / math.Sqrt(squares[j]/n[j])
					by[j] = append(by[j], math.Round(1000*z)/1000)
					less[j] = append(less[j], math.Round(1000*z*math.Sqrt((n[j]-1)/n[j]))/1000)
				}
			}
			for _, x := range [][][]float64{by, less} {
				if !Standardised(sums(x)) {
					t.Errorf("%d standardised values are not recognised", size)
				}
			}
			if Standardised(sums(by[:2])) {
				t.Error("two features are called standardised")
			}
		}
	}
}

// A site that has standardised a view is named beside one that has not.
func TestAStandardisedViewIsDoubted(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 12))
	site := func(own bool) *Summary {
		x := make([][]float64, 40)
		for i := range x {
			x[i] = []float64{50 + 8*r.NormFloat64(), 120 + 15*r.NormFloat64(), r.NormFloat64()}
		}
		var rows []Row
		for i := range x {
			values := append([]float64(nil), x[i]...)
			for j := range values {
				mean, squares := 0.0, 0.0
				for k := range x {
					mean += x[k][j] / float64(len(x))
				}
				for k := range x {
					squares += (x[k][j] - mean) * (x[k][j] - mean)
				}
				if own {
					values[j] = (values[j] - mean) / math.Sqrt(squares/float64(len(x)-1))
				}
			}
			rows = append(rows, Row{ID: fmt.Sprintf("s%04d", i), Views: [][]float64{values}})
		}
		table, err := NewTable(Schema{Views: []View{{Name: "v", Columns: []Column{{Name: "a"}, {Name: "b"}, {Name: "c"}}}}}, rows)
		if err != nil {
			t.Fatal(err)
		}
		return describe(t, table)
	}
	const says = "every feature has a mean of 0 and a standard deviation of 1 at south, and elsewhere not"
	for _, own := range []bool{false, true} {
		got := fmt.Sprint(Others{Sites: []string{"north", "south"}, Summaries: []*Summary{site(false), site(own)}}.Doubts())
		if strings.Contains(got, says) != own {
			t.Errorf("standardised: %t; %s", own, got)
		}
	}
}
