package selection

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"parley/figure"
	"parley/method"
	"parley/methods/factors/moments"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
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
	return inParallel(ctx, jobs, progress(s.config.Progress, jobs))
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
