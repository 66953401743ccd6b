package ppca

import (
	"math"
	"slices"

	"parley/internal/linalg"
)

// LargestExact is how many numbers the exact scatter of a set may take where factors do not
// say enough of it: 8 MB.
const LargestExact = 1 << 20

// clearly is what share of the gain of a model's factors the best of those may have that a site
// leaves out.
const clearly = 0.5

// rankSuffices says whether what the factors leave out is clearly weaker than what a model of so many
// takes of them, which then hardly asks for more. Where as many directions or more are about as
// strong, it may want others than a site picked: groups of features that are nearly the same,
// or what is common to features among much noise.
//
// Gains are in nats a row, and that of a factor is what it adds to the stronger ones, if else
// the noise has its variance. With R the residual correlations, a factor that was left out
// gains at least (λ − 1 − ln λ)/2 for the direction that R has largest, and Σ −ln(1 − R²)/2
// over the features that go with some feature of theirs, if that were the factor. Only those R
// count that are hardly by chance, above 2 √(ln p / N).
func (f *analysis) rankSuffices(factors int) bool {
	p, n, wide := len(f.psi), f.b.N, linalg.Stride(solvedTogether)
	var least, left, thin []float64
	room := linalg.Allot(linalg.Each(p*wide, &left), linalg.Each(max(f.b.Rows(), f.Rank)*wide, &thin), linalg.Each(p, &least))
	defer room.Release()
	for i, s := range f.squares {
		least[i] = max(f.psi[i], LeastNoise*s/n)
	}
	bar := clearly * f.weakest(factors, least)
	if λ := f.largest(least); λ > 1 && (λ-1-math.Log(λ))/2 >= bar {
		return false
	}
	const most = (1 - LeastNoise) * (1 - LeastNoise)
	chance := 4 * math.Log(float64(p)) / n
	if chance > most || p > denseStart {
		return true
	}
	// What gains so much are at least as many features as single ones that go into the bar, and
	// any of them shows it.
	single := -math.Log(1-most) / 2
	every := max(1, int(min(bar/single, float64(p))))
	for at := 0; at < p; at += every * solvedTogether {
		ld, with := f.residual(left, thin, at, every), [solvedTogether]float64{}
		for j := range p {
			for k, x := range left[j*ld:][:min(solvedTogether, (p-at+every-1)/every)] {
				if i := at + k*every; i != j {
					if r := x * x / (least[i] * least[j]); r > chance {
						with[k] -= math.Log(1-min(r, most)) / 2
					}
				}
			}
		}
		if slices.Max(with[:]) >= bar {
			return false
		}
	}
	return true
}

// weakest is the least that one of so many factors gains, the strongest, added one by one with
// at least so much noise.
func (f *analysis) weakest(factors int, least []float64) float64 {
	p, q := len(f.psi), f.Rank
	ld := linalg.Stride(factors)
	var inner, strongest, w, v []float64
	room := linalg.Allot(linalg.Each(q*f.LD, &inner), linalg.Each(q*ld, &strongest), linalg.Each(p*ld, &w, &v))
	defer room.Release()
	for i, psi := range least {
		for a, w := range f.W[i*f.LD:][:q] {
			f.v[i*f.LD+a] = w / psi
		}
	}
	linalg.MulAdd(inner, f.W, 1, f.LD, f.v, q, p, q)
	linalg.Symmetrise(inner, q, f.LD)
	e := linalg.NewEigen(q)
	if !e.Factorise(inner, f.LD) {
		return 0
	}
	for a := range q {
		for k := range factors {
			strongest[a*ld+k] = e.Vectors[a*q+q-1-k]
		}
	}
	linalg.MulAdd(w, f.W, f.LD, 1, strongest, p, q, factors)
	gain, before := math.Inf(1), 0.0
	for k := range factors + 1 {
		noise := linalg.LogSum{Product: 1}
		for i, s := range f.squares {
			psi := s / f.b.N
			for _, x := range w[i*ld:][:k] {
				psi -= x * x
			}
			psi = max(psi, least[i])
			noise.Add(psi)
			for a, x := range w[i*ld:][:k] {
				v[i*ld+a] = x / psi
			}
		}
		clear(inner)
		linalg.MulAdd(inner, w, 1, ld, v, factors, p, factors)
		linalg.Symmetrise(inner, k, ld)
		for a := range k {
			inner[a*ld+a]++
		}
		logDet, ok := linalg.Cholesky(inner, k, ld)
		if !ok {
			return 0
		}
		all := (noise.Sum() + logDet) / 2
		if k > 0 {
			gain = min(gain, before-all)
		}
		before = all
	}
	return gain
}

// residual writes what the factors leave of the covariances of some features, every so manyth
// from the given one on, with all: p rows, and returns their stride. Thin is scratch.
func (f *analysis) residual(left, thin []float64, at, every int) (ld int) {
	b, p, r := f.b, len(f.psi), f.b.Rows()
	some := min(solvedTogether, (p-at+every-1)/every)
	ld = linalg.Stride(some)
	clear(left)
	clear(thin)
	for k := range some {
		for a, w := range f.W[(at+k*every)*f.LD:][:f.Rank] {
			thin[a*ld+k] = -w
		}
	}
	linalg.MulAdd(left, f.W, f.LD, 1, thin, p, f.Rank, some)
	if b.Scatter != nil {
		for j := range p {
			for k := range some {
				left[j*ld+k] += b.Scatter[j*p+at+k*every] / b.N
			}
		}
		return ld
	}
	clear(thin)
	for a := range r {
		for k := range some {
			thin[a*ld+k] = b.Factor[a*p+at+k*every] / b.N
		}
	}
	linalg.MulAdd(left, b.Factor, 1, p, thin, p, r, some)
	return ld
}

// largest is about the largest eigenvalue of the residual covariances in units of the noise,
// and no more: what a few steps of the power method find.
func (f *analysis) largest(least []float64) (λ float64) {
	const steps = 8
	b, p, r := f.b, len(f.psi), f.b.Rows()
	ld := linalg.Stride(1)
	var x, y, fx []float64
	room := linalg.Allot(linalg.Each(p*ld, &x, &y), linalg.Each(max(r, f.Rank)*ld, &fx))
	defer room.Release()
	draws := startDraws(p, f.Rank)
	for i := range p {
		x[i*ld] = draws.NormFloat64()
	}
	for range steps {
		norm := 0.0
		for i := range p {
			norm += x[i*ld] * x[i*ld]
		}
		norm = math.Sqrt(norm)
		for i := range p {
			x[i*ld] /= norm * math.Sqrt(least[i])
		}
		clear(y)
		if b.Scatter != nil {
			linalg.MulAdd(y, b.Scatter, p, 1, x, p, p, 1)
		} else {
			clear(fx)
			linalg.MulAdd(fx, b.Factor, p, 1, x, r, p, 1)
			linalg.MulAdd(y, b.Factor, 1, p, fx, p, r, 1)
		}
		clear(fx)
		linalg.MulAdd(fx, f.W, 1, f.LD, x, f.Rank, p, 1)
		for a := range f.Rank {
			fx[a*ld] *= -b.N
		}
		linalg.MulAdd(y, f.W, f.LD, 1, fx, p, f.Rank, 1)
		λ = 0
		for i := range p {
			λ += x[i*ld] * y[i*ld] / b.N
			x[i*ld] = y[i*ld] / math.Sqrt(least[i])
		}
	}
	return λ
}
