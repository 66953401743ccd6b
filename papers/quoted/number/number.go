// Package number measures how often each rule of parley select finds the true number of
// factors: on data from the published synthetic generator, on data whose views and noise are
// unequal, and from what private studies on such data have released.
package number

import (
	"context"
	"fmt"

	"parley/figure"
	"parley/method"
	"parley/papers/experiment"
)

// Experiments are those of this package.
func Experiments() experiment.List { return experiment.List{fromRows(), fromReleases()} }

// True numbers of factors, and the largest candidate; the smallest is 1.
const (
	fewest, most = 3, 6
	candidates   = 8
)

// The names of a selection's values, beside those of rules, which say what each would take.
const (
	recommended = "recommended" // 0 for none
	warned      = "warned"      // 1 if anything must be mended before
)

// selects says among which numbers a selection chooses.
type selects = method.SelectConfig

// add adds one selection among data sets of so many factors.
func add(cells *experiment.Cells, of string, q int, seed uint64,
	choose func(context.Context, selects) (*method.Selection, error)) {
	cells.Add(id(of, q, seed), func(ctx context.Context, _ experiment.Data) (experiment.Values, error) {
		var c selects
		for value := range candidates {
			c.Values = append(c.Values, value+1)
		}
		s, err := choose(ctx, c)
		if err != nil {
			return nil, err
		}
		v := experiment.Values{recommended: {float64(s.Recommended)}, warned: {0}}
		if len(s.Warnings) > 0 {
			v[warned][0] = 1
		}
		for _, choice := range s.Choices {
			v[choice.Rule] = []float64{float64(choice.Value)}
		}
		return v, nil
	})
}

func id(of string, q int, seed uint64) string {
	return experiment.Slug(fmt.Sprintf("%s %d-%d", of, q, seed))
}

// tally counts selections: those in which each rule gave the truth, those with a warning, and
// wrong recommendations without one.
type tally struct {
	right                 map[string]int
	sets, warned, silence int
}

// count counts the selections of one kind that were run.
func count(o experiment.Outcomes, of string, seeds int) tally {
	t := tally{right: map[string]int{}}
	for q := fewest; q <= most; q++ {
		for seed := range uint64(seeds) {
			v := o[id(of, q, seed+1)]
			if v == nil {
				continue
			}
			t.sets++
			for rule, choice := range v {
				n := t.right[rule]
				if choice[0] == float64(q) {
					n++
				}
				t.right[rule] = n
			}
			switch {
			case v[warned][0] > 0:
				t.warned++
			case v[recommended][0] != float64(q):
				t.silence++
			}
		}
	}
	return t
}

// of returns how often a rule was right, as text; a dash where it made no choice.
func (t tally) of(rule string) string {
	n, ok := t.right[rule]
	if !ok {
		return "–"
	}
	return fmt.Sprint(n)
}

// rules are those that choose from rows, the recommended one first.
var rules = []string{"smallest within one standard error of the likeliest", "largest left-out log-likelihood"}

func fromRows() experiment.Experiment {
	const seeds = 2
	return experiment.Experiment{Name: "parley-factors",
		Cells: func(quick bool) (cells experiment.Cells) {
			for _, s := range settings {
				for q := fewest; q <= most; q++ {
					for seed := range uint64(seeds) {
						if quick && (q > fewest || seed > 0 || s.name != settings[0].name) {
							continue
						}
						add(&cells, s.name, q, seed+1, func(ctx context.Context, c selects) (*method.Selection, error) {
							return choose(ctx, s, seed+1, q, c)
						})
					}
				}
			}
			return cells
		},
		Conclude: func(o experiment.Outcomes) experiment.Conclusion {
			var out experiment.Conclusion
			t := figure.Table{ID: "found", Title: "How often each rule finds the true number",
				Caption: fmt.Sprintf("Of %d data sets in each column.", seeds*(most-fewest+1)),
				Columns: []figure.Column{{Name: "rule", Text: rules}}}
			for _, s := range settings {
				found := count(o, s.name, seeds)
				if found.sets == 0 {
					continue
				}
				c := figure.Column{Name: s.title()}
				for _, rule := range rules {
					c.Text = append(c.Text, found.of(rule))
				}
				t.Columns = append(t.Columns, c)
				if s.scaling == "" && found.right[rules[0]] < found.sets {
					out.Broken = append(out.Broken, fmt.Sprintf("%s: the recommended rule finds the true number in "+
						"%d of %d sets", s.title(), found.right[rules[0]], found.sets))
				}
			}
			out.Tables = []figure.Table{t}
			return out
		},
	}
}

// title is what a plan says, and the noise of the data.
func (s setting) title() string {
	title := "defaults"
	if s.scaling != "" {
		title = fmt.Sprintf("%s, noise: %s", s.scaling, s.noise)
	}
	switch s.variance {
	case 0:
		title += ", unequal"
	case 1:
	default:
		title += fmt.Sprintf(", noise × %v", s.variance)
	}
	return title
}

func fromReleases() experiment.Experiment {
	const seeds = 5
	return experiment.Experiment{Name: "parley-factors-released",
		Cells: func(quick bool) (cells experiment.Cells) {
			for i, r := range releases {
				for q := fewest; q <= most; q++ {
					for seed := range uint64(seeds) {
						if quick && (q > fewest || seed > 0 || i < len(releases)-1) {
							continue
						}
						choose := func(ctx context.Context, c selects) (*method.Selection, error) {
							return r.choose(ctx, seed+1, q, c)
						}
						add(&cells, r.String(), q, seed+1, choose)
					}
				}
			}
			return cells
		},
		Conclude: func(o experiment.Outcomes) experiment.Conclusion {
			t := figure.Table{ID: "found", Title: "How often each rule finds the true number",
				Caption: fmt.Sprintf("Of %d data sets in each row. Beside it, how often there was a warning, "+
					"and how often the recommendation was wrong without one.", seeds*(most-fewest+1)),
				Columns: figure.TextColumns("subjects in all", "ε", "sites", "BIC, noise split", "warned",
					"wrong without a warning")}
			for _, r := range releases {
				if found := count(o, r.String(), seeds); found.sets > 0 {
					t.Add(fmt.Sprint(r.subjects), fmt.Sprint(r.epsilon), fmt.Sprint(r.sites),
						found.of("smallest BIC, noise split"), fmt.Sprint(found.warned), fmt.Sprint(found.silence))
				}
			}
			return experiment.Conclusion{Tables: []figure.Table{t}}
		},
	}
}
