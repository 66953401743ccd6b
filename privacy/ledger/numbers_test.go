package ledger_test

import (
	"math"
	"testing"

	"parley/privacy"
	"parley/privacy/ledger"
)

// A noised sum is counted as often as it is made, once whether or not it is among
// the contents, and not where it stays at the site.
func TestNumbersAreAtMost(t *testing.T) {
	twice, kept := vectors(5, 3, 4), vectors(5, 6)
	twice.Mechanism.Count, kept.Kept = 2, true
	contents := func(n ...int) (list []privacy.Content) {
		for _, values := range n {
			list = append(list, privacy.Content{What: "numbers", Values: values})
		}
		return list
	}
	all := []privacy.Listed{}
	for _, c := range []struct {
		request privacy.Request
		want    int
	}{
		{privacy.Request{Protection: privacy.Unprotected, Contents: contents(3, 4)}, 7},
		{differential(twice), 14},
		{differential(kept), 0},
		{privacy.Request{Protection: privacy.Differential, Sums: []privacy.Sum{kept}, Contents: contents(6)}, 6},
		{privacy.Request{Protection: privacy.Differential, Sums: []privacy.Sum{twice}, Contents: contents(14, 2)}, 16},
	} {
		if got := ledger.NumbersOf(c.request); got != c.want {
			t.Errorf("%+v: %d numbers, want %d", c.request, got, c.want)
		}
		all = append(all, privacy.Listed{Times: 2, Request: c.request})
	}
	if got := ledger.All(all, ledger.NumbersOf); got != 86 {
		t.Errorf("%d numbers in all", got)
	}
	all[0].Times = math.MaxInt
	if got := ledger.All(all, ledger.NumbersOf); got != math.MaxInt {
		t.Errorf("%d numbers of too many", got)
	}
}
