package host_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/dataset"
	"parley/engine"
	"parley/engine/enginetest"
	"parley/engine/host"
	"parley/internal/testkit"
	"parley/method"
	"parley/privacy"
	"parley/privacy/account"
	"parley/privacy/policy"
	"parley/sitestore"
	"parley/study"
)

var key = []byte("the coordinator's public key")

func approve(t *testing.T, h *host.Host) *host.Approval {
	t.Helper()
	return testkit.Get(h.Approve(t.Context(), plan, key, host.ByPerson))(t)
}

// An approval is good for what it was given for, and for nothing else: whatever
// changes is named, and only that. Whether rows have changed is not looked at where
// nothing may depend on them.
func TestApprovalIsForWhatStood(t *testing.T) {
	for _, plan := range []*study.Plan{plan, exact} {
		approvalIsForWhatStood(t, plan)
	}
}

func approvalIsForWhatStood(t *testing.T, plan *study.Plan) {
	store := sitestore.NewMemory()
	given := testkit.Get(hostOf(store, withMapping{enginetest.ToyRows(7), "one"}).Approve(t.Context(), plan, key,
		host.ByPerson))(t)
	if lines, _ := store.Reservations(0); len(lines) != 0 {
		t.Errorf("%d charges", len(lines))
	}
	data := testkit.Get(json.Marshal(given))(t)
	kept := &host.Approval{}
	if err := json.Unmarshal(data, kept); err != nil || *kept != *given {
		t.Fatalf("kept %+v of %+v, %v", kept, given, err)
	}
	words := []string{"another plan", "the coordinator's key has changed",
		"the policy has changed since this study was approved", "the data have changed",
		"the program's revision of method toy has changed since this study was approved: it was 1, and is 2",
		"the site's mapping.yaml has changed"}
	rapid.Check(t, func(r *rapid.T) {
		changed := rapid.SliceOfN(rapid.Bool(), len(words), len(words)).Draw(r, "changed")
		rows, mapping := 7, "one"
		p, k := plan, key
		if changed[0] {
			other := *plan
			other.Question = "Another one?"
			p = &other
		}
		if changed[1] {
			k = []byte("somebody else's")
		}
		if changed[3] {
			rows = 8
		}
		if changed[5] {
			mapping = "another"
		}
		h := hostOf(store, withMapping{enginetest.ToyRows(rows), mapping})
		if changed[2] {
			h.Policy.Minimum.Subjects = 1
		}
		seen := slices.Clone(changed)
		seen[3] = changed[3] && plan == exact
		if changed[4] {
			h.Methods = method.Registry{revised{}}
		}
		err := h.Approved(t.Context(), p, k, kept)
		some := false
		for i, c := range seen {
			some = some || c
			if err != nil && strings.Contains(err.Error(), words[i]) != c {
				r.Errorf("%q: %v", words[i], err)
			}
		}
		if some != errors.Is(err, engine.ErrChanged) || some != (err != nil) || some &&
			!strings.Contains(err.Error(), "\n  hint: ") {
			r.Errorf("%v: %v", changed, err)
		}
	})
}

// withMapping is rows that a site's mapping makes.
type withMapping struct {
	dataset.Source
	mapping string
}

func (w withMapping) Mapping() string { return w.mapping }

// What policy or ledger would not allow, nobody can approve; and the policy's rule
// approves only what it covers.
func TestApprovalIsRefused(t *testing.T) {
	strict := hostOf(sitestore.NewMemory(), enginetest.ToyRows(7))
	strict.Policy = policy.Default()
	if _, err := strict.Approve(t.Context(), plan, key, host.ByPerson); !errors.Is(err, privacy.ErrRefused) ||
		!strings.Contains(err.Error(), "minimum.subjects: it wants at least 50") {
		t.Errorf("under a strict policy: %v", err)
	}
	if _, err := hostOf(sitestore.NewMemory(), broken{3}).Approve(t.Context(), plan, key, host.ByPerson); err == nil ||
		!strings.Contains(err.Error(), "about five") {
		t.Errorf("with bad data: %v", err)
	}
	h := hostOf(sitestore.NewMemory(), enginetest.ToyRows(7))
	if _, err := h.Approve(t.Context(), plan, key, host.ByRule); !errors.Is(err, privacy.ErrRefused) ||
		!strings.Contains(err.Error(), "pre_approval: The policy has no rule") {
		t.Errorf("without a rule: %v", err)
	}
	h.Policy.PreApproval = &policy.PreApproval{Methods: []string{"toy"},
		Study: account.Budget{Epsilon: 100, Delta: 1e-5}}
	if a, err := h.Approve(t.Context(), plan, key, host.ByRule); err != nil || a.By != host.ByRule {
		t.Errorf("by the rule: %+v, %v", a, err)
	}
}

// A study that has used up what there was for it can be approved again, under a
// new policy too, so that it goes on; one with other data cannot.
func TestStudyThatHasBegunIsApprovedAgain(t *testing.T) {
	store := sitestore.NewMemory()
	h := hostOf(store, enginetest.ToyRows(7))
	h.Policy.Lifetime = &policy.Lifetime{Epsilon: 1.3 * plan.Privacy.Total.Epsilon, Delta: 1e-5,
		Filter: policy.GaussianFilter}
	h.Policy.Adjacency = account.AddRemove
	approve(t, h)
	site := testkit.Get(h.Open(t.Context(), plan))(t)
	for round := 1; round <= 2; round++ {
		task, past, err := taskOf(site.Study, round)
		testkit.Do(t, err)
		testkit.Get(site.Handle(t.Context(), task, past))(t)
	}
	h.Policy.Minimum.Subjects = 2
	a := approve(t, h)
	if err := h.Approved(t.Context(), plan, key, a); err != nil {
		t.Error(err)
	}
	if p, err := h.Preview(t.Context(), plan); err != nil || !p.TakesPart || p.Charges != 2 ||
		!strings.Contains(text(t, p), "This study has begun here") {
		t.Errorf("the preview says %+v, %v", p, err)
	}
	other := *plan
	other.Name = "another"
	if _, err := h.Approve(t.Context(), &other, key, host.ByPerson); !errors.Is(err, privacy.ErrRefused) ||
		!strings.Contains(err.Error(), "lifetime") {
		t.Errorf("another study: %v", err)
	}
	changed := hostOf(store, enginetest.ToyRows(8))
	if _, err := changed.Approve(t.Context(), plan, key, host.ByPerson); !errors.Is(err, engine.ErrChanged) ||
		!strings.Contains(err.Error(), "put the data back") {
		t.Errorf("with other data: %v", err)
	}
}
