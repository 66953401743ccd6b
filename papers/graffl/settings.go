package graffl

import (
	abc "parley/methods/published/graffl"
	"parley/papers/experiment"
	"parley/papers/graffl/toy"
)

// Settings are those that sections 2.2 and 4 give.
func Settings() []experiment.Settings {
	s := toy.Study{Options: map[string]any{"name": abc.Name}, Rows: thousands, Seed: 1}
	return []experiment.Settings{{Item: "Section 4.2", Of: "Algorithm 2", Plan: s.Plan, Lines: []experiment.Setting{
		{Says: "K, components", Published: 3, Key: "components"},
		{Says: "S, sites", Published: 3, Why: "the three of the example"},
		{Says: "samples of each site", Published: 3000, Why: "the rows of the example"},
		{Says: "N, proposals", Published: "not said", Key: "rounds", Ours: 100,
			Why: "N is rounds times all rows; Figure 3's table has other N"},
		{Says: "L, accepted", Published: "not said", Key: "accepted", Ours: 1000, Why: "Figure 3's table has other L"},
		{Says: "α of the weights", Published: "by Rousseau and Mengersen, below 2.5", Key: "prior.concentration",
			Ours: 1, Why: "Figure 3's table has .1 and 2.4 beside it, which change nothing"},
		{Says: "d, length of a code (PhysioNet)", Published: 24, Why: "Table 2 of the page, first setting"},
		{Says: "penalty of the classifier", Published: "not said", Why: "C = 0.01, and 10 000 beside it"},
	}}}
}
