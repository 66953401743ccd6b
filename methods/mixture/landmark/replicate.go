package landmark

import (
	"fmt"
	"math"

	"parley/method"
	"parley/methods/mixture/kernelmean"
	"parley/methods/mixture/options"
	"parley/study"
)

// Replicate is this study as it is repeated to calibrate its posterior: parameters from the
// prior, as many rows as the sites have, up to [kernelmean.MaxReplicateRows], and as much noise in
// their means and, as a share, in their number.
func (c *coordinator) Replicate(ms method.State) (kernelmean.Replicate, error) {
	o, err := c.observation(c.released(ms.(*state)))
	if err != nil {
		return kernelmean.Replicate{}, err
	}
	rows := min(max(1, math.Round(o.Rows)), kernelmean.MaxReplicateRows)
	r, err := NewReplicate(c.Plan, int(rows))
	if err != nil {
		return r, err
	}
	r.Sampling.Seed = c.Seed("calibration")
	fewer := 1.
	if o.Rows > kernelmean.MaxReplicateRows {
		fewer = rows / o.Rows
	}
	r.Noise, r.RowsNoise = fewer*math.Sqrt(o.NoiseVar)*o.Rows, fewer*math.Sqrt(o.RowsVar) // of the sites that answered
	return r, nil
}

// NewReplicate is what a plan of variant landmark repeats, if its sites have so many
// rows together.
func NewReplicate(p *study.Plan, rows int) (kernelmean.Replicate, error) {
	all, err := options.New(p)
	if err != nil {
		return kernelmean.Replicate{}, err
	}
	if all.Options.Landmarks == nil || rows < 1 {
		return kernelmean.Replicate{}, fmt.Errorf("calibration of variant %s with %d rows: want variant %s, and rows", all.Options.Variant, rows, options.VariantLandmark)
	}
	s, err := New(all)
	if err != nil {
		return kernelmean.Replicate{}, err
	}
	c := kernelmean.Replicate{Prior: s.Prior, Landmarks: s.Marks, Rows: rows, Sampling: sampling(all)}
	if s.Sum != nil {
		sd := s.Sum.Mechanism.Noise * s.Sum.Bound * math.Sqrt(float64(len(p.Sites)))
		c.Noise, c.RowsNoise = sd*s.Scale, sd/countEntry
	}
	return c, nil
}
