package privacy_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"parley/dataset"
	"parley/internal/testkit"
	"parley/internal/wire"
	"parley/privacy"
	"parley/privacy/account"
	"parley/privacy/ledger"
	"parley/privacy/masks"
	"parley/privacy/privacytest"
	"parley/sitestore"
)

// maskedStudy is five sites of a study with a secure sum, the first three of which open totals, at their gates.
type maskedStudy struct {
	t        *testing.T
	requests []privacy.Listed
	gates    []*privacy.Gate
	stores   []*sitestore.Memory
}

var (
	sumUp = privacy.Listed{Kind: "sum", Times: 3, Request: privacy.Request{Protection: privacy.Differential,
		Masked: true, Sums: []privacy.Sum{{Name: "v", Unit: privacy.Subject, Form: privacy.Vectors, Blocks: []int{2},
			Bound: 5, Honest: 3, Mechanism: account.Mechanism{Kind: account.Gaussian, Noise: 10, Rate: 1, Diameter: 2,
				Count: 1}}}}}
	addUp = privacy.Listed{Kind: "sum", Times: 3, Request: privacy.Request{Protection: privacy.Unprotected,
		Masked: true, Contents: []privacy.Content{{What: "numbers", Values: 3}},
		Totals: []privacy.Total{{Name: "raw", Numbers: 2, Grid: masks.Raw},
			{Name: "standardised", Numbers: 1, Grid: masks.Standardised}}}}
	opening = privacy.Listed{Kind: "open", Times: 3,
		Request: privacy.Request{Protection: privacy.Differential, Opens: 10}}
)

func newMaskedStudy(t *testing.T, sum privacy.Listed) *maskedStudy {
	t.Helper()
	x := &maskedStudy{t: t, requests: []privacy.Listed{sum, opening}}
	g := masks.Group{Quorum: 3, Openers: []int{0, 1, 2}}
	var keys []masks.Keys
	for i := range 5 {
		k := testkit.Get(masks.Simulated("abc", fmt.Sprint(i)))(t)
		keys = append(keys, k)
		g.Members = append(g.Members, k.Member(fmt.Sprint(i)))
	}
	for i := range 5 {
		s := privacy.Study{Digest: "abc", Site: fmt.Sprint(i), Method: "m", Sites: 5, Quorum: 3, Requests: x.requests,
			Collusion: -1,
			Party:     &masks.Party{Group: g, Self: i, Keys: keys[i]}}
		if sum.Request.Protection == privacy.Differential {
			s.Guarantee = &privacy.Guarantee{Unit: privacy.Subject, Adjacency: account.AddRemove,
				Budget: account.Budget{Epsilon: 5, Delta: 1e-5}}
		}
		x.stores = append(x.stores, sitestore.NewMemory())
		x.gates = append(x.gates, privacy.NewGate(s, open, x.stores[i], subjects(10),
			privacytest.Replaced(func(_ string, exact [][]int64) [][]int64 { return exact })))
	}
	return x
}

func (x *maskedStudy) ask(site, round int, kind, task string) privacy.Ask {
	return privacy.Ask{Study: "abc", Site: fmt.Sprint(site), Round: round, Kind: kind,
		Task: sha256.Sum256(fmt.Append(nil, site, task)), Common: sha256.Sum256([]byte(task))}
}

// answer is a site's masked release in a round.
func (x *maskedStudy) answer(site, round int) privacy.Opened {
	x.t.Helper()
	s := testkit.Get(x.gates[site].Admit(x.ask(site, round, "sum", fmt.Sprint("task ", round))))(x.t)
	if x.requests[0].Request.Protection == privacy.Differential {
		testkit.Get(s.Sum(x.t.Context(), "v", func(_ *dataset.Row, v []float64) int {
			v[0] = float64(site)
			return 0
		}))(x.t)
	} else if err := errors.Join(s.Total("raw", []float64{1e6 + float64(site), -1}),
		s.Total("standardised", []float64{1 / 3.})); err != nil {
		x.t.Fatal(err)
	}
	return testkit.Get(privacy.Open(testkit.Get(s.Seal(nil, nil))(x.t).Bytes(), x.requests[0].Request))(x.t)
}

