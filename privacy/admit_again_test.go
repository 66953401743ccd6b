package privacy_test

import (
	"context"
	"errors"
	"testing"

	"parley/dataset"
	"parley/internal/testkit"
	"parley/privacy"
	"parley/sitestore"
)

// A charge is for what it says: the same release under another kind, or with another
// request than was charged, is no retry. Of two sessions for one charge the first ends.
func TestSessionIsForWhatWasCharged(t *testing.T) {
	small := privacy.Request{Protection: privacy.Differential, Sums: []privacy.Sum{vectors(100, 1)}}
	big := privacy.Request{Protection: privacy.Differential, Sums: []privacy.Sum{vectors(1, 1)}}
	store := sitestore.NewMemory()
	s := privacy.Study{Digest: "study", Site: "north",
		Requests: []privacy.Listed{{Kind: "small", Times: 1, Request: small}, {Kind: "big", Times: 1, Request: big}}}
	gate := privacy.NewGate(s, privacy.SimulationPolicy(), store, subjects(3))
	ask := privacy.Ask{Study: "study", Site: "north", Round: 1, Kind: "small"}
	first := testkit.Get(gate.Admit(ask))(t)
	other := ask
	other.Kind = "big"
	if _, err := gate.Admit(other); !errors.Is(err, privacy.ErrConflict) {
		t.Errorf("another kind for the same charge: %v", err)
	}
	changed := s
	changed.Requests = []privacy.Listed{{Kind: "small", Times: 1, Request: big}}
	if _, err := privacy.NewGate(changed, privacy.SimulationPolicy(), store, subjects(3)).Admit(ask); !errors.Is(err,
		privacy.ErrConflict) {
		t.Errorf("another request for the same charge: %v", err)
	}
	testkit.Get(gate.Admit(ask))(t)
	if _, err := first.Sum(context.Background(), small.Sums[0].Name, func(*dataset.Row, []float64) int {
		return 0
	}); err == nil {
		t.Error("two sessions live on one charge")
	}
}

// What an exact task has sealed as its state, no session with protection reads.
func TestStateOfExactTasksStaysWithThem(t *testing.T) {
	exact := privacy.Request{Protection: privacy.Unprotected, Contents: []privacy.Content{{What: "rows", Values: 9}}}
	noised := privacy.Request{Protection: privacy.Differential, Sums: []privacy.Sum{vectors(4, 1)}}
	s := privacy.Study{Digest: "study", Site: "north",
		Requests: []privacy.Listed{{Kind: "exact", Times: 1, Request: exact},
			{Kind: "noised", Times: 1, Request: noised}}}
	gate := privacy.NewGate(s, privacy.SimulationPolicy(), sitestore.NewMemory(), subjects(3))
	session := testkit.Get(gate.Admit(privacy.Ask{Study: "study", Site: "north", Round: 1, Kind: "exact"}))(t)
	testkit.Get(session.Seal(nil, []byte("all rows")))(t)
	session = testkit.Get(gate.Admit(privacy.Ask{Study: "study", Site: "north", Round: 2, Kind: "noised"}))(t)
	if state := session.State(); state != nil {
		t.Errorf("it reads %q", state)
	}
}

// tolerable has a bad cell for whoever does not pass it over.
type tolerable struct{ dataset.Source }

func (d tolerable) Tolerant() dataset.Source { return subjects(2) }

// A cell that has gone bad since all were checked counts as nothing.
func TestBadCellsCountAsNothingUnderProtection(t *testing.T) {
	noised := privacy.Request{Protection: privacy.Differential, Sums: []privacy.Sum{vectors(4, 1)}}
	s := privacy.Study{Digest: "study", Site: "north",
		Requests: []privacy.Listed{{Kind: "noised", Times: 1, Request: noised}}}
	gate := privacy.NewGate(s, privacy.SimulationPolicy(), sitestore.NewMemory(), tolerable{subjects(3)})
	session := testkit.Get(gate.Admit(privacy.Ask{Study: "study", Site: "north", Round: 1, Kind: "noised"}))(t)
	rows := 0
	if _, err := session.Sum(context.Background(), noised.Sums[0].Name, func(*dataset.Row, []float64) int {
		rows++
		return -1
	}); err != nil || rows != 2 {
		t.Errorf("%d rows, %v", rows, err)
	}
}
