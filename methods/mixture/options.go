package mixture

import (
	"fmt"
	"math"

	"parley/methods/mixture/fitted"
	"parley/methods/mixture/gmm"
	"parley/methods/mixture/sketch"
	"parley/privacy/account"
	"parley/problem"
	"parley/study"
)

// Options are what a plan says under method.
type Options struct {
	Components int            `json:"components"`       // K of the mixture, 1 to 64; no default
	Sketch     *sketchOptions `json:"sketch,omitempty"` // of what sites release
	Draws      int            `json:"draws,omitempty"`  // parameters in the sample, 64 to 10000 (384)
}

// sketchOptions draw the frequencies of what sites release.
type sketchOptions struct {
	// Scale is about the standard deviation of a component, as a share of each feature's range
	// (1/16): components from half to twice as wide are found as well.
	Scale float64 `json:"scale"`
	// Frequencies is their number: by default three times that of the mixture's parameters, from 64 to 768.
	Frequencies int `json:"frequencies"`
}

const fewestFrequencies = 64

// former are keys that plans have had, and what there is in their place.
var former = map[string]string{
	"variant": "leave it out: sites release sums at frequencies; published is name: graffl-abc, and set is name: " +
		"graffl-abc with algorithm: sets",
	"landmarks": "leave it out: sites release sums at frequencies, whatever the features, and sketch.scale is what " +
		"landmarks.bandwidth was",
	"encoder":   "leave it out: name: regression learns the outcome from all sites (docs/how-to/predict-an-outcome.md)",
	"scarce":    "leave it out: name: regression learns the outcome from all sites (docs/how-to/predict-an-outcome.md)",
	"published": "name: graffl-abc has its keys rounds and accepted",
	"set":       "name: graffl-abc with algorithm: sets has it",
	"prior": "leave it out: means are about even over the ranges, and how wide components are is learned; name: " +
		"graffl-abc has it",
	"calibration": "leave it out: what intervals hold was measured for all plans (docs/explanation/mixtures.md)",
	"rows":        "leave it out: parley plan check says how many rows it takes to find the components",
}

// Former implements [study.Former].
func (*Options) Former(key string) string { return former[key] }

// Former implements [study.Former].
func (*sketchOptions) Former(key string) string { return former[key] }

// Fill puts in the defaults that depend on the features.
func (o *Options) Fill(p *study.Plan, missing func(key string) bool) {
	if missing("draws") {
		o.Draws = sketch.DefaultParticles
	}
	if o.Sketch == nil {
		o.Sketch = &sketchOptions{}
	}
	if missing("sketch.scale") {
		o.Sketch.Scale = 1. / 16
	}
	if missing("sketch.frequencies") {
		o.Sketch.Frequencies = min(max(3*o.parameters(fitted.Features(p)), fewestFrequencies), sketch.MaxFrequencies)
	}
}

// BeyondRange implements [study.RangeTeller]: sums are of rows as they are, with and without noise.
func (o *Options) BeyondRange(*study.Plan) string { return study.RangeAsIs }

// Check holds the options against the plan.
func (o *Options) Check(p *study.Plan, report study.Report) {
	fitted.Check(p, o.Components, o.Draws, "draws", report)
	if most := fitted.MaxDraws; o.Draws < 64 || o.Draws > most {
		report("draws", fmt.Sprintf("a sample of %d parameters", o.Draws), fmt.Sprintf("from 64 to %d", most))
	}
	if pr := p.Privacy; pr.Differential() {
		if pr.Total == nil && pr.PerRelease != nil {
			report("", "mixture calibrates its noise to a total, and the plan has none",
				"privacy.total instead of per_release")
		}
		if pr.Unit == study.UnitSite {
			report("", "sums over rows protect subjects: hardly anything is left of a whole site under noise that "+
				"hides it", "privacy.unit: subject")
		}
		if pr.Diagnostics > 0 {
			report("", "mixture has nothing to release for its report alone", "leave privacy.diagnostics out")
		}
	}
	o.checkSketch(p, report)
}

