package stats

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// Computed with 60 decimal digits (recurrence to x + 60, then the asymptotic
// series with 19 terms) and rounded once.
var known = []struct{ x, psi, psi1, logMinus float64 }{
	{1e-8, -100000000.57721564, 1.0000000000000002e+16, 99999982.1565349},
	{0.001, -1000.5755719318103, 1000001.6425331958, 993.6678166528282},
	{0.1, -10.423754940411076, 101.43329915079275, 8.12116984741703},
	{0.5, -1.9635100260214235, 4.934802200544679, 1.2703628454614782},
	{1, -0.5772156649015329, 1.6449340668482264, 0.5772156649015329},
	{1.2, -0.2890398965921884, 1.2673772054237793, 0.47136145338614294},
	{1.4, -0.06138454458511624, 1.0253565905295976, 0.3978567812063291},
	{1.4616, -3.110625123034165e-05, 0.9677007114650835, 0.37956283233289023},
	{1.5, 0.03648997397857652, 0.9348022005446793, 0.3689751341295879},
	{1.7, 0.2085478748734939, 0.7932328301639984, 0.32208037618867646},
	{2, 0.42278433509846713, 0.6449340668482264, 0.27036284546147815},
	{3.3, 1.0348224890596216, 0.3535015418410618, 0.15909997941281281},
	{10, 2.251752589066721, 0.10516633568168575, 0.05083250392732458},
	{11.9, 2.4339335368825377, 0.08766320119000419, 0.04260486323494624},
	{12, 2.442661679975812, 0.08690187287176838, 0.042244969812188296},
	{100, 4.600161852738087, 0.010050166663333571, 0.005008333250003967},
	{1e6, 13.815510057964191, 1.0000005000001667e-06, 5.000000833333334e-07},
	{1e12, 27.63102111592805, 1.0000000000005e-12, 5.000000000000833e-13},
	{257159578.2, 19.365207375068113, 3.888636032707251e-09, 1.9443180138333773e-09},
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
		closeTo(t, "Trigamma", k.x, trigamma(k.x), k.psi1, 1e-15)
		closeTo(t, "LogMinusDigamma", k.x, LogMinusDigamma(k.x), k.logMinus, 1e-14)
		closeTo(t, "InverseDigamma", k.psi, InverseDigamma(k.psi), k.x, 1e-14*max(1, math.Abs(k.psi)))
	}
}

func TestRecurrence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := math.Exp(rapid.Float64Range(-15, 15).Draw(t, "ln x"))
		scale := max(1, 1/x)
		if d := digamma(x+1) - digamma(x) - 1/x; math.Abs(d) > 1e-14*scale {
			t.Fatalf("ψ(x+1) − ψ(x) − 1/x = %v at %v", d, x)
		}
		if d := trigamma(x) - trigamma(x+1) - 1/(x*x); math.Abs(d) > 1e-14*scale*scale {
			t.Fatalf("ψ′(x) − ψ′(x+1) − 1/x² = %v at %v", d, x)
		}
	})
}

func TestInverseDigammaInverts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		y := rapid.Float64Range(-1e6, 40).Draw(t, "y")
		if d := digamma(InverseDigamma(y)) - y; math.Abs(d) > 1e-14*max(1, math.Abs(y)) {
			t.Fatalf("ψ(ψ⁻¹(y)) − y = %v at %v", d, y)
		}
	})
}

func TestOutsideTheDomain(t *testing.T) {
	for _, x := range []float64{0, -1, math.Inf(-1), math.NaN()} {
		if !math.IsNaN(digamma(x)) || !math.IsNaN(trigamma(x)) {
			t.Errorf("a value at %v", x)
		}
	}
	if !math.IsInf(digamma(math.Inf(1)), 1) || trigamma(math.Inf(1)) != 0 {
		t.Error("wrong limits at infinity")
	}
	if !math.IsInf(InverseDigamma(1e3), 1) || InverseDigamma(math.Inf(-1)) != 0 || !math.IsNaN(InverseDigamma(math.NaN())) {
		t.Error("wrong limits of the inverse")
	}
}
