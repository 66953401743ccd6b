package evaluate_test

import (
	"testing"

	"parley/dataset"
	"parley/experiment/deal"
	"parley/experiment/protocoltest"
	"parley/judge/evaluate"
)

// adcsf returns adcsf with its views in the order clinic, immune, metabolic, vascular.
func adcsf(t *testing.T) *dataset.Table {
	t.Helper()
	d, err := deal.Open(ctx, "testdata/adcsf")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// storedSplits reads the three folds of repeat 0, with the sites of IID and K
// or of G and G/K.
func storedSplits(t *testing.T, sc evaluate.Scenario) []evaluate.Split {
	t.Helper()
	splits, err := protocoltest.StoredSplits("testdata/adcsf-splits.csv.gz", sc, 4, 1)
	if err != nil {
		t.Fatal(err)
	}
	return splits
}
