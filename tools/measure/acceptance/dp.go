package acceptance

import (
	"context"
	"fmt"
	"math"

	"parley/dataset"
	"parley/judge/evaluate"
	"parley/methods/mvppca"
	says "parley/methods/mvppca/options"
	"parley/privacy"
	"parley/privacy/ledger"
	"parley/study"
	"parley/tools/measure/protocol"
)

// perRelease is the paper's budget of every release. It promises nothing.
var perRelease = map[string]any{
	"protection": study.ProtectionDifferential, "unit": study.UnitSubject, "adjacency": "replace-one",
	"per_release": map[string]any{"epsilon": 10, "delta": 0.01},
}

// privateRounds measures what the paper's budgets come to, and what the mechanisms with
// rounds are worth if they keep a total.
func privateRounds(ctx context.Context, data string) ([]row, error) {
	t := &table{promise: "dp"}
	draws, err := openDraws(ctx, data)
	if err != nil {
		return nil, err
	}
	if err := t.cost(draws[0].data.Schema()); err != nil {
		return nil, err
	}
	return t.rows, t.underTotals(ctx, draws)
}

// cost is what the paper's setting costs a site if every round is private: 3
// views and 100 rounds, every release at (10, 0.01). The bars are 0.1 % around
// the tight values of an exact accountant (the vectors, dp); Theorem 8 says 90.
func (t *table) cost(schema dataset.Schema) error {
	p, err := plan(schema, evaluate.SiteNames(3), options{"variant": says.PublishedVariant, "latent": sdFactors, "scaling": says.ScaleNone, "privacy": perRelease}, 1)
	if err != nil {
		return err
	}
	list, err := mvppca.Method{}.Requests(p, p.Sites[0])
	if err != nil {
		return err
	}
	requests := privacy.Requests(list)
	for _, c := range []struct{ delta, epsilon float64 }{{0.01, 4885}, {1e-5, 5020}} {
		losses, err := ledger.Losses(requests, c.delta, privacy.Subject)
		if err != nil {
			return err
		}
		for _, l := range losses {
			if l.Epsilon == nil {
				return fmt.Errorf("%s, δ %v: no total: %s", l.Adjacency, c.delta, l.Unbounded)
			}
			t.add(fmt.Sprintf("the paper's setting, %s, δ %v", l.Adjacency, c.delta), "total ε", *l.Epsilon).
				atLeast(0.999 * c.epsilon).atMost(1.001 * c.epsilon).note("Theorem 8, which counts one round: 90")
		}
	}
	return nil
}

// underTotals measures the test error of the mechanisms with rounds when every
// round is private and all of them together keep a total at δ = 1e-5.
func (t *table) underTotals(ctx context.Context, draws []*draw) error {
	for _, mechanism := range []string{says.MechanismJoint, says.MechanismDifference} {
		for _, epsilon := range []float64{1, 3, 10, 100} {
			var results []protocol.Result
			for _, d := range draws {
				splits, err := d.splits(evaluate.IID, 3)
				if err != nil {
					return err
				}
				r, err := protocol.CrossValidate(ctx, d.data, splits, "", federated(underTotal(mechanism, epsilon), uint64(d.number)))
				if err != nil {
					return fmt.Errorf("%s, ε %v, draw %d: %w", mechanism, epsilon, d.number, err)
				}
				results = append(results, r...)
			}
			worst := math.Inf(-1)
			for _, x := range each(results, testError) {
				worst = max(worst, x)
			}
			t.add(fmt.Sprintf("%s, total ε %v, IID, 3 sites", mechanism, epsilon), "test error", mean(results, testError)).
				note("worst fold %.3f; the mean for everybody gives 0.20", worst)
		}
	}
	return nil
}

// underTotal are the options of a private run on rows that are already in [0, 1].
func underTotal(mechanism string, epsilon float64) options {
	return options{
		"variant": says.PublishedVariant, "latent": sdFactors, "scaling": says.ScaleNone, "mechanism": mechanism,
		"published": map[string]any{"prior": map[string]any{"loading_sd": 0.1, "mean": 0.5, "mean_sd": 0.25, "noise_alpha": 3, "noise_beta": 0.08}},
		"privacy": map[string]any{
			"protection": study.ProtectionDifferential, "unit": study.UnitSubject, "adjacency": "add-remove",
			"total": map[string]any{"epsilon": epsilon, "delta": 1e-5},
		},
	}
}
