package noise

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
)

// Source is where random bits come from: [System], or [Seeded] in simulations.
type Source interface {
	// Seeded reports whether somebody who knows a seed can repeat the draws. A
	// release made from such a source protects nobody.
	Seeded() bool
	// fill overwrites all of p with uniformly random bytes, or fails. It is not
	// exported, so that no other package can offer a source.
	fill(p []byte) error
}

// System returns the operating system's cryptographic generator, the only
// source for noise that protects people. It may be shared and used by several
// goroutines: it holds nothing.
func System() Source { return system{} }

type system struct{}

func (system) Seeded() bool { return false }

func (system) fill(p []byte) error {
	if _, err := io.ReadFull(rand.Reader, p); err != nil {
		return fmt.Errorf("reading the operating system's random generator: %w", err)
	}
	return nil
}

// errRange means that a draw had 2¹⁴ times the scale of its proposal or more,
// which has a probability below exp(−16000): something is wrong with the source.
var errRange = errors.New("a draw of noise left the range of 62 bits: the random source is broken")