func (x *maskedStudy) set(round int, sites ...int) (o privacy.Opening, total masks.Vector) {
	for _, i := range sites {
		m := x.answer(i, round).Masked
		if o.Set = append(o.Set, m.Signed); total == nil {
			o.Sum, total = m.Sum, make(masks.Vector, m.Sum.Shape.Words())
		}
		o.Sum.Shape.Add(total, m.Vector)
	}
	return o, total
}

// open asks an opener in a round of its own.
func (x *maskedStudy) open(site, round int, o privacy.Opening) (masks.Vector, error) {
	body := testkit.Get(wire.Marshal(o))(x.t)
	ask, err := x.gates[site].Vet(x.ask(site, round, "open", string(body)), body)
	if err == nil {
		err = x.gates[site].Check(ask)
	}
	if err != nil {
		return nil, err
	}
	s, err := x.gates[site].Admit(ask)
	if err != nil {
		return nil, err
	}
	r := testkit.Get(s.Seal(testkit.Get(s.Unmask(body))(x.t), nil))(x.t)
	opened := testkit.Get(privacy.Open(r.Bytes(), opening.Request))(x.t)
	return o.Sum.Shape.Vector(opened.Body)
}

// The totals that openers open are those of the numbers; a release tells nothing of them before.
func TestMaskedReleasesAddUp(t *testing.T) {
	for _, sum := range []privacy.Listed{sumUp, addUp} {
		x := newMaskedStudy(t, sum)
		o, total := x.set(1, 0, 1, 2, 4)
		for i := range 3 {
			o.Sum.Shape.Subtract(total, testkit.Get(x.open(i, 2, o))(t))
		}
		sums, totals, err := sum.Request.Unmasked(total, 4)
		testkit.Do(t, err)
		if sum.Request.Totals != nil {
			if raw, want := totals["raw"], []float64{4e6 + 7, -4}; !slices.Equal(raw, want) ||
				math.Abs(totals["standardised"][0]-4/3.) > 1e-14 {
				t.Errorf("totals %v", totals)
			}
			continue
		}
		// Σ over ten subjects of each site, below the bound
		if v := sums["v"][0].Floats(0); math.Abs(v[0]-10*7) > 1e-4 || v[1] != 0 {
			t.Errorf("a total of %v", v)
		}
		// Four sites each have a third of the variance of the one noise that is charged.
		charged := sum.Request.Sums[0].Mechanism.Noise * 5
		if sd := sums["v"][0].SD(); math.Abs(sd/(charged*math.Sqrt(4/3.))-1) > 1e-5 {
			t.Errorf("noise of %v where one party's is %v", sd, charged)
		}
	}
}

