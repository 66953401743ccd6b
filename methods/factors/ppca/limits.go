package ppca

import (
	"fmt"
	"math"
	"slices"

	"parley/internal/linalg"
)

// What anybody sends is held to limits that no measured data and no honest
// program come near, so narrow that nothing computed within them overflows or
// falls below the smallest number: then whatever was taken in fails nothing later.
const (
	// Largest bounds every number that is taken in: the product of four has a
	// finite sum over any number of features and subjects.
	Largest = 1e75
	// LargestValue bounds a value, and everything in a site's answer that is in
	// the units of values; variances are bounded by its square. It leaves what is
	// made of the answers of many sites, such as the spread between them, far
	// within Largest. In grams, it is the mass of fifty suns.
	LargestValue = 1e35
	// Least bounds every variance from below: with Largest, no quotient overflows.
	Least = 1e-100
	// leastVariance is that of what a site says is a variance of its values.
	leastVariance = 1e-90
	// LargestCount bounds the subjects of a site, as the noised sums do.
	LargestCount = 1 << 31
	// Clearest bounds how far the factors of a model stand out of its noise,
	// tr WᵀΨ⁻¹W: beyond, the precision of the factors is not to be inverted.
	Clearest = 1e13
	// LargestPatterns bounds how many sets of views the subjects of a site have.
	LargestPatterns = 1 << 16
)

// Finite says which entry is not a number of sensible size.
func Finite(what string, x []float64) error { return Within(what, x, Largest) }

// Within says which entry is not a number of at most the limit in size.
func Within(what string, x []float64, limit float64) error {
	for i, v := range x {
		if !(math.Abs(v) <= limit) {
			return fmt.Errorf("%s: entry %d is %v, want a finite number of at most %g in size", what, i, v, limit)
		}
	}
	return nil
}

// Counts says which entry is not a count of at most the limit.
func Counts(what string, x []float64, limit float64) error {
	for i, v := range x {
		if !(v >= 0 && v <= limit) || v != math.Trunc(v) {
			return fmt.Errorf("%s: entry %d is %v, want a whole number from 0 to %g", what, i, v, limit)
		}
	}
	return nil
}

// checkVariance holds a variance of values to what it can be.
func checkVariance(v float64) error {
	if !(v >= leastVariance && v <= LargestValue*LargestValue) {
		return fmt.Errorf("a variance of %v, want from %g to %g", v, leastVariance, LargestValue*LargestValue)
	}
	return nil
}

// CheckFactors checks the law of the factors at a site.
func CheckFactors(q int, nu, xi []float64) error {
	if len(nu) != q || len(xi) != q*q {
		return fmt.Errorf("the factors have %d means and %d covariances for rank %d", len(nu), len(xi), q)
	}
	if err := Finite("mean of the factors", nu); err != nil {
		return err
	}
	return checkPositive("covariance of the factors", xi, q)
}

// checkPositive says whether a symmetric n × n matrix is not positive definite.
func checkPositive(what string, a []float64, n int) error {
	if err := Finite(what, a); err != nil {
		return err
	}
	for i := range n {
		for j := range i {
			if a[i*n+j] != a[j*n+i] {
				return fmt.Errorf("%s is not symmetric", what)
			}
		}
	}
	if _, ok := linalg.Cholesky(slices.Clone(a), n, n); !ok {
		return fmt.Errorf("%s is not positive definite", what)
	}
	return nil
}
