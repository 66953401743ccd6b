package fedmvppca

import (
	"fmt"
	"math"
	"slices"

	"parley/method"
	"parley/methods/factors/ppca"
	"parley/problem"
	"parley/study"
)

// Name is what plans call the method.
const Name = "fed-mv-ppca"

// Options are what a plan says under method. Rounds and iterations are the paper's by default.
type Options struct {
	Latent int `json:"latent"` // q, the number of factors; no default
	// one of scalings: standard, or range under differential privacy
	Scaling string `json:"scaling"`
	// 100; 2 where a total is split over them, as noise grows with their square root
	Rounds          int `json:"rounds"`
	Iterations      int `json:"iterations"`       // at each site in each round (15)
	FirstIterations int `json:"first_iterations"` // of EM in round 1 (30)
	// "random": each site starts by itself; "prior": from the plan's prior
	Initial string `json:"initial"`
	// later rounds start at a "draw" from the prior, or at its "mean"
	Restart        string           `json:"restart"`
	Prior          *initialPrior    `json:"prior,omitempty"`           // with initial: prior
	SiteIterations []siteIterations `json:"site_iterations,omitempty"` // sites with another number of iterations

	Clipping *clipping       `json:"clipping,omitempty"` // of DP-Fed-mv-PPCA
	Patterns method.Patterns `json:"patterns,omitempty"` // of private plans: the sets of views that subjects can have
}

// initialPrior is the prior of round 1, in scaled units. Its loadings have no
// mean that anybody could know, so each is drawn from the plan's seed. The
// defaults in brackets are the paper's code; the second are those of private
// plans where values lie in [0, 1], which must learn little to be right.
type initialPrior struct {
	LoadingSD  float64 `json:"loading_sd"`  // of the entries of W, around the drawn mean and between sites (1; 0.1)
	Mean       float64 `json:"mean"`        // of every feature (0; 0.5)
	MeanSD     float64 `json:"mean_sd"`     // between sites (1; 0.25)
	NoiseAlpha float64 `json:"noise_alpha"` // inverse-gamma prior of the noise variance (2.25; 3)
	NoiseBeta  float64 `json:"noise_beta"`  // (0.625; 0.08)
}

// siteIterations gives one site its own number of iterations a round.
type siteIterations struct {
	Site       string `json:"site"`
	Iterations int    `json:"iterations"`
}

// clipping says how Algorithm 2 clips and noises the change of each parameter of each view by
// itself. It noises a message for everything that the site holds, so the noise does not fall
// with the number of its subjects.
type clipping struct {
	// NoiseFloor is the least noise variance σ², in scaled units: released ones
	// below it, which noise makes negative too, are raised to it (1e-4).
	NoiseFloor float64      `json:"noise_floor"`
	FirstRound string       `json:"first_round"`    // fromPrior or inClear
	Mean       gaussianPart `json:"mean"`           // μ of a view, clipped in the l2 norm
	Loadings   gaussianPart `json:"loadings"`       // W of a view, clipped in the l2 (Frobenius) norm
	Noise      laplacePart  `json:"noise_variance"` // σ² of a view, clipped in size
}

// The first round of a private study.
const (
	// fromPrior starts at the plan's public prior: every round is private.
	fromPrior = "prior"
	// inClear sends each site's parameters of round 1 as they are, which is how the paper's
	// experiments start: nothing is guaranteed for the study.
	inClear = "clear"
)

// gaussianPart says how one parameter is clipped and noised.
type gaussianPart struct {
	Constant float64 `json:"constant"` // clip, in standard deviations of the parameter's prior (1)
	// Epsilon and Delta, where the plan has a budget per release, are the budget
	// of this parameter's releases (the plan's), by Theorem 5.
	Epsilon float64 `json:"epsilon,omitempty"`
	Delta   float64 `json:"delta,omitempty"`
}

// laplacePart is gaussianPart for Laplace noise, which has no δ (Theorem 3).
type laplacePart struct {
	Constant float64 `json:"constant"`
	Epsilon  float64 `json:"epsilon,omitempty"`
}

// scalings are those of factors and one more: each site by its own minimum and maximum, as in
// the paper's experiments.
var scalings = append(slices.Clone(ppca.Scalings), ppca.ScaleSiteRange)

// Former implements [study.Former].
func (*Options) Former(key string) string {
	if key == "noise" {
		return "leave it out: the paper has one noise variance for each view"
	}
	return ""
}

