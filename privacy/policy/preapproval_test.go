package policy_test

import (
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/internal/testkit"
	"parley/privacy/policy"
)

// Whatever is in the policy is in its digest.
func TestDigestIsOfEverything(t *testing.T) {
	full := func() policy.Policy {
		return testkit.Get(policy.Parse("p", []byte(strict)))(t)
	}
	changes := 0
	var vary func(v reflect.Value, what string, policy *policy.Policy)
	vary = func(v reflect.Value, what string, policy *policy.Policy) {
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
	if (policy.Policy{}).Digest() != (policy.Policy{Version: 1, Protection: policy.Required,
		Methods: []string{}}).Digest() {
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
	want := testkit.Get(policy.Parse("p", []byte(strict)))(t)
	rapid.Check(t, func(t *rapid.T) {
		text := keys[0] + strings.Join(rapid.Permutation(keys[1:]).Draw(t, "keys"), "")
		if rapid.Bool().Draw(t, "methods") {
			text = strings.Replace(text, "[factors, regression]", "[regression, factors]", 1)
		}
		got := testkit.Get(policy.Parse("p", []byte(text)))(t)
		if got.Digest() != want.Digest() {
			t.Fatalf("another digest of\n%s", text)
		}
	})
}
