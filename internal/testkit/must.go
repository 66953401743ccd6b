// Package testkit is what tests of many packages need: [Get] and [Do] end a test whose
// preparations fail, in one line where a check would take four; [Changed] holds a
// verification of test vectors to what it claims; and with the build tag browser pages are
// opened in a real one.
package testkit

// tester is what [testing.TB] and rapid's tests have in common.
type tester interface {
	Helper()
	Fatal(args ...any)
}

// Sized is how much of something a test does: little in the minutes that every change has,
// and much with the build tag long, which .ci/long sets. Whole tests that take long are in
// files with that tag, so that nothing is skipped.
func Sized[T any](little, much T) T {
	if long {
		return much
	}
	return little
}

// Get returns v, unless there is an error: must.Get(os.ReadFile(path))(t).
func Get[T any](v T, err error) func(tester) T {
	return func(t tester) T {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
		return v
	}
}

// Do ends the test if there is an error.
func Do(t tester, err error) {
	if err != nil {
		t.Helper() // which takes longer than much that is benchmarked
		t.Fatal(err)
	}
}
