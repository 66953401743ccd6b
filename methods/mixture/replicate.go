package mixture

import (
	"fmt"
	"math"

	"parley/methods/mixture/options"
	"parley/methods/mixture/sketch"
	"parley/study"
)

// NewReplicate is what a plan with landmarks repeats, if its sites have so many
// rows together.
func NewReplicate(p *study.Plan, rows int) (sketch.Replicate, error) {
	all, err := options.New(p)
	if err != nil {
		return sketch.Replicate{}, err
	}
	if all.Options.Landmarks == nil || rows < 1 {
		return sketch.Replicate{}, fmt.Errorf("a repetition of form %s with %d rows: want landmarks, and rows", all.Options.Form, rows)
	}
	s, err := landmarkSetup(all)
	if err != nil {
		return sketch.Replicate{}, err
	}
	c := sketch.Replicate{Prior: s.Prior, Landmarks: s.Marks, Rows: rows, Sampling: sampling(all)}
	if s.Sum != nil {
		sd := s.Sum.Mechanism.Noise * s.Sum.Bound * math.Sqrt(float64(len(p.Sites)))
		c.Noise, c.RowsNoise = sd*s.Scale, sd/countEntry
	}
	return c, nil
}
