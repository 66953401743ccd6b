package privacy_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"

	"parley/dataset"
	"parley/internal/testkit"
	"parley/privacy"
	"parley/privacy/policy"
	"parley/sitestore"
)

// tape records what a gate does, in order.
type tape struct {
	*sitestore.Memory
	events []string
	broken string // the operation that fails
}

var errBroken = errors.New("broken")

func (t *tape) note(event string) error {
	if event == t.broken {
		return errBroken
	}
	t.events = append(t.events, event)
	return nil
}

func (t *tape) Free(bytes int64) error {
	if err := t.note("room"); err != nil {
		return err
	}
	return t.Memory.Free(bytes)
}

func (t *tape) Reserve(r sitestore.Reservation, key [32]byte) error {
	if err := t.note("reserve"); err != nil {
		return err
	}
	return t.Memory.Reserve(r, key)
}

func (t *tape) Commit(id string, sealed, state []byte) error {
	if err := t.note("commit"); err != nil {
		return err
	}
	return t.Memory.Commit(id, sealed, state)
}

func (t *tape) Schema() dataset.Schema { return dataset.Schema{} }

func (t *tape) Rows(context.Context) iter.Seq2[*dataset.Row, error] {
	return func(yield func(*dataset.Row, error) bool) {
		t.events = append(t.events, "read")
		yield(&dataset.Row{ID: "s1"}, nil)
	}
}

var (
	ask     = privacy.Ask{Study: "3fa9", Site: "north", Round: 2, Kind: "fit", Task: [32]byte{1}}
	request = privacy.Request{Protection: privacy.Unprotected, Contents: []privacy.Content{{What: "means", Values: 3}}}
	open    = privacy.SimulationPolicy()
	study   = privacy.Study{Digest: "3fa9", Site: "north", Method: "toy", Sites: 3, Quorum: 3}
)

// answer does what a site does with one task.
func answer(g *privacy.Gate, a privacy.Ask) (privacy.Release, error) {
	if r, ok, err := g.Stored(a); err != nil || ok {
		return r, err
	}
	s, err := g.AdmitAny(a, request)
	if err != nil {
		return privacy.Release{}, err
	}
	data, err := s.Data()
	if err != nil {
		return privacy.Release{}, err
	}
	n := 0
	for range data.Rows(context.Background()) {
		n++
	}
	return s.Seal(fmt.Appendf(nil, "%d after %q", n, s.State()), []byte("state"))
}

func TestChargeComesBeforeDataAndBytesBeforeSending(t *testing.T) {
	tape := &tape{Memory: sitestore.NewMemory()}
	testkit.Get(answer(privacy.NewGate(study, open, tape, tape), ask))(t)
	if got := fmt.Sprint(tape.events); got != "[room reserve read commit]" {
		t.Fatalf("got %s", got)
	}
}

func TestTaskAnsweredBeforeIsAnsweredWithTheSameBytes(t *testing.T) {
	tape := &tape{Memory: sitestore.NewMemory()}
	first := testkit.Get(answer(privacy.NewGate(study, open, tape, tape), ask))(t)
	tape.events = nil
	again, err := answer(privacy.NewGate(study, open, tape, tape), ask)
	if err != nil || !bytes.Equal(first.Bytes(), again.Bytes()) || tape.events != nil {
		t.Fatalf("%q against %q, %v, %v", first.Bytes(), again.Bytes(), tape.events, err)
	}
	other := ask
	other.Task = [32]byte{2}
	if _, err := answer(privacy.NewGate(study, open, tape, tape), other); !errors.Is(err, privacy.ErrConflict) ||
		tape.events != nil {
		t.Fatalf("another task under the same name: %v, %v", tape.events, err)
	}
	next := ask
	next.Round = 3
	r := testkit.Get(answer(privacy.NewGate(study, open, tape, tape), next))(t)
	o, err := privacy.Open(r.Bytes(), request)
	if err != nil || string(o.Body) != `1 after "state"` {
		t.Fatalf("the state was not carried: %q, %v", o.Body, err)
	}
}

func TestFailureAtAStepSendsNothingAndIsNotChargedAgain(t *testing.T) {
	tape := &tape{Memory: sitestore.NewMemory()}
	for broken, want := range map[string]string{"room": "[]", "reserve": "[room]"} {
		tape.broken, tape.events = broken, nil
		if r, err := answer(privacy.NewGate(study, open, tape, tape), ask); !errors.Is(err, errBroken) ||
			r.Bytes() != nil || fmt.Sprint(tape.events) != want {
			t.Fatalf("%s failed: %q, %v, %v", broken, r.Bytes(), tape.events, err)
		}
		if lines, err := tape.Reservations(0); err != nil || len(lines) > 0 {
			t.Fatalf("%s failed, and %d lines were charged, %v", broken, len(lines), err)
		}
	}
	tape.broken = "commit"
	if r, err := answer(privacy.NewGate(study, open, tape, tape), ask); !errors.Is(err, errBroken) || r.Bytes() != nil {
		t.Fatalf("storing failed: %q, %v", r.Bytes(), err)
	}
	tape.broken, tape.events = "", nil
	if _, err := answer(privacy.NewGate(study, open, tape, tape), ask); err != nil ||
		fmt.Sprint(tape.events) != "[read commit]" {
		t.Fatalf("the task was not answered by the charge that it has: %v, %v", tape.events, err)
	}
	if lines, err := tape.Reservations(0); err != nil || len(lines) != 1 {
		t.Fatalf("%d charges, %v", len(lines), err)
	}
}

func TestPolicyRefusesBeforeAnythingHappens(t *testing.T) {
	for name, c := range map[string]struct {
		policy  policy.Policy
		request privacy.Request
	}{
		"unprotected where protection is demanded": {policy.Policy{}, request},
		"unknown protection":                       {open, privacy.Request{Protection: "wishful"}},
		"no protection named":                      {open, privacy.Request{}},
	} {
		tape := &tape{Memory: sitestore.NewMemory()}
		s, err := privacy.NewGate(study, c.policy, tape, tape).AdmitAny(ask, c.request)
		if !errors.Is(err, privacy.ErrRefused) || s != nil || fmt.Sprint(tape.events) != "[room]" {
			t.Errorf("%s: %v, %v", name, tape.events, err)
		}
	}
}

func TestSessionSealsOnce(t *testing.T) {
	tape := &tape{Memory: sitestore.NewMemory()}
	s := testkit.Get(privacy.NewGate(study, open, tape, tape).AdmitAny(ask, request))(t)
	testkit.Get(s.Seal([]byte("a"), nil))(t)
	if r, err := s.Seal([]byte("b"), nil); err == nil || r.Bytes() != nil {
		t.Fatalf("sealed twice: %q", r.Bytes())
	}
}

func ExampleGate() {
	data := &tape{Memory: sitestore.NewMemory()}
	planned := study
	planned.Requests = []privacy.Listed{{Kind: "fit", Times: 5, Request: request}}
	gate := privacy.NewGate(planned, privacy.SimulationPolicy(), data, data)
	session, err := gate.Admit(ask)
	if err != nil {
		panic(err)
	}
	release, err := session.Seal([]byte("the method's numbers"), nil)
	if err != nil {
		panic(err)
	}
	opened, err := privacy.Open(release.Bytes(), request)
	fmt.Printf("%s, round %d, protection %q: %s %v\n", opened.Site, opened.Round, opened.Request.Protection,
		opened.Body, err)
	// Output: north, round 2, protection "none": the method's numbers <nil>
}
