package regression

import (
	"slices"
	"testing"
)

// A difference counts if it is larger than two standard errors.
func TestTally(t *testing.T) {
	var x tally
	x.add("a", 0.0021, 0.001)
	x.add("b", -0.0021, 0.001)
	x.add("c", 0.0019, 0.001)
	x.add("d", -0.03, 0.016)
	if x.ahead != 1 || x.level != 2 || !slices.Equal(x.behind, []string{"b by 0.0021"}) {
		t.Errorf("%+v", x)
	}
}
