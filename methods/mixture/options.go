package mixture

import (
	"cmp"
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

// Name is what plans call the method.
const Name = "graffl"

// Options are what a plan says under method. Setups of published methods have those of them that
// are of any mixture.
type Options struct {
	// Form is the algorithm of a published method; none of this one.
	Form       string         `json:"variant,omitempty" yaml:"-"`
	Components int            `json:"components"`       // K of the mixture, 1 to 64; no default
	Prior      PriorOptions   `json:"prior"`            // public, in terms of the features' ranges
	Sketch     *sketchOptions `json:"sketch,omitempty"` // of what sites release
	Draws      int            `json:"draws,omitempty"`  // parameters in the sample, 64 to 10000 (384)
}

// PriorOptions make the prior of the features' public ranges, of widths R: see
// [gmm.BoxPrior], whose numbers are the defaults.
type PriorOptions struct {
	Concentration float64 `json:"concentration"` // α of the weights' Dirichlet distribution, 0.01 to 1e6 (1)
	// Kappa is how many rows the middle of the box is worth as a component's mean, 1e-6 to 1e6 (0.02).
	Kappa float64 `json:"kappa"`
	// Spread is E Σ of a component as a share of diag(R²), 1e-6 to 1e3; 0 learns it (0).
	Spread float64 `json:"spread"`
	// Freedom is ν of the inverse Wishart distribution, at least features + 1.1, to 1e6 (features + 3).
	Freedom float64 `json:"freedom"`
}

// sketchOptions draw the frequencies of what sites release.
type sketchOptions struct {
	// Scale is about the standard deviation of a component, as a share of each feature's range
	// (1/16): components from half to twice as wide are found as well.
	Scale float64 `json:"scale"`
	// Frequencies is their number: by default three times that of the mixture's parameters,
	// from 64 to 768.
	Frequencies int `json:"frequencies"`
	// Rows is how many complete rows all sites have together, at least, as is publicly known; 0
	// for unknown (the default). A plan that needs more to find its components is refused.
	Rows float64 `json:"rows,omitempty"`
}

const (
	// MaxDraws is the most parameters that a sample may have.
	MaxDraws          = 10_000
	fewestFrequencies = 64
	// wideSpread is what covariances of components are expected to be before they are learned.
	wideSpread = 0.02
	// maxNumbers is how many numbers a sample may have, so that it fits into a state, and a
	// batch of proposals into a message.
	maxNumbers = 1 << 23
)

// DefaultPrior is the prior but for its degrees of freedom, which depend on the features.
func DefaultPrior() PriorOptions {
	return PriorOptions{Concentration: 1, Kappa: 0.02, Spread: wideSpread}
}

// Former implements [study.Former].
func (*Options) Former(key string) string {
	switch key {
	case "variant":
		return "leave it out: sites release sums at frequencies; published is name: graffl-abc, and set is name: graffl-abc with algorithm: sets"
	case "landmarks":
		return "leave it out: sites release sums at frequencies, whatever the features, and sketch.scale is what landmarks.bandwidth was"
	case "encoder", "scarce":
		return "leave it out: rows drawn from a mixture helped no classifier; name: pvi learns the outcome from all sites (docs/how-to/predict-an-outcome.md)"
	case "published":
		return "name: graffl-abc has its keys rounds and accepted"
	case "set":
		return "name: graffl-abc with algorithm: sets has it"
	case "calibration":
		return "leave it out: what intervals hold was measured for all plans (docs/explanation/graffl.md)"
	}
	return ""
}

// Features counts the features of a plan.
func Features(p *study.Plan) (d int) {
	for _, v := range p.Views {
		d += len(v.Features)
	}
	return d
}

// FillMixture puts in the defaults of any mixture.
func (o *Options) FillMixture(p *study.Plan, missing func(key string) bool) {
	if missing("prior.freedom") {
		o.Prior.Freedom = float64(Features(p)) + 3
	}
}

// Fill puts in the defaults that depend on the features.
func (o *Options) Fill(p *study.Plan, missing func(key string) bool) {
	o.FillMixture(p, missing)
	if missing("draws") {
		o.Draws = sketch.DefaultSampling(0).Particles
	}
	if o.Sketch == nil {
		o.Sketch = &sketchOptions{}
	}
	if missing("prior.spread") {
		o.Prior.Spread = 0
	}
	if missing("sketch.scale") {
		o.Sketch.Scale = 1. / 16
	}
	if missing("sketch.frequencies") {
		o.Sketch.Frequencies = min(max(3*o.parameters(Features(p)), fewestFrequencies), sketch.MaxFrequencies)
	}
}

// BeyondRange implements [study.RangeTeller]: sums are of rows as they are, with and without noise.
func (o *Options) BeyondRange(*study.Plan) string { return study.RangeAsIs }

// Check holds the options against the plan.
func (o *Options) Check(p *study.Plan, report study.Report) {
	ready := o.CheckMixture(p, o.Draws, "draws", report)
	if o.Draws < 64 || o.Draws > MaxDraws {
		report("draws", fmt.Sprintf("a sample of %d parameters", o.Draws), fmt.Sprintf("from 64 to %d", MaxDraws))
	}
	if pr := p.Privacy; pr.Differential() {
		if pr.Total == nil && pr.PerRelease != nil {
			report("", "graffl calibrates its noise to a total, and the plan has none", "privacy.total instead of per_release")
		}
		if pr.Unit == study.UnitSite {
			report("", "sums over rows protect subjects: hardly anything is left of a whole site under noise that hides it", "privacy.unit: subject")
		}
		if pr.Diagnostics > 0 {
			report("", "graffl has nothing to release for its report alone", "leave privacy.diagnostics out")
		}
	}
	o.checkSketch(p, ready, report)
}

// CheckMixture holds what is of any mixture against the plan. The sample has so many draws, which
// the plan says under a key. It returns whether a prior can be made.
func (o *Options) CheckMixture(p *study.Plan, draws int, key string, report study.Report) (ready bool) {
	counted := o.Components >= 1 && o.Components <= gmm.MaxComponents
	if !counted {
		report("components", fmt.Sprintf("a mixture of %d components", o.Components), fmt.Sprintf("from 1 to %d; it has no default", gmm.MaxComponents))
	}
	ready = o.checkFeatures(p, report)
	// Beyond these, weights or covariances drawn from the prior are not numbers any more
	// that a sampler can go on from.
	d := Features(p)
	for _, c := range []struct {
		key       string
		x, lo, hi float64
	}{{"concentration", o.Prior.Concentration, 0.01, 1e6}, {"kappa", o.Prior.Kappa, 1e-6, 1e6}, {"spread", o.Prior.Spread, 1e-6, 1e3},
		{"freedom", o.Prior.Freedom, float64(d) + 1.1, 1e6}} { // from d + 1 down there is no mean
		learned := c.key == "spread" && c.x == 0 && o.Sketch != nil
		if !(c.x >= c.lo && c.x <= c.hi) && !learned {
			report("prior."+c.key, fmt.Sprintf("%v is out of range", c.x), fmt.Sprintf("from %v to %v", c.lo, c.hi))
			ready = false
		}
	}
	if !ready || !counted {
		return ready
	}
	if each := o.Components * (1 + d + d*d); draws > maxNumbers/each {
		report(key, fmt.Sprintf("%d mixtures of %d components in %d dimensions are %d numbers each, more than %d together", draws, o.Components, d, each, maxNumbers),
			"fewer of them, fewer components, or fewer features")
	}
	if _, err := o.BoxPrior(p); err != nil {
		report("prior", err.Error(), "ranges of features that are neither as wide nor as narrow")
	}
	return ready
}

// checkFeatures wants a public range of every number that a box is made of.
func (o *Options) checkFeatures(p *study.Plan, report study.Report) bool {
	ok := true
	if d := Features(p); d > gmm.MaxDim {
		report("", fmt.Sprintf("%d features are too many for a mixture with full covariances", d), fmt.Sprintf("at most %d, and few are better", gmm.MaxDim))
		ok = false
	}
	const listed = 3 // one by one
	without := 0
	for k, v := range p.Views {
		for j, f := range v.Features {
			at := fmt.Sprintf("views[%d].features[%d]", k, j)
			switch {
			case f.Kind == study.Category:
				report(at, f.Name+" is a category, and a Gaussian mixture is of numbers", "leave it out of the views")
				ok = false
			case f.Range == nil:
				if without++; without <= listed {
					report("", at+" ("+f.Name+") has no range, which the prior and the frequencies are made of",
						fmt.Sprintf("{name: %s, range: [lowest, highest]} from what is publicly known", f.Name))
				}
				ok = false
			case !(f.Range[0] < f.Range[1]):
				ok = false // which the plan says already: nothing follows from such a range
			}
		}
	}
	if more := without - listed; more > 0 {
		what := fmt.Sprintf("%d more features without a range", more)
		if more == 1 {
			what = "1 more feature without a range"
		}
		report("", what, "the same; or fewer features")
	}
	return ok
}

func (o *Options) checkSketch(p *study.Plan, ready bool, report study.Report) {
	s, d := o.Sketch, Features(p)
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
			fmt.Sprintf("fewer components or features; frequencies go up to %d", sketch.MaxFrequencies))
	case s.Rows > 0 && ready:
		if need, err := o.RowsNeeded(p); err != nil {
			report("sketch", err.Error(), "other ranges, or another scale")
		} else if s.Rows < need {
			report("sketch.rows", fmt.Sprintf("with %.0f rows components that are four standard deviations apart would not be found: it takes about %s", s.Rows, RowsText(need)),
				"more rows, fewer components or features, or a larger ε; without this key the study runs, and its report says whether components were found")
		}
	}
}

