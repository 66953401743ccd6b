package predict

import (
	"math"
	"testing"

	"parley/internal/testkit"
	"parley/methods/regression/glm"
)

// However large hazards are and however little is known of them, survival falls from cut to
// cut within 0 and 1, and lies within its interval but for a share of a thousandth.
func TestSurvivalStaysWithinItsInterval(t *testing.T) {
	for _, a := range []float64{-600, -50, -5, 0, 3, 40, 400} {
		for _, sd := range []float64{1e-3, 0.3, 2, 30} {
			cov := make([]float64, glm.Triangle(3))
			for k := range 3 {
				cov[glm.Packed(k, k)] = sd * sd
			}
			q := testkit.Get(glm.NewNormal([]float64{a, a, a}, cov))(t)
			m, until := New(glm.Logistic{}, q, 3), make([]Survival, 3)
			m.Survival(glm.Row{Offset: 1}, 1.645, until)
			last := 1.0
			for k, s := range until {
				if !(s.Mean >= 0 && s.Mean <= last+1e-9 && s.Low <= s.High && s.Mean >= s.Low-1e-3 && s.Mean <= s.High+
					1e-3) || math.IsNaN(s.Low+s.High) {
					t.Errorf("hazards σ(%v ± %v), period %d: %+v after %v", a, sd, k+1, s, last)
				}
				last = s.Mean
			}
		}
	}
}
