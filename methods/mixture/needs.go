package mixture

import (
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

// mostComponents is how many components can be fitted to what the sites of a plan release. How many frequencies there are follows from the plan's own number
// of components, unless the plan says it; nothing else that a site releases depends on that number.
func (o *Options) mostComponents(p *study.Plan) int {
	d := Features(p)
	return min(gmm.MaxComponents, maxNumbers/(o.Draws*(1+d+d*d)), (o.Sketch.Frequencies+1)/(1+d+d*(d+1)/2))
}

// frequenciesEach is how many frequencies there are for each parameter of the mixture.
func (o *Options) frequenciesEach(p *study.Plan) float64 {
	return float64(o.Sketch.Frequencies) / float64(o.parameters(Features(p)))
}

// withComponents is a plan's options with another number of components, for what was released to
// the plan's own.
func (o *Options) withComponents(p *study.Plan, components int) (*Options, error) {
	if most := o.mostComponents(p); components < 1 || components > most {
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

// RowsText is a number of rows in words.
func RowsText(n float64) string {
	if n > 1e12 {
		return "more than any study has"
	}
	digits := math.Pow(10, math.Floor(math.Log10(n))-1)
	return fmt.Sprintf("%.0f", math.Ceil(n/digits)*digits)
}

// drawFrequencies draws those of a sketch from the plan.
func (o *Options) drawFrequencies(p *study.Plan) (sketch.Frequencies, error) {
	_, lo, hi := Box(p)
	scale := make([]float64, len(lo))
	for i := range scale {
		scale[i] = o.Sketch.Scale * (hi[i] - lo[i])
	}
	return sketch.New(lo, hi, scale, o.Sketch.Frequencies, seedOf(p, "frequencies"))
}

// RowsNeeded says how many rows all sites of a sketch must have together for
// its components to be found, and for its means to be precise: see [sketch.Frequencies.RowsNeeded].
// It follows from the plan alone.
func (o *Options) RowsNeeded(p *study.Plan) (found, precise float64, err error) {
	f, err := o.drawFrequencies(p)
	if err != nil {
		return 0, 0, err
	}
	var noise sketch.Noise
	if p.Privacy.Differential() && p.Privacy.Total != nil {
		m, err := releaseNoise(p)
		if err != nil {
			return 0, 0, err
		}
		sd := m.Noise * releaseBound() * math.Sqrt(float64(len(p.Sites)))
		noise = sketch.Noise{SD: sd * f.NormBound(), Rows: sd / countEntry}
	}
	found, precise = f.RowsNeeded(o.Components, noise, seedOf(p, "rows needed"))
	return found, precise, nil
}

// countEntry is what a row contributes beside φ(x)/B, so that the number of rows is known. It
// costs noise √(1 + c²) times as large, 3 %, and leaves the count a standard
// deviation of four times the noise.
const countEntry = 0.25

// releaseBound is the norm of what a row contributes at most.
func releaseBound() float64 { return math.Sqrt(1 + countEntry*countEntry) }

// releaseNoise is the mechanism of a site's one release, whose noise spends the plan's total.
func releaseNoise(p *study.Plan) (account.Mechanism, error) {
	// Clipping is to a ball, so that two rows may be a diameter apart.
	m := account.Mechanism{Kind: account.Gaussian, Noise: 1, Rate: 1, Diameter: 2, Count: 1}
	factor, err := account.Scale([]account.Mechanism{m}, p.Privacy.Adjacency, *p.Privacy.Total)
	if err != nil {
		return m, err
	}
	m.Noise = account.RoundUp(factor)
	return m, nil
}
