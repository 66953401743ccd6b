// Package version names the program's version.
package version

import "runtime/debug"

// Number is the version of this source tree, in semantic versioning.
const Number = "0.1.0-dev"

// String is the version with the commit it was built from, where the build
// knows it.
func String() string {
	revision, modified := "", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision" && len(s.Value) >= 12:
				revision = "+" + s.Value[:12]
			case s.Key == "vcs.modified" && s.Value == "true":
				modified = ".modified"
			}
		}
	}
	if revision == "" {
		return Number
	}
	return Number + revision + modified
}
