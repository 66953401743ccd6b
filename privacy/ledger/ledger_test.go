package ledger_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/internal/testkit"
	"parley/internal/wire"
	"parley/privacy"
	"parley/privacy/account"
	"parley/privacy/ledger"
	"parley/privacy/policy"
	"parley/sitestore"
)

// aged is a journal whose first lines earlier programs have written, which kept
// no keys.
type aged struct {
	*sitestore.Memory
	old []sitestore.Reservation
}

func (a *aged) Reservations(after int) ([]sitestore.Reservation, error) {
	lines, err := a.Memory.Reservations(0)
	all := append(slices.Clone(a.old), lines...)
	for i := range all {
		all[i].Seq = i + 1
	}
	return all[min(after, len(all)):], err
}

func (a *aged) Reserve(r sitestore.Reservation, key [32]byte) error {
	if r.Seq != 0 {
		r.Seq -= len(a.old)
	}
	return a.Memory.Reserve(r, key)
}

func (a *aged) Release(id string) (sitestore.Release, bool, error) {
	r, ok, err := a.Memory.Release(id)
	if i := slices.IndexFunc(a.old, func(line sitestore.Reservation) bool { return line.Release == id }); !ok &&
		i >= 0 {
		return sitestore.Release{Task: a.old[i].Task}, true, err
	}
	return r, ok, err
}

// lived is the ledger of a site with a long life: a line of the first version,
// a study with a charge that an earlier program forfeited and this one made
// again, one that protects sites, one that samples.
func lived(t testing.TB) *aged {
	t.Helper()
	before := sitestore.NewMemory()
	old := testkit.Get(wire.Marshal(map[string]any{"protection": "none",
		"contents": []map[string]any{{"what": "means", "values": 3}}}))(t)
	testkit.Do(t, before.Reserve(sitestore.Reservation{Release: "old/north/1", Study: "old", Request: old},
		[32]byte{1}))
	clock := privacy.Clock(func() time.Time { return time.Date(2026, 2, 3, 4, 5, 6, 0, time.FixedZone("", 3600)) })
	named := func(s privacy.Study, digest string) privacy.Study {
		s.Digest = digest
		return s
	}
	promised := named(guaranteed(privacy.Subject, account.AddRemove, 3, 1e-6), "one")
	testkit.Get(admit(promised, open, before, at("one", 1), differential(vectors(10, 2)), clock))(t)
	lines := testkit.Get(before.Reservations(0))(t)
	m := &aged{sitestore.NewMemory(), lines}
	whole := vectors(4, 2)
	whole.Unit, whole.Name = privacy.WholeSite, "w"
	sampled := vectors(5, 2)
	sampled.Mechanism.Rate, sampled.Mechanism.Count = 0.02, 25
	second := releaseAt(t, promised, m, at("one", 1), vectors(10, 2), clock)
	third := releaseAt(t, promised, m, at("one", 2), vectors(20, 2), clock)
	_, sites := admit(named(guaranteed(privacy.WholeSite, account.ReplaceOne, 8, 1e-5), "sites"), open, m,
		at("sites", 1), differential(whole), clock)
	_, per := admit(named(study, "sampled"), open, m, at("sampled", 1), differential(sampled), clock)
	testkit.Do(t, errors.Join(second, third, sites, per))
	return m
}

func TestLedgerShowsEveryChargeAndAddsItUp(t *testing.T) {
	l := testkit.Get(ledger.Read(lived(t)))(t)
	if len(l.Entries) != 6 {
		t.Fatalf("%d entries", len(l.Entries))
	}
	e := l.Entries[2]
	if e.Line != 3 || e.Study != "one" || e.Release != "one/north/1" || e.Attempt != 2 ||
		e.At != "2026-02-03T03:05:06Z" || e.Method != "toy" || e.Round != 1 || e.Kind != "fit" ||
		e.Guarantee.Delta != 1e-6 || e.Seeded || e.Request.Sums[0].Mechanism.Noise != 10 {
		t.Errorf("line 3 reads %+v", e)
	}
	if e := l.Entries[0]; e.Line != 1 || e.Study != "old" || e.Request.Protection != privacy.Unprotected ||
		e.Guarantee != nil || e.Request.Contents[0].Values != 3 {
		t.Errorf("the line of the first version reads %+v", e)
	}
	a := testkit.Get(l.Account(1e-5))(t)
	if a.Charges != 6 || a.Unprotected != 1 || len(a.Studies) != 4 {
		t.Fatalf("%+v", a)
	}
	if s := a.Studies[0]; s.Study != "old" || s.Unprotected != 1 || *s.Losses[0].Epsilon != 0 {
		t.Errorf("without protection: %+v", s)
	}
	gaussian := func(noise float64, count int) account.Mechanism {
		return account.Mechanism{Kind: account.Gaussian, Noise: noise, Rate: 1, Diameter: 2, Count: count}
	}
	sampled := gaussian(5, 25)
	sampled.Rate = 0.02
	shift := gaussian(2, 1) // the whole site's, when one subject changes
	shift.Diameter = 1
	for i, c := range []struct {
		losses   []ledger.Loss
		ms       []account.Mechanism
		delta    float64
		gaussian bool
	}{
		{a.Studies[1].Losses, []account.Mechanism{gaussian(10, 2), gaussian(20, 1)}, 1e-6, true},
		{a.Studies[2].Losses[:2], []account.Mechanism{shift}, 1e-5, true},
		{a.Studies[2].Losses[2:], []account.Mechanism{gaussian(4, 1)}, 1e-5, true},
		{a.Studies[3].Losses, []account.Mechanism{sampled}, 1e-5, false},
		{a.Lifetime, []account.Mechanism{gaussian(10, 2), gaussian(20, 1), shift, sampled}, 1e-5, false},
	} {
		if len(c.losses) != 2 || c.losses[0].Adjacency != account.AddRemove ||
			c.losses[1].Adjacency != account.ReplaceOne {
			t.Fatalf("%d: %+v", i, c.losses)
		}
		for _, l := range c.losses {
			want := testkit.Get(account.Epsilon(c.ms, l.Adjacency, c.delta))(t)
			mu, _ := account.Mu(c.ms, l.Adjacency)
			if l.Epsilon == nil || math.Abs(*l.Epsilon-want) > 1e-9*want || l.Delta != c.delta ||
				(l.Mu != nil) != c.gaussian || c.gaussian && math.Abs(*l.Mu-mu) > 1e-12 {
				t.Errorf("%d: %+v, want ε %v and μ %v", i, l, want, mu)
			}
		}
	}
	if s := a.Studies[1]; s.Charges != 3 || s.Forfeited != 1 || s.Method != "toy" {
		t.Errorf("a study with a retry: %+v", s)
	}
	if u := a.Studies[2].Losses[2].Unit; u != privacy.WholeSite {
		t.Errorf("a study for sites shows unit %q", u)
	}
	for _, v := range []any{l, a} {
		if _, err := json.Marshal(v); err != nil {
			t.Error(err)
		}
	}
	if _, err := l.Account(1); err == nil {
		t.Error("δ = 1 was taken")
	}
}

