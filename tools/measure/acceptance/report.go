package acceptance

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
)

// row is one measured number and, if it was promised, what it must be.
type row struct {
	Promise string  `json:"promise"`
	Case    string  `json:"case"`
	What    string  `json:"what"`
	Value   float64 `json:"value"`
	// The bar: Value ≥ Least and Value ≤ Most, each if it is not nil.
	Least *float64 `json:"least,omitempty"`
	Most  *float64 `json:"most,omitempty"`
	Note  string   `json:"note,omitempty"`
}

// graded says whether anything was promised.
func (r *row) graded() bool { return r.Least != nil || r.Most != nil }

// met says whether the promise is kept. A number that is not one keeps none.
func (r *row) met() bool {
	return !r.graded() || !math.IsNaN(r.Value) && (r.Least == nil || r.Value >= *r.Least) && (r.Most == nil || r.Value <= *r.Most)
}

func (r *row) verdict() string {
	switch {
	case !r.graded():
		return ""
	case r.met():
		return "pass"
	}
	return "FAIL"
}

func (r *row) bar() string {
	switch {
	case r.Least != nil && r.Most != nil:
		return fmt.Sprintf("%s to %s", number(*r.Least), number(*r.Most))
	case r.Least != nil:
		return "≥ " + number(*r.Least)
	case r.Most != nil:
		return "≤ " + number(*r.Most)
	}
	return ""
}

// number has five digits that count, and all of a whole number.
func number(x float64) string {
	if x == math.Trunc(x) && math.Abs(x) < 1e15 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.5g", x)
}

// table collects the rows of one promise.
type table struct {
	promise string
	rows    []row
}

// add appends a number that is reported and not graded.
func (t *table) add(where, what string, value float64) *row {
	t.rows = append(t.rows, row{Promise: t.promise, Case: where, What: what, Value: value})
	return &t.rows[len(t.rows)-1]
}

func (r *row) atMost(x float64) *row  { r.Most = &x; return r }
func (r *row) atLeast(x float64) *row { r.Least = &x; return r }

func (r *row) note(format string, args ...any) *row {
	r.Note = fmt.Sprintf(format, args...)
	return r
}

// missed lists the rows that break a promise.
func missed(rows []row) (bad []row) {
	for _, r := range rows {
		if !r.met() {
			bad = append(bad, r)
		}
	}
	return bad
}

func writeTable(w io.Writer, rows []row) error {
	_, err := fmt.Fprint(w, "| promise | case | what | value | bar | | |\n|---|---|---|---:|---|---|---|\n")
	for _, r := range rows {
		if err == nil {
			_, err = fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %s | %s |\n", r.Promise, r.Case, r.What, strings.ReplaceAll(number(r.Value), "-", "−"), r.bar(), r.verdict(), r.Note)
		}
	}
	return err
}

func writeJSON(w io.Writer, rows []row) error {
	type graded struct {
		row
		Value *float64 `json:"value"` // null if it is not a number
		Pass  *bool    `json:"pass,omitempty"`
	}
	out := make([]graded, len(rows))
	for i, r := range rows {
		out[i].row = r
		if !math.IsNaN(r.Value) && !math.IsInf(r.Value, 0) {
			out[i].Value = &rows[i].Value
		}
		if r.graded() {
			ok := r.met()
			out[i].Pass = &ok
		}
	}
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	return e.Encode(out)
}
