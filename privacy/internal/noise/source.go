package noise

import (
	"crypto/aes"
	"crypto/cipher"
	"errors"
)

// KeySize is how many bytes a key has.
const KeySize = 32

// Source is where random bits come from: [Keyed].
type Source interface {
	// fill overwrites all of p with uniformly random bytes, or fails. It is not
	// exported, so that no other package can offer a source.
	fill(p []byte) error
}

// Keyed returns the stream of AES-256 in counter mode, from counter 0, under a
// key. Without the key it cannot be told from uniformly random bytes, as far as
// anybody knows; with it the stream can be had again. So each key is used for
// one vector of noise, and is kept no longer than that takes. The source must
// not be used by two goroutines at once.
func Keyed(key [KeySize]byte) Source {
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err) // the length is right
	}
	return &keyed{cipher.NewCTR(block, make([]byte, aes.BlockSize))}
}

type keyed struct{ stream cipher.Stream }

func (s *keyed) fill(p []byte) error {
	clear(p)
	s.stream.XORKeyStream(p, p)
	return nil
}

// NewKey draws a key from the operating system, and from nothing that another
// part of the program could have put in its place.
func NewKey() (key [KeySize]byte, err error) {
	err = system(key[:])
	return key, err
}

// Simulation takes the place of chance where nobody is protected. Packages
// outside of privacy cannot make one: package privacytest does.
type Simulation struct {
	// Key is the key of a release, by its name.
	Key func(release string) [KeySize]byte
	// Release, if not nil, says what is released in place of exact sums with
	// noise: by the sum's name and the exact sums, block by block. No row is then
	// left out by chance.
	Release func(sum string, exact [][]int64) [][]int64
}

// errRange means that a draw had 2¹⁴ times the scale of its proposal or more,
// which has a probability below exp(−16000): something is wrong with the source.
var errRange = errors.New("a draw of noise left the range of 62 bits: the random source is broken")
