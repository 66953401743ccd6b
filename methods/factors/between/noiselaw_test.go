package between

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mathext"
)

// TestNoiseLawRecoversASpread draws true variances and their estimates.
func TestNoiseLawRecoversASpread(t *testing.T) {
	r := rand.New(rand.NewPCG(51, 1))
	chi2 := func(df int) float64 {
		s := 0.0
		for range df {
			z := r.NormFloat64()
			s += z * z
		}
		return s
	}
	var spread, same, df []float64
	for range 400 {
		tau := 5 / (chi2(8) / 2) // inverse-gamma with alpha 4, beta 5
		spread = append(spread, tau*chi2(40)/40)
		same = append(same, 1.5*chi2(40)/40)
		df = append(df, 40)
	}
	if a, b := noiseLaw(spread, df); math.Abs(a-4) > 1 || math.Abs(b/a-1.25) > 0.15 {
		t.Errorf("alpha %v and beta/alpha %v, drawn with 4 and 1.25", a, b/a)
	}
	if a, b := noiseLaw(same, df); a < 100 || math.Abs(b/a-1.5) > 0.05 {
		t.Errorf("alpha %v and beta/alpha %v for one common variance 1.5", a, b/a)
	}
	if a, b := noiseLaw([]float64{2}, []float64{30}); a != maxSharedAlpha || b/a != 2 {
		t.Errorf("one site: %v, %v", a, b)
	}
	// Stationary in both directions.
	a, b := noiseLaw(spread, df)
	at := noiseLawLogLik(a, b, spread, df)
	for _, f := range []float64{0.99, 1.01} {
		if noiseLawLogLik(a*f, b, spread, df) > at || noiseLawLogLik(a, b*f, spread, df) > at {
			t.Error("not a maximum")
		}
	}
}

// The best β is where halving alone would end, whatever the spread, the sizes and α.
func TestNoiseLawBetaIsThatOfHalving(t *testing.T) {
	r := rand.New(rand.NewPCG(52, 1))
	for range 300 {
		s, nu := make([]float64, 2+r.IntN(30)), make([]float64, 32)[:0]
		spread := []float64{0, 1e-6, 0.3, 3, 20}[r.IntN(5)]
		for i := range s {
			s[i] = math.Exp(spread * r.NormFloat64())
			nu = append(nu, math.Exp(2+2*r.NormFloat64()))
		}
		alpha := math.Pow(10, 7*r.Float64()-1)
		lo, hi := s[0], s[0]
		for _, x := range s {
			lo, hi = min(lo, x), max(hi, x)
		}
		for range 1000 {
			m, sum := (lo+hi)/2, 0.0
			for i, x := range s {
				sum += (alpha + nu[i]/2) * m / (alpha*m + nu[i]*x/2)
			}
			if sum < float64(len(s)) {
				lo = m
			} else {
				hi = m
			}
		}
		// Where sites hardly differ, α decides of nothing and rounding of the rest.
		if got, want := noiseLawBetaFrom(alpha, 0, exactly, s, nu), alpha*(lo+hi)/2; math.Abs(got-want) > 1e-9*want {
			t.Fatalf("spread %v, α = %v: β = %v, want %v", spread, alpha, got, want)
		}
	}
}

// No α of a grid is better than what is found, whatever the sites: few or many, alike or not.
func TestNoiseLawMissesNoMaximum(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 57))
		s, nu := make([]float64, 2+r.IntN(60)), make([]float64, 62)
		spread, scale := 2*r.Float64(), math.Exp(10*r.NormFloat64())
		for i := range s {
			nu[i] = math.Exp(6 * r.Float64())
			s[i] = scale * math.Exp((spread+math.Sqrt(2/nu[i]))*r.NormFloat64())
			if r.IntN(20) == 0 {
				s[i] *= 1e3
			}
		}
		nu = nu[:len(s)]
		alpha, beta := noiseLaw(s, nu)
		found := noiseLawLogLik(alpha, beta, s, nu)
		for decades := -1.0; decades <= 6; decades += 0.05 {
			a := math.Pow(10, decades)
			if v := noiseLawLogLik(a, noiseLawBetaFrom(a, 0, exactly, s, nu), s, nu); v > found+1e-5 {
				t.Fatalf("seed %d: α = %v has %v, and %v was found with %v", seed, a, v, alpha, found)
			}
		}
	}
}

func BenchmarkNoiseLaw(b *testing.B) {
	r := rand.New(rand.NewPCG(53, 1))
	s, nu := make([]float64, 34), make([]float64, 34)
	for i := range s {
		s[i], nu[i] = math.Exp(0.2*r.NormFloat64()), 20+100*r.Float64()
	}
	b.ReportAllocs()
	for b.Loop() {
		noiseLaw(s, nu)
	}
}

// What is left of ln Γ and of its derivative without their large parts is that of other
// implementations, on both sides of where a series takes over.
func TestRestsOfGammaAndDigamma(t *testing.T) {
	for x := 0.1; x < 1e4; x *= 1.1 {
		g, _ := math.Lgamma(x)
		if want := g - (x-0.5)*math.Log(x) + x - math.Log(2*math.Pi)/2; math.Abs(gammaRest(x)-want) > 1e-11+1e-15*math.Abs(g) {
			t.Errorf("rest of ln Γ(%v): %v, want %v", x, gammaRest(x), want)
		}
		if want := mathext.Digamma(x) - math.Log(x); math.Abs(digammaRest(x)-want) > 1e-11 {
			t.Errorf("rest of ψ(%v): %v, want %v", x, digammaRest(x), want)
		}
	}
}
