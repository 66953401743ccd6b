package graffl

import (
	"fmt"
	"math"

	"parley/internal/wire"
	"parley/methods/graffl/mixture"
)

// taskLandmarks asks for the sums at the landmarks: where they are, the plan says.
const taskLandmarks = "landmarks"

// landmarkTask chooses nothing: a kernel that whoever asks may choose would scan
// the rows out.
type landmarkTask struct{}

// landmarkAnswer is an exact answer.
type landmarkAnswer struct {
	Sums wire.Vector `cbor:"sums"` // Σ φ(x) at each landmark
	Rows int         `cbor:"rows"`
}

// check holds an answer against the number of landmarks: as kernel values are in
// [0, 1], so is their mean.
func (a *landmarkAnswer) check(landmarks int) error {
	if len(a.Sums) != landmarks {
		return fmt.Errorf("sums at %d landmarks where the plan has %d", len(a.Sums), landmarks)
	}
	if a.Rows < 0 || a.Rows > maxRows {
		return fmt.Errorf("%d rows: want 0 to %d", a.Rows, maxRows)
	}
	for r, v := range a.Sums {
		if !(v >= 0 && v <= float64(a.Rows)*(1+1e-9)) {
			return fmt.Errorf("a sum of %v at landmark %d over %d rows: each row adds 0 to 1", v, r+1, a.Rows)
		}
	}
	return nil
}

// maxRows is a number of rows that no site has.
const maxRows = 1 << 31

// siteSums is what the coordinator keeps of a site's release, in units of φ.
type siteSums struct {
	Sums   wire.Vector `cbor:"sums"`
	Rows   float64     `cbor:"rows"`    // noised under privacy: of either sign
	SD     float64     `cbor:"sd"`      // of the noise on each of Sums; 0 without privacy
	RowsSD float64     `cbor:"rows_sd"` // of that on Rows
}

func (a *siteSums) check(landmarks int) error {
	if len(a.Sums) != landmarks {
		return fmt.Errorf("sums at %d landmarks where the plan has %d", len(a.Sums), landmarks)
	}
	for _, v := range []float64{a.Rows, a.SD, a.RowsSD} {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("%v rows with noise %v and %v", a.Rows, a.SD, a.RowsSD)
		}
	}
	if a.SD < 0 || a.RowsSD < 0 {
		return fmt.Errorf("noise %v and %v is negative", a.SD, a.RowsSD)
	}
	return nil
}

// sample is a posterior as it is kept: one vector of unconstrained coordinates for
// each draw would lose bits, so that all numbers of all mixtures follow each other.
type sample struct {
	Weights    wire.Vector `cbor:"weights"`
	Numbers    wire.Vector `cbor:"numbers"` // π, μ, Σ of each draw
	Stages     int         `cbor:"stages"`
	Acceptance float64     `cbor:"acceptance"`
}

func packSample(p *mixture.Posterior) *sample {
	s := &sample{Weights: p.Weights, Stages: p.Stages, Acceptance: p.Acceptance}
	for _, m := range p.Draws {
		s.Numbers = append(append(append(s.Numbers, m.Weights...), m.Means...), m.Covs...)
	}
	return s
}

// posterior unpacks what packSample packed, and checks it: a state may have come
// from anywhere.
func (s *sample) posterior(k, d int) (*mixture.Posterior, error) {
	each := k + k*d + k*d*d
	if len(s.Weights) < 1 || len(s.Weights) > maxDraws || len(s.Numbers) != each*len(s.Weights) {
		return nil, fmt.Errorf("a sample of %d weights and %d numbers: want %d numbers for each of 1 to %d draws", len(s.Weights), len(s.Numbers), each, maxDraws)
	}
	if s.Stages < 0 || !(s.Acceptance >= 0 && s.Acceptance <= 1) {
		return nil, fmt.Errorf("a sample made in %d stages with an acceptance of %v", s.Stages, s.Acceptance)
	}
	p := &mixture.Posterior{Weights: s.Weights, Stages: s.Stages, Acceptance: s.Acceptance}
	sum := 0.0
	for i, w := range s.Weights {
		if !(w >= 0) {
			return nil, fmt.Errorf("draw %d has weight %v", i+1, w)
		}
		sum += w
		v := s.Numbers[i*each:][:each]
		m := mixture.Mixture{Dim: d, Weights: v[:k:k], Means: v[k : k+k*d : k+k*d], Covs: v[k+k*d:]}
		if err := m.Check(); err != nil {
			return nil, fmt.Errorf("draw %d: %w", i+1, err)
		}
		p.Draws = append(p.Draws, m)
	}
	if math.Abs(sum-1) > 1e-6 {
		return nil, fmt.Errorf("the weights of a sample sum to %v, not 1", sum)
	}
	p.Size = mixture.EffectiveSize(p.Weights)
	return p, nil
}

// sharedModel is what sites get back.
type sharedModel struct {
	Weights wire.Vector `cbor:"weights"`
	Means   wire.Vector `cbor:"means"`
	Covs    wire.Vector `cbor:"covariances"`
}

func (m *sharedModel) mixture(k, d int) (mixture.Mixture, error) {
	x := mixture.Mixture{Dim: d, Weights: m.Weights, Means: m.Means, Covs: m.Covs}
	if len(m.Weights) != k {
		return x, fmt.Errorf("a mixture of %d components where the plan has %d", len(m.Weights), k)
	}
	return x, x.Check()
}
