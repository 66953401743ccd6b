package ppca_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"parley/methods/factors/factorstest"
	"parley/methods/factors/ppca"

	"pgregory.net/rapid"
)

// A set of views is described by the iterations of Fit, whether it comes as rows or as a
// scatter matrix: the likelihood is theirs after as many, and so is the covariance. Where
// subjects are few and noise a thousandth, noise variances fall to their floor, a hundred
// millionth, and the likelihood is a difference of numbers as much larger.
func TestAnalysisOfOneBlockIsAFit(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		q := rapid.IntRange(1, 9).Draw(rt, "q")
		l := factorstest.Shape(t, ppca.NoisePerFeature, q+rapid.IntRange(3, 30).Draw(rt, "d"), 2)
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 2))
		noise := rapid.SampledFrom([]float64{1, 0.1, 1e-3}).Draw(rt, "noise")
		tr := factorstest.NewTruth(r, l, rapid.IntRange(1, q).Draw(rt, "factors"), noise)
		rows := tr.Subjects(r, rapid.IntRange(q+4, 90).Draw(rt, "n"))
		o := ppca.FitOptions{Tol: 1e-6, MaxIter: rapid.IntRange(1, 100).Draw(rt, "iterations"), LeastNoise: rapid.SampledFrom([]float64{0, ppca.LeastNoise}).Draw(rt, "least")}
		for _, name := range []string{"rows", "statistics"} {
			b := factorstest.Forms(l, rows)[name][0]
			fit := factorstest.Must(ppca.Fit(l, []ppca.Block{b}, q, nil, o))(t)
			begin := factorstest.Must(ppca.Start(l, []ppca.Block{b}, q))(t)
			got, logLik, iterations, err := ppca.Analyse(l, &b, q, begin, o)
			if err != nil {
				rt.Fatal(err)
			}
			gap := math.Abs(logLik-fit.LogLik) / b.N
			if iterations != fit.Iterations { // where rounding decides when to stop
				if gap > o.Tol {
					rt.Errorf("%s: %d iterations, and Fit %d; log-likelihoods differ by %.1e a subject", name, iterations, fit.Iterations, gap)
				}
				continue
			}
			p, rounding := len(fit.Features), 0.0
			for i, j := range fit.Features {
				rounding += 0x1p-50 * got[i*p+i] / fit.Noise[j]
			}
			if e := factorstest.Worst(got, factorstest.Covariance(l, &fit.Params, fit.Features)); gap > 1e-7+rounding || e > 1e-9 {
				rt.Errorf("%s: log-likelihoods differ by %.1e a subject, and covariances by %.1e", name, gap, e)
			}
		}
	})
}
