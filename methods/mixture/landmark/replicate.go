package landmark

import (
	"fmt"
	"math"

	"parley/methods/mixture/kernelmean"
	"parley/methods/mixture/options"
	"parley/study"
)

// NewReplicate is what a plan with landmarks repeats, if its sites have so many
// rows together.
func NewReplicate(p *study.Plan, rows int) (kernelmean.Replicate, error) {
	all, err := options.New(p)
	if err != nil {
		return kernelmean.Replicate{}, err
	}
	if all.Options.Landmarks == nil || rows < 1 {
		return kernelmean.Replicate{}, fmt.Errorf("a repetition of form %s with %d rows: want landmarks, and rows", all.Options.Form, rows)
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
