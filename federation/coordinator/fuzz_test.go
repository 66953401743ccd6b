package coordinator

import (
	"os"
	"parley/federation"
	"path/filepath"
	"testing"
)

// A key that is damaged is an error, or one that can be kept again.
func FuzzParseSecrets(f *testing.F) {
	s, err := newSecrets(Account{})
	if err != nil {
		f.Fatal(err)
	}
	path := filepath.Join(f.TempDir(), "key")
	if err := s.save(path); err != nil {
		f.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
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
