package fitted

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/floats"

	"parley/dataset"
	"parley/figure"
	"parley/method"
	"parley/methods/regression/glm"
	"parley/methods/regression/options"
	"parley/methods/regression/predict"
	"parley/problem"
)

// Reports lists the assessments that sites gave, in the plan's order, and adds them up; nil if there are none.
func Reports(plan []string, of map[string]*predict.Assessment) (sites []Report, pooled *predict.Assessment) {
	for _, name := range plan {
		if a := of[name]; a != nil {
			if pooled == nil {
				pooled = predict.NewAssessment()
			}
			sites = append(sites, Report{Site: name, Assessment: a})
			pooled.Add(a)
		}
	}
	return sites, pooled
}

// OutcomeVerdicts says why outcomes have nothing to learn from, or that features say what they are. Classes are how
// many subjects have each of several levels, where that is known; pooled is nil if nothing else is.
func OutcomeVerdicts(o *options.Options, pooled *predict.Assessment, classes []float64) []glm.Finding {
	y, title := o.Outcome, ""
	if pooled != nil && pooled.Ranking != nil && len(y.Levels) == 2 {
		cases, controls := pooled.Ranking.Classes()
		switch classes = []float64{controls, cases}; {
		case o.Likelihood != glm.LikelihoodHazard:
		case cases == 0:
			title = fmt.Sprintf("No subject of any site has an event (%s = %s) until the last cut, %v", y.Event,
				y.Levels[1], y.Cuts[len(y.Cuts)-1])
		case controls == 0:
			title = fmt.Sprintf("Every subject who counts has the event (%s = %s) in its first period, until %v",
				y.Event, y.Levels[1], y.Cuts[0])
		}
	}
	var none, some []string
	for k, n := range classes {
		if level := y.Column + " = " + y.Levels[k]; n == 0 {
			none = append(none, level)
		} else {
			some = append(some, level)
		}
	}
	switch {
	case title != "":
	case len(none) > 0 && len(some) == 1:
		title = fmt.Sprintf("All %.0f subjects of all sites have %s", floats.Sum(classes), some[0])
	case len(none) > 0:
		title = "Nobody has " + problem.Names(none)
	case pooled == nil:
		return nil
	case o.Likelihood == glm.LikelihoodPoisson && pooled.Residuals != nil && pooled.Residuals.Total == 0:
		title = fmt.Sprintf("All counts of %s at all sites are 0", y.Column)
	case !o.Numeric() && pooled.Separated(len(y.Levels)),
		o.Likelihood == glm.LikelihoodLinear && pooled.RSquared() > glm.OnSeparation.Matters:
		return glm.OnSeparation.Say(y.Column)
	default:
		return nil
	}
	return glm.OnLearning.Say(title)
}

// farOver is a 99.9 % quantile of the standard normal distribution, and muchOff a ratio of variances from which
// standard errors are a fifth too small, or too large.
const farOver, muchOff = 3.0902, 1.44

// Dispersion says that outcomes vary more or less than a model of so many weights says: counts, or numbers around their
// expectation where the plan states their noise; nothing if pooled is nil. The fit must have converged: before,
// residuals are its own. A row's part of χ² has the expectation 1, and the variance 2, of counts 2 + 1/μ (McCullagh and
// Nelder, Generalized Linear Models, section 6.2).
func Dispersion(o *options.Options, pooled *predict.Assessment, weights int) []glm.Finding {
	counts := o.Likelihood == glm.LikelihoodPoisson
	if pooled == nil || !counts && o.NoiseVariance == nil || counts && pooled.Residuals == nil {
		return nil
	}
	least, chi2, free, inverse := muchOff, 0.0, 0.0, 0.0
	if r := pooled.Residuals; r == nil {
		chi2, free = pooled.Squares / *o.NoiseVariance, float64(pooled.Rows-weights)
	} else if chi2, free = r.Second, r.Weight-float64(weights); r.Sampled {
		return nil
	} else if counts {
		least, inverse = glm.OnDispersion.Matters, r.Inverse
	}
	ratio := chi2 / free
	if !(free >= 1) || math.Abs(math.Log(ratio)) < max(math.Log(least), farOver*math.Sqrt(2*free+inverse)/free) {
		return nil
	}
	if ratio < 1 {
		return glm.OnDispersion.Say("less", ratio, "wide", 1/math.Sqrt(ratio))
	}
	return glm.OnDispersion.Say("more", ratio, "narrow", math.Sqrt(ratio))
}

