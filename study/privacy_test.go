package study_test

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/testkit"
	"parley/privacy/account"
	"parley/problem"
	"parley/study"
)

const promised = `privacy:
  protection: differential
  unit: subject
  adjacency: add-remove
  total: {epsilon: 3, delta: 1e-5}
  diagnostics: 0.05
`

// private is the small plan with a promise.
var private = strings.Replace(small, "privacy:\n  protection: none\n", promised, 1)

func TestPromiseIsRead(t *testing.T) {
	p := parse(t, private).Privacy
	if !p.Differential() || p.Unit != study.UnitSubject || p.Adjacency != account.AddRemove ||
		p.Total == nil || *p.Total != (account.Budget{Epsilon: 3, Delta: 1e-5}) || p.PerRelease != nil ||
		p.Diagnostics != 0.05 {
		t.Errorf("got %+v", p)
	}
	published := strings.NewReplacer("total: {epsilon: 3, delta: 1e-5}", "per_release: {epsilon: 10, delta: 0.01}",
		"unit: subject", "unit: site", "add-remove", "replace-one", "  diagnostics: 0.05\n", "").Replace(private)
	p = parse(t, published).Privacy
	if p.Unit != study.UnitSite || p.Adjacency != account.ReplaceOne || p.Total != nil ||
		*p.PerRelease != (account.Budget{Epsilon: 10, Delta: 0.01}) || p.Diagnostics != 0 {
		t.Errorf("got %+v", p)
	}
	if parse(t, small).Privacy.Differential() {
		t.Error("a plan without protection promises something")
	}
}

// Like that of the small plan, this digest was computed with another encoder.
func TestDigestOfAKnownPromise(t *testing.T) {
	p := parse(t, private)
	const want = "9ca30dc84fccb9520821652b76b98762d3520e220dbfe3a96aa31f3162cb0c5d"
	if d := digest(t, p); d.String() != want {
		t.Errorf("got %s, want %s", d, want)
	}
}

func TestPromiseSurvivesEncodingAndYAML(t *testing.T) {
	p := parse(t, private)
	back := testkit.Get(study.Decode(encode(t, p), methods{}))(t)
	text := testkit.Get(back.YAML())(t)
	_, section, _ := strings.Cut(string(text), "privacy:")
	if want := strings.Replace(promised, "1e-5", "1e-05", 1); "privacy:"+section != want {
		t.Errorf("got\nprivacy:%s\nwant\n%s", section, want)
	}
	if digest(t, parse(t, string(text))) != digest(t, p) {
		t.Error("YAML is another plan")
	}
}

