package factors

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"parley/dataset"
	"parley/figure"
	"parley/method"
	"parley/methods/factors/assess"
	"parley/methods/factors/halves"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
	"parley/problem"
)

// Rules, the one that the recommendation follows first.
const (
	ruleStudy     = "smallest within one standard error of the likeliest"
	ruleLikeliest = "largest left-out log-likelihood"
)

// Names of a candidate's scores.
const (
	scoreBehind   = "behind_best" // mean per subject of the best candidate's log-likelihood − this one's, nats
	scoreBehindSE = "behind_best_standard_error"
	scoreLeftOut  = "left_out_log_likelihood" // mean per subject, nats
)

// selectFactors chooses the number of factors among candidates as a study with latent: select does: by [assess.Ranks],
// from the sums that sites send, again once what subjects lack was filled by the model chosen first.
func selectFactors(ctx context.Context, set options.Setup, data map[string]dataset.Source,
	c method.SelectConfig) (*method.Selection, error) {
	if err := cmp.Or(c.Check(), set.CheckLatent(c.Values...)); err != nil {
		return nil, err
	}
	rows, err := read(ctx, set, data)
	if err != nil {
		return nil, err
	}
	scale, err := ppca.Common(set.Frame, set.Options.Scaling, rows...)
	if err != nil {
		return nil, err
	}
	s := &selector{set: set, rows: rows, out: &method.Selection{Option: "latent", Noun: "factors"}}
	sites, again, err := halves.Sums(set, scale, rows, 0)
	if s.expected = 1; again { // a third is rare
		s.expected = 2
	}
	for chosen := 0; err == nil; {
		if err = s.try(ctx, c, sites, chosen > 0); err != nil || !again {
			break
		}
		before := chosen
		// cells were filled by a model of so many
		if chosen = s.ranks.Values[s.choice]; before > 0 && chosen >= before {
			s.choice = max(0, slices.Index(s.ranks.Values, before))
			break
		}
		sites, again, err = halves.Sums(set, scale, rows, chosen)
	}
	if err != nil {
		return nil, err
	}
	s.choose()
	s.recommend()
	s.out.Result = resultOf(s.out, map[string]string{ruleStudy: "one_standard_error", ruleLikeliest: "left_out"},
		"Models were fitted to nine tenths of the subjects, as far as the sums of sites tell them apart, and judged "+
			"by how likely they make the others. All is about the means of the sites. A recommendation follows the "+
			"first rule, if nothing is warned of.",
		"In scaled units. Behind: how much less likely a subject who was left out is than with the likeliest number "+
			"of factors, with the standard error of that. It falls while factors describe what all subjects share, "+
			"and rises once they describe those who were fitted only.",
		scoreColumn{"left-out log-likelihood per subject", "nats", scoreLeftOut},
		scoreColumn{"behind the best", "nats", scoreBehind}, scoreColumn{"standard error", "nats", scoreBehindSE})
	return s.out, nil
}

// try judges models of all candidates that the sites' subjects carry. Filled says whether a model has filled what they
// lack.
func (s *selector) try(ctx context.Context, c method.SelectConfig, sites [][]ppca.Block, filled bool) error {
	if s.ranks = assess.NewRanks(s.set.Layout, sites, filled, options.Draws(s.set.Plan.Seed, "", 0)); s.ranks == nil {
		return problem.Problem{Where: "latent", What: "nobody can be left out of so few subjects",
			Hint: "more subjects, or one factor"}
	}
	s.out.Notes = nil
	s.passes++
	all := float64(len(c.Values))
	for i, q := range c.Values {
		if err := ctx.Err(); err != nil {
			return err
		}
		carried, err := s.ranks.Try(q)
		if err != nil {
			return err
		}
		if !carried {
			s.out.Notes.Add(problem.Problem{Where: "latent", What: fmt.Sprintf("the sites' subjects do not carry %s",
				figure.Plural(q, "factor"))})
			break
		}
		if done := (s.passes-1)*all + float64(i+1); c.Progress != nil && s.passes <= s.expected {
			c.Progress(done, s.expected*all)
		}
	}
	s.choice = s.ranks.Choice()
	return nil
}

// selector is one selection under way.
type selector struct {
	set   options.Setup
	rows  []*ppca.RowSums
	ranks *assess.Ranks
	out   *method.Selection

	choice int // place of what a study takes
	// how often all candidates have been judged, the one that is under way included, and will be as far as is known
	passes, expected float64
}

