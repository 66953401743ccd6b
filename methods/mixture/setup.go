package mixture

import (
	"fmt"
	"math"

	"parley/internal/wire"
	"parley/method"
	"parley/methods/mixture/fitted"
	"parley/methods/mixture/gmm"
	"parley/methods/mixture/sketch"
	"parley/privacy"
	"parley/study"
)

// setup is what both halves know from the plan, and what a site releases, once: the sum over its rows of φ(x), cosines
// and sines at public frequencies, and how many rows there are.
type setup struct {
	*fitted.Setup
	Options *Options
	Of      sketch.Frequencies
	Scale   float64      // B of NormBound
	Sum     *privacy.Sum // under differential privacy; nil without it
}

// setupOf works it out from a plan that has been checked.
func setupOf(p *study.Plan) (*setup, error) {
	opts, ok := p.Method.Options.(*Options)
	if !ok {
		return nil, fmt.Errorf("the plan's options are of method %s, not of mixture", p.Method.Name)
	}
	_, lo, hi := fitted.Box(p)
	prior, err := gmm.BoxPrior(lo, hi, opts.Components)
	if err != nil {
		return nil, err
	}
	f, err := opts.drawFrequencies(p)
	if err != nil {
		return nil, err
	}
	out := &setup{Setup: fitted.NewSetup(p, prior), Options: opts, Of: f, Scale: f.NormBound()}
	if p.Privacy.Differential() {
		m, err := releaseNoise(p)
		if err != nil {
			return nil, err
		}
		out.Sum = &privacy.Sum{Name: sumName, Unit: privacy.Subject, Form: privacy.Vectors,
			Blocks: []int{f.Len() + 1}, Bound: releaseBound(), Mechanism: m}
	}
	return out, nil
}

const (
	sumName = "cosines and sines at the frequencies, and a count"
	// task asks for the sums at the frequencies: where they are, the plan says.
	task = "frequencies"
)

// request is the one noised sum under differential protection, else the exact sums.
func (s *setup) request() privacy.Request {
	if s.Sum != nil {
		return privacy.Request{Protection: privacy.Differential, Sums: []privacy.Sum{*s.Sum}}
	}
	return privacy.Request{Protection: privacy.Unprotected, Contents: []privacy.Content{
		{What: "sums over the rows of a cosine and a sine at each frequency", Values: s.Of.Len()},
		{What: fitted.RowsReleased, Values: 1}}}
}

// sumsTask chooses nothing: frequencies that whoever asks may choose would scan the rows out.
type sumsTask struct{}

// sumsAnswer is an exact answer.
type sumsAnswer struct {
	Sums wire.Vector `cbor:"sums"` // Σ φ(x), all cosines, then all sines
	Rows int         `cbor:"rows"`
	// Lacking counts the subjects who take no part because they lack a feature.
	Lacking int `cbor:"lacking,omitempty"`
}

// counted is how many rows a site's sums are over, and how noisy they are.
type counted struct {
	Rows   float64 `cbor:"rows" json:"rows"`       // noised under privacy: of either sign
	SD     float64 `cbor:"sd" json:"sd"`           // of the noise on each of the sums; 0 without privacy
	RowsSD float64 `cbor:"rows_sd" json:"rows_sd"` // of that on Rows
	// Lacking counts the subjects who lack a feature; nothing tells it under privacy.
	Lacking int `cbor:"lacking,omitempty" json:"lacking,omitempty"`
}

// sums is what the coordinator keeps of a site's release, in units of φ.
type sums struct {
	Sums wire.Vector `cbor:"sums"`
	counted
}

// check holds a release against the plan.
func (a *sums) check(n int) error {
	if len(a.Sums) != n {
		return fmt.Errorf("%d sums at the frequencies where the plan has %d", len(a.Sums), n)
	}
	if err := a.counted.check(); err != nil {
		return err
	}
	return within(a.Sums, a.most())
}

// within reports a sum that is more than rows add up to.
func within(sums []float64, most float64) error {
	for i, v := range sums {
		if !(math.Abs(v) <= most) {
			return fmt.Errorf("sum %d of %d is %v: each row adds −1 to 1", i+1, len(sums), v)
		}
	}
	return nil
}

// check reports numbers that no site releases.
func (a *counted) check() error {
	switch {
	case a.SD < 0 || a.RowsSD < 0:
		return fmt.Errorf("noise %v and %v is negative", a.SD, a.RowsSD)
	case !(a.SD <= mostNoise && a.RowsSD <= mostNoise && math.Abs(a.Rows) <= fitted.MaxRows+farOff*a.RowsSD) ||
		a.Rows < 0 && a.RowsSD == 0:
		return fmt.Errorf("%v rows with noise %v and %v", a.Rows, a.SD, a.RowsSD)
	case a.Lacking < 0 || a.Lacking > fitted.MaxRows:
		return fmt.Errorf("%d subjects who lack a feature", a.Lacking)
	}
	return nil
}

// most is what each sum is at most: as cosines and sines are in [−1, 1], every row adds as much, besides noise.
func (a *counted) most() float64 {
	if a.SD == 0 {
		return a.Rows * (1 + 1e-9)
	}
	return fitted.MaxRows + farOff*a.SD
}

// open reads a release and brings it to units of φ.
func open(s *setup, in method.Contribution) (*sums, error) {
	n := s.Of.Len()
	if s.Sum == nil {
		a := new(sumsAnswer)
		if err := method.DecodeAnswer(in, a); err != nil {
			return nil, err
		}
		out := &sums{a.Sums, counted{Rows: float64(a.Rows), Lacking: a.Lacking}}
		return out, out.check(n)
	}
	sum, err := method.OnlySum(in, s.Sum.Name)
	if err != nil {
		return nil, err
	}
	v := sum.Floats(0)
	out := &sums{v[:n], counted{Rows: v[n] / countEntry, SD: sum.SD() * s.Scale, RowsSD: sum.SD() / countEntry}}
	// Noise has no end, and what another program puts in its place may be any integer.
	for r, x := range out.Sums {
		out.Sums[r] = moved(x*s.Scale, out.most())
	}
	out.Rows = moved(out.Rows, fitted.MaxRows+farOff*out.RowsSD)
	return out, nil
}

// farOff is so many standard deviations that no noise is as far off. More noise than mostNoise
// leaves nothing of any site's rows.
const farOff, mostNoise = 12, 1e18

// moved returns a number, or the nearer end of ±most if it is beyond.
func moved(x, most float64) float64 { return min(max(x, -most), most) }