func TestPromisesThatAreNone(t *testing.T) {
	const missingTotal = "plan.yaml:15:1: privacy.total: missing: what all releases of a site together may reveal\n  " +
		"hint: such as {epsilon: 3, delta: 1e-5}\n  hint: per_release instead"
	for _, r := range []struct{ old, new, want string }{
		{"protection: differential", "protection: differential-privacy",
			`plan.yaml:16:15: privacy.protection: unknown protection "differential-privacy"` +
				"\n  hint: did you mean differential?"},
		{"protection: differential", "protection: DP", `plan.yaml:16:15: privacy.protection: unknown protection "DP"` +
			"\n  hint: did you mean differential?"},
		{"protection: differential", "protection: nnoe", `plan.yaml:16:15: privacy.protection: unknown protection ` +
			`"nnoe"` + "\n  hint: did you mean none?"},
		{"protection: differential", "protection: encryption",
			`plan.yaml:16:15: privacy.protection: unknown protection "encryption"` +
				"\n  hint: protection: differential, with unit"},
		{"protection: differential\n  ", "", "plan.yaml:15:1: privacy.protection: missing\n  hint: protection: " +
			"differential"},

		{"  unit: subject\n", "", "plan.yaml:15:1: privacy.unit: missing: a guarantee says whom it protects\n  hint: " +
			"subject: one person"},
		{"unit: subject", "unit: subjects", `plan.yaml:17:9: privacy.unit: unknown unit "subjects"` +
			"\n  hint: did you mean subject?"},
		{"unit: subject", "unit: person", `plan.yaml:17:9: privacy.unit: unknown unit "person"` +
			"\n  hint: subject: one person; or site"},
		{"  adjacency: add-remove\n", "", "plan.yaml:15:1: privacy.adjacency: missing: a guarantee says which data"},
		{"add-remove", "add_remove", `plan.yaml:18:14: privacy.adjacency: unknown adjacency "add_remove"` +
			"\n  hint: did you mean add-remove?"},
		{"add-remove", "substitution", `plan.yaml:18:14: privacy.adjacency: unknown adjacency "substitution"` +
			"\n  hint: add-remove: neighbouring data"},

		{"  total: {epsilon: 3, delta: 1e-5}\n", "", missingTotal},
		{"  total: {epsilon: 3, delta: 1e-5}\n  diagnostics: 0.05\n", "", missingTotal},
		{"  diagnostics", "  per_release: {epsilon: 10, delta: 0.01}\n  diagnostics",
			"plan.yaml:20:3: privacy.per_release: stands beside total\n  hint: either a total"},
		{"epsilon: 3, ", "", "plan.yaml:19:3: privacy.total.epsilon: missing\n  hint: such as {epsilon: 3, delta: " +
			"1e-5}"},
		{", delta: 1e-5", "", "plan.yaml:19:3: privacy.total.delta: missing\n  hint: such as {epsilon: 3, delta: " +
			"1e-5}"},
		{"epsilon: 3", "epsilon: 0", "plan.yaml:19:20: privacy.total.epsilon: 0 is not positive\n  hint: 0.1 " +
			"protects strongly"},
		{"epsilon: 3", "epsilon: -1", "plan.yaml:19:20: privacy.total.epsilon: -1 is not positive"},
		{"epsilon: 3", "epsilon: .nan", "plan.yaml:19:20: privacy.total.epsilon: .nan where a number is expected"},
		{"1e-5", "0", "plan.yaml:19:30: privacy.total.delta: 0 is not between 0 and 1\n  hint: far below 1 divided by"},
		{"1e-5", "1", "plan.yaml:19:30: privacy.total.delta: 1 is not between 0 and 1"},
		{"epsilon: 3", "epsilom: 3", "plan.yaml:19:11: privacy.total.epsilom: unknown key\n  hint: did you mean " +
			"epsilon?"},
		{"total: {epsilon: 3, delta: 1e-5}", "total: 3", "plan.yaml:19:10: privacy.total: 3 where keys with values " +
			"are expected"},
		{"total: {epsilon: 3, delta: 1e-5}\n  diagnostics: 0.05", "per_release: {epsilon: 10, delta: 2}",
			"plan.yaml:19:37: privacy.per_release.delta: 2 is not between 0 and 1"},

		{"0.05", "1", "plan.yaml:20:16: privacy.diagnostics: 1 of the total cannot be spent on diagnostics\n  hint: " +
			"from 0"},
		{"0.05", "-0.1", "plan.yaml:20:16: privacy.diagnostics: -0.1 of the total cannot be spent"},
		{"total:", "per_release:", "plan.yaml:20:16: privacy.diagnostics: is a share of the total, and there is none"},

		{"subject\n", "subject\n  person: id\n", "plan.yaml:18:11: privacy.person: id differs in every row\n  hint: " +
			"leave it out if every row is another person; else a column"},
		{"subject\n", "subject\n  person: group\n", "plan.yaml:18:11: privacy.person: group is a column that the " +
			"study reads\n  hint: a column of the subjects table that the plan names nowhere else"},
		{"subject\n", "subject\n  person: tau\n", "plan.yaml:18:11: privacy.person: tau is a column that the study " +
			"reads"},
		{"subject\n", "site\n  person: patient\n", "plan.yaml:18:11: privacy.person: means nothing with unit: site"},
		{"differential\n", "none\n  person: patient\n",
			"plan.yaml:17:11: privacy.person: means nothing with protection: none"},
		{"differential", "none", "plan.yaml:17:9: privacy.unit: means nothing with protection: none\n  hint: leave " +
			"it out, or protection: differential"},
		{"differential", "none", "plan.yaml:18:14: privacy.adjacency: means nothing"},
		{"differential", "none", "plan.yaml:19:3: privacy.total: means nothing"},
		{"differential", "none", "plan.yaml:20:16: privacy.diagnostics: means nothing"},
	} {
		_, err := study.Parse("plan.yaml", []byte(strings.Replace(private, r.old, r.new, 1)), methods{})
		var list problem.List
		errors.As(err, &list)
		found := false
		for _, p := range list {
			found = found || strings.HasPrefix(p.Error(), r.want)
		}
		if !found {
			t.Errorf("%q: got\n%v\nwant\n%s", r.new, err, r.want)
		}
	}
}

