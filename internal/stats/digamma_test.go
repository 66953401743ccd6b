package stats

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// Computed with 60 decimal digits (recurrence to x + 60, then the asymptotic
// series with 19 terms) and rounded once.
var known = []struct{ x, psi, logMinus float64 }{
	{1e-8, -100000000.57721564, 99999982.1565349},
	{0.001, -1000.5755719318103, 993.6678166528282},
	{0.1, -10.423754940411076, 8.12116984741703},
	{0.5, -1.9635100260214235, 1.2703628454614782},
	{1, -0.5772156649015329, 0.5772156649015329},
	{1.2, -0.2890398965921884, 0.47136145338614294},
	{1.4, -0.06138454458511624, 0.3978567812063291},
	{1.4616, -3.110625123034165e-05, 0.37956283233289023},
	{1.5, 0.03648997397857652, 0.3689751341295879},
	{1.7, 0.2085478748734939, 0.32208037618867646},
	{2, 0.42278433509846713, 0.27036284546147815},
	{3.3, 1.0348224890596216, 0.15909997941281281},
	{10, 2.251752589066721, 0.05083250392732458},
	{11.9, 2.4339335368825377, 0.04260486323494624},
	{12, 2.442661679975812, 0.042244969812188296},
	{100, 4.600161852738087, 0.005008333250003967},
	{1e6, 13.815510057964191, 5.000000833333334e-07},
	{1e12, 27.63102111592805, 5.000000000000833e-13},
	{257159578.2, 19.365207375068113, 1.9443180138333773e-09},
}

func closeTo(t *testing.T, name string, x, got, want, tol float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tol*math.Abs(want)) {
		t.Errorf("%s(%v) = %v, want %v (relative error %.1e)", name, x, got, want, math.Abs(got-want)/math.Abs(want))
	}
}

func TestKnownValues(t *testing.T) {
	for _, k := range known {
		closeTo(t, "digamma", k.x, digamma(k.x), k.psi, 3e-15)
		closeTo(t, "LogMinusDigamma", k.x, LogMinusDigamma(k.x), k.logMinus, 1e-14)
	}
}

func TestRecurrence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := math.Exp(rapid.Float64Range(-15, 15).Draw(t, "ln x"))
		scale := max(1, 1/x)
		if d := digamma(x+1) - digamma(x) - 1/x; math.Abs(d) > 1e-14*scale {
			t.Fatalf("ψ(x+1) − ψ(x) − 1/x = %v at %v", d, x)
		}
	})
}

func TestOutsideTheDomain(t *testing.T) {
	for _, x := range []float64{0, -1, math.Inf(-1), math.NaN()} {
		if !math.IsNaN(digamma(x)) {
			t.Errorf("a value at %v", x)
		}
	}
	if !math.IsInf(digamma(math.Inf(1)), 1) {
		t.Error("the wrong limit at infinity")
	}
}
