package factors

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"parley/method"
	"parley/methods/factors/moments"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
	"parley/problem"
)

const (
	// noiseSplits is how often the noise of the releases is split in two for BIC; each time each half is fitted
	// once and scored once. By fewestAgree of these scores or more, the choice has to be the best.
	noiseSplits, fewestAgree = 4, 7

	ruleBIC  = "smallest BIC, noise split"
	scoreBIC = "bic"
	// scoreBest is by how many of the scores a candidate is the best.
	scoreBest = "best_by"
)

// selectReleased chooses from what the sites of a private study released, by the Bayesian information criterion. On
// moments that were fitted, surplus factors describe the noise, and the criterion asks for them. So the noise is split:
// with W a fresh draw of its law, T + W and T − W have independent noise of twice the variance (Leiner, Duan, Wasserman
// and Ramdas, "Data fission", 2023). One is fitted, the other scored. Where noise hides factors, halves of it choose
// differently, and nothing is recommended. Every fit has a noise variance for each feature, whatever the plan says.
func selectReleased(ctx context.Context, set options.Setup, releases []moments.Released,
	c method.SelectConfig) (*method.Selection, error) {
	if err := cmp.Or(c.Check(), set.CheckLatent(c.Values...)); err != nil {
		return nil, err
	}
	set.Layout.Noise = ppca.NoisePerFeature
	s := &releasedSelector{set: set, releases: releases, values: c.Values, bic: make([]float64, len(c.Values)),
		best: make([]float64, len(c.Values))}
	for i := range releases {
		n, _ := releases[i].Subjects()
		s.subjects += n
	}
	s.subjects = max(2, s.subjects) // noise can make it negative
	var err error
	if s.whole, err = moments.Project(set.Layout, releases, set.Plan.Seed); err != nil {
		return nil, fmt.Errorf("repairing the sums: %w", err)
	}
	for i := range noiseSplits {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := s.split(i); err != nil {
			return nil, fmt.Errorf("split %d of the noise: %w", i+1, err)
		}
		if c.Progress != nil {
			c.Progress(float64(i+1), noiseSplits)
		}
	}
	return s.selection(), nil
}

// releasedSelector is one selection from releases under way.
type releasedSelector struct {
	set       options.Setup
	releases  []moments.Released
	values    []int
	whole     *moments.ProjectedMoments
	subjects  float64   // noised, of all sites
	bic, best []float64 // by candidate: means over the scores, and by how many of them it is the best
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
		for _, other := range halves[1-i] {
			m, err := s.whole.Unrepaired(other)
			if err != nil {
				return err
			}
			held = append(held, m...)
		}
		scores := make([]float64, len(s.values))
		for k, q := range s.values {
			fit, err := fitted.Fit(q)
			if err != nil {
				return fmt.Errorf("%d factors: %w", q, err)
			}
			scores[k] = parameters(s.set.Layout, q) * math.Log(s.subjects)
			for _, m := range held {
				logLik, err := m.LogLik(s.set.Layout, &fit.Params)
				if err != nil {
					return fmt.Errorf("%d factors: %w", q, err)
				}
				scores[k] -= 2 * logLik
			}
			s.bic[k] += scores[k] / (2 * noiseSplits)
		}
		s.best[slices.Index(scores, slices.Min(scores))]++
	}
	return nil
}

// selection says what was chosen, and what makes that doubtful.
func (s *releasedSelector) selection() *method.Selection {
	least, out := slices.Index(s.bic, slices.Min(s.bic)), &method.Selection{Option: "latent", Noun: "factors"}
	for i, q := range s.values {
		out.Candidates = append(out.Candidates, method.Candidate{Value: q,
			Scores: map[string]float64{scoreBIC: s.bic[i], scoreBest: s.best[i]}})
	}
	out.Choices = []method.Choice{{Rule: ruleBIC, Value: s.values[least],
		Why: "−2 log-likelihood + parameters × ln subjects, fitted and scored with independent halves of the noise"}}
	out.Settings = map[string]float64{"sites": float64(len(s.releases)), "subjects_noised": math.Round(s.subjects),
		"noise_splits": noiseSplits}
	if s.best[least] < fewestAgree {
		out.Warnings.Add(problem.Problem{Where: "latent",
			What: fmt.Sprintf("%.0f of %d halves of the noise choose %d: it may hide factors, or pass for them",
				s.best[least], 2*noiseSplits, s.values[least]),
			Hint: "more subjects, a larger total, or narrower ranges; else take few factors"})
	}
	recommend(out, s.values, s.values[least])
	if s.set.Options.Noise == "view" {
		out.Notes.Add(problem.Problem{Where: "latent", What: "chosen with a noise variance for each feature: public " +
			"ranges scale each feature by itself, and with the plan's noise: view surplus factors would describe the " +
			"difference"})
	}
	out.Result = resultOf(out, map[string]string{ruleBIC: "bic"},
		"The rule below was worked out from what the sites of the study had released, with its noise. Fits to noised "+
			"moments describe their noise too. So fresh noise of the same law was added to the releases and "+
			"subtracted from them, which gives two with independent noise: one was fitted, the other scored, and the "+
			"number of parameters was charged for as ever. A recommendation follows the rule, if nothing is warned of.",
		fmt.Sprintf("BIC, lower being better: −2 log-likelihood + p ln n, with p = dq − q(q−1)/2 + 2d, for n "+
			"subjects, d features and q factors. Means over %d fits; n is noised. Best by: of so many fits each "+
			"candidate has the smallest BIC.", 2*noiseSplits),
		scoreColumn{"BIC", "", scoreBIC}, scoreColumn{"best by", "fits", scoreBest})
	return out
}