// read sums up the rows of every site, as a study does.
func read(ctx context.Context, set options.Setup, data map[string]dataset.Source) (sums []*ppca.RowSums, err error) {
	var sources []dataset.Source
	for _, name := range set.Plan.Sites {
		src, ok := data[name]
		if !ok {
			return nil, fmt.Errorf("site %s has no data", name)
		}
		outliers, err := options.Excluded(ctx, set, src)
		if err != nil {
			return nil, fmt.Errorf("site %s: %w", name, err)
		}
		sources = append(sources, outliers.Without(src))
	}
	if _, sources, err = options.Regress(ctx, set, sources...); err != nil {
		return nil, err
	}
	for i, name := range set.Plan.Sites {
		one, err := ppca.Read(ctx, set.Layout, sources[i])
		if err != nil {
			return nil, fmt.Errorf("site %s: %w", name, err)
		}
		sums = append(sums, one)
	}
	return sums, nil
}

// choose turns scores into choices.
func (s *selector) choose() {
	r, out := s.ranks, s.out
	logLik := r.LogLik()
	for i, q := range r.Values {
		behind, se := r.Behind(i)
		out.Candidates = append(out.Candidates, method.Candidate{Value: q, Scores: map[string]float64{
			scoreLeftOut: logLik[i], scoreBehind: behind, scoreBehindSE: se,
		}})
	}
	add := func(rule string, at int, why string) {
		out.Choices = append(out.Choices, method.Choice{Rule: rule, Value: r.Values[at], Why: why})
	}
	add(ruleStudy, s.choice, "what a study with latent: select takes among these; the error is that of the "+
		"difference, by how tenths of the subjects differ")
	add(ruleLikeliest, r.Likeliest(), "subjects who were left out of the fit are the likeliest")
	out.Settings = map[string]float64{"sites": float64(len(s.rows))}
}

// recommend says what makes the choice doubtful, or recommends it.
func (s *selector) recommend() {
	if why, mend := defeatsSelection(s.set.Options); why != "" {
		s.out.Warnings.Add(problem.Problem{Where: "method.scaling", What: why, Hint: mend})
	}
	recommend(s.out, s.ranks.Values, s.ranks.Values[s.choice])
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
	return fmt.Sprintf("%s scales each feature by itself, while noise: view gives all features of a view one noise "+
			"variance; their noise then differs, surplus factors describe the difference, and every criterion asks "+
			"for too many factors", o.Scaling),
		"scaling: view, if the features of each view share a unit\nnoise: feature, if they do not"
}

// scoreColumn is a score as a table shows it.
type scoreColumn struct{ name, unit, score string }

// resultOf is a selection as a result: what its rules, under short names, chose from what, and a table of scores.
func resultOf(out *method.Selection, rules map[string]string, from, caption string,
	columns ...scoreColumn) *method.Result {
	x, _ := out.Curve("")
	t := &figure.Table{ID: "candidates", Title: "All scores", Caption: caption,
		Columns: []figure.Column{{Name: "factors", Format: figure.Count, Numbers: x}}}
	for _, c := range columns {
		_, y := out.Curve(c.score)
		t.Columns = append(t.Columns, figure.Column{Name: c.name, Unit: c.unit, Numbers: y})
	}
	sec := out.Section(from)
	sec.Items = append(sec.Items, figure.Item{Table: t})
	return &method.Result{Metrics: out.Metrics(rules), Headline: []figure.Fact{out.Headline()},
		Sections: []figure.Section{sec}}
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
	switch last := values[len(values)-1]; {
	case len(out.Warnings) > 0: // of what may have moved the best there
	case best == last:
		out.Warnings.Add(problem.Problem{Where: "latent",
			What: fmt.Sprintf("the largest candidate, %d, is the best: the score has not turned", last),
			Hint: fmt.Sprintf("try more factors, as with --latent %d..%d; where it never turns, look at what the "+
				"factors are made of", values[max(0, len(values)-2)], 2*last)})
	case best == values[0] && best > 1:
		out.Warnings.Add(problem.Problem{Where: "latent",
			What: fmt.Sprintf("the smallest candidate, %d, is the best", best),
			Hint: fmt.Sprintf("try fewer factors, as with --latent 1..%d", values[1])})
	}
	if len(out.Warnings) == 0 {
		out.Recommended = best
	}
}
