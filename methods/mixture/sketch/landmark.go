package sketch

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"

	"parley/methods/mixture/gmm"
)

// Landmarks are public points c_r and a public kernel: a row x contributes
// φ_r(x) = exp(−½ Σ_i (x_i − c_ri)²/h_i²) ∈ [0, 1] for each of them. The sum of a
// site's φ(x), released once with noise, is all that it ever tells.
//
// Points and bandwidths come from the plan. A kernel that whoever asks may choose
// would scan the rows out, one narrow kernel after the other.
type Landmarks struct {
	Dim       int       `json:"dim" cbor:"dim"`
	Points    []float64 `json:"points" cbor:"points"`                       // one after the other
	Bandwidth []float64 `json:"bandwidth" cbor:"bandwidth"`                 // h, one for each feature, in its units
	Spacing   []float64 `json:"spacing,omitempty" cbor:"spacing,omitempty"` // of a grid, else nothing
}

const (
	MaxLandmarks = 1024
	gridStep     = 1.5 // bandwidths: closer costs time and gains nothing; further costs accuracy
)

// Grid lays landmarks over a public box at distances of at most 1.5 bandwidths,
// from end to end. With a bandwidth near the standard deviation of a component
// noise hurts its mean least, and its error grows only like h + sd²/h beside it.
func Grid(lo, hi, bandwidth []float64) (Landmarks, error) {
	d := len(lo)
	l := Landmarks{Dim: d, Bandwidth: append([]float64(nil), bandwidth...)}
	if d < 1 || len(hi) != d || len(bandwidth) != d {
		return l, fmt.Errorf("a grid of landmarks over a box of %d lower and %d upper ends with %d bandwidths: want as many of each", d, len(hi), len(bandwidth))
	}
	total, count := 1, make([]int, d)
	for i, h := range bandwidth {
		if !(hi[i] > lo[i]) || math.IsInf(hi[i]-lo[i], 0) || !(h > 0) || math.IsInf(h, 0) {
			return l, fmt.Errorf("feature %d has the range [%v, %v] and bandwidth %v: want a finite range and a positive bandwidth", i, lo[i], hi[i], h)
		}
		steps := math.Ceil((hi[i] - lo[i]) / (gridStep * h))
		if !(float64(total)*(steps+1) <= MaxLandmarks) {
			return l, fmt.Errorf("a grid over %d features with bandwidths %v needs more than %d landmarks: widen the bandwidths, or scatter them", d, bandwidth, MaxLandmarks)
		}
		count[i] = int(steps) + 1
		total *= count[i]
		l.Spacing = append(l.Spacing, (hi[i]-lo[i])/steps)
	}
	for r := range total {
		for i, n := range count {
			l.Points = append(l.Points, lo[i]+float64(r%n)*l.Spacing[i])
			r /= n
		}
	}
	return l, nil
}

// Scatter spreads count landmarks over a public box of any dimension by Halton's
// sequence, which fills it evenly.
func Scatter(lo, hi, bandwidth []float64, count int) (Landmarks, error) {
	l := Landmarks{Dim: len(lo), Bandwidth: append([]float64(nil), bandwidth...)}
	if len(hi) != len(lo) || count < 1 || count > MaxLandmarks {
		return l, fmt.Errorf("%d landmarks over a box of %d lower and %d upper ends: want 1 to %d, and as many ends of each", count, len(lo), len(hi), MaxLandmarks)
	}
	primes := firstPrimes(len(lo))
	for r := range count {
		for i, p := range primes {
			l.Points = append(l.Points, lo[i]+radicalInverse(r+1, p)*(hi[i]-lo[i]))
		}
	}
	return l, l.Check()
}

func firstPrimes(n int) (primes []int) {
next:
	for p := 2; len(primes) < n; p++ {
		for _, q := range primes {
			if p%q == 0 {
				continue next
			}
		}
		primes = append(primes, p)
	}
	return primes
}

// radicalInverse mirrors the digits of n at the point.
func radicalInverse(n, base int) (x float64) {
	for f := 1 / float64(base); n > 0; f /= float64(base) {
		x += f * float64(n%base)
		n /= base
	}
	return x
}

// Len returns the number of landmarks.
func (l Landmarks) Len() int { return len(l.Points) / max(l.Dim, 1) }

// Point returns c_r.
func (l Landmarks) Point(r int) []float64 { return l.Points[r*l.Dim:][:l.Dim] }

