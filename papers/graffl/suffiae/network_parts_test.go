package suffiae

import (
	"errors"
	"fmt"

	"parley/internal/nn"
	"parley/papers/internal/logistic"
)

// The decoder and the classifier of a trained network serve its training alone; tests
// look at what they have learned.

// Reconstruct returns f(z), in the units of rows.
func (s *Network) Reconstruct(code []float64) ([]float64, error) {
	out, err := s.net.run(s.net.decoder, code)
	if err != nil {
		return nil, err
	}
	in := &s.inputs
	for j := range out {
		out[j] = in.Centre[j] + in.Scale[j]*out[j]
	}
	return out, nil
}

// Probability returns g(z), the classifier's probability of y = 1.
func (s *Network) Probability(code []float64) (float64, error) {
	out, err := s.net.run(s.net.classifier, code)
	if err != nil {
		return 0, err
	}
	return logistic.Sigma(out[0]), nil
}

var errCode = errors.New("suffiae: a code of another length")

func (a *autoencoder) run(s nn.Stack, code []float64) ([]float64, error) {
	if len(code) != s.In() {
		return nil, fmt.Errorf("%w: %d numbers, want %d", errCode, len(code), s.In())
	}
	t := s.NewTape(1)
	copy(t.Acts[0], code)
	s.Forward(a.theta, t, 1)
	return t.Output()[:s.Out()], nil
}
