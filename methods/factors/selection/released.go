// Package selection chooses the number of factors: [Select] by how likely models make subjects
// whom they were not fitted to, [SelectReleased] from what the sites of a private study have
// released, which costs no privacy.
package selection

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"parley/figure"
	"parley/method"
	"parley/methods/factors/moments"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
	"parley/problem"
)

// Names of a candidate's scores.
const (
	scoreBIC        = "bic"
	scoreNoiseSE    = "behind_best_noise_standard_error"
	scoreSamplingSE = "behind_best_sampling_standard_error"
	scoreExplained  = "r2" // followed by a view
)

// noiseSplits is how often the noise of the releases is split in two for BIC;
// each time each half is fitted once and scored once.
const noiseSplits = 4

// SelectReleased chooses from what the sites of the names released, with two scores.
//
// BIC decides. On moments that were fitted, surplus factors describe the noise,
// and BIC, which penalises for the number of subjects alone, asks for them. So
// the noise is split: with W a fresh draw of its law, T + W and T − W have
// independent noise of twice the variance (Leiner, Duan, Wasserman and Ramdas,
// "Data fission", 2023). One is fitted, the other scored.
//
// Beside it, without each site in turn, a model with every candidate is fitted
// to what the others released, and the site's moments score it. They are scored
// as they are, with their noise: the log-likelihood is linear in them
// ([moments.NoisyMoments.LogLik]), so the score has no bias from the noise, which the fit has not
// seen, and how far noise moves it is known.
//
// Every fit has a noise variance for each feature, whatever the plan says: public
// ranges scale each feature by itself, and
// another layout of the noise costs no privacy.
func SelectReleased(ctx context.Context, set options.Setup, sites []string, releases []moments.Released, c method.SelectConfig) (*method.Selection, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	for _, q := range c.Values {
		if err := set.CheckLatent(q); err != nil {
			return nil, err
		}
	}
	set.Layout.Noise = ppca.NoisePerFeature
	s := &releasedSelector{set: set, sites: sites, releases: releases, config: c, out: &method.Selection{Option: "latent", Noun: "factors"}}
	for i := range releases {
		n, _ := releases[i].Subjects()
		s.subjects += n
	}
	s.subjects = max(2, s.subjects) // noise can make it negative
	var err error
	if s.whole, err = moments.Project(set.Layout, releases, set.Plan.Seed); err != nil {
		return nil, fmt.Errorf("repairing the sums: %w", err)
	}
	if err := s.run(ctx); err != nil {
		return nil, err
	}
	s.score()
	s.recommend()
	s.out.Result = s.result()
	return s.out, nil
}

// releasedSelector is one selection from releases under way.
type releasedSelector struct {
	set      options.Setup
	sites    []string // that released something
	releases []moments.Released
	config   method.SelectConfig
	whole    *moments.ProjectedMoments
	subjects float64 // noised, of all sites
	left     []leftOut
	halves   [][]float64 // per half of the noise that was fitted, and candidate: log-likelihood of the other half
	r2       [][]float64 // per candidate and view
	out      *method.Selection
}

// leftOut is one site against the models of the others.
type leftOut struct {
	moments   []moments.NoisyMoments
	densities [][]moments.Functional // per candidate and pattern
}

// run makes all fits. Every job writes to places of its own.
func (s *releasedSelector) run(ctx context.Context) error {
	n := len(s.config.Values)
	cost := 2.0 // of a repair, in factors
	for _, q := range s.config.Values {
		cost += shotCost(q)
	}
	s.r2 = make([][]float64, n)
	jobs := []job{{Cost: cost, Do: func() error { return s.explain() }}}
	if len(s.releases) > 1 {
		s.left = make([]leftOut, len(s.releases))
		for i := range s.releases {
			jobs = append(jobs, job{Cost: cost, Do: func() error {
				if err := s.leaveOut(i); err != nil {
					return fmt.Errorf("without site %s: %w", s.sites[i], err)
				}
				return nil
			}})
		}
	}
	s.halves = make([][]float64, 2*noiseSplits)
	for i := range noiseSplits {
		jobs = append(jobs, job{Cost: 2 * cost, Do: func() error {
			if err := s.split(i); err != nil {
				return fmt.Errorf("split %d of the noise: %w", i+1, err)
			}
			return nil
		}})
	}
	return inParallel(ctx, jobs, s.config.Progress)
}

