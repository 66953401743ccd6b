package mixture

import (
	"context"
	"fmt"
	"slices"

	"parley/figure"
	"parley/method"
	"parley/methods/mixture/fitted"
	"parley/methods/mixture/gmm"
	"parley/methods/mixture/sketch"
	"parley/problem"
	"parley/study"
)

// chosen is the option of a plan that [Method.SelectReleased] chooses.
const chosen = "components"

// Chooses implements [method.Refitter].
func (Method) Chooses() string { return chosen }

// ReleasedFile implements [method.Refitter]. The sums that sites release do not depend on the number of components.
func (Method) ReleasedFile(p *study.Plan) (string, error) {
	_, err := setupOf(p)
	return releasedName, err
}

// ruleUndoubted is the rule of [Method.SelectReleased].
const ruleUndoubted = "smallest without a doubt"

// reliability is what came of go run -C papers . run parley-components.
const reliability = "of data sets of 3000 rows, this was right for all 32 of normal groups 4 standard deviations " +
	"apart, and for 8 of 8 of groups 2.5 apart; for 8 of skewed groups it recommended nothing"

// with is the setup of another number of components, for what the study's own released.
func (s *setup) with(components int) (*setup, error) {
	opts, err := s.Options.withComponents(s.Plan, components)
	if err != nil {
		return nil, err
	}
	all, other := *s.Setup, *s
	if all.Prior, err = gmm.BoxPrior(s.Lo, s.Hi, components); err != nil {
		return nil, err
	}
	other.Setup, other.Options = &all, opts
	return &other, nil
}

// opened is the setup of a study, what its sites released, and what that comes to.
func opened(p *study.Plan, data []byte) (own *setup, all *released, o sketch.Observation, err error) {
	if own, err = setupOf(p); err != nil {
		return nil, nil, o, err
	}
	if all, err = own.readReleased(data); err != nil {
		return nil, nil, o, err
	}
	o, err = own.observation(all)
	return own, all, o, err
}

// Refit implements [method.Refitter]: the result of the study with another number of components.
func (Method) Refit(p *study.Plan, data []byte, components int) (*method.Result, error) {
	own, all, o, err := opened(p, data)
	if err != nil {
		return nil, err
	}
	if own, err = own.with(components); err != nil {
		return nil, err
	}
	post, err := own.posterior(o)
	if err != nil {
		return nil, err
	}
	return own.result(post, all)
}

// SelectReleased implements [method.Refitter]. It fits mixtures with every number of components of a config to what the
// sites of a study released, and recommends the smallest of which nothing is doubted: it is the only one with which the
// mixture would be relied on, had the plan said it. It is not recommended unless one less and one more were tried.
// Numbers are fitted one after the other, each on all processors.
func (Method) SelectReleased(ctx context.Context, p *study.Plan, data []byte,
	c method.SelectConfig) (*method.Selection, error) {
	own, all, o, err := opened(p, data)
	if err != nil {
		return nil, err
	}
	if err := c.Check(); err != nil {
		return nil, err
	}
	var tried []*setup
	cost, of := func(k int) float64 { return float64(k + 1) }, 0.0
	for _, k := range c.Values {
		one, err := own.with(k)
		if err != nil {
			return nil, err
		}
		tried, of = append(tried, one), of+cost(k)
	}
	out := &selection{setup: own, Selection: method.Selection{Option: chosen, Noun: "components"}}
	done := 0.0
	for i, one := range tried {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		to := method.Candidate{Value: c.Values[i], Scores: map[string]float64{}}
		if p, err := one.posterior(o); err != nil { // others may be fitted all the same
			to.Scores[scoreDoubts], to.Doubts = 1, []string{"it was not fitted: " + err.Error()}
		} else if v, err := one.view(p, all); err != nil {
			return nil, fmt.Errorf("%d components: %w", to.Value, err)
		} else {
			to.Doubts = v.Doubted
			for _, name := range []string{scoreDoubts, scoreMisfit, scoreResidual, scoreSize} {
				to.Scores[name] = v.metrics()[name]
			}
		}
		out.Candidates = append(out.Candidates, to)
		if done += cost(to.Value); c.Progress != nil {
			c.Progress(done, of)
		}
	}
	out.choose(o)
	return &out.Selection, nil
}

// selection is one under way.
type selection struct {
	*setup
	method.Selection
}