func TestLossesSayWhatHasNoBound(t *testing.T) {
	losses, err := ledger.Losses([]privacy.Request{differential(vectors(5, 2))}, 1e-5, privacy.WholeSite)
	if err != nil || losses[0].Epsilon != nil || !strings.Contains(losses[0].Unbounded, "promises nothing for a site") {
		t.Errorf("%+v, %v", losses, err)
	}
}

func TestNothingIsLimitedWithoutALifetime(t *testing.T) {
	l := testkit.Get(ledger.Read(lived(t)))(t)
	if s, err := l.Against(open); err != nil || len(s) != 0 {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := l.Against(policy.Policy{MaxDelta: 7}); err == nil {
		t.Error("a policy that makes no sense was taken")
	}
	s, err := l.Against(policy.Policy{Lifetime: &policy.Lifetime{Epsilon: 10, Delta: 1e-5},
		Adjacency: account.ReplaceOne})
	if err != nil || len(s) != 1 || s[0].Adjacency != account.ReplaceOne || s[0].Filter != policy.RenyiFilter ||
		!(s[0].Left > 0 && s[0].Left < 1) || s[0].Unprotected != 1 {
		t.Errorf("%+v, %v", s, err)
	}
}

// Whatever bytes stand in a line: it is read and adds up, or it is an error
// that names the line; and nobody goes on as if it were nothing.
func FuzzLedgerLine(f *testing.F) {
	lines := testkit.Get(lived(f).Reservations(0))(f)
	for _, line := range lines {
		f.Add(line.Request)
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		m := sitestore.NewMemory()
		testkit.Do(t, m.Reserve(sitestore.Reservation{Release: "x/north/1", Study: "x", Request: line}, [32]byte{1}))
		l, err := ledger.Read(m)
		policy := policy.Policy{Lifetime: &policy.Lifetime{Epsilon: 1e9, Delta: 1e-5}, PerRelease: true}
		_, admission := admit(study, policy, m, ask, differential(vectors(100, 1)))
		if err != nil {
			if !strings.Contains(err.Error(), "line 1 of the ledger") || admission == nil {
				t.Fatalf("%v; then %v", err, admission)
			}
			return
		}
		for _, s := range l.Entries[0].Request.Sums {
			if s.Mechanism.Rate < 1 || s.Mechanism.Count > 1000 || !(s.Mechanism.Noise > 0.1) {
				return // tight numbers of anything take their time
			}
		}
		if a, err := l.Account(1e-5); err == nil && a.Charges != 1 {
			t.Fatalf("%+v", a)
		}
	})
}

func ExampleLedger_Account() {
	m := sitestore.NewMemory()
	s := privacy.Study{Digest: "3fa9", Site: "north", Method: "factors"}
	s.Guarantee = &privacy.Guarantee{Unit: privacy.Subject, Adjacency: account.AddRemove,
		Budget: account.Budget{Epsilon: 3, Delta: 1e-5}}
	if _, err := admit(s, privacy.SimulationPolicy(), m, privacy.Ask{Study: "3fa9", Site: "north", Round: 1},
		differential(vectors(2, 3))); err != nil {
		panic(err)
	}
	charged, err := ledger.Read(m)
	if err != nil {
		panic(err)
	}
	sum, err := charged.Account(1e-5)
	if err != nil {
		panic(err)
	}
	for _, l := range sum.Studies[0].Losses {
		fmt.Printf("%s, %s: ε %.2f at δ %v\n", l.Unit, l.Adjacency, *l.Epsilon, l.Delta)
	}
	// Output:
	// subject, add-remove: ε 1.99 at δ 1e-05
	// subject, replace-one: ε 4.38 at δ 1e-05
}