// Fill puts in the defaults that depend on what the plan says of privacy.
func (o *Options) Fill(p *study.Plan, missing func(key string) bool) {
	private, rounds := p.Privacy.Differential(), 100
	if private {
		o.fillClipping(p, missing)
		if missing("scaling") {
			o.Scaling = ppca.ScaleRange
		}
		if p.Privacy.Total != nil {
			rounds = 2
		}
	}
	for key, f := range map[string]struct {
		field *int
		value int
	}{"rounds": {&o.Rounds, rounds}, "iterations": {&o.Iterations, 15}, "first_iterations": {&o.FirstIterations, 30}} {
		if missing(key) {
			*f.field = f.value
		}
	}
	if missing("initial") {
		if o.Initial = "random"; private && !o.firstInClear() {
			o.Initial = "prior"
		}
	}
	if missing("restart") {
		o.Restart = "draw"
	}
	if o.Initial == "prior" && o.Prior == nil {
		o.Prior = &initialPrior{}
	}
	if o.Prior == nil {
		return
	}
	from := initialPrior{LoadingSD: 1, MeanSD: 1, NoiseAlpha: 2.25, NoiseBeta: 0.625}
	if private && (o.Scaling == ppca.ScaleRange || o.Scaling == ppca.ScaleSiteRange) {
		from = initialPrior{LoadingSD: 0.1, Mean: 0.5, MeanSD: 0.25, NoiseAlpha: 3, NoiseBeta: 0.08}
	}
	fill(missing, "prior", map[string]pair{
		"loading_sd": {&o.Prior.LoadingSD, from.LoadingSD}, "mean": {&o.Prior.Mean, from.Mean},
		"mean_sd":     {&o.Prior.MeanSD, from.MeanSD},
		"noise_alpha": {&o.Prior.NoiseAlpha, from.NoiseAlpha}, "noise_beta": {&o.Prior.NoiseBeta, from.NoiseBeta},
	})
}

func (o *Options) fillClipping(p *study.Plan, missing func(key string) bool) {
	if o.Clipping == nil {
		o.Clipping = &clipping{}
	}
	c := o.Clipping
	if missing("clipping.first_round") {
		c.FirstRound = fromPrior
	}
	fill(missing, "clipping", map[string]pair{"noise_floor": {&c.NoiseFloor, 1e-4},
		"mean.constant": {&c.Mean.Constant, 1}, "loadings.constant": {&c.Loadings.Constant, 1},
		"noise_variance.constant": {&c.Noise.Constant, 1}})
	if b := p.Privacy.PerRelease; b != nil {
		fill(missing, "clipping", map[string]pair{"mean.epsilon": {&c.Mean.Epsilon, b.Epsilon},
			"mean.delta":       {&c.Mean.Delta, b.Delta},
			"loadings.epsilon": {&c.Loadings.Epsilon, b.Epsilon}, "loadings.delta": {&c.Loadings.Delta, b.Delta},
			"noise_variance.epsilon": {&c.Noise.Epsilon, b.Epsilon}})
	}
}

// pair is an option and its default.
type pair struct {
	field *float64
	value float64
}

// fill sets those options of a section that were not written.
func fill(missing func(key string) bool, section string, values map[string]pair) {
	for key, p := range values {
		if missing(section + "." + key) {
			*p.field = p.value
		}
	}
}

// Check holds the options against the plan.
func (o *Options) Check(p *study.Plan, report study.Report) {
	report.OneOf("scaling", o.Scaling, scalings...)
	if o.Latent < 1 {
		report("latent", "the number of factors is missing", "a whole number from 1")
	}
	ppca.CheckFeatures(p, o.Latent, o.Scaling, report)
	report.AtLeast("rounds", o.Rounds, 1)
	report.AtLeast("iterations", o.Iterations, 1)
	report.AtLeast("first_iterations", o.FirstIterations, 1)
	report.OneOf("initial", o.Initial, "random", "prior")
	report.OneOf("restart", o.Restart, "draw", "mean")
	if o.Prior != nil {
		if o.Initial != "prior" {
			report("prior", "is used only with initial: prior", "initial: prior, or leave it out")
		}
		prior := report.Within("prior")
		prior.Positive("loading_sd", o.Prior.LoadingSD)
		prior.Positive("mean_sd", o.Prior.MeanSD)
		prior.Positive("noise_alpha", o.Prior.NoiseAlpha)
		prior.Positive("noise_beta", o.Prior.NoiseBeta)
	}
	for i, s := range o.SiteIterations {
		at := fmt.Sprintf("site_iterations[%d]", i)
		if !slices.Contains(p.Sites, s.Site) {
			report(at+".site", fmt.Sprintf("%q is not a site of the plan", s.Site), "one of "+problem.Names(p.Sites))
		}
		if slices.ContainsFunc(o.SiteIterations[:i], func(o siteIterations) bool { return o.Site == s.Site }) {
			report(at+".site", fmt.Sprintf("site %s is named twice", s.Site), "one entry for each site")
		}
		report.AtLeast(at+".iterations", s.Iterations, 1)
	}
	if !p.Privacy.Differential() {
		report.Absent("belongs to private plans, and the plan has no differential protection",
			"privacy: {protection: differential, …}, or leave it out",
			map[string]bool{"clipping": o.Clipping != nil, "patterns": o.Patterns != nil})
		return
	}
	o.checkPrivate(p, report)
}

