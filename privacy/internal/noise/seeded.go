package noise

import "math/rand/v2"

// Seeded returns a source that repeats itself: the stream of ChaCha8 under the
// key seed. It is for simulations and tests, whose outputs must say so. It must
// not be used by two goroutines at once.
func Seeded(seed [32]byte) Source { return &seeded{rand.NewChaCha8(seed)} }

type seeded struct{ stream *rand.ChaCha8 }

func (*seeded) Seeded() bool { return true }

func (s *seeded) fill(p []byte) error {
	_, err := s.stream.Read(p)
	return err
}
