package privacy_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"parley/dataset"
	"parley/internal/testkit"
	"parley/privacy"
	"parley/privacy/account"
	"parley/privacy/ledger"
	"parley/privacy/policy"
	"parley/sitestore"
)

// releaseAt runs one task with a single sum from Admit to Seal.
func releaseAt(t testing.TB, g *privacy.Gate, a privacy.Ask, sum privacy.Sum) error {
	t.Helper()
	s, err := g.AdmitAny(a, differential(sum))
	if err != nil {
		return err
	}
	n, err := s.Sum(t.Context(), sum.Name, func(*dataset.Row, []float64) int { return 0 })
	if err != nil {
		return err
	}
	_, err = s.Seal(fmt.Append(nil, n.SD()), nil)
	return err
}

func at(study string, round int) privacy.Ask {
	return privacy.Ask{Study: study, Site: "north", Round: round, Kind: "fit", Task: [32]byte{byte(round)}}
}

// A study is granted exactly as many releases as its guarantee has room for,
// however often its gate is made anew.
func TestGuaranteeEndsAStudyWhereItIsSpent(t *testing.T) {
	s := guaranteed(privacy.Subject, account.AddRemove, 3, 1e-5)
	factor := testkit.Get(account.AnalyticGaussian(3, 1e-5))(t)
	for _, noise := range []float64{5, 12.5} {
		room := int(math.Floor(math.Pow(noise/factor, 2))) // Σ (1/noise)² ≤ (1/factor)²
		m := sitestore.NewMemory()
		var g *privacy.Gate
		for round := 1; round <= room+2; round++ {
			if g == nil || round%7 == 0 {
				g = privacy.NewGate(s, open, m, subjects(3))
			}
			err := releaseAt(t, g, at(s.Digest, round), vectors(noise, 2))
			if granted := err == nil; granted != (round <= room) {
				t.Fatalf("noise %v, release %d of %d: %v", noise, round, room, err)
			}
			if round > room && (!errors.Is(err, privacy.ErrRefused) ||
				!strings.Contains(err.Error(), "above the ε 3 of the plan's guarantee")) {
				t.Fatal(err)
			}
		}
		if lines, err := m.Reservations(0); err != nil || len(lines) != room {
			t.Fatalf("%d charges for %d releases, %v", len(lines), room, err)
		}
	}
}

// A task whose computation did not finish needs no second charge, and its
// charge is not given back either.
func TestUnfinishedTaskComesAgainAtItsOwnCharge(t *testing.T) {
	s := guaranteed(privacy.Subject, account.AddRemove, 3, 1e-5)
	m := sitestore.NewMemory()
	gate := func() *privacy.Gate { return privacy.NewGate(s, open, m, subjects(3)) }
	// μ = 0.625 each: there is room for one, not for two.
	sum := vectors(1.6, 2)
	testkit.Get(gate().AdmitAny(at(s.Digest, 1), differential(sum)))(t)
	if err := releaseAt(t, gate(), at(s.Digest, 2), sum); !errors.Is(err, privacy.ErrRefused) ||
		!strings.Contains(err.Error(), "above the ε 3 of the plan's guarantee") {
		t.Fatalf("there is room for one: %v", err)
	}
	if err := releaseAt(t, gate(), at(s.Digest, 1), sum); err != nil {
		t.Fatalf("the charge that it has does not do: %v", err)
	}
	if err := releaseAt(t, gate(), at(s.Digest, 2), vectors(4, 2)); err != nil {
		t.Fatalf("what is left is refused: %v", err)
	}
	if lines, err := m.Reservations(0); err != nil || len(lines) != 2 {
		t.Fatalf("%d charges, %v", len(lines), err)
	}
}