// Check reports what is wrong with landmarks.
func (l Landmarks) Check() error {
	switch {
	case l.Dim < 1 || l.Dim > gmm.MaxDim || len(l.Points)%l.Dim != 0 || l.Len() < 1 || l.Len() > MaxLandmarks:
		return fmt.Errorf("%d numbers as landmarks in %d dimensions: want 1 to %d landmarks in 1 to %d dimensions", len(l.Points), l.Dim, MaxLandmarks, gmm.MaxDim)
	case gmm.NotFinite(l.Points) >= 0:
		return fmt.Errorf("landmark %d has an entry that is not finite", gmm.NotFinite(l.Points)/l.Dim)
	case len(l.Bandwidth) != l.Dim:
		return fmt.Errorf("%d bandwidths for %d features", len(l.Bandwidth), l.Dim)
	}
	for i, h := range l.Bandwidth {
		if !(h > 0) || math.IsInf(h, 0) {
			return fmt.Errorf("bandwidth %v of feature %d: want a positive number", h, i)
		}
	}
	return nil
}

// Features writes φ(x), entries in [0, 1].
func (l Landmarks) Features(dst, x []float64) {
	for r := range dst {
		q := 0.0
		for i, c := range l.Point(r) {
			t := (x[i] - c) / l.Bandwidth[i]
			q += t * t
		}
		dst[r] = math.Exp(-q / 2)
	}
}

// NormBound returns B ≥ |φ(x)| for every x, from the landmarks alone. A record
// contributes φ(x)/B, of norm at most 1. As entries are not negative, those of two
// records are at most √2 apart; a session that only clips to a ball must count 2.
//
// For any points, φ(x) is an image of the unit vector k(x, ·) under a map with norm
// λ_max(G)^½, G the Gram matrix k(c_r, c_s). For a grid the sum of exp(−t²/h²) along
// each axis is at most that of an endless grid, which is largest at its points
// (Jacobi's θ₃); the smaller bound is taken.
func (l Landmarks) NormBound() float64 {
	n := l.Len()
	gram := mat.NewSymDense(n, nil)
	row := make([]float64, n)
	for r := range n {
		l.Features(row, l.Point(r))
		for s := r; s < n; s++ {
			gram.SetSym(r, s, row[s])
		}
	}
	bound := math.Sqrt(float64(n))
	var eigen mat.EigenSym
	if eigen.Factorize(gram, false) {
		bound = min(bound, math.Sqrt(eigen.Values(nil)[n-1]))
	}
	if l.isGrid() {
		square := 1.0
		for i, s := range l.Spacing {
			q, theta := s/l.Bandwidth[i], 1.0
			for k := 1.0; ; k++ {
				t := 2 * math.Exp(-k*k*q*q)
				if theta += t; t < 1e-18 {
					break
				}
			}
			square *= theta
		}
		bound = min(bound, math.Sqrt(square))
	}
	return bound * (1 + 1e-12) // beyond what rounding may take
}

// isGrid says whether the points are different corners of a grid of the declared
// spacing, in whatever order: the declaration alone is not enough.
func (l Landmarks) isGrid() bool {
	if len(l.Spacing) != l.Dim {
		return false
	}
	seen := make(map[string]bool)
	index := make([]byte, 0, 4*l.Dim)
	for r := range l.Len() {
		index = index[:0]
		for i, c := range l.Point(r) {
			s := l.Spacing[i]
			k := math.Round((c - l.Points[i]) / s)
			if !(s > 0) || math.Abs(c-l.Points[i]-k*s) > 1e-9*s || math.Abs(k) > MaxLandmarks {
				return false
			}
			index = fmt.Appendf(index, "%d ", int(k))
		}
		if seen[string(index)] {
			return false
		}
		seen[string(index)] = true
	}
	return true
}

// ReplaceOne returns how far, in the l2 norm, a site's sum of φ moves at most if one
// record is exchanged for another, given a bound on |φ|: √2 times it, because
// entries are not negative. It holds for φ itself, not for vectors that are merely
// clipped to a ball.
func ReplaceOne(bound float64) float64 { return math.Sqrt2 * bound }

// ScatterNormal scatters count landmarks by the law N(0, sd²) of every feature:
// Halton's points, through the normal quantile function. It is for rows that are
// known to lie around 0, as codes of an autoencoder are whose training pulls them
// there. Of evenly scattered landmarks in five dimensions and more, most are where no row is.
func ScatterNormal(sd, bandwidth []float64, count int) (Landmarks, error) {
	lo, hi := make([]float64, len(sd)), make([]float64, len(sd))
	for i, s := range sd {
		if !(s > 0) || math.IsInf(s, 1) {
			return Landmarks{}, fmt.Errorf("landmarks with the standard deviation %v of feature %d: want a positive number", s, i)
		}
		hi[i] = 1
	}
	l, err := Scatter(lo, hi, bandwidth, count)
	if err != nil {
		return l, err
	}
	for i, u := range l.Points { // in (0, 1): no digit of a number from 1 is lost
		l.Points[i] = sd[i%l.Dim] * distuv.UnitNormal.Quantile(u)
	}
	return l, l.Check()
}
