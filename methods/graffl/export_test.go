package graffl

import (
	"testing"

	"parley/study"
)

// Held says whether a plan holds a subject.
func Held(t *testing.T, p *study.Plan, id string) bool {
	t.Helper()
	s, err := newSetup(p)
	if err != nil {
		t.Fatal(err)
	}
	return s.held(id)
}
