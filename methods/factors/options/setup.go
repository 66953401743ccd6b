package options

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"

	"parley/methods/factors/assess"
	"parley/methods/factors/between"
	"parley/methods/factors/ppca"
	"parley/privacy"
	"parley/problem"
	"parley/study"
)

// Setup is a checked plan, its options, and how its features lie in memory: all that
// both halves of a study know before it begins.
type Setup struct {
	Plan    *study.Plan
	Options *Options
	Layout  ppca.Layout
}

// SetUp reads a checked plan, whose method has to be this one.
func SetUp(p *study.Plan) (Setup, error) {
	opts, ok := p.Method.Options.(*Options)
	if !ok {
		return Setup{}, fmt.Errorf("the plan's options are of method %s, not of factors", p.Method.Name)
	}
	return NewSetup(p, opts)
}

// NewSetup is SetUp of a plan of a method that says the same in options of its own.
func NewSetup(p *study.Plan, opts *Options) (Setup, error) {
	dims := make([]int, len(p.Views))
	for k, v := range p.Views {
		dims[k] = len(v.Features)
	}
	layout, err := ppca.NewLayout(dims, opts.NoiseGroups())
	return Setup{p, opts, layout}, err
}

// Feature returns feature j of the plan, and its view.
func (s Setup) Feature(j int) (*study.View, *study.Feature) {
	k := s.Layout.ViewOf()[j]
	lo, _ := s.Layout.View(k)
	v := &s.Plan.Views[k]
	return v, &v.Features[j-lo]
}

// mostSelected is how many factors are tried at most where the plan leaves their number to the study.
const mostSelected = 25

// Rank is the number of factors of the plan, or the largest that is tried: as many as its features can tell.
func (s Setup) Rank() int {
	if s.Options.Latent != Select {
		return int(s.Options.Latent)
	}
	d, q := s.Layout.Features(), 1
	for q+1 < d && q < mostSelected && !tooMany(d, q+1) {
		q++
	}
	return q
}

// With is the setup of a study with so many factors.
func (s Setup) With(rank int) Setup {
	o := *s.Options
	o.Latent, s.Options = Factors(rank), &o
	return s
}

// CheckRank refuses a model of other than the plan's number of factors: what a
// site declares counts on that.
func (s Setup) CheckRank(rank int) error {
	if rank != s.Rank() && !(s.Options.Latent == Select && rank >= 1 && rank < s.Rank()) {
		return fmt.Errorf("a model of %d factors, and the plan has %v", rank, s.Options.Latent)
	}
	return nil
}

// CheckLatent refuses a number of factors that no model of these features has.
func (s Setup) CheckLatent(q int) error {
	if d := s.Layout.Features(); q < 1 || q >= d {
		return problem.Problem{Where: "latent", What: fmt.Sprintf("%d factors for %d features", q, d),
			Hint: fmt.Sprintf("fewer factors than features: 1 to %d", d-1)}
	}
	return nil
}

// TooManyFactors says whether the plan's factors are more than the covariances of so many
// features can tell, whatever the subjects: d features with noise of their own have d(d + 1)/2
// variances and covariances, and a model dq − q(q − 1)/2 + d numbers (Ledermann 1937).
func (s Setup) TooManyFactors(features int) bool {
	return s.Layout.Noise == ppca.NoisePerFeature && tooMany(features, s.Rank())
}

func tooMany(d, q int) bool { return (d-q)*(d-q) < d+q }

// Complete demands that the sites together have every feature of the plan.
func (s Setup) Complete(p *ppca.Params) error {
	if len(p.Features) == s.Layout.Features() {
		return nil
	}
	at := 0
	for k, v := range s.Plan.Views {
		lo, hi := s.Layout.View(k)
		for j := lo; j < hi; j++ {
			if at < len(p.Features) && p.Features[at] == j {
				at++
				continue
			}
			return fmt.Errorf("no site has a single value of feature %s of view %s: leave it out of the plan",
				v.Features[j-lo].Name, v.Name)
		}
	}
	return nil
}