// checkPrivate holds the options against what a private plan may say.
func (o *Options) checkPrivate(p *study.Plan, report study.Report) {
	o.Patterns.Check(p, report)
	if slices.Contains([]string{ppca.ScaleStandard, ppca.ScaleView, ppca.ScaleMinMax}, o.Scaling) {
		report("scaling", fmt.Sprintf("%q takes the scale from the subjects' values, which nothing protects",
			o.Scaling),
			"range, with the range of every feature in the plan, or none")
	}
	if p.Privacy.Diagnostics > 0 {
		report("", "this method has no diagnostics to spend a share of the total on", "leave privacy.diagnostics out")
	}
	if !o.firstInClear() && (o.Initial != "prior" || o.Prior == nil) {
		report("initial", "a private first round starts at a public prior", "prior, which prior describes")
	}
	if o.Clipping == nil {
		report("clipping", "missing", "noise_floor, first_round, mean, loadings and noise_variance")
		return
	}
	o.Clipping.check(p, report.Within("clipping"))
}

func (c *clipping) check(p *study.Plan, report study.Report) {
	report.Positive("noise_floor", c.NoiseFloor)
	switch c.FirstRound {
	case fromPrior:
	case inClear:
		if p.Privacy.Total != nil {
			report("first_round", "in clear breaks any total that a plan promises",
				"first_round: prior; or privacy.per_release, the published way, instead of a total")
		}
	default:
		report("first_round", fmt.Sprintf("%q is not known", c.FirstRound), fromPrior+", or "+inClear+
			" to repeat the paper, without any guarantee")
	}
	report.Positive("mean.constant", c.Mean.Constant)
	report.Positive("loadings.constant", c.Loadings.Constant)
	report.Positive("noise_variance.constant", c.Noise.Constant)
	for _, b := range []struct {
		key   string
		value float64
		limit float64
	}{
		{"mean.epsilon", c.Mean.Epsilon, math.Inf(1)}, {"mean.delta", c.Mean.Delta, 0.5},
		{"loadings.epsilon", c.Loadings.Epsilon, math.Inf(1)}, {"loadings.delta", c.Loadings.Delta, 0.5},
		{"noise_variance.epsilon", c.Noise.Epsilon, math.Inf(1)},
	} {
		switch {
		case p.Privacy.Total != nil && b.value != 0:
			report(b.key, "is the budget of single releases, and the plan has a total, which is split",
				"leave it out: all releases then have noise in the same proportion to their clip")
		case p.Privacy.PerRelease != nil && !(b.value > 0 && b.value < b.limit):
			report(b.key, fmt.Sprintf("%v cannot be the budget of a release", b.value),
				"a positive ε, and δ between 0 and 0.5 (Theorem 5)")
		}
	}
}

// firstInClear says whether round 1 of a private plan is not protected.
func (o *Options) firstInClear() bool { return o.Clipping != nil && o.Clipping.FirstRound == inClear }

// iterationsIn returns the number of iterations of a site in a round.
func (o *Options) iterationsIn(round int, site string) int {
	if round == 1 {
		return o.FirstIterations
	}
	for _, s := range o.SiteIterations {
		if s.Site == site {
			return s.Iterations
		}
	}
	return o.Iterations
}

// BeyondRange implements [study.RangeTeller]: scaling by ranges moves nothing to their ends.
func (*Options) BeyondRange(*study.Plan) string { return study.RangeAsIs }

// setup is a checked plan: what it says of the model, and what this method says.
type setup struct {
	ppca.Frame
	own *Options
}

func setUp(p *study.Plan) (setup, error) {
	o, ok := p.Method.Options.(*Options)
	if !ok {
		return setup{}, fmt.Errorf("the plan's options are of method %s, not of %s", p.Method.Name, Name)
	}
	frame, err := ppca.NewFrame(p, ppca.NoisePerView, o.Latent, o.Scaling)
	return setup{frame, o}, err
}

func (s setup) private() bool { return s.Plan.Privacy.Differential() }

// checkModel refuses a prior that no coordinator of the plan sends.
func (s setup) checkModel(prior *Prior) error {
	if len(prior.Features) != s.Layout.Features() {
		return fmt.Errorf("a prior of %d features, and the plan has %d", len(prior.Features), s.Layout.Features())
	}
	return s.checkRank(prior.Rank)
}

// checkRank refuses a model of other than the plan's number of factors.
func (s setup) checkRank(rank int) error {
	if rank != s.own.Latent {
		return fmt.Errorf("a model of %d factors, and the plan has %d", rank, s.own.Latent)
	}
	return nil
}
