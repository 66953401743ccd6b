package study_test

import (
	"strings"
	"testing"
	"time"

	"parley/study"
)

func TestDurations(t *testing.T) {
	for text, want := range map[study.Duration]time.Duration{"": 0, "90s": 90 * time.Second,
		"1h30m": 90 * time.Minute} {
		if got := text.Duration(); got != want {
			t.Errorf("%q is %v, want %v", text, got, want)
		}
	}
}

// What is no length of time is refused with the place where it stands.
func TestDeadlinesThatAreNone(t *testing.T) {
	for text, want := range map[string]string{"soon": "is no length of time", "-1h": "above 0",
		"2000h": "above 0, and up to"} {
		_, err := study.Parse("plan.yaml", []byte("parley: 1\nname: x\nsites: [a]\ndeadline: "+text+"\n"), nobody{})
		if err == nil || !strings.Contains(err.Error(), "plan.yaml:4:11: deadline") ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// nobody knows no method.
type nobody struct{}

func (nobody) Options(string) (any, bool) { return nil, false }
func (nobody) Names() []string            { return nil }
