package privacy_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"parley/internal/testkit"
	"parley/privacy"
	"parley/privacy/account"
	"parley/privacy/ledger"
	"parley/privacy/policy"
	"parley/sitestore"
)

// task is round r of a kind.
func task(round int, kind string) privacy.Ask {
	a := privacy.Ask{Study: "3fa9", Site: "north", Round: round, Kind: kind, Task: [32]byte{byte(round), 1}}
	copy(a.Task[2:], kind)
	return a
}

// The gate grants what the list says: each kind as often as it is listed, with
// the request that is listed, in rounds that rise; and nothing else.
func TestGateGrantsTheList(t *testing.T) {
	s := guaranteed(privacy.Subject, account.AddRemove, 50, 1e-5)
	s.Rounds = 12 // of three sites
	s.Requests = []privacy.Listed{{Kind: "fit", Times: 3, Request: differential(vectors(5, 2))},
		{Kind: "look", Times: 1, Request: differential(vectors(7, 3))}}
	m := sitestore.NewMemory()
	g := privacy.NewGate(s, open, m, subjects(3))
	for i, c := range []struct {
		ask    privacy.Ask
		reason string // empty if it is granted
	}{
		{task(0, "fit"), "rounds rise"},
		{task(-1, "fit"), "rounds rise"},
		{task(-1<<62, "fit"), "rounds rise"},
		{task(1, "other"), `no task "other"`},
		{task(1, ""), `no task ""`},
		{task(1, "Fit"), `no task "Fit"`},
		{task(2, "fit"), ""},
		{task(1, "fit"), "round 1 comes after round 2"},
		{task(0, "fit"), "round 0 comes after round 2"},
		{task(2, "fit"), ""}, // again
		{task(3, "look"), ""},
		{task(4, "look"), `lists task "look" once`},
		{task(7, "fit"), ""},
		{task(5, "fit"), "round 5 comes after round 7"},
		{task(3, "look"), ""}, // again, late
		{task(1<<40, "fit"), "above the 12"},
		{task(13, "fit"), "above the 12"},
		{task(11, "fit"), ""},
		{task(12, "fit"), `lists task "fit" 3 times`},
		{task(12, "look"), `lists task "look" once`},
		{task(2, "fit"), ""}, // again, when everything has been granted
	} {
		if i%5 == 4 {
			g = privacy.NewGate(s, open, m, subjects(3)) // the site's program was started again
		}
		before := lines(t, m)
		checked := g.Check(c.ask)
		if n := lines(t, m); n != before {
			t.Fatalf("%+v: asking whether it would be granted was charged", c.ask)
		}
		session, err := g.Admit(c.ask)
		if c.reason == "" && (err != nil || checked != nil || session == nil) {
			t.Fatalf("%d: %+v: %v, and when asked %v", i, c.ask, err, checked)
		}
		if c.reason != "" {
			for _, err := range []error{checked, err} {
				if !errors.Is(err, privacy.ErrRefused) || !strings.Contains(err.Error(), c.reason) || session != nil {
					t.Errorf("%d: %+v: %v, want %q", i, c.ask, err, c.reason)
				}
			}
		}
		if n := lines(t, m); c.reason != "" && n != before {
			t.Errorf("%d: %+v was refused, and charged", i, c.ask)
		}
	}
	charged := testkit.Get(ledger.Read(m))(t)
	var got []string
	for _, e := range charged.Entries {
		got = append(got, fmt.Sprintf("%s %d noise %v", e.Kind, e.Round, e.Request.Sums[0].Mechanism.Noise))
	}
	if want := "[fit 2 noise 5 look 3 noise 7 fit 7 noise 5 fit 11 noise 5]"; fmt.Sprint(got) != want {
		t.Errorf("charged were %v, want %v", got, want)
	}
	if g.Protection("fit") != privacy.Differential || g.Protection("other") != "" {
		t.Errorf("protection %q and %q", g.Protection("fit"), g.Protection("other"))
	}
}