// explain fits all sites together with every candidate.
func (s *releasedSelector) explain() error {
	for i, q := range s.config.Values {
		fit, err := s.whole.Fit(q)
		if err != nil {
			return fmt.Errorf("%d factors, all sites: %w", q, err)
		}
		x, err := ppca.NewExplained(s.set.Layout, &fit.Params, s.whole.Blocks())
		if err != nil {
			return err
		}
		for k := range s.set.Layout.Views() {
			s.r2[i] = append(s.r2[i], x.R2(k, x.Rank))
		}
	}
	return nil
}

// leaveOut fits all sites but one with every candidate.
func (s *releasedSelector) leaveOut(site int) error {
	others, err := moments.Project(s.set.Layout, slices.Delete(slices.Clone(s.releases), site, site+1), s.set.Plan.Seed)
	if err != nil {
		return err
	}
	to := &s.left[site]
	if to.moments, err = s.whole.Unrepaired(s.releases[site], s.set.Plan.Seed); err != nil {
		return err
	}
	to.densities, err = s.densities(others, to.moments)
	return err
}

// densities fits every candidate and returns what scores these moments.
func (s *releasedSelector) densities(fitted *moments.ProjectedMoments, held []moments.NoisyMoments) ([][]moments.Functional, error) {
	var out [][]moments.Functional
	for _, q := range s.config.Values {
		fit, err := fitted.Fit(q)
		if err != nil {
			return nil, fmt.Errorf("%d factors: %w", q, err)
		}
		var all []moments.Functional
		for _, m := range held {
			a, err := m.Density(s.set.Layout, &fit.Params)
			if err != nil {
				return nil, fmt.Errorf("%d factors: %w", q, err)
			}
			all = append(all, a)
		}
		out = append(out, all)
	}
	return out, nil
}

// split draws noise like that of the releases, fits either half, and scores the other.
func (s *releasedSelector) split(at int) error {
	r := options.Draws(s.set.Plan.Seed, "selection: noise", at)
	var halves [2][]moments.Released
	for i := range s.releases {
		a, b := s.releases[i].SplitNoise(r)
		halves[0], halves[1] = append(halves[0], a), append(halves[1], b)
	}
	for i, half := range halves {
		fitted, err := moments.Project(s.set.Layout, half, s.set.Plan.Seed)
		if err != nil {
			return err
		}
		var held []moments.NoisyMoments
		for k := range halves[1-i] {
			m, err := s.whole.Unrepaired(halves[1-i][k], s.set.Plan.Seed)
			if err != nil {
				return err
			}
			held = append(held, m...)
		}
		densities, err := s.densities(fitted, held)
		if err != nil {
			return err
		}
		logLik := make([]float64, len(densities))
		for c, all := range densities {
			for k, a := range all {
				logLik[c] += held[k].LogLik(a)
			}
		}
		s.halves[2*at+i] = logLik
	}
	return nil
}

// result draws the selection.
func (s *releasedSelector) result() *method.Result {
	r := &method.Result{Metrics: s.out.Metrics(map[string]string{ruleLeftOut: "left_out", ruleSE: "one_standard_error", ruleElbow: "elbow", ruleBICOfSplit: "bic"})}
	r.Headline = []figure.Fact{s.out.Headline()}
	if len(s.left) > 0 {
		r.Headline = append(r.Headline, figure.Fact{Name: "by sites left out, within one standard error", Value: strconv.Itoa(s.out.Choice(ruleSE))})
	}
	r.Headline = append(r.Headline, figure.Fact{Name: "subjects at " + figure.Plural(len(s.releases), "site") + ", noised", Value: fmt.Sprintf("%.0f", s.subjects)})
	r.Sections = append(r.Sections, s.out.Section("Every rule below was worked out from what the sites of the study had released, with its noise. A recommendation follows the first, if nothing is warned of."))
	r.Sections = append(r.Sections, s.bicSection())
	if len(s.left) > 0 {
		r.Sections = append(r.Sections, s.leftOutSection())
	}
	r.Sections = append(r.Sections, s.explainedSection(), s.scoreSection())
	return r
}

func (s *releasedSelector) leftOutSection() figure.Section {
	return figure.Section{ID: "left-out", Title: "How well sites are predicted that were left out",
		Lead: "Without each site in turn, models were fitted to what the others released, and the noised moments of the site left out scored them. The score is linear in these moments, so noise does not shift it on average, and how far noise moves it is known from the noise that the plan asked for.",
		Items: []figure.Item{leftOutFigure(s.out, s.out.Choice(ruleSE), "sites", "Higher is better. The band is one standard error of the difference to the best, from noise and from sampling. "+
			"Beyond the factors that the sites share the line is level, and noise decides where it is highest: take the smallest number whose band reaches zero.")}}
}

