package privacy

import (
	"strings"

	"parley/problem"
)

// RefusalError says everything for which a request was refused, without a word
// on what the rows hold. It is ErrRefused.
type RefusalError struct {
	Reasons problem.List
}

// Error puts all reasons on one line.
func (e *RefusalError) Error() string {
	var reasons []string
	for _, r := range e.Reasons {
		text := r.What
		if r.Where != "" {
			text = r.Where + ": " + text
		}
		reasons = append(reasons, text)
	}
	return ErrRefused.Error() + ": " + strings.Join(reasons, "; ")
}

// Unwrap makes the error ErrRefused.
func (e *RefusalError) Unwrap() error { return ErrRefused }

func (e *RefusalError) add(where, what, hint string) {
	e.Reasons.Add(problem.Problem{Where: where, What: what, Hint: hint})
}

// err returns the refusal, or nil if there is no reason for it.
func (e *RefusalError) err() error {
	if len(e.Reasons) == 0 {
		return nil
	}
	return e
}
