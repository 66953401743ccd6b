package coordinator

import (
	"os"
	"path/filepath"
	"testing"

	"parley/federation"
	"parley/internal/testkit"
)

// A key that is damaged is an error, or one that can be kept again.
func FuzzParseSecrets(f *testing.F) {
	s := testkit.Get(newSecrets(Account{}))(f)
	path := filepath.Join(f.TempDir(), "key")
	testkit.Do(f, s.save(path))
	text := testkit.Get(os.ReadFile(path))(f)
	f.Add(text, []byte(nil))
	f.Add([]byte{}, []byte{0xa0})
	f.Fuzz(func(t *testing.T, text, inner []byte) {
		if len(inner) > 0 {
			text = federation.Armour("", keyMark, inner, 0)
		}
		s, err := parseSecrets(text)
		if err != nil {
			return
		}
		if err := s.save(filepath.Join(t.TempDir(), "again")); err != nil {
			t.Error(err)
		}
	})
}

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
