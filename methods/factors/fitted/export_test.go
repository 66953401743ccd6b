package fitted

import (
	"bytes"
	"encoding/binary"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
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

// tensors reads a safetensors file by its published layout.
func tensors(t testing.TB, b []byte) (arrays map[string][]float64, metadata map[string]string) {
	t.Helper()
	n := binary.LittleEndian.Uint64(b)
	var head map[string]json.RawMessage
	if err := json.Unmarshal(b[8:8+n], &head); err != nil {
		t.Fatal(err)
	}
	arrays = map[string][]float64{}
	for name, raw := range head {
		if name == "__metadata__" {
			if err := json.Unmarshal(raw, &metadata); err != nil {
				t.Fatal(err)
			}
			continue
		}
		var e struct {
			Offsets [2]uint64 `json:"data_offsets"`
		}
		if err := json.Unmarshal(raw, &e); err != nil {
			t.Fatal(err)
		}
		for at := 8 + n + e.Offsets[0]; at < 8+n+e.Offsets[1]; at += 8 {
			arrays[name] = append(arrays[name], math.Float64frombits(binary.LittleEndian.Uint64(b[at:])))
		}
	}
	return arrays, metadata
}

// TestAllFormatsHoldTheSameModel reads what is written in each format and
// compares it with the model, loadings in all three units.
func TestAllFormatsHoldTheSameModel(t *testing.T) {
	r := rand.New(rand.NewPCG(111, 1))
	tr := factorstest.NewTruth(r, factorstest.Shape(t, ppca.NoisePerFeature, 4, 3), 2, 0.5)
	m := modelOf(t, tr, r)
	p, scale := m.params(), m.scale()
	arrays, metadata := tensors(t, exported(t, m, exportSafetensors)["model.safetensors"])
	var names modelNames
	if err := json.Unmarshal([]byte(metadata["names"]), &names); err != nil || metadata["format"] != ModelFormat || metadata["plan_sha256"] != m.Plan {
		t.Fatalf("%v: %v", metadata, err)
	}
	if !slices.Equal(names.Features, []string{"f0", "f1", "f2", "f3", "f4", "f5", "f6"}) || !slices.Equal(names.ViewOf, []int{0, 0, 0, 0, 1, 1, 1}) ||
		!slices.Equal(names.Sites, []string{"one", "two"}) || names.Units[0] != "mm" {
		t.Errorf("names %+v", names)
	}
	c := factorstest.Covariance(tr.L, p, p.Features)
	for j := range p.Mu {
		for a := range 2 {
			w, i := p.W[j*2+a], j*2+a
			if arrays["loadings_scaled"][i] != w || math.Abs(arrays["loadings_own"][i]-w/scale.Factor[j]) > 1e-12 ||
				math.Abs(arrays["loadings_standardised"][i]-w/math.Sqrt(c[j*7+j])) > 1e-12 {
				t.Errorf("feature %d, factor %d: scaled %v, own %v, standardised %v", j, a, arrays["loadings_scaled"][i], arrays["loadings_own"][i], arrays["loadings_standardised"][i])
			}
		}
		if got, want := arrays["mean_own"][j], p.Mu[j]/scale.Factor[j]+scale.Shift[j]; math.Abs(got-want) > 1e-12*max(1, math.Abs(want)) {
			t.Errorf("feature %d: mean %v, want %v", j, got, want)
		}
		if got, want := arrays["noise_variance_own"][j], p.Noise[j]/scale.Factor[j]/scale.Factor[j]; math.Abs(got-want) > 1e-12*want {
			t.Errorf("feature %d: noise %v, want %v", j, got, want)
		}
	}
	if !slices.Equal(arrays["site_latent_covariance"], []float64{1, 0, 0, 1, 1, 0, 0, 1}) || !slices.Equal(arrays["loading_sd_between_sites"], []float64{0.1, 0.1}) {
		t.Errorf("sites %v, spread %v", arrays["site_latent_covariance"], arrays["loading_sd_between_sites"])
	}
	npy := exported(t, m, exportNPY)
	if len(npy) != len(arrays)+1 {
		t.Errorf("%d files for %d arrays", len(npy), len(arrays))
	}
	for name, want := range arrays {
		b := npy[name+".npy"]
		values := b[10+int(binary.LittleEndian.Uint16(b[8:])):]
		for i, x := range want {
			if got := math.Float64frombits(binary.LittleEndian.Uint64(values[8*i:])); got != x {
				t.Errorf("%s.npy: entry %d is %v, want %v", name, i, got, x)
			}
		}
	}
	var again modelNames
	if err := json.Unmarshal(npy["names.json"], &again); err != nil || !slices.Equal(again.Features, names.Features) {
		t.Errorf("names.json %+v, %v", again, err)
	}
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
