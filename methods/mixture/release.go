package mixture

import (
	"errors"

	"parley/methods/mixture/gmm"
	"parley/methods/mixture/options"
	"parley/methods/mixture/sketch"
	"parley/privacy"
)

// release is what a site releases, once: the sum of φ(x) over its rows, and how many rows
// there are.
type release struct {
	Of    statistic
	Marks sketch.Landmarks // what φ is, with landmarks
	Scale float64          // B of NormBound of [statistic]
	Sum   *privacy.Sum     // under differential privacy; nil without it
	least float64          // the lowest an entry of φ can be; the highest is 1
	name  string           // of the sums
}

// statistic is what a row contributes to the sums, and how a mixture is learned from them: kernel
// values at landmarks, or cosines and sines at frequencies.
type statistic interface {
	Len() int
	Features(dst, x []float64) // φ(x)
	NormBound() float64        // B ≥ |φ(x)| for every x
	Posterior(sketch.Observation, gmm.Prior, sketch.Sampling) (*gmm.Posterior, error)
	Fit(sketch.Observation, *gmm.Posterior) (*sketch.Fit, error)
}

// setup is what both halves of the default know from the plan: what those of all samplers
// do, and what a site releases.
type setup struct {
	*options.Setup
	release
}

// landmarkSetup adds what a site releases to what all samplers know.
func landmarkSetup(s *options.Setup) (*setup, error) {
	out := &setup{Setup: s}
	var err error
	switch o := s.Options; {
	case o.Sketch != nil:
		f, e := o.DrawFrequencies(s.Plan)
		out.Of, out.least, out.name, err = f, -1, sumFrequencies, e
	case o.Landmarks != nil:
		out.Marks, err = o.PlaceLandmarks(s.Plan)
		out.Of, out.name = out.Marks, sumLandmarks
	default:
		err = errors.New("a plan without landmarks and frequencies")
	}
	if err != nil {
		return nil, err
	}
	out.Scale = out.Of.NormBound()
	if s.Plan.Privacy.Differential() {
		out.Sum, err = out.protect()
	}
	return out, err
}

const (
	countEntry     = options.CountEntry
	sumLandmarks   = "kernel values at the landmarks, and a count"
	sumFrequencies = "cosines and sines at the frequencies, and a count"
)

// sketched says whether φ is of frequencies.
func (r *release) sketched() bool { return r.least < 0 }

// What asks for the sums at the landmarks, or at the frequencies: where they are, the plan says.
const (
	taskLandmarks   = "landmarks"
	taskFrequencies = "frequencies"
)

// task is what asks for the sums, and points what they are taken at.
func (r *release) task() string {
	if r.sketched() {
		return taskFrequencies
	}
	return taskLandmarks
}

// points is what the sums are taken at, in words and in the names of files, and point one of them.
func (r *release) points() string { return r.task() }

func (r *release) point() string {
	if r.sketched() {
		return "frequency"
	}
	return "landmark"
}

// protect declares the one sum of a site, with the noise that spends the total.
func (s *setup) protect() (*privacy.Sum, error) {
	m, err := options.ReleaseNoise(s.Plan)
	if err != nil {
		return nil, err
	}
	return &privacy.Sum{Name: s.name, Unit: privacy.Subject, Form: privacy.Vectors,
		Blocks: []int{s.Of.Len() + 1}, Bound: options.ReleaseBound(), Mechanism: m}, nil
}
