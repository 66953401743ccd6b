package evaluate_test

import (
	"compress/gzip"
	"encoding/csv"
	"os"
	"slices"
	"strconv"
	"testing"

	"parley/dataset"
	"parley/judge/evaluate"
)

// readADCSF returns adcsf with its views in the order clinic, immune,
// metabolic, vascular.
func readADCSF() (*dataset.Table, error) {
	dir, err := dataset.Open(ctx, "testdata/adcsf", dataset.Options{})
	if err != nil {
		return nil, err
	}
	return dataset.Collect(ctx, dir)
}

func adcsf(t *testing.T) *dataset.Table {
	t.Helper()
	d, err := readADCSF()
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
	f, err := os.Open("testdata/adcsf-splits.csv.gz")
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
	splits := make([]evaluate.Split, 3)
	for _, rec := range table[1:] {
		fold, err1 := strconv.Atoi(rec[1])
		site, err2 := strconv.Atoi(rec[column])
		if rec[0] != "0" || err1 != nil || err2 != nil {
			t.Fatalf("splits: unexpected record %v", rec)
		}
		s := &splits[fold]
		s.Index, s.Sites, s.Lacking = fold, 3, lacking
		if site == 0 {
			s.Test = append(s.Test, rec[2])
		} else {
			s.Train = append(s.Train, evaluate.Placement{ID: rec[2], Site: site - 1})
		}
	}
	for _, s := range splits {
		slices.Sort(s.Test)
	}
	return splits
}
