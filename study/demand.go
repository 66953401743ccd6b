package study

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Report takes one demand that a plan does not meet: key is the option that it is about,
// such as "latent" or "published.steps" ("" for the method as a whole), what says what is
// wrong, and hint what would be right. Its methods are the demands that every method makes.
type Report func(key, what, hint string)

// Within reports on the options of a section.
func (r Report) Within(section string) Report {
	return func(key, what, hint string) { r(section+"."+key, what, hint) }
}

// If reports what is so, and says whether it is.
func (r Report) If(is bool, key, what, hint string) bool {
	if is {
		r(key, what, hint)
	}
	return is
}

// OneOf demands one of a few words.
func (r Report) OneOf(key, value string, allowed ...string) bool {
	return !r.If(!slices.Contains(allowed, value), key, fmt.Sprintf("%q is not known", value),
		"one of "+strings.Join(allowed, ", "))
}

// AtLeast demands a whole number from least on.
func (r Report) AtLeast(key string, value, least int) {
	r.If(value < least, key, fmt.Sprintf("%d is too few", value), fmt.Sprintf("at least %d", least))
}

// Positive demands a positive, finite number.
func (r Report) Positive(key string, x float64) bool {
	return !r.If(!(x > 0 && x <= math.MaxFloat64), key, fmt.Sprintf("%v is not positive and finite", x),
		"a positive number")
}

// Share demands a part, above 0 and at most 1; cannot says of what in words that follow
// the number.
func (r Report) Share(key string, x float64, cannot string) {
	r.If(!(x > 0 && x <= 1), key, fmt.Sprintf("%v %s", x, cannot), "above 0, to 1 for all of it")
}

// Absent demands that options are not given, in the order of their keys.
func (r Report) Absent(what, hint string, given map[string]bool) {
	keys := make([]string, 0, len(given))
	for key, is := range given {
		if is {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		r(key, what, hint)
	}
}
