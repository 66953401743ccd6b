// Package problem says what is wrong with something a person wrote, where it
// is, and what would be right. Plans, policies and data files are checked in
// full: everything found is reported together, as one [List].
package problem

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing to mend. Only What is required.
type Problem struct {
	File   string // path as the user gave it
	Line   int    // from 1; 0 if it does not apply
	Column int    // from 1, in characters; 0 if it does not apply
	Where  string // key, feature, view or site that the problem is about
	What   string // what is wrong, without a full stop
	Hint   string // what would be right; may span lines
}

// Error formats the problem as "file:line:column: where: what", leaving out
// what is unknown, with the hint on lines of its own.
func (p Problem) Error() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d", p.Line)
		if p.Column > 0 {
			fmt.Fprintf(&b, ":%d", p.Column)
		}
	}
	for _, s := range []string{p.Where, p.What} {
		if s == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteString(": ")
		}
		b.WriteString(s)
	}
	for line := range strings.Lines(p.Hint) {
		b.WriteString("\n  hint: " + strings.TrimRight(line, "\n"))
	}
	return b.String()
}

// List is every problem found, in the order of file, line and column. The nil
// List means that nothing was found; use [List.Err] to return one as an error.
type List []Problem

// Add appends a problem.
func (l *List) Add(p Problem) { *l = append(*l, p) }

// Err sorts the list and returns it as an error, each problem once, or nil if it is empty.
func (l List) Err() error {
	if len(l) == 0 {
		return nil
	}
	slices.SortStableFunc(l, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return slices.Compact(l)
}

// Error lists one problem after the other.
func (l List) Error() string { return strings.Join(l.Lines(), "\n") }

// Lines puts each problem in words; empty, not nil, for none.
func (l List) Lines() []string {
	lines := make([]string, len(l))
	for i, p := range l {
		lines[i] = p.Error()
	}
	return lines
}

// Unwrap lets errors.As find the single problems.
func (l List) Unwrap() []error {
	errs := make([]error, len(l))
	for i, p := range l {
		errs[i] = p
	}
	return errs
}

// maxNames is how many names of a list are written out.
const maxNames = 10

// Names lists ten names at most, and says how many more there are.
func Names(names []string) string {
	list := strings.Join(names[:min(len(names), maxNames)], ", ")
	if more := len(names) - maxNames; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return list
}
