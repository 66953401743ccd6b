package selection

import (
	"strings"
	"testing"

	"parley/method"
	"parley/problem"
)

func TestElbow(t *testing.T) {
	for _, c := range []struct {
		mean []float64
		want int
	}{{[]float64{0, 50, 98, 100, 99}, 2}, {[]float64{0, 50, 97.9, 100}, 3}, {[]float64{5}, 0}, {[]float64{3, 3}, 0}, {[]float64{9, 1}, 0}} {
		if got := elbow(c.mean); got != c.want {
			t.Errorf("elbow of %v: %d, want %d", c.mean, got, c.want)
		}
	}
}

// Nothing is recommended at an end of the candidates, nor beside any other warning.
func TestRecommend(t *testing.T) {
	for _, c := range []struct {
		values     []int
		best, want int
		warning    string
	}{
		{[]int{1, 2, 3}, 2, 2, ""},
		{[]int{1, 2, 3}, 1, 1, ""},
		{[]int{2, 4, 6}, 6, 0, "--latent 4..12;"},
		{[]int{3, 4, 6}, 3, 0, "--latent 1..4"},
		{[]int{2}, 2, 0, "--latent 2..4;"},
	} {
		var out method.Selection
		recommend(&out, c.values, c.best)
		if out.Recommended != c.want || len(out.Warnings) > 0 != (c.warning != "") || !strings.Contains(strings.Join(out.Warnings.Lines(), "\n"), c.warning) {
			t.Errorf("%d of %v: %d recommended, warnings %v", c.best, c.values, out.Recommended, out.Warnings)
		}
	}
	out := method.Selection{Warnings: problem.List{{Where: "method.scaling", What: "misleads"}}}
	if recommend(&out, []int{1, 2, 3}, 3); out.Recommended != 0 || len(out.Warnings) != 1 {
		t.Errorf("beside a warning %d is recommended, and the warnings are %v", out.Recommended, out.Warnings)
	}
}
