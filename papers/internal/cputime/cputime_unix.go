//go:build unix

package cputime

import (
	"syscall"
	"time"
)

// Used is the time that processors have worked for this process; 0 if the system
// does not tell.
func Used() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
