package protocoltest_test

import (
	"context"
	"math"
	"testing"

	"parley/dataset"
	"parley/internal/testkit"
	"parley/judge/evaluate"
	"parley/papers/deal"
	"parley/papers/protocoltest"
)

const data = "../../judge/evaluate/testdata/"

func pca(q int) protocoltest.Fit {
	return func(ctx context.Context, sites []dataset.Source) (evaluate.Model, error) {
		return evaluate.FitPCA(ctx, q, sites...)
	}
}

// The numbers are those of an independent implementation (NumPy 1.24.2 and
// scikit-learn 1.2.1) on the same rows, to the four decimals it gave. It gave
// none for the mean of repeat 0 alone, only 0.1452 ± 0.0040 over ten repeats.
func TestKnownNumbersOfADCSF(t *testing.T) {
	rows := testkit.Get(deal.Open(t.Context(), data+"adcsf"))(t)
	for _, c := range []struct {
		scenario evaluate.Scenario
		q        int
		mae      float64
		within   float64
		accuracy float64
	}{
		{evaluate.IID, 6, 0.0993, 0.00005, 0.81},
		{evaluate.G, 6, 0.0993, 0.00005, 0.81}, // the same rows at other sites
		{evaluate.K, 6, 0.1026, 0.00005, 0.83},
		{evaluate.GK, 6, 0.1029, 0.00005, 0.83},
		{evaluate.IID, 0, 0.1452, 0.0015, 0.727}, // the mean; always "Control"
	} {
		splits := testkit.Get(protocoltest.StoredSplits(data+"adcsf-splits.csv.gz", c.scenario, 4, 1))(t)
		results := testkit.Get(protocoltest.CrossValidate(context.Background(), rows, splits, "group", pca(c.q)))(t)
		var mae, accuracy float64
		for _, r := range results {
			mae += r.Test.MAE / 3
			accuracy += r.Accuracy / 3
		}
		if math.Abs(mae-c.mae) > c.within || math.Abs(accuracy-c.accuracy) > 0.005 {
			t.Errorf("PCA, q = %d, %v: error %.5f, accuracy %.4f, want %.4f, %.3f", c.q, c.scenario, mae, accuracy,
				c.mae, c.accuracy)
		}
		t.Logf("PCA, q = %d, %v: test error %.4f, accuracy %.3f", c.q, c.scenario, mae, accuracy)
	}
}
