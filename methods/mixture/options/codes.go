package options

import (
	"fmt"
	"slices"
	"strings"

	"parley/internal/nn"
	"parley/methods/mixture/gmm"
	"parley/problem"
	"parley/study"
)

// The kinds of encoder.
const (
	// EncoderSuffiAE is trained at a site on rows and their outcomes, without noise.
	EncoderSuffiAE = "suffiae"
	// EncoderProjection is random directions that follow from the plan alone: nothing
	// is trained, and nothing released.
	EncoderProjection = "projection"
)

var encoders = []string{EncoderSuffiAE, EncoderProjection}

// EncoderOptions let the mixture be of codes, few numbers that an encoder leaves of a
// row, in place of the features.
type EncoderOptions struct {
	Kind string `json:"kind"` // one of the Encoder constants (suffiae; under differential privacy projection)
	// Shared is one encoder for all sites (true). Encoders that sites train each for
	// itself, as published, have axes that have nothing to do with one another's.
	Shared    bool    `json:"shared"`
	Site      string  `json:"site,omitempty"` // kind suffiae, shared: which trains it (the first)
	Dimension int     `json:"dimension"`      // numbers in a code (5)
	Box       float64 `json:"box"`            // public range ±box of every code, of which prior and frequencies are made (4)

	// Of kind suffiae: see [nn.Options].
	Hidden         []int   `json:"hidden,omitempty"`
	Noise          float64 `json:"noise,omitempty"`
	Reconstruction float64 `json:"reconstruction,omitempty"`
	Epochs         int     `json:"epochs,omitempty"`
	Batch          int     `json:"batch,omitempty"`
	Rate           float64 `json:"rate,omitempty"`
}

// ScarceOptions let the mixture be of the rows of one class, of which some sites have
// few, and measure at every site what rows drawn from it are worth there.
type ScarceOptions struct {
	Outcome Outcome `json:"outcome"` // what is to be predicted; no default
	Class   string  `json:"class"`   // the level whose rows the mixture is of (the second)
	// Held is the share of every site's rows, in [0, 0.9), that nothing is learned from
	// and everything is judged by (0.25).
	Held float64 `json:"held"`
}

// Outcome is a column that describes subjects, and its levels. A subject with none of
// them takes no part.
type Outcome struct {
	Column string   `json:"column"`
	Levels []string `json:"levels,omitempty"`
}

const (
	maxBox      = 1e6
	maxFeatures = 1 << 16 // that an encoder takes
	maxHeld     = 0.9
)

// Dim is the number of dimensions of the mixture.
func (o *Options) Dim(p *study.Plan) int {
	if o.Encoder != nil {
		return o.Encoder.Dimension
	}
	return Features(p)
}

// Box returns what the mixture is of, and the public range of each: the features', or
// those of codes. Ranges of features must be there.
func (o *Options) Box(p *study.Plan) (names []string, lo, hi []float64) {
	if e := o.Encoder; e != nil {
		for i := range e.Dimension {
			names, lo, hi = append(names, CodeName(i)), append(lo, -e.Box), append(hi, e.Box)
		}
		return names, lo, hi
	}
	return Box(p)
}

// CodeName names number i of a code, from 0.
func CodeName(i int) string { return fmt.Sprintf("code %d", i+1) }

func (o *Options) fillCodes(p *study.Plan, missing func(key string) bool) {
	if s := o.Scarce; s != nil {
		if missing("scarce.class") && len(s.Outcome.Levels) > 1 {
			s.Class = s.Outcome.Levels[1]
		}
		if missing("scarce.held") {
			s.Held = 0.25
		}
	}
	e := o.Encoder
	if e == nil {
		return
	}
	// A class has some hundred rows, of which codes leave one cloud that is small in its
	// box: measured on codes of heart patients and ICU stays, a second component
	// and wider ones cost more than they show.
	if missing("components") {
		o.Components = 1
	}
	if missing("prior.spread") {
		o.Prior.Spread = 0.005
	}
	if missing("encoder.kind") {
		e.Kind = EncoderSuffiAE
		if p.Privacy.Differential() {
			e.Kind = EncoderProjection
		}
	}
	d := nn.Defaults()
	if missing("encoder.shared") {
		e.Shared = true
	}
	if missing("encoder.dimension") {
		e.Dimension = d.Dimension
	}
	if missing("encoder.box") {
		e.Box = 4
	}
	if e.Kind != EncoderSuffiAE {
		return
	}
	if missing("encoder.site") && e.Shared && len(p.Sites) > 0 {
		e.Site = p.Sites[0]
	}
	if missing("encoder.hidden") {
		e.Hidden = d.Hidden
	}
	if missing("encoder.noise") {
		e.Noise = d.Noise
	}
	if missing("encoder.reconstruction") {
		e.Reconstruction = d.Reconstruction
	}
	if missing("encoder.epochs") {
		e.Epochs = d.Epochs
	}
	if missing("encoder.batch") {
		e.Batch = d.Batch
	}
	if missing("encoder.rate") {
		e.Rate = d.Rate
	}
}

