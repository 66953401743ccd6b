// Package selection chooses the number of factors: [Select] by how likely models make subjects
// whom they were not fitted to, [SelectReleased] from what the sites of a private study have
// released, which costs no privacy.
package selection

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"

	"parley/method"
	"parley/methods/factors/ppca"
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
		note("only one site released anything, so none can be left out: whether its factors hold at other sites is not known")
	case 2:
		note("of two sites, each is judged by a model of the other alone: with half the subjects, weak factors may be missed")
	}
	if s.set.Options.Noise == "view" {
		note("chosen with a noise variance for each feature: public ranges scale each feature by itself, and with the plan's noise: view surplus factors would describe the difference")
	}
}

// job is a piece of work that depends on no other of its stage. It writes to places of
// its own, so that the outcome does not depend on which came first.
type job struct {
	Cost float64 // in the time of one factor of one one shot, roughly
	Do   func() error
}

// shotCost is the cost of a one shot with q factors.
func shotCost(q int) float64 { return 1 + float64(q) }

// progress returns what takes in the cost of each job that is done, and reports how far
// all stages together are; report may be nil.
func progress(report func(done, of float64), stages ...[]job) func(cost float64) {
	of, done := 0.0, 0.0
	for _, jobs := range stages {
		for _, j := range jobs {
			of += j.Cost
		}
	}
	var mu sync.Mutex
	return func(cost float64) {
		mu.Lock()
		defer mu.Unlock()
		done += cost
		if report != nil {
			report(done, of)
		}
	}
}

// inParallel does the jobs, as many at a time as there are processors, and
// returns the error of the first job in order that failed. It waits for jobs
// under way, and starts none after an error or once ctx has ended.
func inParallel(ctx context.Context, jobs []job, finished func(cost float64)) error {
	errs := make([]error, len(jobs))
	next := make(chan int)
	stop := make(chan struct{})
	var once sync.Once
	var wait sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(jobs)) {
		wait.Go(func() {
			for i := range next {
				if errs[i] = jobs[i].Do(); errs[i] != nil {
					once.Do(func() { close(stop) })
					return
				}
				finished(jobs[i].Cost)
			}
		})
	}
	func() {
		defer close(next)
		for i := range jobs {
			select {
			case next <- i:
			case <-stop:
				return
			case <-ctx.Done():
				return
			}
		}
	}()
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// Rules that both ways have.
const (
	ruleSE    = "smallest within one standard error of it"
	ruleElbow = "elbow: smallest that loses at most 2 % of the range"
)

// Names of a candidate's scores that both ways have.
const (
	scoreBehind   = "behind_best" // mean per subject of the best candidate's log-likelihood − this one's, nats
	scoreBehindSE = "behind_best_standard_error"
	scoreLeftOut  = "left_out_log_likelihood" // mean per subject, nats
)

// elbowShare is how much of the range of the left-out log-likelihood over the
// candidates the elbow may lose.
const elbowShare = 0.02

// elbow returns the first candidate that loses at most 2 % of the range.
func elbow(mean []float64) int {
	top, bottom := slices.Max(mean), slices.Min(mean)
	return slices.IndexFunc(mean, func(m float64) bool { return top-m <= elbowShare*(top-bottom) })
}

// parameters is how many numbers a model has, rotations of its factors aside.
func parameters(l ppca.Layout, q int) float64 {
	d := l.Features()
	return float64(d*q - q*(q-1)/2 + d + l.Groups())
}

// recommend recommends the candidate that is the best, unless something is warned of: what
// is not to be trusted is not recommended either. At an end of the candidates the best may
// lie beyond them, and it is said which way; below one factor there is nothing.
func recommend(out *method.Selection, values []int, best int) {
	const unturned = "where it never turns, take the elbow and look at what the factors are made of"
	switch last := values[len(values)-1]; {
	case len(out.Warnings) > 0: // of what may have moved the best there
	case best == last:
		out.Warnings.Add(problem.Problem{Where: "latent", What: fmt.Sprintf("the largest candidate, %d, is the best: the score has not turned", last),
			Hint: fmt.Sprintf("try more factors, as with --latent %d..%d; %s", values[max(0, len(values)-2)], 2*last, unturned)})
	case best == values[0] && best > 1:
		out.Warnings.Add(problem.Problem{Where: "latent", What: fmt.Sprintf("the smallest candidate, %d, is the best", best),
			Hint: fmt.Sprintf("try fewer factors, as with --latent 1..%d", values[1])})
	}
	if len(out.Warnings) == 0 {
		out.Recommended = best
	}
}
