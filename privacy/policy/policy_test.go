package policy_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"parley/privacy/account"
	"parley/privacy/policy"
	"parley/problem"
)

const strict = `policy: 1
site: north
protection: required
adjacency: add-remove
study: {epsilon: 3, delta: 1e-5}
lifetime:
  epsilon: 10
  delta: 1e-5
  filter: gaussian
max_delta: 1e-6
minimum: {subjects: 50, pattern_subjects: 10, sites: 3}
methods: [factors, regression]
per_release: true
pre_approval:
  methods: [factors]
  study: {epsilon: 1, delta: 1e-5}
`

func TestPolicyIsReadAsWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(path, []byte(strict), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := policy.Load(path)
	want := policy.Policy{
		Version: 1, Site: "north", Protection: policy.Required, Adjacency: account.AddRemove,
		Study: &account.Budget{Epsilon: 3, Delta: 1e-5}, Lifetime: &policy.Lifetime{Epsilon: 10, Delta: 1e-5,
			Filter: policy.GaussianFilter},
		MaxDelta: 1e-6, Minimum: policy.Minimum{Subjects: 50, PatternSubjects: 10, Sites: 3},
		Methods: []string{"factors", "regression"}, PerRelease: true,
		PreApproval: &policy.PreApproval{Methods: []string{"factors"}, Study: account.Budget{Epsilon: 1, Delta: 1e-5}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v, %v", got, err)
	}
	short, err := policy.Parse("p", []byte("policy: 1\nlifetime: {epsilon: 1, delta: 1e-6}\n"))
	if err != nil || short.Protection != policy.Required || short.Lifetime.Filter != policy.RenyiFilter {
		t.Fatalf("defaults: %+v, %v", short, err)
	}
	if _, err := policy.Load(path + "x"); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("a missing file: %v", err)
	}
}

