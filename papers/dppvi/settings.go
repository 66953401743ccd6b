package dppvi

import (
	"parley/papers/deal"
	"parley/papers/experiment"
	"parley/privacy/account"
	"parley/study"
)

// Settings are Tables 2 to 4.
func Settings() []experiment.Settings {
	plan := func(r rival) func() (*study.Plan, error) {
		return func() (*study.Plan, error) {
			with := keys{"outcome": keys{"column": "income", "levels": []string{"no", "yes"}}, "rows": []keys{{"site": "a", "rows": 3907}}}
			for k, v := range r.options {
				with[k] = v
			}
			says := keys{"name": "settings", "sites": []string{"a"}, "subjects": []string{"income"}, "method": with,
				"views": []keys{{"name": "person", "features": []keys{{"name": "age", "range": []float64{17, 90}}}}}}
			if r.total != nil {
				says["privacy"] = deal.Protected(account.Budget{Epsilon: 1, Delta: delta})
			}
			return deal.Plan(methods, says)
		}
	}
	return []experiment.Settings{
		{Item: "Table 3", Of: "DP-PVI", Plan: plan(dpPVI(1)), Lines: []experiment.Setting{
			{Says: "C, clipping bound", Published: 75, Key: "clip"},
			{Says: "σ, noise scale", Published: 5, Key: "update.noise"},
			{Says: "q, minibatch sample proportion", Published: 0.02, Key: "update.batch_share"},
			{Says: "learning rate", Published: 0.5, Key: "update.learning_rate"},
			{Says: "steps of an update", Published: 25, Key: "update.steps"},
			{Says: "damping factor", Published: 0.1, Key: "damping"},
		}},
	}
}
