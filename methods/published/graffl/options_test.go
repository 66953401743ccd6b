package graffl

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"parley/figure"
	"parley/internal/testkit"
	"parley/method"
	"parley/methods/mixture"
	"parley/study"
)

func parse(options, privacy string) (*study.Plan, error) {
	return study.Parse("plan.yaml", fmt.Appendf(nil, "parley: 1\nname: small\nsites: [a, b]\nviews: [{name: v, features: [{name: x, range: [-8, 8]}, {name: y, range: [-8, 8]}]}]\nsubjects: [sick]\nmethod: {name: graffl-abc, %s}\nprivacy: %s\n", options, privacy), methods)
}

const (
	open    = "{protection: none}"
	private = "{protection: differential, unit: subject, adjacency: add-remove, total: {epsilon: 5, delta: 1e-5}}"
)

// What a plan cannot mean is refused, under its key and with what would be right.
func TestOptionsThatMeanNothingAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"components: 0":                                                   "method.components: a mixture of 0 components",
		"components: 2, algorithm: other":                                 `method.algorithm: "other" is not known`,
		"components: 2, rounds: 0":                                        "method.rounds: 0 rounds",
		"components: 2, accepted: 0":                                      "method.accepted: 0 accepted",
		"components: 2, accepted: 2000000000":                             "method.accepted",
		"components: 2, set: {rows: 10}":                                  "method.set: belongs to algorithm: sets",
		"components: 2, algorithm: sets, rounds: 10":                      "method.rounds: belongs to algorithm: rows",
		"components: 2, landmarks: {}":                                    "method.landmarks: unknown key",
		"components: 2, prior: {kappa: 0}":                                "method.prior.kappa: 0 is out of range",
		"components: 2, prior: {spread: 0}":                               "method.prior.spread: 0 is out of range",
		"components: 2, algorithm: sets, set: {discrepancy: wasserstein}": "may not be summed over sites",
		"components: 2, algorithm: sets, set: {discrepancy: mmd}":         `bandwidth 0 of "mmd"`,
		"components: 2, algorithm: sets, set: {keep: 1}":                  "a share of 1 kept",
		"components: 2, algorithm: sets, set: {proposals: 200000}":        "200000 proposals",
		"components: 2, encoder: {kind: suffiae}":                         "the paper's codes are in its tables alone",
		"components: 2, " + sick:                                          "name: graffl, whose mixture serves a scarce class",
	} {
		if _, err := parse(text, open); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
	for text, want := range map[string]string{"components: 2": "exact distances, which give rows away", "components: 2, algorithm: sets": "set discrepancies are released exactly"} {
		if _, err := parse(text, private); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "name: graffl, or") {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

// Defaults are the paper's where it says them, and survive the plan's encoding; what people are
// told follows the options.
func TestDefaultsAreWrittenIntoThePlan(t *testing.T) {
	for text, x := range map[string]struct {
		check       func(o *Options) bool
		says, notes string
	}{
		"components: 2": {func(o *Options) bool {
			return o.Algorithm == Rows && o.Rounds == 100 && o.Accepted == 1000 && o.Set == nil && o.Prior == mixture.PriorOptions{Concentration: 1, Kappa: 0.02, Spread: 0.02, Freedom: 5}
		}, "from which the rows can be found", "rows gives every row away, by 3 exact distances"},
		"components: 2, algorithm: sets": {func(o *Options) bool {
			return o.Rounds == 0 && o.Set.Proposals == 15000 && o.Set.Discrepancy == "energy" && o.Set.Keep == 0.7
		}, "how far their rows as a whole are", "sets releases up to 15000 exact means"},
	} {
		p := testkit.Get(parse(text, open))(t)
		if o := p.Method.Options.(*Options); !x.check(o) {
			t.Errorf("%s: %+v", text, o)
		}
		again := testkit.Get(study.Decode(testkit.Get(p.Encode())(t), methods))(t)
		if testkit.Get(p.Digest())(t) != testkit.Get(again.Digest())(t) {
			t.Errorf("%s: encoding and decoding made another plan of it", text)
		}
		if says := (Method{}).Describe(p); !strings.Contains(says, x.says) {
			t.Errorf("%s: %s", text, says)
		}
		if notes := (Method{}).Notes(p); len(notes) != 1 || !strings.Contains(notes.Error(), x.notes) {
			t.Errorf("%s: %v", text, notes)
		}
	}
}

// A plan of each form is kept for comparison with other programs.
func TestKeptPlans(t *testing.T) {
	for _, name := range []string{"rows", "sets"} {
		data := testkit.Get(os.ReadFile("../../../papers/testdata/plans/graffl-abc-" + name + ".yaml"))(t)
		testkit.Get(study.Parse(name, data, methods))(t)
	}
}

func TestReportsSayWhatAnAttackerFinds(t *testing.T) {
	of := func(text string) setup { return testkit.Get(setUp(testkit.Get(parse(text, open))(t)))(t) }
	const sets = "components: 3, algorithm: sets"
	for name, c := range map[string]struct {
		got  figure.Section
		want []string
	}{
		"many":   {rowsAttacks(of("components: 3").Setup, 100), []string{"3 distances of each row", "100 distances of each row", "every row of every site, exactly"}},
		"two":    {rowsAttacks(of("components: 3").Setup, 2), []string{"a sphere that it lies on"}},
		"energy": {setsAttacks(of(sets), 15000), []string{"that person's row, exactly", "up to 7\u202f500 rows", "no width to choose"}},
		"mmd":    {setsAttacks(of(sets+", set: {discrepancy: mmd, bandwidth: 1}"), 2), []string{"a surface", "a few bandwidths"}},
	} {
		got := testkit.Get(attacksText(c.got))(t)
		for _, want := range c.want {
			if !strings.Contains(got, want) || !strings.Contains(c.got.Lead, "parley attack graffl-abc") {
				t.Errorf("%s: no %q in\n%s", name, want, got)
			}
		}
	}
}

// Whatever a plan says of algorithms, it is its features that are attacked.
func TestStudiesOfTheVictimsOfAnyPlan(t *testing.T) {
	for _, text := range []string{"components: 2", "components: 2, algorithm: sets, prior: {freedom: 9}"} {
		p := testkit.Get(parse(text, open))(t)
		given := p.Method.Options.(*Options)
		ran := 0
		_, err := mixture.NewAttacker(t.Context(), Method{}, nil, method.Target{Plan: p}, func(*study.Plan) (*mixture.Options, error) { return given.mixture(), nil }, func(v *mixture.Victims) error {
			for _, algorithm := range []string{Rows, Sets} {
				s, err := studyOf(v, algorithm, func(*Options) {})
				if err != nil || s.Prior.Dim() != 2 || s.own.Algorithm != algorithm || s.Prior.Nu != given.Prior.Freedom {
					t.Errorf("%s: %+v, %v", text, s.own, err)
				}
				ran++
			}
			return nil
		})
		if ran != 2 || err == nil || err.Error() != "site a has no data" {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// attacksText is the table of attacks in a report's section of them, as text.
func attacksText(s figure.Section) (string, error) {
	if !strings.Contains(s.Lead, "parley attack graffl-abc") || len(s.Items) != 1 {
		return "", fmt.Errorf("no section of attacks: %+v", s)
	}
	var b strings.Builder
	err := s.Items[0].Table.Text(&b)
	return b.String(), err
}
