package protocol_test

import (
	"compress/gzip"
	"context"
	"encoding/csv"
	"math"
	"os"
	"slices"
	"strconv"
	"testing"

	"parley/dataset"
	"parley/judge/evaluate"
	"parley/tools/measure/protocol"
)

const data = "../../../judge/evaluate/testdata/"

// readADCSF returns adcsf with its views in the order clinic, immune,
// metabolic, vascular.
func readADCSF(t *testing.T) (*dataset.Table, error) {
	dir, err := dataset.Open(t.Context(), data+"adcsf", dataset.Options{})
	if err != nil {
		return nil, err
	}
	return dataset.Collect(t.Context(), dir)
}

func adcsf(t *testing.T) *dataset.Table {
	t.Helper()
	d, err := readADCSF(t)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// storedSplits reads the three folds of repeat 0, with the sites of IID and K
// or of G and G/K.
func storedSplits(t *testing.T, sc evaluate.Scenario) []evaluate.Split {
	t.Helper()
	column := 3
	if sc == evaluate.G || sc == evaluate.GK {
		column = 4
	}
	lacking, err := evaluate.Lacking(sc, 3, 4)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(data + "adcsf-splits.csv.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	table, err := csv.NewReader(z).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	list := make([]evaluate.Split, 3)
	for _, rec := range table[1:] {
		fold, err1 := strconv.Atoi(rec[1])
		site, err2 := strconv.Atoi(rec[column])
		if rec[0] != "0" || err1 != nil || err2 != nil {
			t.Fatalf("splits: unexpected record %v", rec)
		}
		s := &list[fold]
		s.Index, s.Sites, s.Lacking = fold, 3, lacking
		if site == 0 {
			s.Test = append(s.Test, rec[2])
		} else {
			s.Train = append(s.Train, evaluate.Placement{ID: rec[2], Site: site - 1})
		}
	}
	for _, s := range list {
		slices.Sort(s.Test)
	}
	return list
}

func pca(q int) protocol.Fit {
	return func(ctx context.Context, sites []dataset.Source) (evaluate.Model, error) {
		return evaluate.FitPCA(ctx, q, sites...)
	}
}

// The numbers are those of an independent implementation (NumPy 1.24.2 and
// scikit-learn 1.2.1) on the same rows, to the four decimals it gave. It gave
// none for the mean of repeat 0 alone, only 0.1452 ± 0.0040 over ten repeats.
func TestKnownNumbersOfADCSF(t *testing.T) {
	rows := adcsf(t)
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
		results, err := protocol.CrossValidate(context.Background(), rows, storedSplits(t, c.scenario), "group", pca(c.q))
		if err != nil {
			t.Fatal(err)
		}
		var mae, accuracy float64
		for _, r := range results {
			mae += r.Test.MAE / 3
			accuracy += r.Accuracy / 3
		}
		if math.Abs(mae-c.mae) > c.within || math.Abs(accuracy-c.accuracy) > 0.005 {
			t.Errorf("PCA, q = %d, %v: error %.5f, accuracy %.4f, want %.4f, %.3f", c.q, c.scenario, mae, accuracy, c.mae, c.accuracy)
		}
		t.Logf("PCA, q = %d, %v: test error %.4f, accuracy %.3f", c.q, c.scenario, mae, accuracy)
	}
}