// Of a sum nobody opens a second set, an earlier one, or one of others than the exact totals before: by the ledger, so
// that a coordinator that asks again in another round, or after a crash, gets no more.
func TestASumIsOpenedOnce(t *testing.T) {
	says := func(what, want string) func(any, error) {
		return func(_ any, err error) {
			t.Helper()
			if !errors.Is(err, privacy.ErrRefused) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, which does not say %q", what, err, want)
			}
		}
	}
	x := newMaskedStudy(t, sumUp)
	first, _ := x.set(1, 0, 1, 2, 3, 4)
	fewer := privacy.Opening{Sum: first.Sum, Set: first.Set[:4]}
	testkit.Get(x.open(0, 2, fewer))(t)
	says("a second set", "has been opened before")(x.open(0, 3, first))
	says("the same set in another round", "has been opened before")(x.open(0, 3, fewer))
	if _, err := x.open(0, 2, first); !errors.Is(err, privacy.ErrConflict) {
		t.Errorf("another set in the same round: %v", err)
	}
	second, _ := x.set(4, 0, 1, 2, 3)
	says("the sum before the last", "not the last")(x.open(1, 5, first))
	for want, change := range map[string]func(*masks.Sum){
		"no such task in round 4": func(s *masks.Sum) { s.Task[0]++ },
		"no such task in round 3": func(s *masks.Sum) { s.Round = 3 },
		"another study":           func(s *masks.Sum) { s.Study = "def" },
	} {
		wrong := second
		change(&wrong.Sum)
		says("another sum", want)(x.open(1, 5, wrong))
	}
	says("below the quorum", "quorum is 3")(x.open(1, 5, privacy.Opening{Sum: second.Sum, Set: second.Set[:2]}))
	if _, err := x.open(1, 5, privacy.Opening{Sum: second.Sum, Set: second.Set[:3]}); err != nil {
		t.Errorf("totals with noise are of those that stay: %v", err)
	}
	says("a site that is no opener", "opens no sums")(x.open(3, 5, second))
	says("bytes that are no opening", "cannot be read")(x.gates[1].Vet(x.ask(1, 6, "open", "x"), []byte("x")))

	x = newMaskedStudy(t, addUp)
	first, _ = x.set(1, 0, 1, 2, 3)
	testkit.Get(x.open(0, 2, first))(t)
	second, _ = x.set(3, 0, 1, 2)
	says("an exact total of other sites", "over other sites")(x.open(0, 4, second))
	entries := testkit.Get(ledger.Read(x.stores[0]))(t).Entries
	if e := entries[1]; e.Opens != 1 || e.Trust != nil || len(entries) != 3 ||
		!slices.Equal(entries[0].Trust.Openers, []string{"0", "1", "2"}) || entries[0].Trust.Quorum != 3 {
		t.Errorf("the ledger says %+v", entries)
	}
}

// What the form of a masked release takes for granted is checked where it is made, and again where it is read.
func TestMaskedReleasesHoldNothingElse(t *testing.T) {
	x := newMaskedStudy(t, sumUp)
	s := testkit.Get(x.gates[0].Admit(x.ask(0, 1, "sum", "task")))(t)
	if _, err := s.Seal([]byte("rows"), nil); err == nil || !strings.Contains(err.Error(), "no body") {
		t.Errorf("a body beside what is masked: %v", err)
	}
	if _, err := s.Seal(nil, nil); err == nil || !strings.Contains(err.Error(), "made 0 times") {
		t.Errorf("a sum that was not made: %v", err)
	}
	x = newMaskedStudy(t, addUp)
	s = testkit.Get(x.gates[0].Admit(x.ask(0, 1, "sum", "task")))(t)
	for what, err := range map[string]error{
		"declared no total": s.Total("other", nil), "3 numbers, and 2": s.Total("raw", []float64{1, 2, 3}),
		"beyond the range": s.Total("raw", []float64{1e300, 0}),
	} {
		if err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%v, which does not say %q", err, what)
		}
	}
	if _, err := s.Unmask(nil); err == nil || !strings.Contains(err.Error(), "not granted") {
		t.Errorf("a session for a sum opens one: %v", err)
	}
	testkit.Do(t, errors.Join(s.Total("raw", []float64{1, 2}), s.Total("standardised", []float64{1})))
	sealed := testkit.Get(s.Seal(nil, nil))(t).Bytes()
	plain := addUp.Request
	plain.Masked, plain.Totals = false, nil
	if _, err := privacy.Open(sealed, plain); err == nil {
		t.Error("a masked release passes for another")
	}
	for what, r := range map[string]privacy.Request{
		"shares of noise": {Protection: privacy.Differential, Sums: sumUp.Request.Sums},
		"need masks":      {Protection: privacy.Unprotected, Totals: addUp.Request.Totals},
		"own":             {Protection: privacy.Differential, Opens: 3, Masked: true},
		"no name or grid": {Protection: privacy.Unprotected, Masked: true,
			Totals: []privacy.Total{{Name: "x", Numbers: 1, Grid: masks.Grid{Words: 1, Places: 3}}}},
	} {
		if err := r.Check(); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%v, which does not say %q", err, what)
		}
	}
}
