package graffl_test

import (
	"strings"
	"testing"

	"parley/graffl"
	"parley/study"
)

// What a plan cannot mean is refused, under its key and with what would be right.
func TestOptionsThatMeanNothingAreRefused(t *testing.T) {
	for options, want := range map[string]string{
		"components: 0":                                         "method.components: a mixture of 0 components",
		"variant: other":                                        `method.variant: "other" is not known`,
		"draws: 10":                                             "method.draws: a sample of 10 parameters",
		"prior: {kappa: 0}":                                     "method.prior.kappa: 0 is not positive",
		"prior: {freedom: 2}":                                   "method.prior.freedom: with 2 degrees of freedom",
		"landmarks: {bandwidth: 0}":                             "method.landmarks.bandwidth: 0 of a feature's range",
		"landmarks: {bandwidth: 1e-4}":                          "needs more than 1024 landmarks",
		"landmarks: {scattered: 2000}":                          "method.landmarks.scattered: 2000 landmarks",
		"set: {rows: 10}":                                       "method.set: belongs to variant: set",
		"variant: set\ndraws: 100":                              "method.draws: belongs to variant: landmark",
		"variant: set\nset: {discrepancy: wasserstein}":         "may not be summed over sites",
		"variant: set\nset: {discrepancy: mmd}":                 `bandwidth 0 of "mmd"`,
		"variant: set\nset: {keep: 1}":                          "a share of 1 kept",
		"variant: published\npublished: {rounds: 0}":            "method.published.rounds: 0 rounds",
		"variant: published\npublished: {accepted: 0}":          "method.published.accepted: 0 accepted",
		"variant: published\nlandmarks: {bandwidth: 0.1}":       "method.landmarks: belongs to variant: landmark",
		"variant: published\npublished: {accepted: 2000000000}": "method.published.accepted",
	} {
		refused(t, strings.Replace(planText(options, unprotected), "components: 2\n  components", "components", 1), want)
	}
	for change, want := range map[string]string{
		"{name: x}": "has no range, which the prior and the landmarks are made of",
		"{name: x, kind: category, levels: [a, b]}": "is a category, and a Gaussian mixture is of numbers",
	} {
		refused(t, strings.Replace(planText("draws: 64", unprotected), "{name: x, range: [-8, 8]}", change, 1), want)
	}
}

// The exact variants are refused beside a promise, and landmarks beside promises
// that they do not keep.
func TestPrivacyThatIsNotKeptIsRefused(t *testing.T) {
	refused(t, planText("variant: published", protected), "exact distances, which give rows away")
	refused(t, planText("variant: set", protected), "set discrepancies are released exactly")
	refused(t, planText("draws: 64", strings.Replace(protected, "unit: subject", "unit: site", 1)), "privacy.unit: subject")
	refused(t, planText("draws: 64", strings.Replace(protected, "total", "per_release", 1)), "the plan has none")
	refused(t, planText("draws: 64", strings.Replace(protected, "total", "diagnostics: 0.1, total", 1)), "leave privacy.diagnostics out")
}

func refused(t *testing.T, plan, want string) {
	t.Helper()
	if _, err := study.Parse("plan.yaml", []byte(plan), methods); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q of\n%s", err, want, plan)
	}
}

// Defaults follow the features and survive the plan's encoding.
func TestDefaultsAreWrittenIntoThePlan(t *testing.T) {
	for options, check := range map[string]func(o *graffl.Options) bool{
		"variant: landmark": func(o *graffl.Options) bool {
			return o.Draws == 384 && o.Landmarks.Bandwidth == 1./16 && o.Prior.Freedom == 4
		},
		"variant: published": func(o *graffl.Options) bool { return o.Published.Rounds == 100 && o.Landmarks == nil },
		"variant: set":       func(o *graffl.Options) bool { return o.Set.Proposals == 15000 && o.Set.Discrepancy == "energy" },
	} {
		p := parse(t, planText(options, unprotected))
		if o := p.Method.Options.(*graffl.Options); !check(o) {
			t.Errorf("%s: %+v", options, o)
		}
		data, err := p.Encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := study.Decode(data, methods)
		if err != nil {
			t.Fatalf("%s: %v", options, err)
		}
		if a, b := digest(t, p), digest(t, again); a != b {
			t.Errorf("%s: encoding and decoding made another plan of it", options)
		}
	}
}

func digest(t *testing.T, p *study.Plan) string {
	t.Helper()
	d, err := p.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return d.String()
}
