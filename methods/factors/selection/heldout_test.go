package selection

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"

	"gonum.org/v1/gonum/stat"

	"parley/dataset"
	"parley/method"
	"parley/method/methodtest"
	"parley/methods/factors/factorstest"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
)

// choosing is a study of three sites with two views of 6 and 5 features.
func choosing(t testing.TB, opts string, q, rows int) (options.Setup, map[string]dataset.Source) {
	t.Helper()
	text := `{parley: 1, name: choosing, seed: 7, sites: [a, b, c], privacy: {protection: none},
		views: [{name: v, features: [v1, v2, v3, v4, v5, v6]}, {name: w, features: [w1, w2, w3, w4, w5]}],
		method: {name: mvppca, latent: 1, ` + opts + `}}`
	set := factorstest.Must(options.SetUp(methodtest.Plan(t, "mvppca", options.Defaults(), text)))(t)
	r := rand.New(rand.NewPCG(3, uint64(q)))
	tr := factorstest.NewTruth(r, factorstest.Shape(t, ppca.NoisePerView, 6, 5), q, 0.05)
	data := map[string]dataset.Source{}
	for _, site := range set.Plan.Sites {
		some := make([]dataset.Row, rows)
		for i := range some {
			row := tr.Subject(r)
			some[i] = dataset.Row{ID: fmt.Sprintf("%s%03d", site, i), Views: [][]float64{row[:6], row[6:]}}
			if i%9 == 4 {
				some[i].Views[1] = nil
			}
			if i%7 == 2 {
				row[i%6] = math.NaN()
			}
		}
		data[site] = factorstest.Must(dataset.NewTable(set.Plan.Schema(), some))(t)
	}
	return set, data
}

var upToFive = method.SelectConfig{Values: []int{1, 2, 3, 4, 5}, Folds: 3, Repeats: 1, Criteria: Criteria()}

// Sites whose means differ are no factors: with means of their own, as a study gives them, held-out
// rows find the two factors that there are, and without them two more, as sites less one.
func TestSelectKnowsTheMeansOfSites(t *testing.T) {
	for means, want := range map[string]int{"auto": 2, "separate": 2, "pooled": 4} {
		set, data := choosing(t, "scaling: standard, site_means: "+means, 2, 60)
		r := rand.New(rand.NewPCG(5, 5))
		for _, site := range set.Plan.Sites {
			shift := make([]float64, set.Layout.Features())
			for j := range shift {
				shift[j] = r.NormFloat64()
			}
			table := data[site].(*dataset.Table)
			rows := make([]dataset.Row, table.Len())
			for i := range rows {
				rows[i] = table.Row(i)
				j := 0
				for k, view := range rows[i].Views {
					for c := range view {
						view[c] += shift[j+c]
					}
					j += set.Layout.Dims[k]
				}
			}
			data[site] = factorstest.Must(dataset.NewTable(set.Plan.Schema(), rows))(t)
		}
		s := factorstest.Must(Select(t.Context(), set, data, upToFive))(t)
		for _, x := range s.Choices {
			if x.Value != want {
				t.Errorf("site_means: %s: %s says %d factors, want %d", means, x.Rule, x.Value, want)
			}
		}
	}
}

func TestSelectDoesNotDependOnProcessors(t *testing.T) {
	set, data := choosing(t, "scaling: view", 2, 30)
	c := upToFive
	c.Values, c.Repeats = []int{1, 2, 3}, 2
	var want []byte
	for _, procs := range []int{1, 4} {
		old := runtime.GOMAXPROCS(procs)
		out, err := Select(t.Context(), set, data, c)
		runtime.GOMAXPROCS(old)
		if err != nil {
			t.Fatal(err)
		}
		got := factorstest.Must(json.Marshal([]any{out, out.Result.Metrics, out.Result.Sections}))(t)
		if want != nil && string(got) != string(want) {
			t.Errorf("%d processors give\n%s\nand 1\n%s", procs, got, want)
		}
		want = got
	}
}

