// Package vectors compares numbers with published ones, entry by entry, and
// records how far apart they are. It knows nothing of what the numbers mean.
package vectors

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
)

// Check is the comparison of one named entry of a file of test vectors.
type Check struct {
	Entry      string  // where the entry is in its file
	Want, Got  string  // short summaries: the value, or the pair that differs most
	WorstError float64 // largest error of an element, in the terms of Tolerance
	Tolerance  float64 // largest error allowed, relative
	OK         bool
}

// Tolerance is how far apart two numbers may be: |got − want| ≤ Rel·max(|want|, Floor).
// Entries below Floor are thus compared to Rel·Floor, absolutely.
type Tolerance struct{ Rel, Floor float64 }

// List collects checks.
type List []Check

// Floats compares two arrays of numbers. Another length, or anything that is
// not finite, is disagreement.
func (l *List) Floats(entry string, want, got []float64, tol Tolerance) {
	c := Check{Entry: entry, Tolerance: tol.Rel}
	if len(want) != len(got) {
		c.Want, c.Got = fmt.Sprintf("%d numbers", len(want)), fmt.Sprintf("%d numbers", len(got))
		c.WorstError = math.Inf(1)
		*l = append(*l, c)
		return
	}
	at := -1
	for i := range want {
		e := math.Abs(got[i]-want[i]) / max(math.Abs(want[i]), tol.Floor)
		if got[i] == want[i] {
			e = 0
		}
		if math.IsNaN(e) || math.IsInf(want[i], 0) {
			e = math.Inf(1)
		}
		if at < 0 || e > c.WorstError {
			at, c.WorstError = i, e
		}
	}
	switch {
	case at < 0:
		c.Want, c.Got = "nothing", "nothing"
	case len(want) == 1:
		c.Want, c.Got = fmt.Sprint(want[0]), fmt.Sprint(got[0])
	default:
		c.Want, c.Got = fmt.Sprintf("[%d] %v", at, want[at]), fmt.Sprintf("[%d] %v", at, got[at])
	}
	c.OK = c.WorstError <= tol.Rel
	*l = append(*l, c)
}

// Float compares two numbers.
func (l *List) Float(entry string, want, got float64, tol Tolerance) {
	l.Floats(entry, []float64{want}, []float64{got}, tol)
}

// Equal compares two values by their printed form.
func (l *List) Equal(entry string, want, got any) {
	c := Check{Entry: entry, Want: fmt.Sprint(want), Got: fmt.Sprint(got)}
	if c.OK = c.Want == c.Got; !c.OK {
		c.WorstError = math.Inf(1)
	}
	*l = append(*l, c)
}

// OK says whether there are checks and all of them agree.
func (l List) OK() bool {
	for _, c := range l {
		if !c.OK {
			return false
		}
	}
	return len(l) > 0
}

// Run runs a file of test vectors by the format that its "schema" names. An
// unknown one is an error, and so is a file that cannot be run.
func Run(file []byte, formats map[string]func(file []byte, list *List) error) ([]Check, error) {
	var head struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(file, &head); err != nil {
		return nil, fmt.Errorf("test vectors: %w", err)
	}
	run, ok := formats[head.Schema]
	if !ok {
		return nil, fmt.Errorf("test vectors of unknown schema %q", head.Schema)
	}
	var list List
	if err := run(file, &list); err != nil {
		return list, fmt.Errorf("test vectors (%s): %w", head.Schema, err)
	}
	return list, nil
}

// Format reads files whose keys are those of F, and hands them to what runs them.
func Format[F any](run func(f *F, list *List) error) func([]byte, *List) error {
	return func(file []byte, list *List) error {
		f := new(F)
		if err := Decode(file, f); err != nil {
			return err
		}
		return run(f, list)
	}
}

// Decode reads JSON whose keys must all be known.
func Decode(file []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(file))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return fmt.Errorf("something follows the end of the file")
	}
	return nil
}
