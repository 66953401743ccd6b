package regression_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"parley/methods/regression/partitioned"
)

// A partitioned fit that says it has converged is where the fit to all rows is, and one that
// ends well before says so first, whatever the schedule. Collinear features are slow.
func TestPartitionedFitsKnowWhetherTheyConverged(t *testing.T) {
	s := drawn(21, 150, 3, yesNo)
	tied := drawn(22, 150, 3, yesNo)
	for _, x := range tied.x {
		x[1], x[2] = x[0]+0.01*x[1], -x[0]+0.01*x[2]
	}
	for _, c := range []struct {
		s         sample
		options   string
		converged bool
	}{
		{s, "variant: partitioned", true},
		{s, "variant: partitioned\nschedule: synchronous", true},
		{s, "variant: partitioned\nschedule: synchronous\nrounds: 4", false},
		{s, "variant: partitioned\nrounds: 1", false},
		{s, "variant: partitioned\nrounds: 2", false},
		{s, "variant: partitioned\nrounds: 200\ntolerance: 0", true},
		{tied, "variant: partitioned", false},
		{tied, "variant: partitioned\nrounds: 3000", true},
	} {
		p := planOf(t, 3, []string{"a", "b"}, twoLevels+c.options, unprotected)
		m, out := run(t, c.s.config(t, p))
		fit, err := partitioned.Central(t.Context(), p, c.s.table(t, p, nil))
		if err != nil {
			t.Fatal(err)
		}
		want, variance := fit.Model.Posterior.Moments()
		got, _ := m.Posterior.Moments()
		far := 0.0
		for j := range want {
			far = max(far, math.Abs(got[j]-want[j])/math.Sqrt(variance[j]))
		}
		said := out.Result.Metrics["converged"] == 1
		t.Logf("%q: %.2g deviations from the end; %v", c.options, far, out.Result.Verdicts())
		if said != c.converged || m.Converged == nil || *m.Converged != said || said != !strings.Contains(strings.Join(out.Result.Verdicts(), "\n"), "had not converged") || said && far > 0.01 || !said && far < 0.001 {
			t.Errorf("%q: %.2g deviations from the end, converged %v: %v", c.options, far, said, out.Result.Verdicts())
		}
		if text := fmt.Sprint(out.Result.Headline[0]); said != (text == "{converged yes}") {
			t.Error(text)
		}
	}
}
