package study

import (
	"fmt"
	"time"
)

// Duration is a length of time as people write it: 90s, 36h, 1h30m; empty for none.
// It is measured by the clock of one machine, and never compared with another's.
type Duration string

// Duration returns the length; 0 if it is empty, or none.
func (d Duration) Duration() time.Duration {
	t, err := time.ParseDuration(string(d))
	if err != nil {
		return 0
	}
	return t
}

func (c *checker) duration(path string, d Duration, most time.Duration) {
	if d == "" {
		return
	}
	t, err := time.ParseDuration(string(d))
	switch {
	case err != nil:
		c.report(path, fmt.Sprintf("%q is no length of time", string(d)), "such as 90s, 15m or 36h")
	case t <= 0 || t > most:
		c.report(path, fmt.Sprintf("%s is no length of time for this", d), fmt.Sprintf("above 0, and up to %s", most))
	}
}
