package main

import (
	"strings"
	"testing"

	"parley/study"
)

// Every method says of its plans what becomes of values beyond the plan's ranges.
func TestEveryMethodSaysWhatBecomesOfValuesBeyondARange(t *testing.T) {
	const (
		open    = "{protection: none}"
		private = "{protection: differential, unit: subject, adjacency: add-remove, total: {epsilon: 3, delta: 1e-5}}"
		class   = "name: pvi, outcome: {column: group, levels: [control, case]}"
	)
	said := map[string]bool{}
	for _, c := range []struct{ method, privacy, want string }{
		{"name: mvppca, latent: 1", open, study.RangeAsIs},
		{"name: mvppca, latent: 1, scaling: range", open, study.RangeAsIs},
		{"name: mvppca, latent: 1", private, study.RangeEnds},
		{"name: fed-mv-ppca, latent: 1, rounds: 3", private, study.RangeAsIs},
		{class, open, study.RangeAsIs},
		{class + ", scaling: range", open, study.RangeEnds},
		{class, private, "and count within 4 scales"},
		{class + ", scaling: constants, constants: [{feature: age, centre: 50, scale: 20}, {feature: weight, centre: 90, scale: 30}, {feature: score, centre: 5, scale: 2}]", private, "and count within 4 scales"},
		{"name: dp-pvi, outcome: {column: group, levels: [control, case]}", open, study.RangeAsIs},
		{"name: graffl, components: 2", private, study.RangeAsIs},
		{"name: graffl-abc, components: 2", open, study.RangeAsIs},
		{"name: vae, model: linear, latent: 1", open, study.RangeAsIs},
	} {
		name, _, _ := strings.Cut(strings.TrimPrefix(c.method, "name: "), ",")
		said[name] = true
		text := "parley: 1\nname: small\nsites: [north, south, east]\n" +
			"views: [{name: clinic, features: [{name: age, range: [0, 100]}, {name: weight, range: [0, 200]}, {name: score, range: [0, 9]}]}]\n" +
			"subjects: [group]\nmethod: {" + c.method + "}\nprivacy: " + c.privacy + "\n"
		plan, err := study.Parse("plan.yaml", []byte(text), methods)
		if err != nil {
			t.Errorf("%s: %v", c.method, err)
			continue
		}
		if got := plan.Schema().BeyondRange; !strings.HasPrefix(got, c.want) {
			t.Errorf("%s, %s: %q, want %q", c.method, c.privacy, got, c.want)
		}
	}
	for _, name := range methods.Names() {
		if !said[name] {
			t.Errorf("%s was not asked", name)
		}
	}
}
