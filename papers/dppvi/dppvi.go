// Package dppvi repeats the experiments of DP-PVI (Sharma, Hutchinson, Swaroop, Honkela
// and Turner 2019, arXiv:1911.10563) on the census data of the income example, with the
// distribution D that the paper defines and does not use.
package dppvi

import (
	"context"
	_ "embed" // for the page
	"fmt"
	"math"
	"slices"

	published "parley/methods/published/dppvi"
	"parley/papers/deal"
	"parley/papers/experiment"
	"parley/privacy/account"
)

//go:embed page.txt
var page string

// Paper is its page.
var Paper = experiment.ReadPaper("dppvi", page)

// Experiments are those of the paper.
func Experiments() experiment.List {
	return Paper.Tell(experiment.List{distributions(), hyperparameters(), table5(), differences(), successor(),
		noiseAware()})
}

// data are those of all experiments.
var data = []string{"adult"}

// schemes are the distributions of Table 1.
var schemes = []string{"A", "B", "C", "D"}

// rival is a method, its plan's keys under method, and its total; without one it is not
// private.
type rival struct {
	name    string
	options keys
	rows    bool // the sites' numbers of rows are declared
	draws   bool // repeats differ
	total   account.Budget
	marks   []int // numbers of updates after which the model is judged, too
}

type keys = deal.Keys

// delta is that of a total: the paper's, a power of ten below one over the site's rows,
// for the largest sites.
const delta = 1e-4

var (
	pvi      = rival{name: "PVI", options: keys{"name": published.Name}, rows: true, draws: true}
	exact    = rival{name: "exact PVI", options: keys{"name": published.Name, "algorithm": "exact"}}
	globalVI = rival{name: "Global VI", options: keys{"name": published.Name, "algorithm": "global"},
		rows: true, draws: true}
)

func dpPVI(epsilon float64) rival {
	return rival{name: "DP-PVI", options: keys{"name": published.Name}, rows: true, draws: true,
		total: account.Budget{Epsilon: epsilon, Delta: delta}}
}

// today is what a plan has that says nothing but its total.
func today(epsilon float64) rival {
	return rival{name: "default", draws: true, total: account.Budget{Epsilon: epsilon, Delta: delta}}
}

// label names a rival with its total.
func (r rival) label() string {
	if r.total.Epsilon == 0 {
		return r.name
	}
	return fmt.Sprintf("%s, ε %v", r.name, r.total.Epsilon)
}

// with is the rival with another option.
func (r rival) with(key string, value any) rival {
	o := keys{key: value}
	for k, v := range r.options {
		if k != key {
			o[k] = v
		}
	}
	r.options = o
	return r
}

// The names of a fit's values.
const (
	accuracy = "accuracy" // per cent of test rows
	logLik   = "log-likelihood"
	updates  = "updates" // that the study made
	traffic  = "traffic" // bytes of all its tasks and answers
	spent    = "spent"   // true ε of everything that the dearest site releases, at the plan's δ
)

// id names the cells of a rival on a distribution.
func id(scheme string, r rival, of ...any) string {
	text := scheme + " " + r.label()
	for _, x := range of {
		text += fmt.Sprintf(" %v", x)
	}
	return experiment.Slug(text)
}

// seeds is how often something that draws is repeated.
func seeds(r rival, quick bool) int {
	if quick || !r.draws {
		return 1
	}
	return 5
}

// cell runs one rival's studies on a distribution, one for every seed.
func cell(id, scheme string, r rival, quick bool) experiment.Cell {
	return experiment.Cell{ID: id, Run: func(ctx context.Context, at experiment.Data) (experiment.Values, error) {
		c, err := open(ctx, at)
		if err != nil {
			return nil, err
		}
		if !quick && r.options["name"] == published.Name {
			r = r.watch()
		}
		return c.scores(ctx, r, c.spread(scheme), seeds(r, quick))
	}}
}

// published5 is Table 5: mean and standard deviation of accuracy in per cent and of the
// average log-likelihood.
var published5 = map[string]map[string][4]float64{
	"A": {"PVI": {85.23, 0.05, -0.3181, 0.0003}, "Global VI": {85.21, 0.08, -0.3184, 0.0002},
		"DP-PVI, ε 0.5": {84.57, 0, -0.3439, 0}, "DP-PVI, ε 0.75": {84.78, 0, -0.3372, 0},
		"DP-PVI, ε 1": {85.02, 0.15, -0.3332, 0.0018}},
	"B": {"PVI": {85.15, 0.15, -0.3216, 0.0030}, "Global VI": {78.76, 0.13, -0.7006, 0.0105},
		"DP-PVI, ε 0.5": {84.43, 0, -0.3379, 0}, "DP-PVI, ε 0.75": {84.87, 0, -0.3332, 0},
		"DP-PVI, ε 1": {84.94, 0.14, -0.3323, 0.0017}},
	"C": {"PVI": {85.13, 0.05, -0.3193, 0.0007}, "Global VI": {53.96, 0.78, -1.1997, 0.0438},
		"DP-PVI, ε 0.5": {81.83, 0, -0.4218, 0}, "DP-PVI, ε 0.75": {82.38, 0, -0.4130, 0},
		"DP-PVI, ε 1": {82.46, 0, -0.4070, 0}},
}

