//go:build unix && !linux

package noise

import (
	"fmt"
	"io"
	"os"
)

// system fills p from the kernel's generator.
func system(p []byte) error {
	f, err := os.Open("/dev/urandom")
	if err == nil {
		_, err = io.ReadFull(f, p)
		f.Close()
	}
	if err != nil {
		return fmt.Errorf("asking the operating system for a random key: %w", err)
	}
	return nil
}