func (s *releasedSelector) bicSection() figure.Section {
	x, y := s.out.Curve(scoreBIC)
	return figure.Section{ID: "bic", Title: "Fit against size, with the noise split in two",
		Lead: "Fits to noised moments describe their noise too. So fresh noise of the same law was added to the releases and subtracted from them, which gives two with independent noise: one was fitted, the other scored, and the number of parameters was charged for as ever.",
		Items: []figure.Item{{Figure: &figure.Figure{ID: "bic", Title: "Bayesian information criterion by number of factors",
			Chart:   figure.Lines{X: figure.Axis{Label: factorAxis, Count: true}, Y: figure.Axis{Label: "BIC"}, Series: []figure.Line{{Name: "BIC", X: x, Y: y}}},
			Caption: fmt.Sprintf("Lower is better: −2 log-likelihood + p ln n, with p = dq − q(q−1)/2 + 2d, for n subjects, d features and q factors. Means over %d fits; n is noised.", 2*noiseSplits),
			Alt:     fmt.Sprintf("Line of the Bayesian information criterion, lowest at %d factors.", s.out.Choice(ruleBICOfSplit))}}}}
}

func (s *releasedSelector) explainedSection() figure.Section {
	r2 := figure.Lines{X: figure.Axis{Label: factorAxis, Count: true}, Y: figure.Axis{Label: "share of the view's variance explained"}}
	for _, v := range s.set.Plan.Views {
		x, y := s.out.Curve(scoreExplained + "/" + v.Name)
		r2.Series = append(r2.Series, figure.Line{Name: v.Name, X: x, Y: y})
	}
	return figure.Section{ID: "explained", Title: "What the factors explain", Items: []figure.Item{{Figure: &figure.Figure{
		ID: "variance-by-candidate", Title: "Variance explained by number of factors", Chart: r2,
		Caption: "Of the moments that were fitted, repaired for the noise that is known to be in them. It rises with every factor and has no best number: look for the bend.",
		Alt:     "Lines of the share of each view's variance that the factors explain."}}}}
}

func (s *releasedSelector) scoreSection() figure.Section {
	var columns []scoreColumn
	if len(s.left) > 0 {
		columns = append(columns, scoreColumn{"log-likelihood of sites left out", "nats", scoreLeftOut}, scoreColumn{"behind the best", "nats", scoreBehind},
			scoreColumn{"standard error", "nats", scoreBehindSE}, scoreColumn{"of it from noise", "nats", scoreNoiseSE}, scoreColumn{"from sampling", "nats", scoreSamplingSE})
	}
	columns = append(columns, scoreColumn{"BIC", "", scoreBIC})
	for _, v := range s.set.Plan.Views {
		columns = append(columns, scoreColumn{"R² of " + v.Name, "", scoreExplained + "/" + v.Name})
	}
	return figure.Section{ID: "scores", Title: "Numbers", Items: []figure.Item{{Table: scoreTable(s.out,
		"In parts of the features' ranges. Behind: how much less likely a subject of a site left out is on average than with the best number of factors, with the standard error of that mean and its two sources: the noise of the releases, whose law is known, and which subjects there are, as if these were normal.", columns)}}}
}

// Rules, the one that the recommendation follows first.
const (
	ruleBICOfSplit = "smallest BIC, noise split"
	ruleLeftOut    = "largest log-likelihood of sites left out"
)

// score turns fits into scores and choices. BIC on split noise leads: it needs
// no second site, and it takes no noise for a factor. What sites left out say is
// the check of it: beyond the true number of factors that score is level, and
// noise says where on the level it is highest, so it counts with its standard
// error.
func (s *releasedSelector) score() {
	values := s.config.Values
	least := 0
	for i, q := range values {
		c := method.Candidate{Value: q, Scores: map[string]float64{}}
		for k, v := range s.set.Plan.Views {
			if r2 := s.r2[i][k]; !math.IsNaN(r2) {
				c.Scores[scoreExplained+"/"+v.Name] = r2
			}
		}
		logLik := 0.0
		for _, half := range s.halves {
			logLik += half[i] / float64(len(s.halves))
		}
		c.Scores[scoreBIC] = parameters(s.set.Layout, q)*math.Log(s.subjects) - 2*logLik
		s.out.Candidates = append(s.out.Candidates, c)
		if c.Scores[scoreBIC] < s.out.Candidates[least].Scores[scoreBIC] {
			least = i
		}
	}
	add := func(rule string, value int, why string) {
		s.out.Choices = append(s.out.Choices, method.Choice{Rule: rule, Value: value, Why: why})
	}
	add(ruleBICOfSplit, values[least], "−2 log-likelihood + parameters × ln subjects, fitted and scored with independent halves of the noise")
	if len(s.left) > 0 {
		s.scoreLeftOut(add)
	}
	s.out.Settings = map[string]float64{"sites": float64(len(s.releases)), "subjects_noised": math.Round(s.subjects), "noise_splits": noiseSplits}
}

