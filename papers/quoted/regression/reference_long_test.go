//go:build long

package regression

import (
	"path/filepath"
	"testing"
)

// The vectors beside the second implementation are those of the fits to data of the repository:
// to all rows within its own tolerance, and studies of nine very unequal sites in ten exchanges.
func TestFitsAgreeWithTheSecondImplementation(t *testing.T) {
	for _, name := range []string{"adult-linear", "adult-poisson", "adult-hazard", "adult-softmax",
		"heart-sites-softmax", "physionet2012-softmax"} {
		t.Run(name, func(t *testing.T) {
			a, err := agree(t.Context(), filepath.Join("..", "..", ".."), name)
			if err != nil {
				t.Fatal(err)
			}
			if !(a.fit.estimate < 1e-6 && a.fit.covariance < 1e-6) {
				t.Errorf("a fit to all rows is off by %v", a.fit)
			}
			if !(a.study.estimate < estimateOff && a.study.covariance < estimateOff) || a.exchanges > 10 ||
				!a.converged {
				t.Errorf("a study is off by %v after %d exchanges, converged: %v", a.study, a.exchanges, a.converged)
			}
		})
	}
}
