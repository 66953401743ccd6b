package options

import (
	"parley/methods/factors/assess"
	"parley/methods/factors/between"
	"parley/privacy"
)

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
	c.Say(5*d, "per feature number of values, sums of squares, total and unexplained, and sums of squares and of fourth powers of what is unexplained of single subjects")
	c.Say(assess.Values(k), "for each view, predicted from the subjects' other views: sums of squared errors, histograms of values, of imputed values and of where values fall in their predictions, and how much subjects differ in that")
	c.Say(between.Values(k), "for each view: number of subjects, and sums of their squared residuals in units of what the model expects, and of the squares of these")
	if products {
		c.Say(2*q*(q+1), "mean and covariance of the factors; sums over subjects of their squares, and of products of two of these")
	} else {
		c.Say(q*(q+1), "mean and covariance of the factors")
	}
	c.Say(2, "log-likelihood of the site's subjects, and what the model expects of as many")
	c.Say(4*d, "per feature score and information of whether a value, or its whole view, is missing on what the subject's others predict of it")
	c.Say(3+3*q, "how scores go with those of the next rows: sums of products, of squares, and of the squares of products, for all factors and for each")
	c.Say(k+1, "number of subjects who were left out as outliers, and of them in each view")
}
