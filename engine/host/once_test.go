package host_test

import (
	"errors"
	"math"
	"testing"

	"parley/dataset"
	"parley/engine"
	"parley/engine/enginetest"
	"parley/engine/host"
	"parley/internal/testkit"
	"parley/privacy"
	"parley/privacy/account"
	"parley/privacy/policy"
	"parley/privacy/privacytest"
	"parley/sitestore"
)

// onceStudy is a count of subjects with privacy noise.
func onceStudy() privacy.Study {
	sum := privacy.Sum{Name: "subjects", Unit: privacy.Subject, Form: privacy.Moments, Blocks: []int{1}, Bound: 1,
		Mechanism: account.Mechanism{Kind: account.Gaussian, Noise: 5, Rate: 1, Diameter: math.Sqrt2, Count: 1}}
	return privacy.Study{Digest: "0c", Method: "toy", Sites: 3, Quorum: 3,
		Guarantee: &privacy.Guarantee{Unit: privacy.Subject, Adjacency: account.AddRemove,
			Budget: account.Budget{Epsilon: 1, Delta: 1e-5}},
		Requests: []privacy.Listed{{Kind: "count", Times: 1, Request: privacy.Request{Protection: privacy.Differential,
			Contents: []privacy.Content{{What: "subjects", Values: 1}}, Sums: []privacy.Sum{sum}}}}}
}

// What is released once is charged before a row is summed, once, and comes back as it was.
func TestOnceChargesOnce(t *testing.T) {
	store := sitestore.NewMemory()
	asked := 0
	release := func(h *host.Host, s privacy.Study) (*privacy.Noised, error) {
		return h.Once(t.Context(), s, func(_ *dataset.Row, v []float64) int {
			if lines, _ := store.Reservations(0); len(lines) != 1 {
				t.Errorf("a row is summed after %d charges", len(lines))
			}
			asked++
			v[0] = 1
			return 0
		})
	}
	strict := hostOf(store, enginetest.ToyRows(60))
	strict.Policy = policy.Default()
	strict.Policy.Study = &account.Budget{Epsilon: 0.5, Delta: 1e-5}
	if _, err := release(strict, onceStudy()); !errors.Is(err, privacy.ErrRefused) {
		t.Errorf("above the policy's limit: %v", err)
	}
	few := onceStudy()
	few.Quorum = 2
	strict.Policy = policy.Default()
	if _, err := release(strict, few); !errors.Is(err, privacy.ErrRefused) {
		t.Errorf("fewer sites than the policy wants: %v", err)
	}
	if lines, _ := store.Reservations(0); len(lines) != 0 || asked > 0 {
		t.Errorf("refused, and there are %d charges and %d rows were read", len(lines), asked)
	}
	var got []float64
	for i := range 2 {
		h := hostOf(store, enginetest.ToyRows(60))
		h.Policy = policy.Default()
		h.Options = []privacy.Option{privacytest.Seeded(uint64(i))} // other noise, if any is drawn
		n := testkit.Get(release(h, onceStudy()))(t)
		got = append(got, n.Floats(0)[0])
	}
	if lines, _ := store.Reservations(0); len(lines) != 1 || asked != 60 || got[0] != got[1] ||
		math.Abs(got[0]-60) > 40 || got[0] == 60 {
		t.Errorf("%d charges, %d rows read, released %v", len(lines), asked, got)
	}
	if _, err := release(hostOf(store, enginetest.ToyRows(61)), onceStudy()); !errors.Is(err, engine.ErrChanged) {
		t.Errorf("other data: %v", err)
	}
}
