//go:build !unix

package cputime

import "time"

var started = time.Now()

// Used is the time since the start, where that of processors is not known.
func Used() time.Duration { return time.Since(started) }
