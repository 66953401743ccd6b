package predict

import (
	"math"
)

// rowLargest bounds what a row adds to the sums of an assessment, so that they stay
// finite however wrong a model is.
const rowLargest = 1e200

// dispersion says how far counts y are from their expectations μ: sums over rows.
type dispersion struct {
	Total   float64 `cbor:"total"`   // Σ y
	Pearson float64 `cbor:"pearson"` // Pearson's χ², Σ (y − μ)²/μ
	Inverse float64 `cbor:"inverse"` // Σ 1/μ, which χ² varies by where counts are rare
}

// count counts a row. Whatever it is expected to be, sums stay finite.
func (d *dispersion) count(y, mean float64) {
	if !(mean <= rowLargest) { // NaN too
		mean = rowLargest
	}
	mean = max(mean, 1/rowLargest)
	d.Total += y
	d.Pearson += min((y-mean)/mean*(y-mean), rowLargest)
	d.Inverse += 1 / mean
}

// farOver is the 99.9 % quantile of the standard normal distribution, and worthSaying a ratio
// from which standard errors are a tenth too small, or its inverse.
const farOver, worthSaying = 3.0902, 1.2

// Ratio is χ² by its degrees of freedom, rows − weights: 1 for Poisson counts, and the
// variance by the expectation of others. Off says that it is far from 1: above or below with
// p < .001 each, and by enough to matter. Under the Poisson distribution a row's part of χ² has the
// expectation 1 and the variance 2 + 1/μ (McCullagh and Nelder, Generalized Linear Models, section
// 6.2). NaN without degrees of freedom.
func (d *dispersion) Ratio(rows, weights int) (ratio float64, off bool) {
	free := float64(rows - weights)
	if free < 1 {
		return math.NaN(), false
	}
	ratio = d.Pearson / free
	return ratio, max(ratio, 1/ratio) > worthSaying && math.Abs(d.Pearson-free) > farOver*math.Sqrt(2*free+d.Inverse)
}
