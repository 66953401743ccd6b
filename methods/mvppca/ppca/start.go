package ppca

import (
	"fmt"
	"math"
	"slices"

	"parley/methods/mvppca/linalg"
)

// Start returns deterministic parameters to begin a fit from: the mean of each
// feature over the subjects who have it, and the first eigenvectors of the
// pairwise-available covariance C (each entry over the subjects who have both
// features, about those means, divided by their number).
//
// With λ the largest eigenvalues, V their vectors and s the mean of the
// others, W = V √max(λ − s, s/10), and each noise variance is the mean
// diagonal of C − W Wᵀ over its group, at least s/10.
func Start(l Layout, blocks []Block, rank int) (*Params, error) {
	if err := checkBlocks(l, blocks); err != nil {
		return nil, err
	}
	features := Observed(l, blocks)
	d := len(features)
	if rank < 1 || rank > d {
		return nil, fmt.Errorf("%d factors for %d observed features", rank, d)
	}
	mean, cov := pairwise(l, blocks, features)
	total := 0.0
	for i := range d {
		total += cov[i*d+i]
	}
	if !(total > 0) {
		return nil, ErrNoVariance
	}
	e := linalg.NewEigen(d)
	if !e.Factorise(cov, d) {
		return nil, fmt.Errorf("the eigenvalues of the pairwise covariance did not converge")
	}
	rest := total
	for a := range rank {
		rest -= e.Values[d-1-a]
	}
	// Pairwise moments need not be positive definite, nor leave anything over.
	s := 1e-3 * total / float64(d)
	if r := rest / float64(max(1, d-rank)); rank < d && r > 1e-8*s {
		s = r
	}

	md := newModel(l, rank)
	for a := range rank {
		size := math.Sqrt(max(e.Values[d-1-a]-s, 0.1*s))
		col, top := d-1-a, 0
		for i := range d {
			if math.Abs(e.Vectors[i*d+col]) > math.Abs(e.Vectors[top*d+col]) {
				top = i
			}
		}
		if e.Vectors[top*d+col] < 0 {
			size = -size
		}
		for i, j := range features {
			md.w[j*md.ld+a] = size * e.Vectors[i*d+col]
		}
	}
	sum, count := make([]float64, l.Groups()), make([]float64, l.Groups())
	for i, j := range features {
		w := md.w[j*md.ld:][:rank]
		md.mu[j] = mean[i]
		r := cov[i*d+i]
		for _, x := range w {
			r -= x * x
		}
		sum[md.group[j]] += r
		count[md.group[j]]++
	}
	for _, j := range features {
		g := md.group[j]
		md.psi[j] = max(sum[g]/count[g], 0.1*s)
	}
	p := md.params(l, features)
	return &p, nil
}

// pairwise returns the pairwise-available mean and covariance of the features.
func pairwise(l Layout, blocks []Block, features []int) (mean, cov []float64) {
	d := len(features)
	at := make([]int, l.Features())
	for i, j := range features {
		at[j] = i
	}
	n, both := make([]float64, d), make([]float64, d*d)
	mean, cov = make([]float64, d), make([]float64, d*d)
	for i := range blocks {
		b := &blocks[i]
		for a, j := range b.Features {
			n[at[j]] += b.N
			mean[at[j]] += (b.Mean[a] - mean[at[j]]) * b.N / n[at[j]]
		}
	}
	delta := make([]float64, d)
	for k := range blocks {
		b := &blocks[k]
		p := len(b.Features)
		for a, j := range b.Features {
			delta[a] = b.Mean[a] - mean[at[j]]
		}
		for a, ja := range b.Features {
			for c, jc := range b.Features[:a+1] {
				i := at[ja]*d + at[jc]
				both[i] += b.N
				cov[i] += b.N * delta[a] * delta[c]
				if b.Scatter != nil {
					cov[i] += b.Scatter[a*p+c]
				} else if a == c && b.Diag != nil {
					cov[i] += b.Diag[a]
				}
			}
		}
		for row := range slices.Chunk(b.Factor, p) {
			for a, x := range row {
				i := at[b.Features[a]] * d
				for c, y := range row[:a+1] {
					cov[i+at[b.Features[c]]] += x * y
				}
			}
		}
	}
	for i := range d {
		for j := range i + 1 {
			if m := both[i*d+j]; m > 0 {
				cov[i*d+j] /= m
				cov[j*d+i] = cov[i*d+j]
			}
		}
	}
	return mean, cov
}
