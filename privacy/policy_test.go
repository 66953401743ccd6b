package privacy_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"parley/privacy"
	"parley/privacy/account"
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
methods: [mvppca, pvi]
per_release: true
pre_approval:
  methods: [mvppca]
  study: {epsilon: 1, delta: 1e-5}
`

func TestPolicyIsReadAsWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(path, []byte(strict), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := privacy.LoadPolicy(path)
	want := privacy.Policy{
		Version: 1, Site: "north", Protection: privacy.Required, Adjacency: account.AddRemove,
		Study: &account.Budget{Epsilon: 3, Delta: 1e-5}, Lifetime: &privacy.Lifetime{Epsilon: 10, Delta: 1e-5, Filter: privacy.GaussianFilter},
		MaxDelta: 1e-6, Minimum: privacy.Minimum{Subjects: 50, PatternSubjects: 10, Sites: 3}, Methods: []string{"mvppca", "pvi"}, PerRelease: true,
		PreApproval: &privacy.PreApproval{Methods: []string{"mvppca"}, Study: account.Budget{Epsilon: 1, Delta: 1e-5}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v, %v", got, err)
	}
	short, err := privacy.ParsePolicy("p", []byte("policy: 1\nlifetime: {epsilon: 1, delta: 1e-6}\n"))
	if err != nil || short.Protection != privacy.Required || short.Lifetime.Filter != privacy.RenyiFilter {
		t.Fatalf("defaults: %+v, %v", short, err)
	}
	if _, err := privacy.LoadPolicy(path + "x"); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("a missing file: %v", err)
	}
}

func TestPolicyProblemsSayWhereAndWhatWouldBeRight(t *testing.T) {
	for _, c := range [][3]string{
		{"policy: 1", "policy: 2", "policy.yaml:1:9: policy: version 2 of the policy format is unknown\n  hint: this program reads version 1"},
		{"policy: 1\n", "", "policy.yaml:1:1: policy: missing\n  hint: the version of the policy format: policy: 1"},
		{"required", "require", "policy.yaml:3:13: protection: unknown demand \"require\"\n  hint: did you mean required?"},
		{"add-remove", "both", "policy.yaml:4:12: adjacency: unknown adjacency \"both\"\n  hint: add-remove or replace-one; leave it out to take either"},
		{"epsilon: 3", "epsilon: 0", "policy.yaml:5:18: study.epsilon: 0 is not positive\n  hint: such as {epsilon: 3, delta: 1e-5}"},
		{"epsilon: 10", "epsilon: -1", "policy.yaml:7:12: lifetime.epsilon: -1 is not positive\n  hint: such as {epsilon: 3, delta: 1e-5}"},
		{"  delta: 1e-5", "  delta: 1", "policy.yaml:8:10: lifetime.delta: 1 is not between 0 and 1\n  hint: such as {epsilon: 3, delta: 1e-5}"},
		{"gaussian", "gausian", "policy.yaml:9:11: lifetime.filter: unknown filter \"gausian\"\n  hint: did you mean gaussian?"},
		{"max_delta: 1e-6", "max_delta: 2", "policy.yaml:10:12: max_delta: 2 is no probability\n  hint: far below 1 divided by the number of subjects; leave it out for min(1e-5, 1/(100 n))"},
		{"max_delta: 1e-6", "max_delta: 0", "policy.yaml:10:12: max_delta: 0 allows no guarantee at all\n  hint: leave it out for min(1e-5, 1/(100 n))"},
		{"sites: 3", "sites: -3", "policy.yaml:11:54: minimum.sites: -3 is no number to have at least\n  hint: 0, or leave it out, for any"},
		{"[mvppca, pvi]", "[mvppca, mvppca]", "policy.yaml:12:19: methods: \"mvppca\" is empty or stands twice\n  hint: name each method that is allowed once"},
		{"per_release: true", "per_release: yes please", "policy.yaml:13:14: per_release: \"yes please\" where true or false is expected"},
		{"per_release", "per_realese", "policy.yaml:13:1: per_realese: unknown key\n  hint: did you mean per_release?"},
		{"  methods: [mvppca]\n", "", "policy.yaml:14:1: pre_approval.methods: missing\n  hint: the methods whose studies need no person, such as [mvppca]"},
		{"[mvppca]", "[pvi, pvi]", "policy.yaml:15:18: pre_approval.methods: \"pvi\" is empty or stands twice\n  hint: name each method once"},
		{"[mvppca]", "[graffl]", "policy.yaml:15:13: pre_approval.methods: \"graffl\" is not among the methods that the policy allows\n  hint: it allows [mvppca pvi]"},
		{"  study: {epsilon: 1, delta: 1e-5}\n", "", "policy.yaml:14:1: pre_approval.study: missing\n  hint: such as {epsilon: 3, delta: 1e-5}"},
		{"{epsilon: 1, delta", "{epsilon: 0, delta", "policy.yaml:16:20: pre_approval.study.epsilon: 0 is not positive\n  hint: such as {epsilon: 3, delta: 1e-5}"},
		{"site: north", "site: &n north", "policy.yaml:2:7: anchors, aliases, merge keys, tags and directives are not used in policies (&)\n  hint: write the value out"},
	} {
		text := strings.Replace(strict, c[0], c[1], 1)
		if text == strict {
			t.Fatalf("%q is not in the policy", c[0])
		}
		_, err := privacy.ParsePolicy("policy.yaml", []byte(text))
		var list problem.List
		if !errors.As(err, &list) || err.Error() != c[2] {
			t.Errorf("%s → %s:\n%v\nwant\n%s", c[0], c[1], err, c[2])
		}
	}
	if _, err := privacy.ParsePolicy("p", []byte("policy: 1\nlifetime: {epsilon: 1e-9, delta: 1e-300}\n")); err == nil || !strings.Contains(err.Error(), "Rényi") {
		t.Errorf("a budget in which no filter works: %v", err)
	}
	if _, err := privacy.ParsePolicy("p", nil); err == nil || !strings.Contains(err.Error(), "the policy is empty") {
		t.Errorf("an empty file: %v", err)
	}
}

func FuzzParsePolicy(f *testing.F) {
	f.Add([]byte(strict))
	f.Add([]byte("policy: 1\nprotection: optional\n"))
	f.Add([]byte("policy: 1\npre_approval: {methods: [toy], study: {epsilon: 1, delta: 1e-5}}\n"))
	f.Add([]byte("policy: 1\nlifetime: {epsilon: 1e308, delta: 5e-324}\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := privacy.ParsePolicy("policy.yaml", b)
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
		if err := p.Check(study, request); err != nil && !errors.Is(err, privacy.ErrRefused) {
			t.Fatal(err)
		}
		if p.Protection != privacy.Optional && p.Check(study, request) == nil {
			t.Fatal("it demands protection, and allows a release without")
		}
		s := guaranteed(privacy.Subject, account.AddRemove, 1, 1e-5)
		if ok, why := p.PreApproves(s); ok && (p.PreApproval == nil || p.PreApproval.Study.Epsilon < 1) || why == "" {
			t.Fatal(ok, why)
		}
		p.Digest()
	})
}

func differential(sums ...privacy.Sum) privacy.Request {
	return privacy.Request{Protection: privacy.Differential, Sums: sums}
}

func guaranteed(unit privacy.Unit, a account.Adjacency, epsilon, delta float64) privacy.Study {
	s := study
	s.Subjects = 400
	s.Guarantee = &privacy.Guarantee{Unit: unit, Adjacency: a, Budget: account.Budget{Epsilon: epsilon, Delta: delta}}
	return s
}

func TestPolicyRefusesForEveryReasonAtOnce(t *testing.T) {
	good := guaranteed(privacy.Subject, account.AddRemove, 3, 1e-5)
	ok := differential(vectors(5, 3))
	change := func(f func(*privacy.Study)) privacy.Study {
		s := good
		f(&s)
		return s
	}
	whole := vectors(5, 3)
	whole.Unit = privacy.WholeSite
	elsewhere := privacy.Policy{Site: "south"}
	adjacent, per := privacy.DefaultPolicy(), privacy.DefaultPolicy()
	adjacent.Adjacency, adjacent.Methods = account.ReplaceOne, []string{"other"}
	per.PerRelease = true
	for name, c := range map[string]struct {
		policy  privacy.Policy
		study   privacy.Study
		request privacy.Request
		want    []string // nil if it is granted
	}{
		"granted":                    {privacy.DefaultPolicy(), good, ok, nil},
		"no protection":              {privacy.DefaultPolicy(), study, request, []string{"it demands differential privacy, and the plan has none", "nobody has counted", "the method may give numbers of 0 subjects"}},
		"another site's policy":      {elsewhere, good, ok, []string{`policy of site "south", not of "north"`}},
		"the zero policy":            {privacy.Policy{}, study, request, []string{"it demands differential privacy"}},
		"few subjects":               {privacy.DefaultPolicy(), change(func(s *privacy.Study) { s.Subjects = 49 }), ok, []string{"at least 50 subjects, and the site has fewer"}},
		"few sites":                  {privacy.DefaultPolicy(), change(func(s *privacy.Study) { s.Quorum = 2 }), ok, []string{"quorum is 2"}},
		"large guarantee":            {privacy.DefaultPolicy(), guaranteed(privacy.Subject, account.AddRemove, 4, 1e-5), ok, []string{"at most ε 3"}},
		"large δ":                    {privacy.DefaultPolicy(), change(func(s *privacy.Study) { s.Subjects = 100_000 }), ok, []string{"δ of 1e-05 is above"}},
		"δ at nobody knows how many": {privacy.Policy{}, change(func(s *privacy.Study) { s.Subjects = 0 }), ok, []string{"δ of 1e-05 is above"}},
		"other adjacency, method":    {adjacent, good, ok, []string{"for add-remove, and it wants replace-one", `method "toy" is not among`}},
		"patterns":                   {privacy.DefaultPolicy(), good, differential(vectors(5, 3, 3)), []string{"numbers of 0 subjects alone, and it wants at least 10"}},
		"no total":                   {privacy.DefaultPolicy(), change(func(s *privacy.Study) { s.Guarantee = nil }), ok, []string{"no guarantee for the study as a whole"}},
		"no total, allowed":          {per, change(func(s *privacy.Study) { s.Guarantee = nil }), ok, nil},
		"no total, above the limit":  {per, change(func(s *privacy.Study) { s.Guarantee = nil }), differential(vectors(0.5, 3)), []string{"of the policy's limit for a study"}},
		"no noise in a private plan": {open, good, request, []string{"the plan guarantees differential privacy, and the method asks for a release without"}},
		"above the guarantee":        {open, good, differential(vectors(0.5, 3)), []string{"above the ε 3 of the plan's guarantee for a subject"}},
		"for sites, from subjects":   {open, guaranteed(privacy.WholeSite, account.AddRemove, 3, 1e-5), ok, []string{"promises nothing for a site as a whole"}},
		"for sites":                  {open, guaranteed(privacy.WholeSite, account.AddRemove, 3, 1e-5), differential(whole), nil},
		"above the lifetime":         {privacy.Policy{Lifetime: &privacy.Lifetime{Epsilon: 0.5, Delta: 1e-5}}, good, ok, []string{"would exceed ε 0.5 at δ 1e-05 (add-remove)", "(replace-one)"}},
	} {
		err := c.policy.Check(c.study, c.request)
		refusal := (*privacy.RefusalError)(nil)
		if c.want == nil {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if !errors.Is(err, privacy.ErrRefused) || !errors.As(err, &refusal) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", name, err, want)
			}
		}
	}
}

// The requests of a whole study are added up.
func TestPolicyChecksAllRequestsTogether(t *testing.T) {
	s := guaranteed(privacy.Subject, account.AddRemove, 3, 1e-5)
	// μ = 1/5 each: 0.57 for eight, 0.8 for sixteen, and ε 3 at 1e-5 allows 0.72.
	if err := privacy.DefaultPolicy().Check(s, repeat(differential(vectors(5, 3)), 8)...); err != nil {
		t.Error(err)
	}
	err := privacy.DefaultPolicy().Check(s, repeat(differential(vectors(5, 3)), 16)...)
	if err == nil || !strings.Contains(err.Error(), "above the ε 3 of the plan's guarantee") {
		t.Error(err)
	}
}

func repeat(r privacy.Request, n int) (all []privacy.Request) {
	for range n {
		all = append(all, r)
	}
	return all
}

// A request may not claim to be cheaper than what a session does with it.
func TestRequestsThatMakeNoSenseAreErrors(t *testing.T) {
	change := func(f func(*privacy.Sum)) privacy.Request {
		s := vectors(5, 3)
		f(&s)
		return differential(s)
	}
	for want, r := range map[string]privacy.Request{
		"declares no sum":     differential(),
		"two sums are called": differential(vectors(1, 1), vectors(1, 1)),
		"no name":             change(func(s *privacy.Sum) { s.Name = "" }),
		"noise 0":             change(func(s *privacy.Sum) { s.Mechanism.Noise = 0 }),
		"diameter 1":          change(func(s *privacy.Sum) { s.Mechanism.Diameter = 1 }),
		"diameter 1.4":        change(func(s *privacy.Sum) { s.Form, s.Mechanism.Diameter = privacy.Moments, 1.4 }),
		"moments are of":      change(func(s *privacy.Sum) { s.Form, s.Mechanism.Kind = privacy.Moments, account.Laplace }),
		"a whole site gives":  change(func(s *privacy.Sum) { s.Unit, s.Blocks = privacy.WholeSite, []int{1, 2} }),
		"is not sampled":      change(func(s *privacy.Sum) { s.Unit, s.Mechanism.Rate = privacy.WholeSite, 0.5 }),
		"it has no blocks":    change(func(s *privacy.Sum) { s.Blocks = nil }),
		"needs a length":      change(func(s *privacy.Sum) { s.Blocks = []int{3, 0} }),
		"at most 1048576":     change(func(s *privacy.Sum) { s.Form, s.Mechanism.Diameter, s.Blocks = privacy.Moments, 2, []int{1 << 20} }),
		"at most 25165824":    change(func(s *privacy.Sum) { s.Blocks = slices.Repeat([]int{1 << 20}, 25) }),
		"bound -1":            change(func(s *privacy.Sum) { s.Bound = -1 }),
		"unit \"person\"":     change(func(s *privacy.Sum) { s.Unit = "person" }),
		"form \"mean\"":       change(func(s *privacy.Sum) { s.Form = "mean" }),
		"count of 1073741825": change(func(s *privacy.Sum) { s.Mechanism.Count = 1<<30 + 1 }),
		"no fixed-point grid": change(func(s *privacy.Sum) { s.Mechanism.Noise = 1e-15 }),
		"noised sums in a":    {Protection: privacy.Unprotected, Sums: []privacy.Sum{vectors(1, 1)}},
	} {
		err := open.Check(study, r)
		if err == nil || errors.Is(err, privacy.ErrRefused) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	bad := guaranteed(privacy.Subject, "sideways", 1, 1e-5)
	if err := open.Check(bad, differential(vectors(5, 3))); err == nil {
		t.Error("a guarantee that makes no sense was taken")
	}
}

func TestDefaultPolicyAsText(t *testing.T) {
	p, err := privacy.ParsePolicy("policy.yaml", []byte(privacy.DefaultPolicyText))
	if err != nil || !reflect.DeepEqual(p, privacy.DefaultPolicy()) {
		t.Errorf("%+v, %v", p, err)
	}
	// What stands in comments is right, too.
	text := strings.NewReplacer("# site:", "site:", "# adjacency:", "adjacency:", "# max_delta:", "max_delta:", "# methods:", "methods:", "# per_release:", "per_release:",
		"# pre_approval:", "pre_approval:").Replace(privacy.DefaultPolicyText)
	p, err = privacy.ParsePolicy("policy.yaml", []byte(text))
	if err != nil || p.Site != "north" || p.Adjacency != account.AddRemove || p.MaxDelta != 1e-5 || !p.PerRelease || len(p.Methods) != 1 || p.PreApproval.Study.Epsilon != 1 {
		t.Errorf("%+v, %v", p, err)
	}
}

func ExamplePolicy_Check() {
	plan := privacy.Study{Digest: "3fa9", Site: "north", Method: "mvppca", Sites: 3, Quorum: 2, Subjects: 400}
	plan.Guarantee = &privacy.Guarantee{Unit: privacy.Subject, Adjacency: account.AddRemove, Budget: account.Budget{Epsilon: 4, Delta: 1e-5}}
	err := privacy.DefaultPolicy().Check(plan)
	refusal := (*privacy.RefusalError)(nil)
	if errors.As(err, &refusal) {
		fmt.Println(refusal.Reasons)
	}
	// Output:
	// minimum.sites: the plan's quorum is 2, and it wants at least 3 sites to contribute
	//   hint: raise the plan's quorum
	// study: the plan's guarantee is ε 4, δ 1e-05, and it allows at most ε 3, δ 1e-05
	//   hint: a smaller total in the plan
}

func ExampleParsePolicy() {
	_, err := privacy.ParsePolicy("north.yaml", []byte("policy: 1\nprotection: required\nlifetime: {epsilon: 10, delta: 1e-5, filter: reny}\n"))
	fmt.Println(err)
	// Output:
	// north.yaml:3:46: lifetime.filter: unknown filter "reny"
	//   hint: did you mean renyi?
}
