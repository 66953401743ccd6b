package main

import (
	"math"
	"math/rand/v2"
	"slices"

	"parley/mvppca"
	"parley/privacy"
)

// gaussianMu is the largest μ for which μ-Gaussian differential privacy is
// (ε, δ): Φ(−ε/μ + μ/2) − exp(ε) Φ(−ε/μ − μ/2) ≤ δ.
func gaussianMu(epsilon, delta float64) float64 {
	phi := func(x float64) float64 { return 0.5 * math.Erfc(-x/math.Sqrt2) }
	lo, hi := 0.0, 50.0
	for range 100 {
		mu := (lo + hi) / 2
		if phi(-epsilon/mu+mu/2)-math.Exp(epsilon)*phi(-epsilon/mu-mu/2) <= delta {
			lo = mu
		} else {
			hi = mu
		}
	}
	return lo
}

// release makes the three sums of one site.
func release(r *rand.Rand, s *mvppca.Statistics, rows [][][]float64, mu float64) (out mvppca.Released, err error) {
	sums := s.Sums()
	sd := func(i int) float64 { return sums[i].Mechanism.Noise / mu }
	overview := sum(r, rows, sums[0], sd(0), s.Overview)[0]
	if out.Coarse, err = s.Lenses(overview, sd(0)); err != nil {
		return out, err
	}
	out.CoarseSD, out.FineSD = sd(1), sd(2)
	out.CoarseBlocks = sum(r, rows, sums[1], out.CoarseSD, s.Contribution(out.Coarse))
	if out.Fine, err = s.Focus(out.Coarse, out.CoarseBlocks, out.CoarseSD); err != nil {
		return out, err
	}
	out.FineBlocks = sum(r, rows, sums[2], out.FineSD, s.Contribution(out.Fine))
	return out, nil
}

// sum adds what the subjects contribute, and noise of standard deviation sd,
// beside the diagonal of moments sd/√2.
func sum(r *rand.Rand, rows [][][]float64, s privacy.Sum, sd float64, contribution func([][]float64, []float64) int) [][]float64 {
	moments := s.Form == privacy.Moments
	out := make([][]float64, len(s.Blocks))
	for i, n := range s.Blocks {
		if moments {
			n = n * (n + 1) / 2
		}
		out[i] = make([]float64, n)
	}
	v := make([]float64, slices.Max(s.Blocks))
	for _, row := range rows {
		clear(v)
		at := contribution(row, v)
		switch {
		case at < 0:
		case moments:
			k := 0
			for i, x := range v {
				for _, y := range v[i:] {
					out[at][k] += x * y
					k++
				}
			}
		default:
			for i, x := range v {
				out[at][i] += x
			}
		}
	}
	for i, n := range s.Blocks {
		k := 0
		for a := range n {
			if !moments {
				out[i][a] += sd * r.NormFloat64()
				continue
			}
			out[i][k] += sd * r.NormFloat64()
			k++
			for range n - a - 1 {
				out[i][k] += sd / math.Sqrt2 * r.NormFloat64()
				k++
			}
		}
	}
	return out
}
