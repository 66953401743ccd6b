package graffl

import (
	"fmt"
	"math"

	"parley/method"
	"parley/methods/graffl/landmark"
	"parley/methods/graffl/mixture"
	"parley/study"
)

// maxReplicateRows bounds the time of a replicate, whatever numbers of rows sites claim.
// Of so many rows chance leaves next to nothing, and calibration tells no more of more.
const maxReplicateRows = 1 << 20

// replicate is this study as it is repeated to calibrate its posterior: parameters from the
// prior, as many rows as the sites have, up to [maxReplicateRows], and as much noise in
// their means and, as a share, in their number.
func (c *staged) replicate(s *stagedState) (landmark.Replicate, error) {
	landmarks, ok := c.inner().(*coordinator)
	st, fits := s.inner.(*state)
	if !ok || !fits {
		return landmark.Replicate{}, fmt.Errorf("variant %s has nothing to calibrate", c.opts.Variant)
	}
	o, err := landmarks.observation(st)
	if err != nil {
		return landmark.Replicate{}, err
	}
	rows := min(max(1, math.Round(o.Rows)), maxReplicateRows)
	r, err := NewReplicate(c.plan, int(rows))
	if err != nil {
		return r, err
	}
	r.Sampling.Seed = c.seed("calibration")
	fewer := 1.
	if o.Rows > maxReplicateRows {
		fewer = rows / o.Rows
	}
	r.Noise, r.RowsNoise = fewer*math.Sqrt(o.NoiseVar)*o.Rows, fewer*math.Sqrt(o.RowsVar) // of the sites that answered
	return r, nil
}

// calibrate runs one replicate.
func (c *staged) calibrate(s *stagedState) (method.Step, error) {
	n := len(landmark.QuantityNames(c.prior.Dim()))
	done := len(s.Ranks) / n
	step := method.Step{Progress: done}
	if done < c.opts.Calibration {
		r, err := c.replicate(s)
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
	step.Done = step.Progress == c.opts.Calibration
	return step, nil
}

// checkRanks checks those of a state.
func (c *staged) checkRanks(s *stagedState, complete bool) error {
	n := len(landmark.QuantityNames(c.prior.Dim()))
	have, want := len(s.Ranks)/n, c.opts.Calibration
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
func (c *staged) calibrated(s *stagedState) ([]mixture.Calibrated, error) {
	n := len(landmark.QuantityNames(c.prior.Dim()))
	var ranks [][]float64
	for at := 0; at < len(s.Ranks); at += n {
		ranks = append(ranks, s.Ranks[at:at+n])
	}
	return landmark.Replicate{Prior: c.prior}.Calibrate(ranks)
}

// NewReplicate is what a plan of variant landmark repeats, if its sites have so many
// rows together.
func NewReplicate(p *study.Plan, rows int) (landmark.Replicate, error) {
	s, err := newSetup(p)
	if err != nil {
		return landmark.Replicate{}, err
	}
	if s.opts.Variant != VariantLandmark || rows < 1 {
		return landmark.Replicate{}, fmt.Errorf("calibration of variant %s with %d rows: want variant %s, and rows", s.opts.Variant, rows, VariantLandmark)
	}
	c := landmark.Replicate{Prior: s.prior, Landmarks: s.marks, Rows: rows, Sampling: s.sampling()}
	if s.sum != nil {
		sd := s.sum.Mechanism.Noise * s.sum.Bound * math.Sqrt(float64(len(p.Sites)))
		c.Noise, c.RowsNoise = sd*s.scale, sd/countEntry
	}
	return c, nil
}