// scoreLeftOut adds up what the sites left out say.
func (s *releasedSelector) scoreLeftOut(add func(rule string, value int, why string)) {
	values := s.config.Values
	mean := make([]float64, len(values))
	for _, site := range s.left {
		for i, all := range site.densities {
			for k, a := range all {
				mean[i] += site.moments[k].LogLik(a) / s.subjects
			}
		}
	}
	best := slices.Index(mean, slices.Max(mean))
	within := len(values)
	for i, c := range s.out.Candidates {
		noise, sampling := s.variances(best, i)
		behind := mean[best] - mean[i]
		c.Scores[scoreLeftOut], c.Scores[scoreBehind] = mean[i], behind
		c.Scores[scoreNoiseSE], c.Scores[scoreSamplingSE] = math.Sqrt(noise), math.Sqrt(sampling)
		c.Scores[scoreBehindSE] = math.Sqrt(noise + sampling)
		if behind <= c.Scores[scoreBehindSE] {
			within = min(within, i)
		}
	}
	add(ruleLeftOut, values[best], "models of the other sites make a site's released moments the most likely")
	add(ruleSE, values[within], "the mean difference to the best is no larger than its standard error, from the noise, which is known, and from sampling")
	add(ruleElbow, values[elbow(mean)], "more factors improve little beside what the first ones do; it depends on the candidates")
}

// variances returns, of the mean difference in log-likelihood between two
// candidates, the variance that comes from the noise of the sites left out, and
// that from which subjects they have, as if these were normal.
func (s *releasedSelector) variances(a, b int) (noise, sampling float64) {
	for _, site := range s.left {
		for k := range site.moments {
			v, spread := s.whole.Variances(site.densities[a][k].Minus(site.densities[b][k]), &site.moments[k])
			noise += v / (s.subjects * s.subjects)
			sampling += spread / (s.subjects * s.subjects)
		}
	}
	return noise, sampling
}

// recommend says what makes the best candidate doubtful, or recommends it.
func (s *releasedSelector) recommend() {
	doubt := func(what, hint string) { s.out.Warnings.Add(problem.Problem{Where: "latent", What: what, Hint: hint}) }
	directions := 0
	for i := range s.releases {
		for _, x := range s.releases[i] {
			directions = max(directions, len(x.Fine.Shrinkage))
		}
	}
	values, out := s.config.Values, s.out
	hidden := len(values) > 1 && len(s.left) > 0
	for _, c := range out.Candidates {
		hidden = hidden && c.Scores[scoreBehind] <= 2*c.Scores[scoreNoiseSE]
	}
	switch {
	case directions == 0:
		doubt("no direction stands out of the noise: the choice means nothing", "more subjects, a larger total, or narrower ranges; else take few factors")
	case hidden:
		doubt("no candidate is more than two standard deviations of the noise behind the best: the choice means nothing", "more subjects, a larger total, or narrower ranges; else take few factors")
	}
	best := out.Choice(ruleBICOfSplit)
	if se := out.Choice(ruleSE); len(s.left) > 0 && se != best && directions > 0 && !hidden {
		doubt(fmt.Sprintf("BIC says %d, the sites left out %d, within one standard error", best, se), "make both models with parley model refit, and look at them")
	}
	recommend(out, values, best)
	note := func(what string) { out.Notes.Add(problem.Problem{Where: "latent", What: what}) }
	switch len(s.releases) {
	case 1:
		note("what was released is of one site, or a total of all, so none can be left out: whether the factors hold at other sites is not known")
	case 2:
		note("of two sites, each is judged by a model of the other alone: with half the subjects, weak factors may be missed")
	}
	if s.set.Options.Noise == "view" {
		note("chosen with a noise variance for each feature: public ranges scale each feature by itself, and with the plan's noise: view surplus factors would describe the difference")
	}
}
