package noise

import (
	"math"
	"testing"
)

// continuous is the privacy profile δ(ε; μ) of the Gaussian mechanism (Balle
// and Wang, 2018).
func continuous(ε, μ float64) float64 {
	Φ := func(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }
	return Φ(μ/2-ε/μ) - math.Exp(ε)*Φ(-μ/2-ε/μ)
}

// lattice is δ_ℤ(ε) = Σ (P(x) − e^ε·P(x − s))₊ of the discrete Gaussian, P the
// product mass on ℤᵈ, for d = 1 or 2, over all x that matter.
func lattice(ε, σ float64, s ...int) float64 {
	p := gaussianMass(σ * σ)
	reach := int(11 * σ)
	mass := make([]float64, 2*reach+1)
	for i := range mass {
		mass[i] = p(int64(i - reach))
	}
	across, s2 := []float64{1}, 0
	if len(s) == 2 {
		across, s2 = mass, s[1]
	}
	norm := float64(s[0]*s[0] + s2*s2)
	total := 0.0
	for j, q := range across {
		y := float64(j - len(across)/2)
		for i, w := range mass {
			x := float64(i - reach)
			// ln P(x)/P(x − s) = (|s|² − 2⟨x, s⟩)/(2σ²)
			if loss := (norm - 2*(x*float64(s[0])+y*float64(s2))) / (2 * σ * σ); loss > ε {
				total -= w * q * math.Expm1(ε-loss)
			}
		}
	}
	return total
}

// The claim of the package comment: the discrete Gaussian is at most as bad as
// a continuous one with the factor 1/(8σ²) less noise, and sometimes worse than
// the continuous one with the same noise. The claim's remainder shrinks with
// 1/σ, so that coarse grids are the hard case; at σ = 2¹⁰ the difference is
// still above the rounding of the sums.
func TestTheLatticeCostsNextToNothing(t *testing.T) {
	worse, worst := 0, 0.0
	for _, c := range []struct {
		σ     float64
		shift []int
	}{
		{32, []int{3}}, {32, []int{32}}, {33.3, []int{100}}, {40, []int{200}}, {1024, []int{100}}, {1024, []int{1024}},
		{1024, []int{8192}},
		{32, []int{24, 0}}, {32, []int{32, 32}}, {32, []int{24, 32}}, {32, []int{31, 32}},
	} {
		norm := 0.0
		for _, s := range c.shift {
			norm = math.Hypot(norm, float64(s))
		}
		μ := norm / c.σ
		η := 1 / (8 * c.σ * c.σ)
		for step := range 40 {
			ε := max(0, μ*μ/2+μ*(float64(step)/8-2)+0.001*float64(step)*μ/c.σ)
			got, same := lattice(ε, c.σ, c.shift...), continuous(ε, μ)
			if room := continuous(ε, μ*(1+η)); got > room+1e-13*math.Exp(min(ε, 1)) {
				t.Errorf("σ = %v, shift %v, ε = %.4f: δ = %.12g, above %.12g", c.σ, c.shift, ε, got, room)
			}
			if d := (got - same) / (continuous(ε, μ*(1+η)) - same); got-same > 1e-12 {
				worse++
				worst = max(worst, d)
			}
		}
	}
	if worse < 20 || worst < 0.3 { // in one dimension the worst is 1/(24σ²), a third of the room
		t.Errorf("the lattice shows in %d places and takes at most %.2f of the room: the sums see nothing",
			worse, worst)
	}
}

// The same for an entry of the discrete Laplace: less than 1/(8b²) away from
// the continuous profile 1 − e^((ε − s/b)/2), which it nearly reaches.
func TestTheLatticeUnderLaplace(t *testing.T) {
	for _, b := range []float64{4, 16, 64} {
		p, worst := laplaceMass(b), 0.0
		for _, s := range []int{1, 2, 3, 10, 31, 100, 500} {
			for k := range 20 {
				ε := float64(k) / 20 * float64(s) / b
				total := 0.0
				for x := -int(40 * b); x <= int(40*b); x++ {
					if loss := (math.Abs(float64(x-s)) - math.Abs(float64(x))) / b; loss > ε {
						total -= p(int64(x)) * math.Expm1(ε-loss)
					}
				}
				worst = max(worst, math.Abs(total+math.Expm1((ε-float64(s)/b)/2))*8*b*b)
			}
		}
		if worst >= 1 || worst < 0.8 {
			t.Errorf("b = %v: off by %v/(8b²)", b, worst)
		}
	}
}