func TestLifetimeSpansStudies(t *testing.T) {
	for _, filter := range []policy.FilterName{policy.RenyiFilter, policy.GaussianFilter} {
		policy := policy.Policy{Lifetime: &policy.Lifetime{Epsilon: 12, Delta: 1e-5, Filter: filter}}
		m := sitestore.NewMemory()
		granted := 0
		var last error
		for i := range 20 {
			s := guaranteed(privacy.Subject, account.AddRemove, 2, 1e-5)
			s.Digest = fmt.Sprint(i)
			if last = releaseAt(t, privacy.NewGate(s, policy, m, subjects(3)), at(s.Digest, 1),
				vectors(2, 2)); last == nil {
				granted++
			}
		}
		if granted < 2 || granted > 8 || !errors.Is(last, privacy.ErrRefused) ||
			!strings.Contains(last.Error(), "everything that this site has released") {
			t.Errorf("%s: %d studies were granted, then %v", filter, granted, last)
		}
		charged := testkit.Get(ledger.Read(m))(t)
		left, err := charged.Against(policy)
		if err != nil || len(left) != 2 || left[0].Adjacency != account.AddRemove || left[1].Left >= left[0].Left ||
			left[1].Left > 0.5 {
			t.Errorf("%s: left %+v, %v", filter, left, err)
		}
		s := guaranteed(privacy.Subject, account.AddRemove, 2, 1e-5)
		if err := charged.Check(policy, s, differential(vectors(2, 2))); !errors.Is(err, privacy.ErrRefused) {
			t.Errorf("%s: asked beforehand: %v", filter, err)
		}
	}
}

// Two studies of one site that charge at the same time are counted one after
// the other, whatever each of them last saw of the ledger.
func TestStudiesThatChargeAtOnceShareTheLifetime(t *testing.T) {
	policy := policy.Policy{Lifetime: &policy.Lifetime{Epsilon: 3, Delta: 1e-5, Filter: policy.GaussianFilter},
		Adjacency: account.AddRemove}
	m := sitestore.NewMemory()
	var group sync.WaitGroup
	var mu sync.Mutex
	granted := 0
	for i := range 4 {
		group.Go(func() {
			s := guaranteed(privacy.Subject, account.AddRemove, 3, 1e-5)
			s.Digest = fmt.Sprint(i)
			g := privacy.NewGate(s, policy, m, subjects(3))
			for round := 1; round <= 5; round++ {
				if releaseAt(t, g, at(s.Digest, round), vectors(5, 2)) == nil {
					mu.Lock()
					granted++
					mu.Unlock()
				}
			}
		})
	}
	group.Wait()
	lines, err := m.Reservations(0)
	// μ² = 1/25 each, and ε 3 at 10⁻⁵ allows 0.719² = 12.9/25.
	if err != nil || granted != 12 || len(lines) != 12 {
		t.Fatalf("%d granted, %d charged, %v", granted, len(lines), err)
	}
}

// intruded is a journal in which another study charges between a gate's check
// and its own charge.
type intruded struct {
	*sitestore.Memory
	other *sitestore.Reservation
}

func (i *intruded) Reserve(r sitestore.Reservation, key [32]byte) error {
	if other := i.other; other != nil {
		i.other = nil
		if err := i.Memory.Reserve(*other, [32]byte{1}); err != nil {
			return err
		}
	}
	return i.Memory.Reserve(r, key)
}

func TestChargeBetweenCheckAndReservationIsSeen(t *testing.T) {
	// μ = 0.5 each: ε 3 at 10⁻⁵ has room for two, and not for three.
	policy := policy.Policy{Lifetime: &policy.Lifetime{Epsilon: 3, Delta: 1e-5, Filter: policy.GaussianFilter},
		Adjacency: account.AddRemove}
	s := guaranteed(privacy.Subject, account.AddRemove, 3, 1e-5)
	s.Digest = "other"
	m := sitestore.NewMemory()
	testkit.Do(t, releaseAt(t, privacy.NewGate(s, policy, m, subjects(3)), at("other", 1), vectors(2, 2)))
	lines := testkit.Get(m.Reservations(0))(t)
	other := lines[0]
	other.Seq, other.Release = 0, "other/north/2"
	s.Digest = "ours"
	j := &intruded{m, &other}
	if err := releaseAt(t, privacy.NewGate(s, policy, j, subjects(3)), at("ours", 1), vectors(2, 2)); !errors.Is(err,
		privacy.ErrRefused) {
		t.Fatal(err)
	}
	if lines, err := m.Reservations(0); err != nil || len(lines) != 2 {
		t.Fatalf("%d charges, %v", len(lines), err)
	}
}