func TestPolicyProblemsSayWhereAndWhatWouldBeRight(t *testing.T) {
	for _, c := range [][3]string{
		{"policy: 1", "policy: 2", "policy.yaml:1:9: policy: version 2 of the policy format is unknown\n  hint: this " +
			"program reads version 1"},
		{"policy: 1\n", "", "policy.yaml:1:1: policy: missing\n  hint: the version of the policy format: policy: 1"},
		{"required", "require", "policy.yaml:3:13: protection: unknown demand \"require\"\n  hint: did you mean " +
			"required?"},
		{"add-remove", "both", "policy.yaml:4:12: adjacency: unknown adjacency \"both\"\n  hint: add-remove or " +
			"replace-one; leave it out to take either"},
		{"epsilon: 3", "epsilon: 0", "policy.yaml:5:18: study.epsilon: 0 is not positive\n  hint: such as {epsilon: " +
			"3, delta: 1e-5}"},
		{"epsilon: 10", "epsilon: -1", "policy.yaml:7:12: lifetime.epsilon: -1 is not positive\n  hint: such as " +
			"{epsilon: 3, delta: 1e-5}"},
		{"  delta: 1e-5", "  delta: 1", "policy.yaml:8:10: lifetime.delta: 1 is not between 0 and 1\n  hint: such as " +
			"{epsilon: 3, delta: 1e-5}"},
		{"gaussian", "gausian", "policy.yaml:9:11: lifetime.filter: unknown filter \"gausian\"\n  hint: did you mean " +
			"gaussian?"},
		{"max_delta: 1e-6", "max_delta: 2", "policy.yaml:10:12: max_delta: 2 is no probability\n  hint: far below 1 " +
			"divided by the number of subjects; leave it out for min(1e-5, 1/(100 n))"},
		{"max_delta: 1e-6", "max_delta: 0", "policy.yaml:10:12: max_delta: 0 allows no guarantee at all\n  hint: " +
			"leave it out for min(1e-5, 1/(100 n))"},
		{"sites: 3", "sites: -3", "policy.yaml:11:54: minimum.sites: -3 is no number to have at least\n  hint: 0, or " +
			"leave it out, for any"},
		{"[factors, regression]", "[factors, factors]", "policy.yaml:12:20: methods: \"factors\" is empty or stands " +
			"twice\n  hint: name each method that is allowed once"},
		{"[factors, regression]", "[factors, pvi]", "policy.yaml:12:20: methods: \"pvi\" has another name now\n" +
			"  hint: regression, or dp-pvi as it was published"},
		{"per_release: true", "per_release: yes please", "policy.yaml:13:14: per_release: \"yes please\" where true " +
			"or false is expected"},
		{"per_release", "per_realese", "policy.yaml:13:1: per_realese: unknown key\n  hint: did you mean per_release?"},
		{"  methods: [factors]\n", "", "policy.yaml:14:1: pre_approval.methods: missing\n  hint: the methods whose " +
			"studies need no person, such as [factors]"},
		{"[factors]", "[regression, regression]", "policy.yaml:15:25: pre_approval.methods: \"regression\" is empty " +
			"or stands twice\n  hint: name each method once"},
		{"[factors]", "[mixture]", "policy.yaml:15:13: pre_approval.methods: \"mixture\" is not among the methods " +
			"that the policy allows\n  hint: it allows [factors regression]"},
		{"  study: {epsilon: 1, delta: 1e-5}\n", "", "policy.yaml:14:1: pre_approval.study: missing\n  hint: such as " +
			"{epsilon: 3, delta: 1e-5}"},
		{"{epsilon: 1, delta", "{epsilon: 0, delta", "policy.yaml:16:20: pre_approval.study.epsilon: 0 is not " +
			"positive\n  hint: such as {epsilon: 3, delta: 1e-5}"},
		{"site: north", "site: &n north", "policy.yaml:2:7: anchors, aliases, merge keys, tags and directives are " +
			"not used in policies (&)\n  hint: write the value out"},
	} {
		text := strings.Replace(strict, c[0], c[1], 1)
		if text == strict {
			t.Fatalf("%q is not in the policy", c[0])
		}
		_, err := policy.Parse("policy.yaml", []byte(text))
		var list problem.List
		if !errors.As(err, &list) || err.Error() != c[2] {
			t.Errorf("%s → %s:\n%v\nwant\n%s", c[0], c[1], err, c[2])
		}
	}
	if _, err := policy.Parse("p", []byte("policy: 1\nlifetime: {epsilon: 1e-9, delta: 1e-300}\n")); err == nil ||
		!strings.Contains(err.Error(), "Rényi") {
		t.Errorf("a budget in which no filter works: %v", err)
	}
	if _, err := policy.Parse("p", nil); err == nil || !strings.Contains(err.Error(), "the policy is empty") {
		t.Errorf("an empty file: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(strict))
	f.Add([]byte("policy: 1\nprotection: optional\n"))
	f.Add([]byte("policy: 1\npre_approval: {methods: [toy], study: {epsilon: 1, delta: 1e-5}}\n"))
	f.Add([]byte("policy: 1\nlifetime: {epsilon: 1e308, delta: 5e-324}\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := policy.Parse("policy.yaml", b)
		var list problem.List
		if err != nil {
			if !errors.As(err, &list) {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		if err := p.Validate(); err != nil {
			t.Fatalf("read without an error: %v", err)
		}
		p.Digest()
	})
}

func TestDefaultPolicyAsText(t *testing.T) {
	p, err := policy.Parse("policy.yaml", []byte(policy.DefaultText))
	if err != nil || !reflect.DeepEqual(p, policy.Default()) {
		t.Errorf("%+v, %v", p, err)
	}
	// What stands in comments is right, too.
	text := strings.NewReplacer("# site:", "site:", "# adjacency:", "adjacency:", "# max_delta:", "max_delta:",
		"# methods:", "methods:", "# per_release:", "per_release:",
		"# pre_approval:", "pre_approval:").Replace(policy.DefaultText)
	p, err = policy.Parse("policy.yaml", []byte(text))
	if err != nil || p.Site != "north" || p.Adjacency != account.AddRemove || p.MaxDelta != 1e-5 || !p.PerRelease ||
		len(p.Methods) != 1 || p.PreApproval.Study.Epsilon != 1 {
		t.Errorf("%+v, %v", p, err)
	}
}

func ExampleParse() {
	_, err := policy.Parse("north.yaml", []byte("policy: 1\nprotection: required\nlifetime: {epsilon: 10, delta: "+
		"1e-5, filter: reny}\n"))
	fmt.Println(err)
	// Output:
	// north.yaml:3:46: lifetime.filter: unknown filter "reny"
	//   hint: did you mean renyi?
}
