package options

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"

	"parley/methods/mixture/gmm"
	"parley/methods/mixture/sketch"
	"parley/privacy/account"
	"parley/problem"
	"parley/study"
)

// parameters of a mixture with full covariances.
func (o *Options) parameters(d int) int { return o.Components*(1+d+d*(d+1)/2) - 1 }

// MostComponents is how many components can be fitted to what the sites of a plan release. How many frequencies there are follows from the plan's own number
// of components, unless the plan says it; nothing else that a site releases depends on that number.
func (o *Options) MostComponents(p *study.Plan) int {
	d := o.Dim(p)
	return min(gmm.MaxComponents, maxNumbers/(o.Draws*(1+d+d*d)), (o.Sketch.Frequencies+1)/(1+d+d*(d+1)/2))
}

// FrequenciesEach is how many frequencies there are for each parameter of the mixture.
func (o *Options) FrequenciesEach(p *study.Plan) float64 {
	return float64(o.Sketch.Frequencies) / float64(o.parameters(o.Dim(p)))
}

// WithComponents is a plan's options with another number of components, for what was released to
// the plan's own.
func (o *Options) WithComponents(p *study.Plan, components int) (*Options, error) {
	if most := o.MostComponents(p); components < 1 || components > most {
		what, hint := fmt.Sprintf("%d components", components), fmt.Sprintf("from 1 to %d", most)
		if components > most {
			what = fmt.Sprintf("%d components have more parameters than the %d frequencies that the study released sums at", components, o.Sketch.Frequencies)
			hint += ", or another study, whose plan has more components or states method.sketch.frequencies"
		}
		return nil, problem.Problem{Where: "components", What: what, Hint: hint}
	}
	out := *o
	out.Components = components
	return &out, nil
}

const fewestFrequencies = 64

func (o *Options) fillSketch(d int, missing func(key string) bool) {
	if o.Sketch == nil {
		o.Sketch = &SketchOptions{}
	}
	if missing("prior.spread") {
		o.Prior.Spread = 0
	}
	if missing("sketch.scale") {
		o.Sketch.Scale = 1. / 16
	}
	if missing("sketch.frequencies") {
		o.Sketch.Frequencies = min(max(3*o.parameters(d), fewestFrequencies), sketch.MaxFrequencies)
	}
}

func (o *Options) checkSketch(p *study.Plan, ready bool, report study.Report) {
	s, d := o.Sketch, o.Dim(p)
	switch {
	case s == nil:
		report("sketch", "missing", "scale and frequencies")
	case !(s.Scale > 0 && s.Scale <= 1):
		report("sketch.scale", fmt.Sprintf("%v of a feature's range", s.Scale), "above 0, to 1")
	case s.Frequencies < 1 || s.Frequencies > sketch.MaxFrequencies:
		report("sketch.frequencies", fmt.Sprintf("%d frequencies", s.Frequencies), fmt.Sprintf("from 1 to %d", sketch.MaxFrequencies))
	case !(s.Rows >= 0) || math.IsInf(s.Rows, 0):
		report("sketch.rows", fmt.Sprintf("%v rows", s.Rows), "how many all sites have together at least, or leave it out")
	case o.Components > 0 && o.Components <= gmm.MaxComponents && o.parameters(d) > s.Frequencies:
		report("sketch.frequencies", fmt.Sprintf("%d components in %d dimensions have %d parameters, too many for %d frequencies", o.Components, d, o.parameters(d), s.Frequencies),
			fmt.Sprintf("fewer components or features, or an encoder; frequencies go up to %d", sketch.MaxFrequencies))
	case s.Rows > 0 && ready:
		if need, _, err := o.RowsNeeded(p); err != nil {
			report("sketch", err.Error(), "other ranges, or another scale")
		} else if s.Rows < need {
			report("sketch.rows", fmt.Sprintf("with %.0f rows components that are four standard deviations apart would not be found: it takes about %s", s.Rows, RowsText(need)),
				"more rows, fewer components or features, or a larger ε; without this key the study runs, and its report says whether components were found")
		}
	}
}

// RowsText is a number of rows in words.
func RowsText(n float64) string {
	if n > 1e12 {
		return "more than any study has"
	}
	digits := math.Pow(10, math.Floor(math.Log10(n))-1)
	return fmt.Sprintf("%.0f", math.Ceil(n/digits)*digits)
}

// DrawFrequencies draws those of a sketch from the plan.
func (o *Options) DrawFrequencies(p *study.Plan) (sketch.Frequencies, error) {
	_, lo, hi := o.Box(p)
	scale := make([]float64, len(lo))
	for i := range scale {
		scale[i] = o.Sketch.Scale * (hi[i] - lo[i])
	}
	return sketch.New(lo, hi, scale, o.Sketch.Frequencies, Seed(p, "frequencies"))
}

// RowsNeeded says how many rows all sites of a sketch must have together for
// its components to be found, and for its means to be precise: see [sketch.Frequencies.RowsNeeded].
// It follows from the plan alone.
func (o *Options) RowsNeeded(p *study.Plan) (found, precise float64, err error) {
	f, err := o.DrawFrequencies(p)
	if err != nil {
		return 0, 0, err
	}
	var noise sketch.Noise
	if p.Privacy.Differential() && p.Privacy.Total != nil {
		m, err := ReleaseNoise(p)
		if err != nil {
			return 0, 0, err
		}
		sd := m.Noise * ReleaseBound() * math.Sqrt(float64(len(p.Sites)))
		noise = sketch.Noise{SD: sd * f.NormBound(), Rows: sd / CountEntry}
	}
	found, precise = f.RowsNeeded(o.Components, noise, Seed(p, "rows needed"))
	return found, precise, nil
}

// CountEntry is what a row contributes beside φ(x)/B, so that the number of rows is known. It
// costs noise √(1 + c²) times as large, 3 %, and leaves the count a standard
// deviation of four times the noise.
const CountEntry = 0.25

// ReleaseBound is the norm of what a row contributes at most.
func ReleaseBound() float64 { return math.Sqrt(1 + CountEntry*CountEntry) }

// ReleaseNoise is the mechanism of a site's one release, whose noise spends the plan's total.
func ReleaseNoise(p *study.Plan) (account.Mechanism, error) {
	// Clipping is to a ball, so that two rows may be a diameter apart.
	m := account.Mechanism{Kind: account.Gaussian, Noise: 1, Rate: 1, Diameter: 2, Count: 1}
	factor, err := account.Scale([]account.Mechanism{m}, p.Privacy.Adjacency, *p.Privacy.Total)
	if err != nil {
		return m, err
	}
	m.Noise = account.RoundUp(factor)
	return m, nil
}

// Seed makes a seed for a purpose of the plan's: nothing else decides it.
func Seed(p *study.Plan, purpose string) uint64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "graffl %d %s", p.Seed, purpose))
	return binary.LittleEndian.Uint64(sum[:])
}
