package testkit

// Sized is how much of something a test does: little in the minutes that every change has,
// and much with the build tag long, which .ci/long sets. Whole tests that take long are in
// files with that tag, so that nothing is skipped.
func Sized[T any](little, much T) T {
	if long {
		return much
	}
	return little
}
