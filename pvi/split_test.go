package pvi

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Whatever a scheme asks for, it gets: sizes and classes are those of its shares.
func TestRowsAreAssignedInTheirShares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Scheme{2 * rapid.IntRange(1, 6).Draw(t, "half"), rapid.Float64Range(0, 1).Draw(t, "rho"), rapid.Float64Range(-4, 1).Draw(t, "kappa")}
		majority := make([]bool, rapid.IntRange(1, 500).Draw(t, "rows"))
		n := 0
		every := rapid.IntRange(2, 9).Draw(t, "every")
		for i := range majority {
			if majority[i] = i%every > 0; majority[i] {
				n++
			}
		}
		h, err := s.Shares(len(majority), n)
		if err != nil {
			t.Fatal(err)
		}
		client, err := s.Assign(majority, rand.New(rand.NewPCG(1, 2)))
		if h.Valid() != (err == nil) {
			t.Fatalf("valid: %v, %v", h.Valid(), err)
		}
		if err != nil {
			return
		}
		rows, major := map[int]int{}, map[int]int{}
		for i, m := range client {
			rows[m]++
			if majority[i] {
				major[m]++
			}
		}
		for m := range s.Clients {
			want := h.Large
			if m < s.Clients/2 {
				want = h.Small
				if major[m] != h.SmallMajority {
					t.Fatalf("client %d has %d rows of the majority, want %d", m, major[m], h.SmallMajority)
				}
			}
			if rows[m] != want {
				t.Fatalf("client %d has %d rows, want %d", m, rows[m], want)
			}
		}
		if rows[-1] != h.Unused {
			t.Fatalf("%d rows are unused, want %d", rows[-1], h.Unused)
		}
		again, err := s.Assign(majority, rand.New(rand.NewPCG(1, 2)))
		if err != nil || !slices.Equal(client, again) {
			t.Fatal("the same seed gives other rows", err)
		}
	})
}

func TestImpossibleSchemesAreRefused(t *testing.T) {
	for want, s := range map[string]Scheme{
		"even number":   {3, 0, 0},
		"rho 2":         {2, 2, 0},
		"two classes":   {2, 0, -8},
		"0 clients":     {0, 0, 0},
		"rho between 0": {2, -0.1, 0},
	} {
		if _, err := s.Assign(make([]bool, 10), rand.New(rand.NewPCG(1, 2))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", s, err, want)
		}
	}
	if _, err := SchemeA.Shares(0, 0); err == nil {
		t.Error("no rows pass")
	}
}

func TestPaperDeltaIsBelowOneOverN(t *testing.T) {
	for n, want := range map[int]float64{1: 1, 2: 0.1, 10: 0.1, 11: 0.01, 390: 1e-3, 1000: 1e-3, 1001: 1e-4, 7424: 1e-4} {
		if got := PaperDelta(n); got != want {
			t.Errorf("n = %d: %v, want %v", n, got, want)
		}
	}
}

func TestPaperBatches(t *testing.T) {
	for n, want := range map[int]int{5: 5, 20: 20, 390: 20, 1172: 24, 3907: 79, 7424: 149} {
		if got := PaperBatch(n, 0.02); got != want {
			t.Errorf("n = %d: %v, want %v", n, got, want)
		}
	}
}
