package cputime

import "testing"

func TestTimeGrowsWithWork(t *testing.T) {
	before := Used()
	for Used() == before { // however coarse the clock is
	}
	if after := Used(); after < before {
		t.Errorf("%v after %v", after, before)
	}
}
