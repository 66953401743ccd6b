package stages

import (
	"fmt"

	"parley/method"
	"parley/methods/mixture/gmm"
	"parley/methods/mixture/kernelmean"
)

// calibrate runs one replicate.
func (c *coordinator) calibrate(s *state) (method.Step, error) {
	n := len(kernelmean.QuantityNames(c.Prior.Dim()))
	done := len(s.Ranks) / n
	step := method.Step{Progress: done}
	if done < c.Options.Calibration {
		of, ok := c.inner().(repeated)
		if !ok {
			return step, fmt.Errorf("variant %s has nothing to calibrate", c.Options.Variant)
		}
		r, err := of.Replicate(s.inner)
		if err != nil {
			return step, err
		}
		ranks, err := r.Ranks(done)
		if err != nil {
			return step, fmt.Errorf("replicate %d of the calibration: %w", done+1, err)
		}
		s.Ranks = append(s.Ranks, ranks...)
		step.Progress++
	}
	step.Done = step.Progress == c.Options.Calibration
	return step, nil
}

// checkRanks checks those of a state.
func (c *coordinator) checkRanks(s *state, complete bool) error {
	n := len(kernelmean.QuantityNames(c.Prior.Dim()))
	have, want := len(s.Ranks)/n, c.Options.Calibration
	if len(s.Ranks)%n != 0 || have > want || complete && want > 0 && have < want {
		return fmt.Errorf("%d ranks of a calibration with %d quantities and %d replicates", len(s.Ranks), n, want)
	}
	for _, r := range s.Ranks {
		if !(r >= 0 && r <= 1) {
			return fmt.Errorf("a rank of %v: want a share", r)
		}
	}
	return nil
}

// calibrated tests the ranks of all replicates.
func (c *coordinator) calibrated(s *state) ([]gmm.Calibrated, error) {
	n := len(kernelmean.QuantityNames(c.Prior.Dim()))
	var ranks [][]float64
	for at := 0; at < len(s.Ranks); at += n {
		ranks = append(ranks, s.Ranks[at:at+n])
	}
	return kernelmean.Replicate{Prior: c.Prior}.Calibrate(ranks)
}

// repeated is a variant's coordinator whose study can be repeated with rows of known
// parameters, once it is done.
type repeated interface {
	Replicate(method.State) (kernelmean.Replicate, error)
}
