package figure

import (
	"fmt"
	"strings"
	"testing"
)

func twoClouds() Pairs {
	return Pairs{Features: []string{"a", "b", "c"}, Groups: []Cloud{
		{Name: "component 1", Share: 0.995, Mean: Numbers{0, 1, 2}, Cov: Numbers{1, 0.5, 0, 0.5, 2, 0, 0, 0, 3}},
		{Name: "component 2", Share: 0.005, Mean: Numbers{900, 900, 900}, Cov: Numbers{1, 0, 0, 0, 1, 0, 0, 0, 1}}}}
}

// Every pair has both ellipses of a group, and a group that hardly anybody belongs to
// does not stretch the axes until nothing else is seen.
func TestPairsDrawsEveryPair(t *testing.T) {
	k := twoClouds()
	text := string(svg(t, Figure{ID: "p", Title: "p", Chart: k}))
	if n := strings.Count(text, "component 1: holds 90 % of its subjects"); n != 3 {
		t.Errorf("%d outer ellipses of three pairs", n)
	}
	if strings.Contains(text, "component 2: mean") || strings.Contains(text, ">900<") {
		t.Error("a group without subjects stretched the axes")
	}
	if e := k.extent(0); e.lo > -2.1 || e.hi > 3 {
		t.Errorf("feature a is drawn from %v to %v; nine tenths of component 1 lie in ±2.15", e.lo, e.hi)
	}
	if (Figure{Chart: k}).PerSubject() {
		t.Error("ellipses show no subject")
	}
	k.Values = []Numbers{{0, 1}, {2, 3}, {4, 5}}
	if !(Figure{Chart: k}).PerSubject() {
		t.Error("rows are subjects'")
	}
	if table := k.Table(); table.Len() != 2*(1+3)+2 || len(table.Columns) != 3+3 {
		t.Errorf("%d rows and %d columns; want a mean and three rows of a covariance of each group, two subjects", table.Len(), len(table.Columns))
	}
}

func TestPairsSaysWhatItLeavesOut(t *testing.T) {
	var k Pairs
	for i := range maxPairs + 2 {
		k.Features = append(k.Features, fmt.Sprintf("f%d", i+1))
	}
	k.Groups = []Cloud{{Name: "g", Share: 1}}
	if text := string(svg(t, Figure{ID: "p", Title: "p", Chart: k})); !strings.Contains(text, fmt.Sprintf("The first %d of %d features.", maxPairs, maxPairs+2)) {
		t.Error("features were left out without a word")
	}
}