// Box returns the public ranges of all features.
func Box(p *study.Plan) (names []string, lo, hi []float64) {
	for _, v := range p.Views {
		for _, f := range v.Features {
			names, lo, hi = append(names, f.Name), append(lo, f.Range[0]), append(hi, f.Range[1])
		}
	}
	return names, lo, hi
}

// BoxPrior makes the prior of the public box.
func (o *Options) BoxPrior(p *study.Plan) (gmm.Prior, error) {
	_, lo, hi := Box(p)
	q, err := gmm.BoxPrior(lo, hi, o.Components)
	if err != nil {
		return q, err
	}
	d := len(lo)
	for k := range q.Alpha {
		q.Alpha[k] = o.Prior.Concentration
	}
	q.Kappa, q.Nu = o.Prior.Kappa, o.Prior.Freedom
	for i := range d {
		r := hi[i] - lo[i]
		q.Psi[i*d+i] = cmp.Or(o.Prior.Spread, wideSpread) * (q.Nu - float64(d+1)) * r * r
	}
	return q, q.Check()
}

// parameters of a mixture with full covariances.
func (o *Options) parameters(d int) int { return o.Components*(1+d+d*(d+1)/2) - 1 }

// mostComponents is how many components can be fitted to what the sites of a plan release. How many frequencies there are follows from the plan's own number
// of components, unless the plan says it; nothing else that a site releases depends on that number.
func (o *Options) mostComponents(p *study.Plan) int {
	d := Features(p)
	return min(gmm.MaxComponents, maxNumbers/(o.Draws*(1+d+d*d)), (o.Sketch.Frequencies+1)/(1+d+d*(d+1)/2))
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

// RowsNeeded says how many rows all sites must have together for components to be found: see
// [sketch.Frequencies.RowsNeeded]. It follows from the plan alone.
func (o *Options) RowsNeeded(p *study.Plan) (float64, error) {
	f, err := o.drawFrequencies(p)
	if err != nil {
		return 0, err
	}
	var noise sketch.Noise
	if p.Privacy.Differential() && p.Privacy.Total != nil {
		m, err := releaseNoise(p)
		if err != nil {
			return 0, err
		}
		sd := m.Noise * releaseBound() * math.Sqrt(float64(len(p.Sites)))
		noise = sketch.Noise{SD: sd * f.NormBound(), Rows: sd / countEntry}
	}
	return f.RowsNeeded(o.Components, noise, seedOf(p, "rows needed")), nil
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

func seedOf(p *study.Plan, purpose string) uint64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "graffl %d %s", p.Seed, purpose))
	return binary.LittleEndian.Uint64(sum[:])
}
