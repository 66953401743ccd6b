package acceptance

import (
	"context"
	"fmt"

	"parley/dataset"
	"parley/judge/evaluate"
	"parley/tools/measure/protocol"
)

// table6 is the paper's Table 6 (MELBA 2022:012), the rows of Fed-mv-PPCA
// without differential privacy: mean and standard deviation of the training
// and of the test error.
var table6 = []struct {
	scenario    evaluate.Scenario
	sites       int
	train, test [2]float64
}{
	{evaluate.IID, 1, [2]float64{0.0124, 3e-5}, [2]float64{0.0405, 0.0037}},
	{evaluate.IID, 3, [2]float64{0.0320, 0.0024}, [2]float64{0.0373, 0.0035}},
	{evaluate.IID, 6, [2]float64{0.0422, 0.0052}, [2]float64{0.0371, 0.0039}},
	{evaluate.G, 3, [2]float64{0.0432, 0.0074}, [2]float64{0.0433, 0.0026}},
	{evaluate.G, 6, [2]float64{0.0538, 0.0101}, [2]float64{0.0420, 0.0048}},
	{evaluate.K, 3, [2]float64{0.0320, 0.0052}, [2]float64{0.0455, 0.0069}},
	{evaluate.K, 6, [2]float64{0.0402, 0.0065}, [2]float64{0.0448, 0.0088}},
	{evaluate.GK, 3, [2]float64{0.0395, 0.0068}, [2]float64{0.0567, 0.0108}},
	{evaluate.GK, 6, [2]float64{0.0499, 0.0104}, [2]float64{0.0575, 0.0128}},
}

// publishedTable repeats the experiment behind Table 6 on the synthetic data:
// every site scales its own rows to [0, 1], and so does whoever tests.
func publishedTable(ctx context.Context, data string) ([]row, error) {
	t := &table{promise: "published"}
	draws, err := openDraws(ctx, data)
	if err != nil {
		return nil, err
	}
	for _, c := range table6 {
		train, test, n := 0.0, 0.0, 0.0
		for _, d := range draws {
			splits, err := d.splits(c.scenario, max(c.sites, 3))
			if err != nil {
				return nil, err
			}
			for _, s := range splits {
				if c.sites == 1 {
					s = alone(s)
				}
				a, b, err := publishedErrors(ctx, d.data, s, c.scenario, asPublished(sdFactors), uint64(10*d.number+s.Index))
				if err != nil {
					return nil, fmt.Errorf("draw %d, %v, %d sites: %w", d.number, c.scenario, c.sites, err)
				}
				train, test, n = train+a, test+b, n+1
			}
		}
		at := fmt.Sprintf("%v, %d sites", c.scenario, c.sites)
		r := t.add(at, "training error", train/n).note("paper %.4f ± %.2g", c.train[0], c.train[1])
		if c.sites == 1 {
			// One data set's own value: other draws of the generator cannot be held to it.
			r.note("paper %.4f ± %.1g, of one data set: not held to it", c.train[0], c.train[1])
		} else {
			r.atLeast(c.train[0] - 3*c.train[1]).atMost(c.train[0] + 3*c.train[1])
		}
		t.add(at, "test error", test/n).atLeast(c.test[0]-3*c.test[1]).atMost(c.test[0]+3*c.test[1]).note("paper %.4f ± %.2g", c.test[0], c.test[1])
	}
	return t.rows, nil
}

// alone puts all training subjects at one site.
func alone(s evaluate.Split) evaluate.Split {
	train := make([]evaluate.Placement, len(s.Train))
	for i, p := range s.Train {
		train[i] = evaluate.Placement{ID: p.ID}
	}
	s.Train, s.Sites, s.Lacking = train, 1, [][]int{nil}
	return s
}

// publishedErrors fits the published variant and returns its errors over the
// observed entries: the mean over the training sites, and over the test sites.
// Test rows are one site, except that where sites lack views they lie at three
// sites like the training rows.
func publishedErrors(ctx context.Context, src dataset.Source, s evaluate.Split, sc evaluate.Scenario, o options, seed uint64) (train, test float64, err error) {
	sites, _, held := s.Sources(src)
	m, _, err := federate(ctx, sites, o, seed)
	if err != nil {
		return 0, 0, err
	}
	model, err := m.Evaluator()
	if err != nil {
		return 0, 0, err
	}
	tests := []dataset.Source{held}
	if sc == evaluate.K || sc == evaluate.GK {
		if tests, err = protocol.Spread(ctx, held, "group", sc, 3, seed); err != nil {
			return 0, 0, err
		}
	}
	if train, err = ownScaleError(ctx, model, sites); err != nil {
		return 0, 0, err
	}
	test, err = ownScaleError(ctx, model, tests)
	return train, test, err
}

// ownScaleError is the mean over sites of the error on rows that each site
// scaled by its own minimum and maximum.
func ownScaleError(ctx context.Context, m evaluate.Model, sites []dataset.Source) (float64, error) {
	total := 0.0
	for i, site := range sites {
		scaling, err := evaluate.FitMinMax(ctx, site)
		if err != nil {
			return 0, err
		}
		s, err := evaluate.Evaluate(ctx, m, scaling.Apply(site))
		if err != nil {
			return 0, fmt.Errorf("site %d: %w", i+1, err)
		}
		total += s.MAE / float64(len(sites))
	}
	return total, nil
}
