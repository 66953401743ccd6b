package glm

import (
	"fmt"
	"strings"

	"parley/figure"
)

// verdict is a row of the table of what speaks against relying on a fit; what is tested stands above each.
type verdict struct {
	Level   float64 // the probability that chance alone leads to it, over all tests of a study; 0 where it has no part
	Matters float64 // how much must be exceeded, beside chance, in what the test goes by
	Words   string  // what is found, with verbs for the evidence: a title, and on the next line what that means
	Advice  string  // what to do, likewise
}

// Finding is what a verdict says of a fit.
type Finding struct{ Title, Text string } // the title with the full stop or colon that parts it from the text

// Say fills in the evidence.
func (v *verdict) Say(evidence ...any) []Finding {
	title, text, _ := strings.Cut(fmt.Sprintf(v.Words+" "+v.Advice, evidence...), "\n")
	return []Finding{{title, text}}
}

// Of is what a verdict says of a list of names; nothing if there are none.
func (v *verdict) Of(names string, evidence ...any) []Finding {
	if names == "" {
		return nil
	}
	return v.Say(append([]any{names}, evidence...)...)
}

// String is all of it in one line.
func (f Finding) String() string { return strings.TrimSpace(f.Title + " " + f.Text) }

// MarshalText writes a finding as a model file has it.
func (f Finding) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText reads it; which words are its title is not kept.
func (f *Finding) UnmarshalText(text []byte) error {
	f.Title = string(text)
	return nil
}

// Warnings are findings as a report begins with.
func Warnings(found []Finding) []figure.Section {
	var notes []figure.Note
	for _, f := range found {
		notes = append(notes, figure.Note{Title: f.Title[:max(len(f.Title)-1, 0)], Text: f.Text})
	}
	return figure.Verdicts(notes)
}