// What has no bound does not go together with a promise.
func TestStudyThatReleasedInClearKeepsNoGuarantee(t *testing.T) {
	m := sitestore.NewMemory()
	clear := study // without a guarantee
	testkit.Get(privacy.NewGate(clear, open, m, subjects(3)).AdmitAny(at(clear.Digest, 1), request))(t)
	if err := releaseAt(t, privacy.NewGate(clear, open, m, subjects(3)), at(clear.Digest, 2),
		vectors(5, 2)); err != nil {
		t.Fatalf("per release, in a simulation: %v", err)
	}
	s := guaranteed(privacy.Subject, account.AddRemove, 3, 1e-5) // the same digest: cannot be, but must not pass
	err := releaseAt(t, privacy.NewGate(s, open, m, subjects(3)), at(s.Digest, 3), vectors(5, 2))
	if !errors.Is(err, privacy.ErrRefused) || !strings.Contains(err.Error(), "no bound") {
		t.Fatal(err)
	}
}

func TestGateKnowsItsStudyAndItsTasks(t *testing.T) {
	m := sitestore.NewMemory()
	g := privacy.NewGate(study, open, m, subjects(3))
	for _, a := range []privacy.Ask{{Study: "other", Site: "north"}, {Study: "3fa9", Site: "south"}} {
		if _, err := g.AdmitAny(a, request); err == nil || !strings.Contains(err.Error(), "reached the gate of site") {
			t.Errorf("%+v: %v", a, err)
		}
	}
	testkit.Get(answer(g, ask))(t)
	if _, err := g.AdmitAny(ask, request); err == nil || !strings.Contains(err.Error(), "has been answered") {
		t.Errorf("a task that was answered: %v", err)
	}
	other := ask
	other.Task[5] = 1
	if _, err := g.AdmitAny(other, request); !errors.Is(err, privacy.ErrConflict) {
		t.Errorf("another task under the same name: %v", err)
	}
	if lines, err := m.Reservations(0); err != nil || len(lines) != 1 {
		t.Errorf("%d charges, %v", len(lines), err)
	}
}

// A ledger with a line that cannot be read stops every study of the site.
func TestUnreadableChargeIsNotNothing(t *testing.T) {
	for _, line := range [][]byte{nil, {0xff}, []byte("text"), bytes.Repeat([]byte{0x81}, 40)} {
		m := sitestore.NewMemory()
		testkit.Do(t, m.Reserve(sitestore.Reservation{Release: "x/north/1", Study: "x", Request: line}, [32]byte{1}))
		_, err := privacy.NewGate(study, open, m, subjects(3)).AdmitAny(ask, request)
		if err == nil || errors.Is(err, privacy.ErrRefused) ||
			!strings.Contains(err.Error(), "line 1 of the ledger cannot be read") {
			t.Errorf("%x: %v", line, err)
		}
		if l, err := ledger.Read(m); err == nil {
			t.Errorf("%x: read as %+v", line, l)
		}
	}
}

// BenchmarkAdmissions is one study with 600 sampled charges, each admitted on
// its own after all before it.
func BenchmarkAdmissions(b *testing.B) {
	sum := vectors(5, 2)
	sum.Mechanism.Rate, sum.Mechanism.Count = 0.02, 25
	b.ReportAllocs()
	for b.Loop() {
		s := guaranteed(privacy.Subject, account.AddRemove, 3, 1e-5)
		g := privacy.NewGate(s, policy.Policy{Lifetime: &policy.Lifetime{Epsilon: 10, Delta: 1e-5}},
			sitestore.NewMemory(), subjects(0))
		for round := 1; round <= 600; round++ {
			if _, err := g.AdmitAny(at(s.Digest, round), differential(sum)); err != nil {
				b.Fatalf("charge %d: %v", round, err)
			}
		}
	}
}
