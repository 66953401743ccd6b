package coordinator

import "testing"

// What an earlier process of a site said, and the coordinator missed, is believed once when
// somebody repeats it, and does not shut the present process out.
func TestRepeatedHellosOfEarlierProcesses(t *testing.T) {
	var m member
	for i, c := range []struct {
		life  string
		count uint64
		later bool
	}{
		{"second", 1, true}, {"second", 1, false}, {"first", 3, true}, {"second", 1, false}, {"second", 2, true},
		{"first", 3, false}, {"first", 2, false}, {"second", 3, true},
	} {
		if got := m.advances(c.life, c.count); got != c.later {
			t.Errorf("hello %d, the %s process's number %d: later %t", i, c.life, c.count, got)
		}
	}
}