func (o *Options) checkSketch(p *study.Plan, report study.Report) {
	s, d := o.Sketch, fitted.Features(p)
	switch {
	case s == nil:
		report("sketch", "missing", "scale and frequencies")
	case !(s.Scale > 0 && s.Scale <= 1):
		report("sketch.scale", fmt.Sprintf("%v of a feature's range", s.Scale), "above 0, to 1")
	case s.Frequencies < 1 || s.Frequencies > sketch.MaxFrequencies:
		report("sketch.frequencies", fmt.Sprintf("%d frequencies", s.Frequencies),
			fmt.Sprintf("from 1 to %d", sketch.MaxFrequencies))
	case o.Components > 0 && o.Components <= gmm.MaxComponents && o.parameters(d) > s.Frequencies:
		report("sketch.frequencies", fmt.Sprintf("%d components in %d dimensions have %d parameters, too many for %d "+
			"frequencies", o.Components, d, o.parameters(d), s.Frequencies),
			fmt.Sprintf("fewer components or features; frequencies go up to %d", sketch.MaxFrequencies))
	}
}

// parameters of a mixture with full covariances.
func (o *Options) parameters(d int) int { return o.Components*(1+d+d*(d+1)/2) - 1 }

// mostComponents is how many components can be fitted to what the sites of a plan release. How many frequencies there
// are follows from the plan's own number of components, unless the plan says it; nothing else that a site releases
// depends on that number.
func (o *Options) mostComponents(p *study.Plan) int {
	d := fitted.Features(p)
	return min(gmm.MaxComponents, fitted.MaxNumbers/(o.Draws*(1+d+d*d)), (o.Sketch.Frequencies+1)/(1+d+d*(d+1)/2))
}

// withComponents is a plan's options with another number of components, for what was released to the plan's own.
func (o *Options) withComponents(p *study.Plan, components int) (*Options, error) {
	if most := o.mostComponents(p); components < 1 || components > most {
		return nil, problem.Problem{Where: "components",
			What: fmt.Sprintf("%d components are none, or have more parameters than the %d frequencies that the study "+
				"released sums at", components, o.Sketch.Frequencies),
			Hint: fmt.Sprintf("from 1 to %d, or another study, whose plan has more components or states "+
				"method.sketch.frequencies", most)}
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
	_, lo, hi := fitted.Box(p)
	scale := make([]float64, len(lo))
	for i := range scale {
		scale[i] = o.Sketch.Scale * (hi[i] - lo[i])
	}
	return sketch.New(lo, hi, scale, o.Sketch.Frequencies, fitted.SeedOf(p, "frequencies"))
}

// RowsNeeded says how many rows all sites must have together for components to be found: see
// [sketch.Frequencies.RowsNeeded]. It follows from the plan alone.
func (o *Options) RowsNeeded(p *study.Plan) (float64, error) {
	f, err := o.drawFrequencies(p)
	if err != nil {
		return 0, err
	}
	sd := 0.0 // in units of the bound
	if p.Privacy.Differential() && p.Privacy.Total != nil {
		m, err := releaseNoise(p)
		if err != nil {
			return 0, err
		}
		sd = m.Noise * releaseBound() * math.Sqrt(float64(len(p.Sites)))
	}
	return f.RowsNeeded(o.Components, sd*f.NormBound(), sd/countEntry, fitted.SeedOf(p, "rows needed")), nil
}

// countEntry is what a row contributes beside φ(x)/B, so that the number of rows is known. It costs noise √(1 + c²)
// times as large, 3 %, and leaves the count a standard deviation of four times the noise.
const countEntry = 0.25

// releaseBound is the norm of what a row contributes at most.
func releaseBound() float64 { return math.Sqrt(1 + countEntry*countEntry) }

// releaseNoise is the mechanism of a site's one release, whose noise spends the plan's total.
func releaseNoise(p *study.Plan) (account.Mechanism, error) {
	// Clipping is to a ball, so that two rows may be a diameter apart.
	m := account.Mechanism{Kind: account.Gaussian, Noise: 1, Rate: 1, Diameter: 2, Count: 1}
	factor, err := p.Privacy.Scale([]account.Mechanism{m})
	if err != nil {
		return m, err
	}
	m.Noise = account.RoundUp(factor)
	return m, nil
}