// memory is a Kept of [method.SelectConfig] that takes no more after some outcomes, as a process that is
// stopped.
type memory struct {
	mu    sync.Mutex
	kept  map[string][]byte
	room  int
	reads int
}

var errStopped = errors.New("stopped")

func (m *memory) Get(key string, v any) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	data, ok := m.kept[key]
	if !ok {
		return false, nil
	}
	m.reads++
	return true, json.Unmarshal(data, v)
}

func (m *memory) Put(key string, v any) error {
	data, err := json.Marshal(v)
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.kept) == m.room {
		return errStopped
	}
	if _, twice := m.kept[key]; twice {
		return fmt.Errorf("%s is kept twice", key)
	}
	m.kept[key] = data
	return err
}

// A selection that is stopped again and again ends as one that is not.
func TestSelectGoesOnWhereItWas(t *testing.T) {
	set, data := choosing(t, "scaling: view", 2, 30)
	c := upToFive
	c.Values, c.Repeats = []int{1, 2}, 2
	text := func(out *method.Selection) string {
		return string(factorstest.Must(json.Marshal([]any{out, out.Result.Metrics, out.Result.Sections}))(t))
	}
	want := text(factorstest.Must(Select(t.Context(), set, data, c))(t))
	m := &memory{kept: map[string][]byte{}}
	c.Kept = m
	const fits = 2 * (1 + 2*3)
	for m.room = 1; m.room < fits; m.room += 5 {
		if _, err := Select(t.Context(), set, data, c); !errors.Is(err, errStopped) || len(m.kept) != m.room {
			t.Fatalf("with room for %d: %v, %d kept", m.room, err, len(m.kept))
		}
	}
	m.room, m.reads = fits, 0
	before := len(m.kept)
	got := text(factorstest.Must(Select(t.Context(), set, data, c))(t))
	if got != want || m.reads != before || len(m.kept) != fits {
		t.Errorf("%d of %d were read, %d kept; it says\n%s\nwithout a stop\n%s", m.reads, before, len(m.kept), got, want)
	}
}

// Held-out densities and errors are those of the fitted model, in the units of
// all rows, and the scale of a fold comes from its fitted rows alone.
func TestHeldOutScores(t *testing.T) {
	set, data := choosing(t, "scaling: standard", 2, 30)
	s := &selector{set: set, config: upToFive, out: &method.Selection{}}
	if err := errors.Join(s.collect(t.Context(), data), s.divide(t.Context())); err != nil {
		t.Fatal(err)
	}
	for _, part := range s.parts {
		if err := s.train(t.Context(), part); err != nil {
			t.Fatal(err)
		}
	}
	seen := make([]int, s.subjects)
	for _, part := range s.parts[1:] {
		model, err := s.shot(t.Context(), part, 2)
		if err != nil {
			t.Fatal(err)
		}
		h := factorstest.Must(s.score(part, model))(t)
		values := make([][]float64, s.set.Layout.Features()) // of the fitted rows
		for at, here := range s.sites {
			held := map[int]bool{}
			for _, n := range part.held[at] {
				held[n] = true
				seen[here.at+n]++
			}
			for n := range here.data.Len() {
				row := here.data.Row(n)
				for i, x := range joined(row) {
					if !held[n] && !math.IsNaN(x) {
						values[i] = append(values[i], x)
					}
				}
			}
			for i, n := range part.held[at] {
				var features []int
				var raw, mean []float64
				unit := 0.0
				for j, x := range joined(here.data.Row(n)) {
					if !math.IsNaN(x) {
						features, raw = append(features, j), append(raw, (x-part.scale.Shift[j])*part.scale.Factor[j])
						mean = append(mean, model.Mu[j])
						unit += math.Log(part.scale.Factor[j] / s.parts[0].scale.Factor[j])
					}
				}
				want := factorstest.LogDensity(raw, mean, factorstest.Covariance(s.set.Layout, model.Params, features)) + unit
				if math.Abs(h.LogLik[at][i]-want) > 1e-9*math.Abs(want) {
					t.Fatalf("%v: density %v, want %v", part, h.LogLik[at][i], want)
				}
			}
		}
		for j, x := range values {
			mean, sd := stat.PopMeanStdDev(x, nil)
			if math.Abs(part.scale.Shift[j]-mean) > 1e-12 || math.Abs(part.scale.Factor[j]*sd-1) > 1e-12 {
				t.Errorf("%v, feature %d: scale %v, %v; its fitted rows have mean %v and deviation %v", part, j, part.scale.Shift[j], part.scale.Factor[j], mean, sd)
			}
		}
	}
	for n, times := range seen {
		if times != 1 {
			t.Errorf("subject %d was held out %d times", n, times)
		}
	}
}

