package testkit_test

import (
	"errors"
	"testing"

	"parley/internal/testkit"
)

// ended notes what ended a test.
type ended struct{ why []any }

func (*ended) Helper()            {}
func (e *ended) Fatal(why ...any) { e.why = why }

func TestAnErrorEndsTheTest(t *testing.T) {
	wrong := errors.New("wrong")
	var good, bad ended
	if v := testkit.Get(7, nil)(&good); v != 7 || good.why != nil {
		t.Errorf("%d, %v", v, good.why)
	}
	testkit.Get(0, wrong)(&bad)
	if len(bad.why) != 1 || bad.why[0] != wrong {
		t.Errorf("%v", bad.why)
	}
}
