package fitted

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"parley/method"
	"parley/methods/factors/factorstest"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
)

// exported returns the files of an export by name.
func exported(t testing.TB, m *Model, format string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for _, f := range factorstest.Must(m.Export(format))(t) {
		files[f.Name] = f.Data
	}
	return files
}

// TestLoadingsAreRanked: each factor's, by the size of the unit-free loading.
func TestLoadingsAreRanked(t *testing.T) {
	r := rand.New(rand.NewPCG(112, 1))
	m := modelOf(t, factorstest.NewTruth(r, factorstest.Shape(t, ppca.NoisePerView, 4, 3), 2, 0.5), r)
	files := exported(t, m, exportCSV)
	for _, name := range []string{"loadings.csv", "features.csv", "factors.csv", "views.csv", "sites.csv"} {
		if len(files[name]) == 0 {
			t.Errorf("%s is missing", name)
		}
	}
	lines := factorstest.Must(csv.NewReader(bytes.NewReader(files["loadings.csv"])).ReadAll())(t)
	if strings.Join(lines[0], ",") != "factor,rank,view,feature,unit,standardised,scaled,own" || len(lines) != 1+2*7 {
		t.Fatalf("%d lines under %v", len(lines), lines[0])
	}
	last := 0.0
	for i, line := range lines[1:] {
		size := math.Abs(cellNumber(t, line[5]))
		if line[0] != fmt.Sprint(i/7+1) || line[1] != fmt.Sprint(i%7+1) || size > 1 || i%7 > 0 && size > last {
			t.Errorf("line %v after %v", line, last)
		}
		last = size
	}
}

// TestTheSummaryHoldsWhatAReaderAsksFor: what, where, how, and how strong.
func TestTheSummaryHoldsWhatAReaderAsksFor(t *testing.T) {
	r := rand.New(rand.NewPCG(113, 1))
	m := modelOf(t, factorstest.NewTruth(r, factorstest.Shape(t, ppca.NoisePerView, 4, 3), 2, 0.5), r)
	account := factorstest.Must(m.Summary(2))(t)
	s := account.Value.(modelSummary)
	if s.Study != "test" || s.Seed != 5 || s.Subjects != 10 || s.Features != 7 || len(s.Factors) != 2 || s.Factors[0].Strength < s.Factors[1].Strength ||
		len(s.Views) != 2 || *s.Views[0].R2 != 0.5 || s.Views[0].Sites != 2 || len(s.Loadings) != 4 || s.Scaling != options.ScaleStandard {
		t.Errorf("%+v", s)
	}
	var text bytes.Buffer
	for _, f := range account.Facts {
		fmt.Fprintln(&text, f.Name, f.Value)
	}
	for _, want := range []string{"study test", "seed 5", "10 at 2 sites: one (5), two (5)", "7 in 2 views", "standard, noise per view", "parley/mvppca-model/1", "0123456789ab"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is missing in\n%s", want, &text)
		}
	}
	// Units of single sites have no common meaning.
	m.Scaling = options.ScaleSiteRange
	for _, l := range factorstest.Must(m.Summary(1))(t).Value.(modelSummary).Loadings {
		if l.Own != nil {
			t.Errorf("%+v has a unit", l)
		}
	}
}

var (
	_ method.Summariser  = (*Model)(nil)
	_ method.Transformer = (*Model)(nil)
	_ method.Imputer     = (*Model)(nil)
	_ method.Sampler     = (*Model)(nil)
	_ method.Exporter    = (*Model)(nil)
	_ method.Comparer    = (*Model)(nil)
	_ method.Associater  = (*Model)(nil)
)

// A standard error that nobody knows is an empty cell, as in every table.
func TestUnknownErrorsOfLoadingsAreEmptyCells(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	m := modelOf(t, factorstest.NewTruth(r, factorstest.Shape(t, ppca.NoisePerFeature, 5, 4), 2, 0.5), r)
	for k := range m.Views {
		for j := range m.Views[k].Features {
			m.Views[k].Features[j].Loadings[1] = 0
		}
	}
	m.Factors[1] = 0
	data := string(factorstest.Must(m.LoadingsCSV())(t))
	if !strings.Contains(data, "se_2") || strings.Contains(data, "NaN") || strings.Contains(data, "Inf") || !strings.Contains(data, ",\n") {
		t.Errorf("loadings.csv is\n%s", data)
	}
}
