package dppvi

import (
	"context"
	"errors"
	"fmt"

	"parley/figure"
	"parley/judge/evaluate"
	"parley/papers/experiment"
	"parley/privacy/account"
	"parley/problem"
)

// The successor's splits of Adult, and its clients with their ε.
var (
	splits = []struct {
		name string
		evaluate.Scheme
	}{{"balanced", evaluate.Scheme{}}, {"unbalanced 1", evaluate.Scheme{Rho: 0.75, Kappa: 0.95}},
		{"unbalanced 2", evaluate.Scheme{Rho: 0.7, Kappa: -3}}}
	clients = []struct {
		n       int
		epsilon float64
	}{{10, 1}, {200, 0.5}}
)

// successorSays are the published points, of the splits in their order: accuracy and
// log-likelihood, 0 where none was read.
var successorSays = map[int][]struct {
	name string
	at   [3][2]float64
}{
	10: {{"DP optimisation", [3][2]float64{{83.8, -.350}, {84.1, -.343}, {84.0, -.345}}},
		{"local averaging", [3][2]float64{{83.7, -.355}, {83.7, -.364}, {81.6, -.382}}},
		{"local averaging, trusted sum", [3][2]float64{{84.2, -.339}, {84.3, -.363}, {83.6, -.370}}},
		{"virtual clients", [3][2]float64{{84.0, -.352}, {83.8, -.350}, {83.9, -.348}}},
		{"virtual clients, trusted sum", [3][2]float64{{84.7, -.343}, {84.3, -.338}, {84.3, -.338}}},
		{"global VI, trusted sum", [3][2]float64{{84.9, -.328}, {84.9, -.328}, {84.9, -.328}}}},
	200: {{"DP optimisation", [3][2]float64{{81.3}, {81.8}, {81.2}}},
		{"local averaging, trusted sum", [3][2]float64{{83.2}, {84.2}, {83.8}}},
		{"virtual clients, trusted sum", [3][2]float64{{84.4}, {83.9}, {83.8}}},
		{"global VI, trusted sum", [3][2]float64{{84.9}, {84.9}, {84.9}}}},
}

// successor sets our methods beside the published points of DP-PVI's successor.
func successor() experiment.Experiment {
	ours := func(epsilon float64) []rival {
		total := account.Budget{Epsilon: epsilon, Delta: 1e-5}
		mine := today(1)
		mine.total = total
		return []rival{mine, {name: "DP-PVI", options: dpPVI(1).options, rows: true, draws: true, total: total}}
	}
	at := func(n int, split string, r rival) string {
		return experiment.Slug(fmt.Sprintf("%d %s %s", n, split, r.name))
	}
	return experiment.Experiment{Name: "dppvi-successor", Data: data,
		Cells: func(quick bool) (cells experiment.Cells) {
			for _, m := range clients {
				for _, s := range splits {
					for _, r := range ours(m.epsilon) {
						if quick && (m.n > 10 || s.name != "balanced" || r.name != "default") {
							continue
						}
						cells.Add(at(m.n, s.name, r), func(ctx context.Context,
							from experiment.Data) (experiment.Values, error) {
							c, err := open(ctx, from)
							if err != nil {
								return nil, err
							}
							var names []string
							for i := range m.n {
								names = append(names, fmt.Sprintf("c%03d", i+1))
							}
							sites, err := c.divide(s.Scheme, names)
							if err != nil {
								return nil, err
							}
							v, err := c.scores(ctx, r, sites, seeds(r, quick))
							if wrong := (problem.Problem{}); errors.As(err, &wrong) && wrong.Where == "privacy.total" {
								return experiment.Values{}, nil
							}
							return v, err
						})
					}
				}
			}
			return cells
		},
		Conclude: func(o experiment.Outcomes) experiment.Conclusion {
			t := figure.Table{ID: "successor", Title: "Published points and ours",
				Caption: "Mean ± standard deviation over five runs of ours.",
				Columns: figure.TextColumns("clients", "ε", "split", "method", "published by", "accuracy, %",
					"log-likelihood")}
			for _, m := range clients {
				for i, s := range splits {
					of := []any{fmt.Sprint(m.n), fmt.Sprint(m.epsilon), s.name}
					for _, p := range successorSays[m.n] {
						l := ""
						if p.at[i][1] != 0 {
							l = experiment.Minus(fmt.Sprintf("%.3f", p.at[i][1]))
						}
						t.Add(append(of[:3:3], p.name, "the successor", fmt.Sprintf("%.1f", p.at[i][0]), l)...)
					}
					for _, r := range ours(m.epsilon) {
						v := o[at(m.n, s.name, r)]
						t.Add(append(of[:3:3], r.name, "ours", experiment.SpreadOf(v[accuracy]).Text(2),
							experiment.Minus(experiment.SpreadOf(v[logLik]).Text(4)))...)
					}
				}
			}
			return experiment.Conclusion{Tables: []figure.Table{t}}
		},
	}
}
