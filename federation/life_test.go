package federation_test

import (
	"os"
	"strings"
	"testing"

	"parley/federation"
	"parley/federation/coordinator"
)

// Of two machines with copies of one site's folder, one answers, and all are told so: when
// the second starts, when the coordinator starts again, and until one of them ends. A copy
// that then takes over lacks what others have seen, so it waits for a person.
func TestTwoMachinesServeAsOneSite(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve()
	w.join(sites...)
	w.begin(sites...)
	d := w.submit(plan("copied", 600, 3, sites...))
	w.approve(d, "south")
	w.eventually("south has approved", func() bool { return w.standing("south", d).State == federation.Approved })
	w.end("south")
	check(t, os.CopyFS(w.path("copy"), os.DirFS(w.path("south"))))
	before := w.charges("copy")
	w.begin("south")
	w.approve(d, "north", "centre")
	w.reaches(d, 2)
	w.begin("copy")
	two := func() {
		t.Helper()
		const words = "two machines serve as south"
		w.eventually("everybody is told", func() bool {
			status, err := w.co.ReadStatus()
			check(t, err)
			said := 0
			for _, s := range status.Sites {
				if strings.Contains(s.Text, words) {
					said++
				}
			}
			for name, what := range map[string]string{"copy": "this one answers nothing", "south": "the other one answers nothing"} {
				s, err := w.folder(name).ReadStatus()
				check(t, err)
				if strings.Contains(s.Trouble, words) && strings.Contains(s.Trouble, what) {
					said++
				}
			}
			return said == 3 && strings.Contains(w.log.String(), words)
		})
	}
	two()
	round := w.study(d).Round
	w.reaches(d, round+3)
	w.halt()
	w.serve()
	w.reaches(d, round+6)
	two()
	if n := w.charges("copy"); n != before {
		t.Errorf("the copy was charged %d times", n)
	}
	w.end("south")
	w.eventually("the copy takes over, and waits for a person", func() bool { return w.standing("copy", d).State == federation.Unable })
	if n := w.charges("copy"); n != before {
		t.Errorf("the copy was charged %d times", n)
	}
	w.end("copy")
	round = w.study(d).Round
	w.begin("south")
	w.reaches(d, round+3)
	check(t, w.co.Give(d, coordinator.Order{Abort: true}))
}
