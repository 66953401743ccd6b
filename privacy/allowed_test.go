package privacy_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley/privacy"
	"parley/privacy/account"
	"parley/privacy/policy"
)

// Whatever policy a person wrote, the gate's answer is yes, no or a refusal.
func FuzzPolicies(f *testing.F) {
	f.Add([]byte(policy.DefaultText))
	f.Add([]byte("policy: 1\nprotection: optional\n"))
	f.Add([]byte("policy: 1\npre_approval: {methods: [toy], study: {epsilon: 1, delta: 1e-5}}\n"))
	f.Add([]byte("policy: 1\nlifetime: {epsilon: 1e308, delta: 5e-324}\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := policy.Parse("policy.yaml", b)
		if err != nil {
			return
		}
		if err := privacy.Check(p, study, request); err != nil && !errors.Is(err, privacy.ErrRefused) {
			t.Fatal(err)
		}
		if p.Protection != policy.Optional && privacy.Check(p, study, request) == nil {
			t.Fatal("it demands protection, and allows a release without")
		}
		s := guaranteed(privacy.Subject, account.AddRemove, 1, 1e-5)
		if ok, why := privacy.PreApproves(p, s); ok && (p.PreApproval == nil || p.PreApproval.Study.Epsilon < 1) ||
			why == "" {
			t.Fatal(ok, why)
		}
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
	elsewhere := policy.Policy{Site: "south"}
	adjacent, per := policy.Default(), policy.Default()
	adjacent.Adjacency, adjacent.Methods = account.ReplaceOne, []string{"other"}
	per.PerRelease = true
	for name, c := range map[string]struct {
		policy  policy.Policy
		study   privacy.Study
		request privacy.Request
		want    []string // nil if it is granted
	}{
		"granted": {policy.Default(), good, ok, nil},
		"no protection": {policy.Default(), study, request,
			[]string{"it demands differential privacy, and the plan has none", "nobody has counted",
				"the method may give numbers of 0 subjects"}},
		"another site's policy": {elsewhere, good, ok, []string{`policy of site "south", not of "north"`}},
		"the zero policy":       {policy.Policy{}, study, request, []string{"it demands differential privacy"}},
		"few subjects": {policy.Default(), change(func(s *privacy.Study) { s.Subjects = 49 }), ok,
			[]string{"at least 50 subjects, and the site has fewer"}},
		"few sites": {policy.Default(), change(func(s *privacy.Study) { s.Quorum = 2 }), ok,
			[]string{"quorum is 2"}},
		"large guarantee": {policy.Default(), guaranteed(privacy.Subject, account.AddRemove, 4, 1e-5), ok,
			[]string{"at most ε 3"}},
		"large δ": {policy.Default(), change(func(s *privacy.Study) { s.Subjects = 100_000 }), ok,
			[]string{"δ of 1e-05 is above"}},
		"δ at nobody knows how many": {policy.Policy{}, change(func(s *privacy.Study) { s.Subjects = 0 }), ok,
			[]string{"δ of 1e-05 is above"}},
		"other adjacency, method": {adjacent, good, ok, []string{"for add-remove, and it wants replace-one",
			`method "toy" is not among`}},
		"patterns": {policy.Default(), good, differential(vectors(5, 3, 3)),
			[]string{"numbers of 0 subjects alone, and it wants at least 10"}},
		"patterns of a total": {policy.Policy{Minimum: policy.Minimum{PatternSubjects: 3}}, study, addUp.Request,
			[]string{"numbers of 0 subjects alone, and it wants at least 3"}},
		"no total": {policy.Default(), change(func(s *privacy.Study) { s.Guarantee = nil }), ok,
			[]string{"no guarantee for the study as a whole"}},
		"no total, allowed": {per, change(func(s *privacy.Study) { s.Guarantee = nil }), ok, nil},
		"no total, above the limit": {per, change(func(s *privacy.Study) { s.Guarantee = nil }),
			differential(vectors(0.5, 3)), []string{"of the policy's limit for a study"}},
		"no noise in a private plan": {open, good, request,
			[]string{"the plan guarantees differential privacy, and the method asks for a release without"}},
		"above the guarantee": {open, good, differential(vectors(0.5, 3)),
			[]string{"above the ε 3 of the plan's guarantee for a subject"}},
		"for sites, from subjects": {open, guaranteed(privacy.WholeSite, account.AddRemove, 3, 1e-5), ok,
			[]string{"promises nothing for a site as a whole"}},
		"for sites": {open, guaranteed(privacy.WholeSite, account.AddRemove, 3, 1e-5),
			differential(whole), nil},
		"above the lifetime": {policy.Policy{Lifetime: &policy.Lifetime{Epsilon: 0.5, Delta: 1e-5}}, good, ok,
			[]string{"would exceed ε 0.5 at δ 1e-05 (add-remove)", "(replace-one)"}},
	} {
		err := privacy.Check(c.policy, c.study, c.request)
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
	if err := privacy.Check(policy.Default(), s, repeat(differential(vectors(5, 3)), 8)...); err != nil {
		t.Error(err)
	}
	err := privacy.Check(policy.Default(), s, repeat(differential(vectors(5, 3)), 16)...)
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
		"moments are of": change(func(s *privacy.Sum) {
			s.Form, s.Mechanism.Kind = privacy.Moments,
				account.Laplace
		}),
		"a whole site gives": change(func(s *privacy.Sum) { s.Unit, s.Blocks = privacy.WholeSite, []int{1, 2} }),
		"is not sampled":     change(func(s *privacy.Sum) { s.Unit, s.Mechanism.Rate = privacy.WholeSite, 0.5 }),
		"it has no blocks":   change(func(s *privacy.Sum) { s.Blocks = nil }),
		"needs a length":     change(func(s *privacy.Sum) { s.Blocks = []int{3, 0} }),
		"at most 1048576": change(func(s *privacy.Sum) {
			s.Form, s.Mechanism.Diameter, s.Blocks = privacy.Moments,
				2, []int{1 << 20}
		}),
		"at most 25165824":    change(func(s *privacy.Sum) { s.Blocks = slices.Repeat([]int{1 << 20}, 25) }),
		"bound -1":            change(func(s *privacy.Sum) { s.Bound = -1 }),
		"unit \"person\"":     change(func(s *privacy.Sum) { s.Unit = "person" }),
		"form \"mean\"":       change(func(s *privacy.Sum) { s.Form = "mean" }),
		"count of 1073741825": change(func(s *privacy.Sum) { s.Mechanism.Count = 1<<30 + 1 }),
		"no fixed-point grid": change(func(s *privacy.Sum) { s.Mechanism.Noise = 1e-15 }),
		"noised sums in a":    {Protection: privacy.Unprotected, Sums: []privacy.Sum{vectors(1, 1)}},
	} {
		err := privacy.Check(open, study, r)
		if err == nil || errors.Is(err, privacy.ErrRefused) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	bad := guaranteed(privacy.Subject, "sideways", 1, 1e-5)
	if err := privacy.Check(open, bad, differential(vectors(5, 3))); err == nil {
		t.Error("a guarantee that makes no sense was taken")
	}
}

var ruled = policy.Policy{Version: 1, Size: 400, Protection: policy.Optional,
	PreApproval: &policy.PreApproval{Methods: []string{"toy"}, Study: account.Budget{Epsilon: 1, Delta: 1e-5}}}

func TestRuleApprovesNothingElse(t *testing.T) {
	unsized := ruled
	unsized.Size = 0
	ok := guaranteed(privacy.Subject, account.AddRemove, 1, 1e-5)
	ok.Requests = []privacy.Listed{{Kind: "a", Times: 1, Request: differential(vectors(5, 3))}}
	change := func(f func(*privacy.Study)) privacy.Study {
		s := ok
		f(&s)
		return s
	}
	for name, c := range map[string]struct {
		policy policy.Policy
		study  privacy.Study
		ok     bool
		why    string
	}{
		"approved": {ruled, ok, true, "approves studies by toy of at most (ε 1, δ 1e-5), and this one promises " +
			"(ε 1, δ 1e-5)"},
		"no size": {unsized, ok, false, "knows no number of subjects"},
		"no rule": {policy.Default(), ok, false, "has no rule"},
		"another method": {ruled, change(func(s *privacy.Study) { s.Method = "other" }), false,
			"is for [toy], and the study's method is other"},
		"no total": {ruled, change(func(s *privacy.Study) { s.Guarantee = nil }), false,
			"differential privacy in total"},
		"exact": {ruled, change(func(s *privacy.Study) {
			s.Requests = []privacy.Listed{{Kind: "a", Times: 1, Request: request}}
		}), false, "differential privacy in total"},
		"large ε": {ruled, change(func(s *privacy.Study) {
			s.Guarantee = guaranteed(privacy.Subject, account.AddRemove, 1.1, 1e-6).Guarantee
		}), false, "at most (ε 1, δ 1e-5), and this one promises (ε 1.1, δ 1e-6)"},
		"large δ": {ruled, change(func(s *privacy.Study) {
			s.Guarantee = guaranteed(privacy.Subject, account.AddRemove, 0.1, 1e-4).Guarantee
		}), false, "at most"},
		"for sites": {ruled, change(func(s *privacy.Study) {
			s.Guarantee = guaranteed(privacy.WholeSite, account.AddRemove, 1, 1e-5).Guarantee
		}), false, "for one subject, and this one is for one site"},
	} {
		if got, why := privacy.PreApproves(c.policy, c.study); got != c.ok || !strings.Contains(why, c.why) {
			t.Errorf("%s: %v, %s", name, got, why)
		}
	}
}

func ExampleCheck() {
	plan := privacy.Study{Digest: "3fa9", Site: "north", Method: "factors", Sites: 3, Quorum: 2, Subjects: 400}
	plan.Guarantee = &privacy.Guarantee{Unit: privacy.Subject, Adjacency: account.AddRemove,
		Budget: account.Budget{Epsilon: 4, Delta: 1e-5}}
	err := privacy.Check(policy.Default(), plan)
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
