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