// checkDrawn demands pictures that can be drawn and numbers that can be stored.
func checkDrawn(t *testing.T, r *method.Result) {
	t.Helper()
	for name, x := range r.Metrics {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			t.Errorf("metric %s is %v", name, x)
		}
	}
	figures := 0
	for _, sec := range r.Sections {
		for _, item := range sec.Items {
			if item.Figure == nil {
				continue
			}
			figures++
			if err := errors.Join(item.Figure.SVG(io.Discard), item.Figure.CSV(io.Discard)); err != nil {
				t.Error(err)
			}
			if item.Figure.Caption == "" || item.Figure.Alt == "" {
				t.Errorf("figure %s lacks words", item.Figure.ID)
			}
		}
	}
	if figures != 4 {
		t.Errorf("%d figures, want 4", figures)
	}
}

// joined is a row's values one after the other, NaN for a view it lacks.
func joined(row dataset.Row) []float64 {
	out := make([]float64, 11)
	for i := range out {
		out[i] = math.NaN()
	}
	copy(out, row.Views[0])
	copy(out[6:], row.Views[1])
	return out
}

func TestSelectRefuses(t *testing.T) {
	for _, c := range []struct {
		name, options string
		rows          int
		change        func(*method.SelectConfig)
		want          string
	}{
		{"features", "scaling: view", 20, func(c *method.SelectConfig) { c.Values = []int{3, 11} }, "latent: 11 factors for 11 features\n  hint: fewer factors than features: at most 10"},
		{"few subjects", "scaling: view", 2, func(*method.SelectConfig) {}, "site a: 2 subjects with any value cannot be split into 3 folds\n  hint: fewer --folds"},
		{"carry", "scaling: view", 4, func(c *method.SelectConfig) { c.Folds, c.Values = 2, []int{1, 6} }, "latent: 6 factors are more than the sites can carry: 4, the features"},
		{"criterion", "scaling: view", 20, func(c *method.SelectConfig) { c.Criteria = []string{"aic"} }, `criterion "aic" is not known`},
		{"order", "scaling: view", 20, func(c *method.SelectConfig) { c.Values = []int{2, 1} }, "not ascending"},
		{"folds", "scaling: view", 20, func(c *method.SelectConfig) { c.Folds = 1 }, "at least 2 folds"},
	} {
		set, data := choosing(t, c.options, 1, c.rows)
		config := upToFive
		c.change(&config)
		_, err := Select(t.Context(), set, data, config)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	set, data := choosing(t, "scaling: view", 1, 20)
	delete(data, "b")
	if _, err := Select(t.Context(), set, data, upToFive); err == nil || err.Error() != "site b has no data" {
		t.Errorf("a site without data: %v", err)
	}
}

func TestSelectNamesWhatDoesNotVaryInAFold(t *testing.T) {
	// v1 differs from 1 for one subject of all: without it, it has no scale.
	set, data := choosing(t, "scaling: standard", 1, 20)
	for site, src := range data {
		var rows []dataset.Row
		for i := range 20 {
			row := src.(*dataset.Table).Row(i)
			row.Views[0][0] = 1
			if site == "c" && i == 3 {
				row.Views[0][0] = 2
			}
			rows = append(rows, row)
		}
		data[site] = factorstest.Must(dataset.NewTable(set.Plan.Schema(), rows))(t)
	}
	_, err := Select(t.Context(), set, data, upToFive)
	if err == nil || !strings.Contains(err.Error(), "among the rows that are fitted, a feature has no value or does not vary") || !strings.Contains(err.Error(), "view v, feature v1: it is 1") {
		t.Errorf("a feature that varies in one subject: %v", err)
	}
}

func TestSelectIsCancelled(t *testing.T) {
	set, data := choosing(t, "scaling: view", 1, 30)
	ctx, cancel := context.WithCancel(t.Context())
	c := upToFive
	last := 0.0
	c.Progress = func(done, of float64) {
		if done <= last || done > of {
			t.Errorf("progress from %v to %v of %v", last, done, of)
		}
		if last = done; done > of/2 {
			cancel()
		}
	}
	if _, err := Select(ctx, set, data, c); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that it was cancelled", err)
	}
}

