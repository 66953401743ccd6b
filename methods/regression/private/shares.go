package private

import (
	"math"

	"parley/methods/regression/predict"
	"parley/privacy"
	"parley/privacy/account"
	"parley/study"
)

// A site's budget in squares of signal over noise, which add up over Gaussian releases:
// what is spent on each sum of what diagnostics leave. Rounds of gradients have the rest,
// the first few, which only have to find the way, half as much as the others.
const (
	shareHistogram = 0.1 // of all, each; of the rest, the others
	shareTotals    = 0.12
	shareProducts  = 0.06
)

// Of each number there are so many histograms, the second over what the first one says, with so many equal bins; what is
// outside of them is in the bin at that end.
const histograms, bins = 2, 32

// share is that of round k, from 0, of so many.
func share(rounds, k int) float64 {
	each := (1 - shareTotals - shareProducts) / (float64(rounds) - float64(burn(rounds))/2)
	if k < burn(rounds) {
		return each / 2
	}
	return each
}

// burn is how many rounds are the first few.
func burn(rounds int) int { return rounds / 5 }

// sums are what a site releases: histogram twice or, if it is nil, never, each of the next two once, early
// and late ones as often as there are rounds of the kind, quality once or, if it is nil, never.
type sums struct {
	histogram                     *privacy.Sum
	totals, products, early, late privacy.Sum
	quality                       *privacy.Sum
}

// declare chooses noise by which all releases of a site together cost the plan's total.
//
// Sensitivity: each sum is over subjects, the gate clips what one contributes to the
// declared bound, and nothing that a subject contributes depends on another's row. So one
// subject more or less changes a sum by a vector no longer than the bound, of products by
// a matrix x xᵀ no larger than its square in the Frobenius norm; one in another's place by
// twice as much, of products √2 times. A histogram counts a subject in one bin of each number.
func (c *columns) declare(learned bool, rounds int, p study.Privacy) (*sums, error) {
	of := func(share, diameter float64, count int) account.Mechanism {
		return account.Mechanism{Kind: account.Gaussian, Noise: 1 / math.Sqrt(share), Rate: 1, Diameter: diameter, Count: count}
	}
	rest := 1 - p.Diagnostics
	each := rest * shareHistogram
	if learned {
		rest -= histograms * each
	}
	all := []account.Mechanism{
		of(rest*shareTotals, 2, 1), of(rest*shareProducts, math.Sqrt2, 1),
		of(rest*share(rounds, 0), 2, burn(rounds)), of(rest*share(rounds, rounds-1), 2, rounds-burn(rounds)),
	}
	if p.Diagnostics > 0 {
		all = append(all, of(p.Diagnostics, 2, 1))
	}
	if learned {
		all = append(all, of(each, 2, histograms))
	}
	factor, err := account.Scale(all, p.Adjacency, *p.Total)
	if err != nil {
		return nil, err
	}
	for i := range all {
		all[i].Noise, all[i].Count = account.RoundUp(all[i].Noise*factor), 1
	}
	sum := func(name string, form privacy.Form, length int, bound float64, m account.Mechanism) privacy.Sum {
		return privacy.Sum{Name: name, Unit: privacy.Subject, Form: form, Blocks: []int{length}, Bound: bound, Mechanism: m}
	}
	s := &sums{
		totals:   sum("totals and squares of columns", privacy.Vectors, c.totalsLen(), c.totalsBound(), all[0]),
		products: sum("products of columns", privacy.Moments, c.width(), c.reach(), all[1]),
		early:    sum("clipped gradients of the log-likelihood", privacy.Vectors, c.width(), 1, all[2]),
		late:     sum("clipped gradients of the log-likelihood", privacy.Vectors, c.width(), 1, all[3]),
	}
	if p.Diagnostics > 0 {
		s.quality = predict.Sum(all[4])
	}
	if learned {
		h := sum("histograms of numbers", privacy.Vectors, bins*len(c.numbers), math.Sqrt(float64(len(c.numbers))), all[len(all)-1])
		s.histogram = &h
	}
	return s, nil
}
