package privacy_test

import (
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/privacy"
	"parley/privacy/account"
)

var ruled = privacy.Policy{Version: 1, Protection: privacy.Optional, PreApproval: &privacy.PreApproval{Methods: []string{"toy"}, Study: account.Budget{Epsilon: 1, Delta: 1e-5}}}

func TestRuleApprovesNothingElse(t *testing.T) {
	ok := guaranteed(privacy.Subject, account.AddRemove, 1, 1e-5)
	ok.Requests = []privacy.Listed{{Kind: "a", Times: 1, Request: differential(vectors(5, 3))}}
	change := func(f func(*privacy.Study)) privacy.Study {
		s := ok
		f(&s)
		return s
	}
	for name, c := range map[string]struct {
		policy privacy.Policy
		study  privacy.Study
		ok     bool
		why    string
	}{
		"approved":       {ruled, ok, true, "approves studies by toy of at most (ε 1, δ 1e-5), and this one promises (ε 1, δ 1e-5)"},
		"no rule":        {privacy.DefaultPolicy(), ok, false, "has no rule"},
		"another method": {ruled, change(func(s *privacy.Study) { s.Method = "other" }), false, "is for [toy], and the study's method is other"},
		"no total":       {ruled, change(func(s *privacy.Study) { s.Guarantee = nil }), false, "differential privacy in total"},
		"exact":          {ruled, change(func(s *privacy.Study) { s.Requests = []privacy.Listed{{Kind: "a", Times: 1, Request: request}} }), false, "differential privacy in total"},
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
		if got, why := c.policy.PreApproves(c.study); got != c.ok || !strings.Contains(why, c.why) {
			t.Errorf("%s: %v, %s", name, got, why)
		}
	}
}

// Whatever is in the policy is in its digest.
func TestDigestIsOfEverything(t *testing.T) {
	full := func() privacy.Policy {
		p, err := privacy.ParsePolicy("p", []byte(strict))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	changes := 0
	var vary func(v reflect.Value, what string, policy *privacy.Policy)
	vary = func(v reflect.Value, what string, policy *privacy.Policy) {
		before, old := policy.Digest(), reflect.New(v.Type()).Elem()
		old.Set(v)
		switch v.Kind() {
		case reflect.Pointer:
			vary(v.Elem(), what, policy)
			v.SetZero()
		case reflect.Struct:
			for i := range v.NumField() {
				vary(v.Field(i), what+"."+v.Type().Field(i).Name, policy)
			}
			return
		case reflect.String:
			v.SetString("other")
		case reflect.Bool:
			v.SetBool(!v.Bool())
		case reflect.Int:
			v.SetInt(v.Int() + 1)
		case reflect.Float64:
			v.SetFloat(v.Float() / 2)
		case reflect.Slice:
			v.Set(v.Slice(1, v.Len()))
		default:
			t.Fatalf("%s is a %s", what, v.Kind())
		}
		if changes++; (policy.Digest() == before) != (what == ".Version") { // there is one version
			t.Errorf("%s is not in the digest", what)
		}
		v.Set(old)
	}
	p := full()
	vary(reflect.ValueOf(&p).Elem(), "", &p)
	if p.Digest() != full().Digest() || changes < 15 {
		t.Errorf("%d changes", changes)
	}
}

// How a policy is written makes no difference to its digest.
func TestDigestIsOfWhatThePolicyMeans(t *testing.T) {
	if (privacy.Policy{}).Digest() != (privacy.Policy{Version: 1, Protection: privacy.Required, Methods: []string{}}).Digest() {
		t.Error("defaults make a difference")
	}
	var keys []string // each with the lines that belong to it
	for line := range strings.Lines(strict) {
		if strings.HasPrefix(line, " ") {
			keys[len(keys)-1] += line
		} else {
			keys = append(keys, line)
		}
	}
	want, err := privacy.ParsePolicy("p", []byte(strict))
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		text := keys[0] + strings.Join(rapid.Permutation(keys[1:]).Draw(t, "keys"), "")
		if rapid.Bool().Draw(t, "methods") {
			text = strings.Replace(text, "[mvppca, pvi]", "[pvi, mvppca]", 1)
		}
		got, err := privacy.ParsePolicy("p", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got.Digest() != want.Digest() {
			t.Fatalf("another digest of\n%s", text)
		}
	})
}