// What would make a promise without meaning does not come in by the wire either.
func TestEncodedPromisesAreChecked(t *testing.T) {
	for want, change := range map[string]func(*study.Privacy){
		"privacy.unit: missing":                            func(p *study.Privacy) { p.Unit = "" },
		"privacy.total: missing":                           func(p *study.Privacy) { p.Total = nil; p.Diagnostics = 0 },
		"privacy.total.epsilon: +Inf":                      func(p *study.Privacy) { p.Total.Epsilon = math.Inf(1) },
		"privacy.total.epsilon: NaN":                       func(p *study.Privacy) { p.Total.Epsilon = math.NaN() },
		"privacy.total.delta: NaN":                         func(p *study.Privacy) { p.Total.Delta = math.NaN() },
		"privacy.diagnostics: NaN":                         func(p *study.Privacy) { p.Diagnostics = math.NaN() },
		"privacy.person: tau is a column":                  func(p *study.Privacy) { p.Person = "tau" },
		"privacy.adjacency: means nothing with protection": func(p *study.Privacy) { p.Protection = "none" },
	} {
		p := parse(t, private)
		change(&p.Privacy)
		if _, err := study.Decode(encode(t, p), methods{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}

// filled is a method whose default depends on the plan's privacy.
type filled struct {
	Noise string `json:"noise"`
}

func (f *filled) Fill(p *study.Plan, missing func(key string) bool) {
	if missing("noise") && p.Privacy.Differential() {
		f.Noise = "statistics"
	}
}

func TestDefaultsMayDependOnPrivacy(t *testing.T) {
	for text, want := range map[string]string{small: "none", private: "statistics",
		strings.Replace(private, "latent: 6", "noise: clipping", 1): "clipping"} {
		p := testkit.Get(study.Parse("plan.yaml", []byte(strings.Replace(text, "  latent: 6\n", "", 1)),
			oneMethod{&filled{Noise: "none"}}))(t)
		if got := p.Method.Options.(*filled).Noise; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestLocalPolicyAndStores(t *testing.T) {
	const local = "local: {data: d, split: {scenario: IID}, policy: sites.yaml, stores: /var/stores}\n"
	dir := t.TempDir()
	path := filepath.Join(dir, "plan.yaml")
	testkit.Do(t, os.WriteFile(path, []byte(small+local), 0o600))
	p := testkit.Get(study.Load(path, methods{}))(t)
	if p.Local.Policy != filepath.Join(dir, "sites.yaml") || p.Local.Stores != filepath.FromSlash("/var/stores") {
		t.Errorf("got %+v", p.Local)
	}
	if digest(t, p) != digest(t, parse(t, small)) {
		t.Error("where a simulation keeps its stores changes the digest")
	}
	if p := parse(t, small+"local: {data: d, split: {scenario: IID}}\n").Local; p.Policy != "" || p.Stores != "" {
		t.Errorf("got %+v", p)
	}
	for _, key := range []string{"policy", "stores"} {
		_, err := study.Parse("plan.yaml", []byte(small+"local: {data: d, split: {scenario: IID}, "+key+": ''}\n"),
			methods{})
		if err == nil || !strings.Contains(err.Error(), "local."+key+": empty\n  hint: ") {
			t.Errorf("got %v", err)
		}
	}
}
