package federation_test

import (
	"testing"
)

var sites = []string{"north", "centre", "south"}

func TestStudyEndsAtEverySite(t *testing.T) {
	w := newWorld(t)
	w.serve()
	w.join(sites...)
	p := plan("quiet", 4, 3, sites...)
	d := w.submit(p)
	w.begin(sites...)
	w.approve(d, sites...)
	w.ended(d, sites...)
	t.Logf("%q", w.trace(p))
}