// RangeScale is the scale that the plan's public ranges give, which a plan that uses
// it has for all features.
func (s Setup) RangeScale() *ppca.Scale {
	out := &ppca.Scale{}
	for _, v := range s.Plan.Views {
		for _, f := range v.Features {
			out.Shift = append(out.Shift, f.Range[0])
			out.Factor = append(out.Factor, 1/(f.Range[1]-f.Range[0]))
		}
	}
	return out
}

// Unit says what one scaled unit is, in words.
func (o *Options) Unit() string { return unitOf[o.Scaling] }

var unitOf = map[string]string{
	ScaleStandard: "standard deviations", ScaleView: "its view's standard deviations",
	ScaleMinMax: "parts of a feature's range",
	ScaleRange:  "parts of a feature's public range", ScaleNone: "the features' own units",
	ScaleSiteRange: "parts of a feature's range at its site",
}

// Draws returns the random numbers of one site in one round: a function of the
// plan's seed, the site's name and the round alone.
func Draws(seed uint64, site string, round int) *rand.Rand {
	return rand.New(rand.NewChaCha8(sha256.Sum256(fmt.Appendf(nil, "mvppca %d %q %d", seed, site, round))))
}

// The tasks, in the words that progress and logs show.
const (
	TaskAdjust = "adjust" // sums for the regression on covariates
	TaskScale  = "scale"  // sums for a common scale
	TaskFit    = "fit"    // the sums of the site's subjects
	TaskAssess = "assess" // how well the model describes the site

	TaskOverview = "overview" // noised number of the site's subjects, and how far views spread
	TaskCoarse   = "coarse"   // noised moments of the subjects
	TaskFine     = "fine"     // the same about what all sites' coarse moments told
)

// ScaleTask asks for the sums that the plan's scaling needs.
type ScaleTask struct {
	Effects *Effects `cbor:"effects,omitempty"` // of covariates, which are taken out before
}

// Contents lists what a task without protection releases. The counts of numbers are
// upper bounds, for a site that has every view, whatever cells are missing.
type Contents struct{ privacy.Request }

// Say adds numbers to the list, at most as many as values.
func (c *Contents) Say(values int, what string) {
	c.Protection = privacy.Unprotected
	c.Contents = append(c.Contents, privacy.Content{What: what, Values: values})
}

// SayScale adds what [RowSums.Said] says.
func (c *Contents) SayScale(s Setup) {
	what := "number of values, mean and sum of squared deviations of each feature"
	if s.Options.Scaling == ScaleMinMax {
		what = "number of values, smallest and largest value of each feature"
	}
	c.Say(3*s.Layout.Features(), what)
}

// SayAssessment adds the numbers of an [Assessment], with or without products of squares of scores.
func (c *Contents) SayAssessment(s Setup, products bool) {
	d, q, k := s.Layout.Features(), s.Rank(), s.Layout.Views()
	c.Say((2+k)<<min(k, 16), "number of subjects and share of cells observed, per pattern of present views")
	c.Say(k*(q+4), "sums of squares and of absolute errors, total and unexplained, per view and factor")
	c.Say(5*d, "per feature number of values, sums of squares, total and unexplained, and sums of squares and of "+
		"fourth powers of what is unexplained of single subjects")
	c.Say(assess.Values(k), "for each view, predicted from the subjects' other views: sums of squared errors, "+
		"histograms of values, of imputed values and of where values fall in their predictions, and how much subjects "+
		"differ in that")
	c.Say(between.Values(k), "for each view: number of subjects, and sums of their squared residuals in units of what "+
		"the model expects, and of the squares of these")
	if products {
		c.Say(2*q*(q+1), "mean and covariance of the factors; sums over subjects of their squares, and of products of "+
			"two of these")
	} else {
		c.Say(q*(q+1), "mean and covariance of the factors")
	}
	c.Say(2, "log-likelihood of the site's subjects, and what the model expects of as many")
	c.Say(4*d, "per feature score and information of whether a value, or its whole view, is missing on what the "+
		"subject's others predict of it")
	c.Say(3+3*q, "how scores go with those of the next rows: sums of products, of squares, and of the squares of "+
		"products, for all factors and for each")
	c.Say(k+1, "number of subjects who were left out as outliers, and of them in each view")
}
