// Package version names the program's version.
package version

import "runtime/debug"

// Number is the version of this source tree, in semantic versioning.
const Number = "0.1.0-dev"

// commit is set by tools/release when it links, because Go finds no commit in a work
// tree of git. In any other build Go may know it.
var commit string

// String is the version with the commit it was built from, where the build
// knows it.
func String() string {
	if commit != "" {
		return Number + "+" + commit
	}
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