// Training returns what an encoder is trained by.
func (e *EncoderOptions) Training() nn.Options {
	return nn.Options{Dimension: e.Dimension, Hidden: e.Hidden, Noise: e.Noise, Reconstruction: e.Reconstruction, Epochs: e.Epochs, Batch: e.Batch, Rate: e.Rate}
}

// checkEncoder reports whether codes have as many numbers and such a range that a prior
// can be made of them.
func (o *Options) checkEncoder(p *study.Plan, report study.Report) (ready bool) {
	e := o.Encoder
	ready = true
	if e.Dimension < 1 || e.Dimension > gmm.MaxDim {
		report("encoder.dimension", fmt.Sprintf("codes of %d numbers", e.Dimension), fmt.Sprintf("from 1 to %d, 3 to 5 are best", gmm.MaxDim))
		ready = false
	}
	if !(e.Box > 0 && e.Box <= maxBox) {
		report("encoder.box", fmt.Sprintf("codes within ± %v", e.Box), "a positive number: almost all codes should lie within ± it")
		ready = false
	}
	switch e.Kind {
	case EncoderProjection:
		o.checkProjection(report)
	case EncoderSuffiAE:
		o.checkSuffiAE(p, report)
	default:
		report.OneOf("encoder.kind", e.Kind, encoders...)
	}
	return ready
}

func (o *Options) checkProjection(report study.Report) {
	e := o.Encoder
	if !e.Shared {
		report("encoder.shared", "a projection follows from the plan, and every site has the same", "leave it out")
	}
	for _, x := range []struct {
		key   string
		there bool
	}{{"site", e.Site != ""}, {"hidden", len(e.Hidden) > 0}, {"noise", e.Noise != 0}, {"reconstruction", e.Reconstruction != 0},
		{"epochs", e.Epochs != 0}, {"batch", e.Batch != 0}, {"rate", e.Rate != 0}} {
		if x.there {
			report("encoder."+x.key, "a projection is not trained", "leave it out, or kind: "+EncoderSuffiAE)
		}
	}
}

func (o *Options) checkSuffiAE(p *study.Plan, report study.Report) {
	e := o.Encoder
	if p.Privacy.Differential() {
		report("encoder.kind", "an encoder that is trained on rows tells of them, and no noise hides that", "kind: "+EncoderProjection+", or no encoder")
	}
	if o.Scarce == nil {
		report("scarce", "missing, and suffiae is trained to tell classes apart", "scarce: {outcome: {column: …, levels: [other, scarce]}}")
	}
	switch {
	case e.Shared && !slices.Contains(p.Sites, e.Site):
		report("encoder.site", fmt.Sprintf("%q is not a site of this plan", e.Site), "one of "+problem.Names(p.Sites))
	case !e.Shared && e.Site != "":
		report("encoder.site", "every site trains its own encoder", "leave it out, or shared: true")
	}
	t := e.Training()
	if e.Dimension < 1 { // reported
		t.Dimension = 1
	}
	if err := t.Check(); err != nil {
		report("encoder", strings.TrimPrefix(err.Error(), "suffiae: "), "leave it out for the default")
	}
}

func (o *Options) checkScarce(p *study.Plan, report study.Report) {
	s := o.Scarce
	switch y := s.Outcome; {
	case y.Column == "":
		report("scarce.outcome", "missing", "{column: …, levels: [other, scarce]}")
	case !slices.Contains(p.Subjects, y.Column):
		report("scarce.outcome.column", fmt.Sprintf("%q is not among the plan's subject columns", y.Column), "subjects: ["+y.Column+"]")
	}
	switch y := s.Outcome.Levels; {
	case len(y) < 2:
		report("scarce.outcome.levels", fmt.Sprintf("%d levels", len(y)), "at least two, as the subjects table writes them")
	case slices.Contains(y, ""):
		report("scarce.outcome.levels", "an empty level", "subjects without an outcome take no part")
	case len(slices.Compact(slices.Sorted(slices.Values(y)))) != len(y):
		report("scarce.outcome.levels", "a level that is there twice", "each once")
	case !slices.Contains(y, s.Class):
		report("scarce.class", fmt.Sprintf("%q is not a level of %s", s.Class, s.Outcome.Column), "one of "+problem.Names(y))
	}
	if !(s.Held >= 0 && s.Held < maxHeld) {
		report("scarce.held", fmt.Sprintf("a share of %v of the rows", s.Held), fmt.Sprintf("from 0, below %v", maxHeld))
	}
}
