package fedmvppca

import (
	"parley/dataset"
	"parley/methods/published/fedmvppca"
	"parley/papers/experiment"
	"parley/papers/melba"
	"parley/study"
)

// Settings are what sections 4.2 and 4.3 of both versions of the paper say, which have no table
// of them.
func Settings() []experiment.Settings {
	of := func(say says, c condition) func() (*study.Plan, error) {
		return func() (*study.Plan, error) {
			empty, err := dataset.NewTable(melba.Schema(melba.Dims), nil)
			if err != nil {
				return nil, err
			}
			d := &division{lacking: make([][]int, c.sites)}
			for range c.sites {
				d.sites = append(d.sites, empty)
			}
			m, privacy := say(c, d)
			return plan(d.sites, m, privacy, 1)
		}
	}
	type lines = []experiment.Setting
	adni, sd := condition{data: adcsf, sites: 3}, condition{data: synthetic, sites: 3}
	alone := condition{data: adcsf, sites: 1}
	return []experiment.Settings{
		{Item: "MELBA, section 4.3", Of: "Fed-mv-PPCA", Plan: of(func(c condition, d *division) (keys, keys) {
			return keys{"name": fedmvppca.Name, "latent": c.data.factors}, nil // the rest is the method's default
		}, adni), Lines: lines{
			{Says: "q, ADNI", Published: 6, Key: "latent"},
			{Says: "R, rounds", Published: 100, Key: "rounds"},
			{Says: "I, iterations in a round", Published: 15, Key: "iterations"},
			{Says: "iterations of EM in the first round", Published: 30, Key: "first_iterations"},
			{Says: "start of the first round", Published: "random", Key: "initial"},
			{Says: "start of later rounds", Published: "draw", Key: "restart"},
			{Says: "3-fold cross-validation, repeated", Published: 10,
				Why: "`folds` and `repeats` of the experiments; 3 repeats of autoencoders"},
		}},
		{Item: "MELBA, section 4.3, SD", Of: "Fed-mv-PPCA", Plan: of(published, sd),
			Lines: lines{{Says: "q, SD", Published: 5, Key: "latent"}}},
		{Item: "MELBA, section 4.3, one centre", Of: "Fed-mv-PPCA", Plan: of(published, alone), Lines: lines{
			{Says: "rounds", Published: 1, Key: "rounds"},
			{Says: "iterations of EM", Published: 800, Key: "first_iterations"},
		}},
		{Item: "MELBA, Table 2, DP rows", Of: "DP-Fed-mv-PPCA", Plan: of(noised(10, 1), adni), Lines: lines{
			{Says: "ε of μ", Published: 10, Key: "clipping.mean.epsilon"},
			{Says: "ε of W", Published: 10, Key: "clipping.loadings.epsilon"},
			{Says: "ε of σ²", Published: 10, Key: "clipping.noise_variance.epsilon"},
			{Says: "δ of μ", Published: 0.01, Key: "clipping.mean.delta"},
			{Says: "δ of W", Published: 0.01, Key: "clipping.loadings.delta"},
			{Says: "clipping constant of μ", Published: 1, Key: "clipping.mean.constant"},
			{Says: "of W", Published: 1, Key: "clipping.loadings.constant"},
			{Says: "of σ²", Published: 1, Key: "clipping.noise_variance.constant"},
			{Says: "rounds", Published: 100, Key: "rounds"},
			{Says: "first round", Published: "not said", Key: "clipping.first_round", Ours: "clear",
				Why: "the published errors need it; what a protected one costs is on the page"},
		}},
		{Item: "IPMI, section 4.3", Of: "Fed-mv-PPCA", Plan: of(published, adni), Lines: lines{
			{Says: "rounds", Published: 100, Key: "rounds"},
			{Says: "iterations in a round", Published: 15, Key: "iterations"},
			{Says: "iterations in the first round", Published: 15, Key: "first_iterations", Ours: 30,
				Why: "as MELBA has it; Figure 10's table shows that 15 change next to nothing"},
		}},
		{Item: "MELBA, section 4.2", Of: "VAE and mc-VAE by FedAvg",
			Plan: of(autoencoder("linear", 0), adni), Lines: lines{
				{Says: "rounds", Published: 100, Key: "rounds"},
				{Says: "epochs in a round", Published: 15, Key: "epochs"},
				{Says: "learning rate", Published: 0.001, Key: "learning_rate"},
				{Says: "λ of FedProx", Published: 0, Key: "proximal"},
				{Says: "optimiser", Published: "not said", Key: "optimiser", Ours: "adam",
					Why: "whose usual rate is the one published"},
				{Says: "width of a second layer", Published: "not said", Why: "√(dq), in Figure 11 alone"},
			}},
	}
}