// scores are a candidate's: names of metrics.json.
const scoreDoubts, scoreMisfit, scoreResidual, scoreSize = "doubts", "misfit_p", "largest_residual_sd",
	"effective_sample_size"

// choose applies the rule, and says what keeps it from being a recommendation.
func (s *selection) choose(o sketch.Observation) {
	var values, undoubted []int
	misfits := 0
	for _, c := range s.Candidates {
		if values = append(values, c.Value); len(c.Doubts) == 0 {
			undoubted = append(undoubted, c.Value)
		}
		if p, ok := c.Scores[scoreMisfit]; ok && p <= fitted.Level {
			misfits++
		}
	}
	warn := func(what, hint string) { s.Warnings.Add(problem.Problem{Where: chosen, What: what, Hint: hint}) }
	note := func(what string) { s.Notes.Add(problem.Problem{Where: chosen, What: what}) }
	least, most := values[0], values[len(values)-1]
	switch {
	case len(undoubted) > 0:
		best, of := undoubted[0], figure.Plural(undoubted[0], "component")
		s.Choices = []method.Choice{{Rule: ruleUndoubted, Value: best,
			Why: "the smallest number of components whose report would have no doubt"}}
		switch {
		case best > 1 && !slices.Contains(values, best-1):
			warn(fmt.Sprintf("nothing speaks against %s, but %d was not tried, and may do as well", of,
				best-1), fmt.Sprintf("--components 1..%d", best+1))
		case !slices.Contains(values, best+1):
			warn(fmt.Sprintf("nothing speaks against %s, but %d was not tried, which shows whether doubts come back",
				of, best+1), s.tryUpTo(best+1))
		default:
			s.Recommended = best
			note(reliability)
		}
		if len(undoubted) > 1 {
			note(fmt.Sprintf("nothing speaks against %s either: the data do not tell such numbers apart, and the "+
				"smallest is taken", figure.Plural(undoubted[1], "component")))
		}
	case misfits == len(values) && most < s.Options.mostComponents(s.Plan):
		warn(fmt.Sprintf("what the sites released is further from every mixture of %d to %d components than chance "+
			"and noise explain", least, most),
			s.tryUpTo(2*most)+"; if that does not help, groups are not normal distributions: take logarithms of "+
				"skewed features, or read components as a description and not as groups")
	default:
		warn("every number is doubted: take none of them", "if numbers from 1 on were tried, more rows, a larger ε or "+
			"fewer features; or groups are not normal distributions, as of skewed features, whose logarithms may be")
	}
	note("intervals of a model hold for its number of components, and do not know that the same sums chose it")
	s.Settings = map[string]float64{"rows": o.Rows, "frequencies": float64(s.Of.Len())}
	s.Table = s.table()
	s.Result = &method.Result{Metrics: s.Metrics(map[string]string{ruleUndoubted: "smallest_without_a_doubt"}),
		Headline: []figure.Fact{s.Headline()},
		Sections: []figure.Section{s.Section("Mixtures with every number of components below were fitted to what the " +
			"sites of the study had released. The smallest of which nothing is doubted is recommended, if one less " +
			"and one more were tried.")}}
}

// tryUpTo says how to try more components than there were.
func (s *selection) tryUpTo(k int) string {
	most := s.Options.mostComponents(s.Plan)
	if k > most && s.Candidates[len(s.Candidates)-1].Value >= most {
		return fmt.Sprintf("another study, whose plan has components: %d", k)
	}
	return fmt.Sprintf("--components 1..%d", min(k, most))
}

// table is the candidates with what speaks against them.
func (s *selection) table() *figure.Table {
	t := &figure.Table{ID: "candidates", Title: "All numbers of components",
		Caption: "The largest residual, in standard deviations of chance and noise; the probability of a misfit as " +
			"large by chance; the effective sample size. What a doubt rests on is in selection.json.",
		Columns: []figure.Column{{Name: "components", Format: figure.Count}, {Name: "largest residual"},
			{Name: "misfit p"}, {Name: "sample size"}, {Name: "speaks against it"}}}
	for _, c := range s.Candidates {
		against := titles(c.Doubts)
		if against == "" {
			against = "nothing"
		}
		score := func(name, form string) string {
			if x, ok := c.Scores[name]; ok {
				return fmt.Sprintf(form, x)
			}
			return "–"
		}
		t.Add(c.Value, score(scoreResidual, "%.1f"), score(scoreMisfit, "%.2g"), score(scoreSize, "%.0f"), against)
	}
	return t
}
