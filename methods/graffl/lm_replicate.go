package graffl

import (
	"fmt"
	"math"

	"parley/method"
	"parley/methods/graffl/landmark"
	"parley/study"
)

// maxReplicateRows bounds the time of a replicate, whatever numbers of rows sites claim.
// Of so many rows chance leaves next to nothing, and calibration tells no more of more.
const maxReplicateRows = 1 << 20

// replicate is this study as it is repeated to calibrate its posterior: parameters from the
// prior, as many rows as the sites have, up to [maxReplicateRows], and as much noise in
// their means and, as a share, in their number.
func (c *coordinator) Replicate(ms method.State) (landmark.Replicate, error) {
	o, err := c.observation(ms.(*state))
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
	c := landmark.Replicate{Prior: s.prior, Landmarks: s.marks, Rows: rows, Sampling: sampling(s)}
	if s.sum != nil {
		sd := s.sum.Mechanism.Noise * s.sum.Bound * math.Sqrt(float64(len(p.Sites)))
		c.Noise, c.RowsNoise = sd*s.scale, sd/countEntry
	}
	return c, nil
}
