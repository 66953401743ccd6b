package dppvi

import (
	"maps"

	"parley/papers/deal"
	"parley/papers/experiment"
	"parley/study"
)

// Settings are Tables 2 to 4.
func Settings() []experiment.Settings {
	plan := func(r rival) func() (*study.Plan, error) {
		return func() (*study.Plan, error) {
			with := keys{"outcome": keys{"column": "income", "levels": []string{"no", "yes"}},
				"rows": []keys{{"site": "a", "rows": 3907}}}
			maps.Copy(with, r.options)
			age := keys{"name": "age", "range": []float64{17, 90}}
			return deal.Plan(methods, keys{"name": "settings", "sites": []string{"a"}, "subjects": []string{"income"},
				"method": with, "views": []keys{{"name": "person", "features": []keys{age}}},
				"privacy": deal.Protected(r.total.Epsilon, delta)})
		}
	}
	said := []experiment.Setting{ // by the authors' code alone
		{Says: "samples of the activation (code)", Published: 50, Key: "update.draws"},
		{Says: "order of clients", Published: "random, in proportion to 1/rows", Key: "schedule", Ours: "random",
			Why: "the same, where plans declare rows"},
	}
	return []experiment.Settings{
		{Item: "Table 2", Of: "PVI", Plan: plan(pvi), Lines: append([]experiment.Setting{
			{Says: "L, minibatch size", Published: 100, Key: "update.batch"},
			{Says: "learning rate", Published: 2, Key: "update.learning_rate"},
			{Says: "steps of an update", Published: 25, Key: "update.steps"},
			{Says: "damping factor", Published: 0.1, Key: "damping"},
			{Says: "updates (code)", Published: 1000, Key: "rounds", Ours: 100,
				Why: "of each site on average, and the paper has ten"},
		}, said...)},
		{Item: "Table 3", Of: "DP-PVI", Plan: plan(dpPVI(1)), Lines: append([]experiment.Setting{
			{Says: "C, clipping bound", Published: 75, Key: "clip"},
			{Says: "σ, noise scale", Published: 5, Key: "update.noise"},
			{Says: "q, minibatch sample proportion", Published: 0.02, Key: "update.batch_share"},
			{Says: "learning rate", Published: 0.5, Key: "update.learning_rate"},
			{Says: "steps of an update", Published: 25, Key: "update.steps"},
			{Says: "damping factor", Published: 0.1, Key: "damping"},
			{Says: "least minibatch (code)", Published: 20, Why: "in every plan with `update.batch_share`"},
			{Says: "minibatches", Published: "of fixed size",
				Why: "Poisson samples of that size on average, which the accountant is right for"},
		}, said...)},
		{Item: "Table 4", Of: "Global VI", Plan: plan(globalVI), Lines: []experiment.Setting{
			{Says: "L, minibatch size", Published: 100, Key: "global.batch"},
			{Says: "learning rate", Published: 0.05, Key: "global.learning_rate"},
			{Says: "samples of the activation (code)", Published: 50, Key: "global.draws"},
			{Says: "updates (code)", Published: 10000, Key: "rounds", Ours: 1000,
				Why: "of each site on average, and the paper has ten"},
		}},
	}
}

// hyperparameters shows Tables 2 to 4.
func hyperparameters() experiment.Experiment {
	return experiment.Experiment{Name: "dppvi-settings",
		Cells: func(bool) experiment.Cells { return nil },
		Conclude: func(experiment.Outcomes) (c experiment.Conclusion) {
			for _, s := range Settings() {
				c.Tables = append(c.Tables, s.Table())
			}
			return c
		},
	}
}
