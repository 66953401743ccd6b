//go:build !unix

package main

import "time"

var started = time.Now()

// processorTime is the time since the start, where that of processors is not known.
func processorTime() time.Duration { return time.Since(started) }
