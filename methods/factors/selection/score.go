// Package selection chooses the number of factors: [Select] by how likely models make subjects
// whom they were not fitted to, [SelectReleased] from what the sites of a private study have
// released, which costs no privacy.
package selection

import (
	"fmt"
	"math"
	"slices"

	"parley/method"
	"parley/problem"
)

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