// table5 is Table 5 with the curves of Figures 1, 4 and 5, and the default beside it at the same totals.
func table5() experiment.Experiment {
	rivals := []rival{pvi, exact, globalVI}
	for _, e := range []float64{0.5, 0.75, 1} {
		rivals = append(rivals, dpPVI(e))
	}
	for _, e := range []float64{0.5, 0.75, 1} {
		rivals = append(rivals, today(e))
	}
	all := append(slices.Clone(rivals), today(0.25))
	return experiment.Experiment{Name: "dppvi-table-5", Data: data,
		Cells: func(quick bool) (cells experiment.Cells) {
			for _, s := range schemes {
				for _, r := range all {
					if !quick || s == "C" && r.total.Epsilon > 0 && r.total.Epsilon == 1 {
						cells = append(cells, cell(id(s, r), s, r, quick))
					}
				}
			}
			return cells
		},
		Conclude: func(o experiment.Outcomes) experiment.Conclusion {
			out := experiment.Conclusion{Headings: []string{"distribution", "method"}}
			for _, s := range schemes {
				for _, r := range rivals {
					v := o[id(s, r)]
					if v == nil {
						continue
					}
					var a, l *experiment.Spread
					if p, ok := published5[s][r.label()]; ok {
						a, l = &experiment.Spread{Mean: p[0], SD: p[1]}, &experiment.Spread{Mean: p[2], SD: p[3]}
					}
					of := []string{s, r.label()}
					out.Add(of, "accuracy, %", 2, a, v[accuracy])
					out.Add(of, "log-likelihood", 4, l, v[logLik])
					if r.total.Epsilon > 0 {
						out.Add(of, "true ε", 3, nil, v[spent])
					}
				}
			}
			if t := whoWins(o, rivals); t.Len() > 0 {
				out.Tables = append(out.Tables, t, communications(o, rivals), risen(o, rivals))
			}
			for _, s := range []string{"C", "A", "B", "D"} { // as the paper's figures are
				if o[id(s, pvi)] != nil {
					out.Figures = append(out.Figures, curves(s, o)...)
				}
			}
			return out
		},
	}
}

// distributions is Table 1.
func distributions() experiment.Experiment {
	said := map[string][6]float64{ // rows of a small site, its share of positives, its δ; the same of a large one
		"A": {3907, 24, 1e-4, 3907, 24, 1e-4}, "B": {390, 1.3, 1e-3, 7424, 25, 1e-4},
		"C": {1172, 96, 1e-4, 6642, 11, 1e-4}, "D": {1562, 60, 1e-4, 6251, 15, 1e-4},
	}
	return experiment.Experiment{Name: "dppvi-table-1", Data: data,
		Cells: func(bool) (cells experiment.Cells) {
			cells.Add("sites", func(ctx context.Context, at experiment.Data) (experiment.Values, error) {
				c, err := open(ctx, at)
				if err != nil {
					return nil, err
				}
				v := experiment.Values{}
				for _, s := range schemes {
					sites := c.spread(s)
					for _, name := range []string{"c01", "c10"} {
						n, positive := float64(sites[name].Len()), 0.0
						for i := range sites[name].Len() {
							if sites[name].Row(i).Subject[c.outcome] == c.positive {
								positive++
							}
						}
						v[s] = append(v[s], n, 100*positive/n, math.Pow(10, math.Floor(math.Log10(1/n))))
					}
				}
				return v, nil
			})
			return cells
		},
		Conclude: func(o experiment.Outcomes) experiment.Conclusion {
			out := experiment.Conclusion{Headings: []string{"distribution", "sites"}}
			for _, s := range schemes {
				for i, x := range o["sites"][s] {
					of := []string{s, []string{"small", "large"}[i/3]}
					out.Add(of, []string{"rows", "positive, %", "δ"}[i%3], []int{0, 1, 4}[i%3],
						&experiment.Spread{Mean: said[s][i]}, []float64{x})
				}
			}
			return out
		},
	}
}