// The verdicts.
var (
	// OnLearning: whether outcomes vary, and everybody's levels are those of the plan.
	OnLearning = verdict{
		Words: "%s:\nthere is nothing to learn of that, and what is said of it is the prior's. Of three classes or " +
			"more, effects on all are then measured against a mean of which hardly anything is known.",
		Advice: "See whether the sites' data have the right column, in the unit of the plan's cuts, and subjects of " +
			"all classes, and whether method.outcome.levels has the event last and no level that nobody has."}
	// OnSeparation: whether predictions are right in every row, or the variance that is explained is more than this
	// share.
	OnSeparation = verdict{Matters: 1 - 1e-6,
		Words: "The features say what %s is, all but without an error on the data of the fit (perfect " +
			"separation).\nWhat is calculated from others needs no model. Of classes the data then set no bound to " +
			"the weights, so that their size is the prior's, and new subjects are hardly predicted as well.",
		Advice: "See whether a feature is the outcome in another form, was calculated from it, or was recorded after " +
			"it; else there are too few subjects for so many weights."}
	// OnPrior: weights beyond two of the prior's standard deviations from its centre, and by how many of its own the
	// prior moves one. An interval of 90 % that is off by half of one holds the truth with a probability of .86.
	OnPrior = verdict{Matters: 0.5,
		Words: "The prior holds back effects that the data make large.\nIt draws them in by more than half of their " +
			"standard error, and predictions with them, so that it decides how large they are: %s. They are more " +
			"than two of its standard deviations from its centre.",
		Advice: "State a larger method.prior_variance or intercept_variance if such effects are likely, and see " +
			"whether a feature all but says what the outcome is."}
	// OnOneSide: effects of levels, of numbers of two values, and of periods for which nobody has an event, or
	// everybody. The likelihood rises without an end then (Albert and Anderson, Biometrika 1984).
	OnOneSide = verdict{
		Words: "The data bound the effect of %s on one side only:\nof the subjects with one of its values none has " +
			"the outcome, or all have. Where the estimate is, its standard error and its interval are the prior's, " +
			"and an interval that leaves 0 out shows nothing.",
		Advice: "Report how many there are in its place, or join a rare level, or a period, with another."}
	// OnEvents: how many events there are for each effect (Vittinghoff and McCulloch, American Journal of Epidemiology
	// 2007; ten by Peduzzi and others, Journal of Clinical Epidemiology 1996).
	OnEvents = verdict{Matters: 5,
		Words: "Few events for so many effects:\n%s%s, and %s. With fewer than %d for each, effects come out too " +
			"large, and intervals, the intercept's above all, hold the truth less often than they say.",
		Advice: "Leave out features or levels that matter less, join rare levels, or wait for more events."}
	// OnConvergence: by how much the last step moved.
	OnConvergence = verdict{
		Words: "%s had not converged%s:\n%s. Estimates are where it happened to stop. Do not rely on the " +
			"estimates, nor on intervals; predictions settle before single weights do.",
		Advice: "Without privacy allow more method.rounds. Features that say the same, or that part the classes " +
			"without error, are the usual reason: leave some out, or join levels that overlap."}
	// OnDispersion: Pearson's χ² by its degrees of freedom, of counts and of numbers whose noise the plan states.
	// Matters is the ratio from which standard errors are a tenth off.
	OnDispersion = verdict{Matters: 1.2,
		Words: "Outcomes vary %s than the model says:\nPearson's χ² is %.3g times its degrees of freedom. Standard " +
			"errors and intervals, those of predictions too, are too %s: by a factor of about %.2g, the root of the " +
			"ratio.",
		Advice: "See whether outcomes hold other units or codes for missing values, or counts have an upper limit, " +
			"such as a number of visits. Look for what subjects differ by, such as an exposure that belongs under " +
			"method.offset, a missing feature, or sites (site_effects: random). If all is right, state " +
			"noise_variance as so many times what it is, or change standard errors of counts by the factor."}
	// OnRecording: moments and counts of each site beside those of the others, and whether outcomes, and times of
	// events by the measure of OnSites, go with what the fit predicts there.
	OnRecording = verdict{
		Words: "At site %s, %s\n%s",
		Advice: "All sites share one scale and one outcome. Ask the site, and have the same written alike " +
			"everywhere: until then these effects, and what goes with them, are not to be relied on."}
	// OnMissing: how many cells of a feature are missing of n subjects, by √n. What a cell counts as in place of its
	// value moves other estimates by a share of the missing cells, and their standard errors fall with √n. With two
	// features whose correlation is .7 intervals of 90 % held .86 without a missing cell, .84 just below this bound,
	// and .57 where half the cells of one were missing (TestIntervalsWithMissingCells).
	OnMissing = verdict{Matters: 2,
		Words: "Much is missing of %s.\nA missing cell counts as if one value had been observed, so estimates of " +
			"these features, and of all that go with them, can be off by more than their intervals say.",
		Advice: "Leave such features out, or fit to subjects who have them."}
	// OnSites: residuals of each site, in sum and times each feature, beyond those of all: by how much the χ² of
	// Cochran's Q is beyond its degrees of freedom, as a share of rows.
	OnSites = verdict{Level: 0.001, Matters: 0.01,
		Words: "%s.\n%sA coefficient is then an average that may hold at no site, even with the wrong sign, and its " +
			"standard error is too small for all sites like these, by the factor beside it if there is one.",
		Advice: "See whether the sites code the outcome and these features alike, and in one unit; if they do, %s."}
	// OnShape: residuals in runs of bins of a feature, and times the number of a period, beyond what a straight effect
	// that stays leaves: by how much χ² is beyond its degrees of freedom, as a share of rows or events.
	OnShape = verdict{Level: 0.001, Matters: 0.01,
		Words: "The effect of %s %s.\nIts coefficient is then an average that may hold nowhere: do not read it as " +
			"the effect.",
		Advice: "Give a number whose effect bends a spline (splines), or a transformation. Fit parts of a time over " +
			"which effects change as studies of their own: one with the first cuts alone, and one of those who are " +
			"left after them, with time counted from there. A strong feature that is missing, and one that goes with " +
			"another whose effect changes, can look like this too."}
	// OnCollinear: the variance of an effect in units of what it is with all others known, and under privacy the share
	// of its prior's variance that is left. With 225 times the smallest eigenvalue of two columns' correlations is
	// 1/900 of the largest (the variance inflation factor: Belsley, Kuh and Welsch, Regression Diagnostics, 1980).
	OnCollinear = verdict{Matters: 225,
		Words: "The data hardly tell apart %s:\neach is nearly a combination of those beside it. What their effects " +
			"add up to is known, and predictions hold, but the part of each has a standard error many times what it " +
			"alone would have, or with noise is the prior's: in truth it can be much larger, or have the other sign.",
		Advice: "Leave one out, or do not read their coefficients one by one."}
	// OnNumbers, under privacy: squares of each number in sums that shorten rows otherwise, and how open noise leaves a
	// scale.
	OnNumbers = verdict{
		Words: "Features are not distributed as the fit supposes.\nThey are %s. It works out what noise and clipping " +
			"hide as if numbers were about normal, and brings values that are many scales off nearer. Effects of " +
			"these numbers, and with them those of others, can come out too small or too large, and intervals hold " +
			"less often than they say.",
		Advice: "Make a number that is mostly one value a category, and plan a long-tailed one in logarithms. Let " +
			"constants be about its mean and standard deviation, or leave them out, so that noised histograms tell " +
			"them. Where noise hides a scale, a range that is no wider than it must be would tell."}
	// OnOutcome, under privacy: by what factor the variance of a number by the fit is off what histograms told, and
	// the form that these tell.
	OnOutcome = verdict{Matters: 2,
		Words: "Outcomes are not distributed as the fit supposes.\nBy noised histograms over its range, %s. A few " +
			"outcomes then decide about effects, as in any linear fit, and clipping takes from these: the intercept " +
			"and effects can be off by more than their intervals say, and predictions worse than the mean alone.",
		Advice: "See whether it is in the unit of the range at all sites. Plan the logarithm of a long-tailed " +
			"number, and levels for one of few values, or mostly one."}
	// OnNoise, under privacy: how many standard deviations of the noise the data say of the rarer class, or of slopes
	// that are larger than the prior expects.
	OnNoise = verdict{
		Words:  "Noise hides %s\n%s Intervals then hold less often than they say.",
		Advice: "More subjects, a larger ε, fewer features or ranges that are no wider than they must be would tell."}
)