// Result is what every fit leaves: its files, what it found in numbers and words, and what speaks against relying on it
// as its first section. The metrics and facts are the method's own.
func Result(m *Model, pooled *predict.Assessment, metrics map[string]float64,
	facts ...figure.Fact) (*method.Result, error) {
	files, err := m.Files()
	if err != nil {
		return nil, err
	}
	metrics["weights"] = float64(len(m.Effects))
	r := &method.Result{Files: files, Metrics: metrics, Found: found(m), Sure: sure(m, pooled),
		Sections: glm.Warnings(m.Verdicts)}
	if m.Converged != nil {
		settled := "no: do not rely on the estimates"
		if metrics["converged"] = 0; *m.Converged {
			metrics["converged"], settled = 1, "yes"
		}
		r.Headline = append(r.Headline, figure.Fact{Name: "converged", Value: settled})
	}
	r.Headline = append(r.Headline, figure.Fact{Name: "outcome", Value: m.Options.Outcome.Column},
		figure.Fact{Name: "sites", Value: strconv.Itoa(len(m.Sites))})
	r.Headline = append(r.Headline, facts...)
	if pooled != nil {
		scores(r, m.Options, pooled)
	}
	return r, nil
}

// scores puts in how well outcomes are predicted, as far as that is known, by a name among the metrics and in what
// people read; "" of what is in one of both alone.
func scores(r *method.Result, o *options.Options, pooled *predict.Assessment) {
	add := func(metric, fact string, x float64, text string) {
		if !math.IsNaN(x) && metric != "" {
			r.Metrics[metric] = x
		}
		if !math.IsNaN(x) && fact != "" {
			r.Headline = append(r.Headline, figure.Fact{Name: fact, Value: text})
		}
	}
	of := func(metric, fact, format string, times, x float64, by string) {
		add(metric, fact+method.OfFit, x, strings.Replace(fmt.Sprintf(format, times*x), "±", by, 1))
	}
	off := func(digits int, x float64) string { // by noise
		if pooled.Noise == 0 {
			return ""
		}
		return " ± " + strconv.FormatFloat(x, 'f', digits, 64)
	}
	n, count, weights := float64(pooled.Rows), figure.Count.Text, r.Metrics["weights"]
	rows, correct, logLik := pooled.Margins()
	unit, periods := strings.ReplaceAll(o.Unit(), "-", "_"), pooled.Periods
	hazard := o.Likelihood == glm.LikelihoodHazard
	if s := pooled.Scatter; s != nil && periods != nil && o.Cluster == "" {
		add("", "subjects", float64(s.Clusters), count(float64(s.Clusters)))
	}
	add(unit+"s", o.Unit()+"s", n, count(n)+off(0, rows))
	if o.Numeric() {
		of("root_mean_squared_error", "root mean squared error", "%.4g", 1, math.Sqrt(pooled.Squares/n), "")
		of("r_squared", "of the outcome's variance explained", "%.1f %%", 100, pooled.RSquared(), "")
		if r := pooled.Residuals; r != nil && o.Likelihood == glm.LikelihoodPoisson && !r.Sampled &&
			r.Weight > weights {
			add("dispersion", "", r.Second/(r.Weight-weights), "")
		}
	} else {
		cal, share := pooled.Calibration(), float64(pooled.Correct)/n
		add("calibration_error", "", cal.Error(), "")
		if !hazard {
			of("accuracy", "predicted correctly", "%.2f± %%", 100, share, off(2, 100*correct))
		} else {
			add("accuracy", "", share, "")
		}
		if periods != nil {
			_, events := periods.Count()
			add("", "events", floats.Sum(events), count(floats.Sum(events)))
			of("concordance", "concordance", "%.3f", 1, periods.Concordance(), "")
		}
	}
	if r := pooled.Ranking; r != nil && !o.Numeric() && !hazard {
		of("auc", "area under the ROC curve", "%.3f", 1, r.Area(), "")
	}
	of("log_likelihood_per_"+unit, "log-likelihood per "+o.Unit(), "%.4f±", 1, pooled.LogLik/n, off(4, logLik))
}

