//go:build long

package mixture

import (
	"testing"

	"parley/internal/testkit"
	"parley/internal/wire"
	"parley/method"
	"parley/method/methodtest"
	"parley/methods/mixture/fitted"
)

// Answers that pass every check, and that no rows give.
func TestTheStudyEndsOnAnswersThatNoRowsGive(t *testing.T) {
	type sums struct {
		Sums wire.Vector `cbor:"sums"`
		Rows int         `cbor:"rows"`
	}
	for _, c := range []struct {
		what, plan string
		every      int // of so many frequencies one has all rows; none if it is 0
	}{
		{"all at every frequency", "frequencies", 1}, {"no row at any frequency", "frequencies", 0},
		{"many rows at every other", "frequencies", 2}, {"many rows at one", "frequencies", 1 << 20},
	} {
		x := cases(t)[c.plan]
		d := &methodtest.Drive{Method: Method{}, Plan: x.Plan, Data: x.Data}
		d.Tamper = func(site string, in *method.Contribution) {
			var a sums
			switch {
			case site != "a":
			case wire.Unmarshal(in.Body, &a) == nil:
				a.Rows = fitted.MaxRows
				for i := range a.Sums {
					if a.Sums[i] = 0; c.every > 0 && i%c.every == 0 {
						a.Sums[i] = fitted.MaxRows
					}
				}
				in.Body = testkit.Get(wire.Marshal(a))(t)
			}
		}
		if _, err := d.Run(t); err != nil || len(d.Left) > 0 {
			t.Errorf("%s: %v left, %v", c.what, d.Left, err)
		}
	}
}
