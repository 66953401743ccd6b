package noise

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// system fills p from the kernel's generator, once that has been seeded.
func system(p []byte) error {
	for len(p) > 0 {
		n, err := unix.Getrandom(p, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("asking the operating system for a random key: %w", err)
		}
		p = p[n:]
	}
	return nil
}
