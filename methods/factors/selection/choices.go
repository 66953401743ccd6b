package selection

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"parley/method"
	"parley/methods/factors/options"
	"parley/problem"
)

// choose turns scores into choices.
func (s *selector) choose() {
	out, values := s.out, s.config.Values
	rows := make([][]float64, len(values)) // per candidate and subject, mean over repeats
	mean := make([]float64, len(values))
	for i, q := range values {
		rows[i] = make([]float64, s.subjects)
		absError, cells := 0.0, 0
		for n, p := range s.parts[1:] {
			h := s.held[i][n+1]
			for at, here := range s.sites {
				for c, row := range p.held[at] {
					rows[i][here.at+row] += h.LogLik[at][c] / float64(s.config.Repeats)
				}
			}
			absError, cells = absError+h.AbsError, cells+h.Cells
		}
		for _, l := range rows[i] {
			mean[i] += l / float64(s.subjects)
		}
		out.Candidates = append(out.Candidates, method.Candidate{Value: q, Scores: map[string]float64{
			scoreLogLik: mean[i], scoreError: absError / float64(cells),
		}})
	}
	best := 0
	for i, m := range mean {
		if m > mean[best] {
			best = i
		}
	}
	behind, se := make([]float64, len(values)), make([]float64, len(values))
	for i := range values {
		behind[i], se[i] = pairedDifference(rows[best], rows[i])
		out.Candidates[i].Scores[scoreBehind], out.Candidates[i].Scores[scoreBehindSE] = behind[i], se[i]
	}
	within := slices.IndexFunc(values, func(q int) bool {
		i := slices.Index(values, q)
		return behind[i] <= se[i]
	})
	add := func(rule string, value int, why string) {
		out.Choices = append(out.Choices, method.Choice{Rule: rule, Value: value, Why: why})
	}
	add(ruleBest, values[best], "rows that the fit has not seen are the most likely")
	add(ruleSE, values[within], "the mean difference to the best is no larger than its standard error over subjects, paired")
	add(ruleElbow, values[elbow(mean)], "more factors improve little beside what the first ones do; it depends on the candidates")
	s.chooseWhole(add)
	set := map[string]float64{"subjects": float64(s.subjects), "folds": float64(s.config.Folds), "repeats": float64(s.config.Repeats)}
	out.Settings = set
}

// chooseWhole adds the choices of the criteria that fit all rows.
func (s *selector) chooseWhole(add func(rule string, value int, why string)) {
	values := s.config.Values
	least := func(score string) (value int, ok bool) {
		lowest := math.Inf(1)
		for _, c := range s.out.Candidates {
			if x, some := c.Scores[score]; some && x < lowest {
				lowest, value, ok = x, c.Value, true
			}
		}
		return value, ok
	}
	if s.wants(criterionBIC) {
		for i := range values {
			s.out.Candidates[i].Scores[scoreBIC] = s.whole[i].BIC
		}
		value, _ := least(scoreBIC)
		add(ruleBIC, value, "−2 log-likelihood + parameters × ln subjects, of fits to all rows")
	}
	if s.wants(criterionARD) {
		kept := 0
		for _, x := range s.whole[len(values)-1].Strength {
			if x > 1 {
				kept++
			}
		}
		add(ruleARD, kept, fmt.Sprintf("of %d factors, those whose wᵀΨ⁻¹w stays above 1 under priors that shrink what the data do not need", values[len(values)-1]))
	}
}

// pairedDifference returns the mean of a − b and its standard error; the
// latter is 0 for a single pair.
func pairedDifference(a, b []float64) (mean, se float64) {
	n := float64(len(a))
	for i := range a {
		mean += (a[i] - b[i]) / n
	}
	if n < 2 {
		return mean, 0
	}
	squares := 0.0
	for i := range a {
		d := a[i] - b[i] - mean
		squares += d * d
	}
	return mean, math.Sqrt(squares / (n - 1) / n)
}

// recommend says what makes the best candidate doubtful, or recommends it.
func (s *selector) recommend() {
	if why, mend := defeatsSelection(s.set.Options); why != "" {
		s.out.Warnings.Add(problem.Problem{Where: "method.scaling", What: why, Hint: mend})
	}
	best := s.choice(ruleBest)
	if linked := s.whole[slices.Index(s.config.Values, best)].Linked; linked != "" {
		s.out.Warnings.Add(problem.Problem{Where: "latent", What: fmt.Sprintf("with %d factors, which predict best, %s%s", best, strings.ToLower(linked[:1]), linked[1:]),
			Hint: "hardly any subject has both, so no row tells whether two factors there are one: choose the number for each pair of views that subjects do have, or measure both in some"})
	}
	recommend(s.out, s.config.Values, best)
}

// defeatsSelection says why a plan's scaling makes every criterion ask for too
// many factors, and what would not; "" if it does not.
//
// Scaling each feature by itself makes the noise of the features of one view
// unequal. With one noise variance per view, further factors really do describe
// that inequality, so prediction improves and every honest criterion says so.
func defeatsSelection(o *options.Options) (why, mend string) {
	if o.Noise != "view" || !o.ScalesFeatures() {
		return "", ""
	}
	return fmt.Sprintf("%s scales each feature by itself, while noise: view gives all features of a view one noise variance; "+
			"their noise then differs, surplus factors describe the difference, and every criterion asks for too many factors", o.Scaling),
		"scaling: view, if the features of each view share a unit\nnoise: feature, if they do not"
}