func lines(t *testing.T, m *sitestore.Memory) int {
	t.Helper()
	n, _, err := m.Last()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Another task under the round of one that was granted is no retry, whatever
// its kind, and whether or not the first has been answered.
func TestRepeatedRoundIsTheSameTaskOrNone(t *testing.T) {
	s := study
	s.Requests = []privacy.Listed{{Kind: "fit", Times: 9, Request: request}, {Kind: "look", Times: 9, Request: request}}
	for _, answered := range []bool{false, true} {
		m := sitestore.NewMemory()
		g := privacy.NewGate(s, open, m, subjects(3))
		session := testkit.Get(g.Admit(task(1, "fit")))(t)
		if answered {
			testkit.Get(session.Seal(nil, nil))(t)
		}
		other := task(1, "fit")
		other.Task[9]++
		for _, a := range []privacy.Ask{other, task(1, "look")} {
			_, admitted := g.Admit(a)
			_, _, stored := g.Stored(a)
			for _, err := range []error{admitted, stored, g.Check(a)} {
				if !errors.Is(err, privacy.ErrConflict) {
					t.Errorf("answered %v, %+v: %v", answered, a, err)
				}
			}
		}
		if n := lines(t, m); n != 1 {
			t.Errorf("answered %v: %d charges", answered, n)
		}
	}
}

// Exact requests pass no gate of a plan or policy that wants protection, not
// even when they are listed, and not beside others that are protected.
func TestExactRequestsPassNoGateThatProtects(t *testing.T) {
	list := []privacy.Listed{{Kind: "fit", Times: 3, Request: differential(vectors(5, 2))},
		{Kind: "exact", Times: 3, Request: request}}
	promised := guaranteed(privacy.Subject, account.AddRemove, 50, 1e-5)
	promised.Requests = list
	per := study
	per.Requests = list
	required := policy.Policy{PerRelease: true}
	for name, g := range map[string]struct {
		study  privacy.Study
		policy policy.Policy
	}{"the plan": {promised, open}, "the policy": {per, required},
		"both": {promised, policy.Policy{Protection: policy.Required}}} {
		m := sitestore.NewMemory()
		gate := privacy.NewGate(g.study, g.policy, m, subjects(3))
		if _, err := gate.Admit(task(1, "fit")); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for round := 2; round < 5; round++ {
			if s, err := gate.Admit(task(round, "exact")); !errors.Is(err, privacy.ErrRefused) || s != nil {
				t.Errorf("%s wants protection: %v", name, err)
			}
		}
		if n := lines(t, m); n != 1 {
			t.Errorf("%s: %d charges", name, n)
		}
	}
}

// Requests have several sums, and all of them count: in what is refused, and in
// what the ledger says. Each of these costs μ² = 1/25 + 1/100 + 2/100; ε 3 at
// 10⁻⁵ is μ = 0.719, so that there is room for seven of them, where the first
// sums alone would leave room for twelve, and the second or third for more.
func TestEverySumOfARequestIsCounted(t *testing.T) {
	all := several()
	all.Sums[0].Mechanism.Noise, all.Sums[0].Mechanism.Count = 5, 1
	all.Sums[1].Mechanism.Noise = 10
	all.Sums[2].Mechanism.Noise, all.Sums[2].Mechanism.Count = 10, 2
	const room = 7
	requests := func(n int) (list []privacy.Request) {
		for range n {
			list = append(list, all)
		}
		return list
	}
	lifetime := policy.Policy{PerRelease: true, Adjacency: account.AddRemove,
		Lifetime: &policy.Lifetime{Epsilon: 3, Delta: 1e-5, Filter: policy.GaussianFilter}}
	perStudy := policy.Policy{PerRelease: true, Adjacency: account.AddRemove,
		Study: &account.Budget{Epsilon: 3, Delta: 1e-5}}
	for name, c := range map[string]struct {
		study  privacy.Study
		policy policy.Policy
	}{"guarantee": {guaranteed(privacy.Subject, account.AddRemove, 3, 1e-5), open}, "lifetime": {study, lifetime},
		"policy for a study": {study, perStudy}} {
		m := sitestore.NewMemory()
		for round := 1; round <= room+1; round++ {
			c.study.Requests = []privacy.Listed{{Kind: "fit", Times: 100, Request: all}}
			g := privacy.NewGate(c.study, c.policy, m, subjects(3)) // reads the ledger anew
			if _, err := g.Admit(task(round, "fit")); (err == nil) != (round <= room) || err != nil &&
				!errors.Is(err, privacy.ErrRefused) {
				t.Errorf("%s, request %d: %v", name, round, err)
			}
		}
		l, err := ledger.Read(m)
		if err != nil || len(l.Entries) != room {
			t.Fatalf("%s: %+v, %v", name, l, err)
		}
		// Asked beforehand, for all at once and for what is left.
		if err := (&ledger.Ledger{}).Check(c.policy, c.study, requests(room)...); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := (&ledger.Ledger{}).Check(c.policy, c.study, requests(room+1)...); !errors.Is(err,
			privacy.ErrRefused) {
			t.Errorf("%s, %d at once: %v", name, room+1, err)
		}
		if err := l.Check(c.policy, c.study, all); !errors.Is(err, privacy.ErrRefused) {
			t.Errorf("%s, one more than there is room for: %v", name, err)
		}
		a := testkit.Get(l.Account(1e-5))(t)
		var ms []account.Mechanism
		for _, s := range all.Sums {
			mech := s.Mechanism
			mech.Count *= room
			ms = append(ms, mech)
		}
		want := testkit.Get(account.Epsilon(ms, account.AddRemove, 1e-5))(t)
		for _, loss := range []ledger.Loss{a.Studies[0].Losses[0], a.Lifetime[0]} {
			if loss.Epsilon == nil || *loss.Epsilon < want*(1-1e-9) || *loss.Epsilon > want*(1+1e-9) {
				t.Errorf("%s: the ledger adds up to %+v, want ε %v", name, loss, want)
			}
		}
	}
}