func TestScalingThatDefeatsSelection(t *testing.T) {
	for _, c := range []struct {
		scaling, noise string
		defeats        bool
	}{
		{options.ScaleStandard, "view", true}, {options.ScaleMinMax, "view", true}, {options.ScaleRange, "view", true},
		{options.ScaleView, "view", false}, {options.ScaleNone, "view", false},
		{options.ScaleStandard, "feature", false}, {options.ScaleMinMax, "feature", false}, {options.ScaleRange, "feature", false},
	} {
		why, mend := defeatsSelection(&options.Options{Scaling: c.scaling, Noise: c.noise})
		if (why != "") != c.defeats || (mend != "") != c.defeats {
			t.Errorf("%s, noise per %s: %q, %q", c.scaling, c.noise, why, mend)
		}
	}
}

func TestPairedDifference(t *testing.T) {
	// Differences 1, 2, 3: mean 2, standard deviation 1.
	mean, se := pairedDifference([]float64{5, 5, 5}, []float64{4, 3, 2})
	if mean != 2 || math.Abs(se-1/math.Sqrt(3)) > 1e-15 {
		t.Errorf("paired difference %v ± %v", mean, se)
	}
}

// Nobody has both v and x, each of which has a factor of its own and one that w shows too: rows make
// one factor of the two, and no number is recommended.
func TestSelectRecommendsNothingWhereNoRowTells(t *testing.T) {
	set := factorstest.Must(options.SetUp(methodtest.Plan(t, "mvppca", options.Defaults(), `{parley: 1, name: chain, seed: 7, sites: [a, b, c, d], privacy: {protection: none},
		views: [{name: v, features: [v1, v2, v3, v4, v5, v6]}, {name: w, features: [w1, w2, w3, w4, w5, w6]}, {name: x, features: [x1, x2, x3, x4, x5, x6]}],
		method: {name: mvppca, latent: 1}}`)))(t)
	r := rand.New(rand.NewPCG(3, 8))
	data := map[string]dataset.Source{}
	for i, site := range set.Plan.Sites {
		rows := make([]dataset.Row, 100)
		for n := range rows {
			all, own := r.NormFloat64(), [3]float64{r.NormFloat64(), 0, r.NormFloat64()}
			views := make([][]float64, 3)
			for k := range views {
				for j := range 6 {
					views[k] = append(views[k], all+own[k]*(1+float64(j%2))+0.7*r.NormFloat64())
				}
			}
			views[2*(i%2)] = nil
			rows[n] = dataset.Row{ID: fmt.Sprintf("%s%03d", site, n), Views: views}
		}
		data[site] = factorstest.Must(dataset.NewTable(set.Plan.Schema(), rows))(t)
	}
	out := factorstest.Must(Select(t.Context(), set, data, method.SelectConfig{Values: []int{1, 2, 3, 4}, Folds: 3, Repeats: 1, Criteria: []string{CriterionHeldOut}}))(t)
	if out.Recommended != 0 || len(out.Warnings) != 1 || !strings.Contains(out.Warnings[0].What, "nothing observed supports: v and x (") {
		t.Errorf("recommended %d, warnings %v", out.Recommended, out.Warnings)
	}
}
