package sketch

import "fmt"

// Sampling says how a posterior is sampled.
type Sampling struct {
	Particles int    `json:"particles" cbor:"particles"` // 64 to 65536
	Sweeps    int    `json:"sweeps" cbor:"sweeps"`       // moves of every block after each resampling, ≥ 1
	Seed      uint64 `json:"seed" cbor:"seed"`
	// Widths says that Ψ of the prior follows from the fit: where sums can tell how wide components are.
	Widths bool `json:"widths,omitempty" cbor:"widths,omitempty"`
}

// DefaultSampling is what the toy's coverage and calibration were measured with; what it
// costs, BenchmarkPosterior says.
func DefaultSampling(seed uint64) Sampling { return Sampling{Particles: 384, Sweeps: 2, Seed: seed} }

// Check reports what is wrong with the choices.
func (s Sampling) Check() error {
	if s.Particles < 64 || s.Particles > 1<<16 || s.Sweeps < 1 || s.Sweeps > 1000 {
		return fmt.Errorf("sampling with %d particles and %d sweeps: want 64 to 65536 particles and 1 to 1000 sweeps", s.Particles, s.Sweeps)
	}
	return nil
}
