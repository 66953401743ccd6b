package gmm

import (
	"fmt"
	"math"
)

// Prior is the published prior of a mixture (section 2.2): π ~ Dir(α), and for
// each component Σ ~ IW(ν, Ψ) and μ | Σ ~ N(m, Σ/κ).
type Prior struct {
	Alpha []float64 `json:"alpha" cbor:"alpha"` // α > 0, one for each component
	Mean  []float64 `json:"mean" cbor:"mean"`   // m
	Kappa float64   `json:"kappa" cbor:"kappa"` // κ > 0: rows that m is worth
	Nu    float64   `json:"nu" cbor:"nu"`       // ν > d − 1; E Σ = Ψ/(ν − d − 1) for ν > d + 1
	Psi   []float64 `json:"psi" cbor:"psi"`     // Ψ by rows
}

// BoxPrior returns the prior of k components that a public range of each feature
// suggests: m its middle, κ 0.02, ν d + 3, Ψ 0.04 diag(R²) of its widths R, α 1, so
// that means have a standard deviation of about R and E Σ is 0.02 diag(R²)
// (Richardson and Green 1997, read for several dimensions). A range taken from
// the rows themselves would be a leak.
func BoxPrior(lo, hi []float64, k int) (Prior, error) {
	d := len(lo)
	if len(hi) != d {
		return Prior{}, fmt.Errorf("a box of %d lower and %d upper ends", d, len(hi))
	}
	if err := checkShape(k, d); err != nil {
		return Prior{}, err
	}
	p := Prior{make([]float64, k), make([]float64, d), 0.02, float64(d) + 3, make([]float64, d*d)}
	for i := range p.Alpha {
		p.Alpha[i] = 1
	}
	for i := range lo {
		r := hi[i] - lo[i]
		if !(r > 0) || math.IsInf(r, 0) {
			return Prior{}, fmt.Errorf("feature %d has the range [%v, %v]: want a lower end below a finite upper one", i, lo[i], hi[i])
		}
		p.Mean[i] = (lo[i] + hi[i]) / 2
		p.Psi[i*d+i] = 0.04 * r * r
	}
	return p, p.Check()
}

// Dim returns the number of features.
func (p Prior) Dim() int { return len(p.Mean) }

// Components returns K.
func (p Prior) Components() int { return len(p.Alpha) }

// Check reports what is wrong with a prior.
func (p Prior) Check() error {
	k, d := len(p.Alpha), len(p.Mean)
	if err := checkShape(k, d); err != nil {
		return err
	}
	for i, a := range p.Alpha {
		if !(a > 0) || math.IsInf(a, 1) {
			return fmt.Errorf("α of component %d is %v: want a positive number", i, a)
		}
	}
	switch {
	case NotFinite(p.Mean) >= 0:
		return fmt.Errorf("m of the prior has an entry that is not finite")
	case !(p.Kappa > 0) || math.IsInf(p.Kappa, 1):
		return fmt.Errorf("κ of the prior is %v: want a positive number", p.Kappa)
	case !(p.Nu > float64(d-1)) || math.IsInf(p.Nu, 1):
		return fmt.Errorf("ν of the prior is %v: want more than %d, the dimension less 1", p.Nu, d-1)
	case len(p.Psi) != d*d:
		return fmt.Errorf("prior: Ψ has %d numbers, want %d × %d", len(p.Psi), d, d)
	}
	if err := checkPositiveDefinite(p.Psi, d); err != nil {
		return fmt.Errorf("prior: Ψ %w", err)
	}
	return nil
}

// Symmetric says whether the prior is the same for every order of components.
func (p Prior) Symmetric() bool {
	for _, a := range p.Alpha {
		if a != p.Alpha[0] {
			return false
		}
	}
	return true
}

// dirichletConstant returns ln Γ(Σα) − Σ ln Γ(α).
func dirichletConstant(alpha []float64) (s float64) {
	sum := 0.0
	for _, a := range alpha {
		sum += a
		g, _ := math.Lgamma(a)
		s -= g
	}
	g, _ := math.Lgamma(sum)
	return s + g
}

// wishart is an inverse Wishart density, prepared.
type wishart struct {
	nu       float64
	psi      []float64 // lower Cholesky factor of Ψ
	constant float64
	room     []float64
}

func newWishart(nu float64, psi []float64, d int) (w wishart, ok bool) {
	w = wishart{nu: nu, psi: append([]float64(nil), psi...), room: make([]float64, d)}
	logPsi, ok := Cholesky(w.psi, d)
	f := float64(d)
	w.constant = nu*logPsi/2 - nu*f/2*math.Ln2 - f*(f-1)/4*math.Log(math.Pi)
	for i := range d {
		g, _ := math.Lgamma((nu - float64(i)) / 2)
		w.constant -= g
	}
	return w, ok
}

// log is the density of Σ given its Cholesky factor and ln |Σ|.
func (w *wishart) log(sigma []float64, logSigma float64) float64 {
	d, trace := len(w.room), 0.0 // |L_Σ⁻¹ L_Ψ|²
	for j := range d {
		for i := range d {
			if w.room[i] = 0; i >= j {
				w.room[i] = w.psi[i*d+j]
			}
		}
		Forward(sigma, d, w.room)
		trace += Squares(w.room)
	}
	return w.constant - ((w.nu+float64(d)+1)*logSigma+trace)/2
}

// SplitMix is the finaliser of SplitMix64, which makes unlike seeds of like numbers.
func SplitMix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
