package factors

import (
	"bytes"
	"strings"
	"testing"

	"parley/method"
	"parley/methods/factors/factorstest"
	"parley/methods/factors/fitted"
)

// Where one site alone has a view, and no other, the report begins with that, no number on how
// good the model is stands in it, and whoever imputes, scores or rotates is told. Verdicts are
// those of the sites' subjects: at one site with all views they are connected.
func TestVerdictOnViewsThatNobodyConnects(t *testing.T) {
	for _, c := range []struct {
		lacks map[[2]int]bool
		want  string
	}{
		{map[[2]int]bool{{0, 2}: true, {1, 2}: true, {2, 0}: true, {2, 1}: true}, "No subject connects view v2 with views v0 and v1"},
		{map[[2]int]bool{{0, 1}: true, {0, 2}: true, {1, 0}: true, {1, 2}: true, {2, 0}: true, {2, 1}: true}, "Nobody has two views: how far to rely on the model is not known"},
		{map[[2]int]bool{{0, 2}: true, {2, 0}: true, {2, 1}: true}, ""},
	} {
		s := shape{dims: []int{5, 4, 4}, sites: 3, rows: 60, seed: 8, lacks: c.lacks, options: "  latent: 2\n  rounds: 0\n"}.study(t)
		r := factorstest.Must(newPlay(t, s).run())(t)
		says := func(text string) bool {
			return strings.Contains(text, "No subject connects") || strings.Contains(text, "Nobody has two")
		}
		all := strings.Join(r.Verdicts(), "\n")
		if c.want == "" && says(all) || c.want != "" && (r.Verdicts()[0] != c.want || strings.Count(all, "Nobody has two") > 1) {
			t.Errorf("the report says %q, want %q first", r.Verdicts(), c.want)
		}
		_, r2 := r.Metrics["r2/v0"]
		_, likelihood := r.Metrics["log_likelihood_per_subject"]
		if known := c.want == ""; r2 != known || likelihood != known {
			t.Errorf("%q: the metrics are %v", c.want, r.Metrics)
		}
		m := factorstest.Must(fitted.LoadModel(r.Files[0].Data))(t)
		_, imputing, err := m.Impute(t.Context(), s.data[s.plan.Sites[0]], &bytes.Buffer{}, method.ImputeOptions{Level: 0.9, Views: []string{"v2"}})
		if err != nil {
			t.Fatal(err)
		}
		_, scoring, err := m.Transform(t.Context(), s.data[s.plan.Sites[2]], &bytes.Buffer{}, method.TransformOptions{})
		if err != nil {
			t.Fatal(err)
		}
		_, rotated, err := m.Rotate("varimax")
		if err != nil {
			t.Fatal(err)
		}
		for doing, notes := range map[string]method.Notes{"imputing": imputing, "scoring": scoring, "rotating": rotated.Notes} {
			if got := notes.Error(); c.want == "" && says(got) || c.want != "" && !strings.Contains(got, c.want) {
				t.Errorf("%s says %q, want %q", doing, got, c.want)
			}
		}
	}
}