// OwnReport is a site's report about its own rows, which leaves out those that a private study
// counted as nothing. It never leaves the site.
func OwnReport(ctx context.Context, s *glm.Frame, o *options.Options, l glm.Likelihood, site string, e *glm.Encoding,
	q glm.Normal, effect *glm.Intercept, data dataset.Source) (*method.Result, error) {
	b, err := e.Bind(data.Schema(), &s.Outcome)
	if err != nil {
		return nil, err
	}
	m, a := predict.New(l, q, e.Width()), predict.NewAssessment()
	if effect != nil {
		m.At(*effect)
	}
	says, missing, left, err := s.Remarks(ctx, b, data, func(x glm.Row, y float64) {
		m.Row(x)
		m.Score(y, predict.Alike(x, o.Survey()), a)
	})
	if err != nil {
		return nil, err
	}
	unit := o.Unit() + "s"
	r := &method.Result{Metrics: map[string]float64{strings.ReplaceAll(unit, "-", "_"): float64(a.Rows),
		"left_out": float64(left)},
		Headline: []figure.Fact{{Name: unit + " here", Value: strconv.Itoa(a.Rows)}}}
	if effect != nil {
		sd := effect.SD(q)
		r.Metrics["intercept"], r.Metrics["intercept_sd"] = effect.Mean, sd
		r.Headline = append(r.Headline, figure.Fact{Name: "this site's own intercept",
			Value: fmt.Sprintf("%.3g ± %.2g (one standard deviation; it stays here)", effect.Mean, sd)})
	}
	r.Sections = glm.Warnings(says)
	if missing != "" {
		r.Sections = append(r.Sections, figure.Section{ID: "missing", Title: "Missing cells",
			Items: []figure.Item{{Note: &figure.Note{Title: "Counted as if they had been observed", Text: missing}}}})
	}
	if a.Rows > 0 {
		r.Sections = append(r.Sections, own(o, site, a))
	}
	return r, nil
}

// found says in words what goes with the outcome most surely.
func found(m *Model) string {
	z := m.Deviate(z95)
	mean, variance := m.Posterior.Moments()
	deviations := func(j int) float64 { return math.Abs(mean[j]) / math.Sqrt(variance[j]) }
	var clear []int
	all := 0
	for j := range m.Effects {
		if m.Base(j) {
			continue // its place is no effect
		}
		if all++; deviations(j) > z {
			clear = append(clear, j)
		}
	}
	outcome := wordingOf(m.Options).on
	if len(clear) == 0 {
		return fmt.Sprintf("Of %s on %s none has an interval of 95 %% that leaves out zero: these data do not say "+
			"what goes with it.", figure.Plural(all, "effect"), outcome)
	}
	slices.SortStableFunc(clear, func(a, b int) int { return cmp.Compare(deviations(b), deviations(a)) })
	var names []string
	for _, j := range clear[:min(5, len(clear))] {
		way := "up"
		if mean[j] < 0 {
			way = "down"
		}
		names = append(names, m.Effects[j].Label()+" ("+way+")")
	}
	have := "have"
	if len(clear) == 1 {
		have = "has"
	}
	return fmt.Sprintf("Of %s on %s, %d %s an interval of 95 %% that leaves out zero. The surest: %s.",
		figure.Plural(all, "effect"), outcome, len(clear), have, strings.Join(names, ", "))
}

// sure says in words how well outcomes are predicted; pooled is nil if no site said so.
func sure(m *Model, pooled *predict.Assessment) string {
	if pooled == nil {
		return "No site said how well its outcomes are predicted: that would have been a further release."
	}
	o := m.Options
	cal := pooled.Calibration()
	says := fmt.Sprintf("Over %s %ss ", figure.Count.Text(float64(pooled.Rows)), o.Unit())
	switch {
	case o.Numeric():
		says += fmt.Sprintf("predictions are off by %s (root mean square).",
			figure.General.Text(math.Sqrt(pooled.Squares/float64(pooled.Rows))))
	case pooled.Periods != nil:
		says += fmt.Sprintf("whoever has the event first has the higher risk with probability %.3f (concordance; 0.5 "+
			"is chance), and probabilities of a period are off by %.3f on average.", pooled.Periods.Concordance(),
			cal.Error())
	case pooled.Ranking != nil:
		says += fmt.Sprintf("a case is given more than a control with probability %.3f (AUC; 0.5 is chance), and "+
			"probabilities are off by %.3f on average.", pooled.Ranking.Area(), cal.Error())
	default:
		says += fmt.Sprintf("%.1f %% of outcomes are predicted correctly, and probabilities are off by %.3f on "+
			"average.", 100*float64(pooled.Correct)/float64(pooled.Rows), cal.Error())
	}
	says += " They took part in the fit; others are predicted a little worse."
	if o.Survey() {
		says += " These numbers are of the sample as it is, without its weights."
	}
	if pooled.Noise > 0 {
		says += " These numbers hold noise, of which ± is one standard deviation."
	}
	return says
}
