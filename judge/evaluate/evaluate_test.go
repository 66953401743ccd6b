package evaluate_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/dataset"
	"parley/internal/testkit"
	"parley/judge/evaluate"
)

var ctx = context.Background()

// small is three subjects in views of two and one features, with every kind of
// gap; edit may change the schema.
func small(t *testing.T, edit func(*dataset.Schema)) *dataset.Table {
	t.Helper()
	nan := math.NaN()
	schema := dataset.Schema{
		Views: []dataset.View{
			{Name: "v", Columns: []dataset.Column{{Name: "a"}, {Name: "b"}}},
			{Name: "w", Columns: []dataset.Column{{Name: "c"}}},
		},
		Subject: []dataset.Column{{Name: "group", Kind: dataset.Label}},
	}
	if edit != nil {
		edit(&schema)
	}
	table, err := dataset.NewTable(schema, []dataset.Row{
		{ID: "1", Views: [][]float64{{1, 10}, {5}}, Subject: []string{"x"}},
		{ID: "2", Views: [][]float64{{3, nan}, nil}, Subject: []string{"y"}},
		{ID: "3", Views: [][]float64{{5, 30}, {5}}, Subject: []string{""}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// constant expects the same of every row.
type constant struct {
	mean   [][]float64
	logLik float64
}

func (c constant) Infer(row *dataset.Row, dst *evaluate.Posterior) error {
	dst.Resize(1, []int{2, 1})
	dst.Latent[0] = float64(len(row.ID))
	for k := range c.mean {
		copy(dst.Mean[k], c.mean[k])
	}
	dst.LogLik = c.logLik
	return nil
}

func TestEvaluateCountsOnlyWhatWasObserved(t *testing.T) {
	s := testkit.Get(evaluate.EvaluateIn(ctx, nil, constant{[][]float64{{0, 0}, {0}}, -2}, small(t, nil)))(t)
	// View v: (1 + 10 + 3 + 5 + 30)/5; view w: (5 + 5)/2.
	want := evaluate.Score{Rows: 3, MAE: 59.0 / 7, ViewMAE: []float64{9.8, 5}, MeanViewMAE: 7.4, LogLik: -2}
	if fmt.Sprint(s) != fmt.Sprint(want) {
		t.Fatalf("got %v, want %v", s, want)
	}
}

func TestAViewNobodyHasCountsForNothing(t *testing.T) {
	src := evaluate.Select(small(t, nil), func(string) ([]int, bool) { return []int{1}, true })
	s, err := evaluate.EvaluateIn(ctx, nil, constant{[][]float64{{0, 0}, {0}}, -2}, src)
	if err != nil || s.MeanViewMAE != 9.8 || !math.IsNaN(s.ViewMAE[1]) {
		t.Fatalf("got %v (%v)", s, err)
	}
}

func TestEvaluateRefusesNonsense(t *testing.T) {
	nobody := evaluate.Select(small(t, nil), func(string) ([]int, bool) { return nil, false })
	if _, err := evaluate.EvaluateIn(ctx, nil, constant{}, nobody); err == nil ||
		!strings.Contains(err.Error(), "nothing was observed in 0 rows") {
		t.Errorf("no rows: %v", err)
	}
	bad := constant{mean: [][]float64{{0, 0}, {math.NaN()}}}
	if _, err := evaluate.EvaluateIn(ctx, nil, bad, small(t, nil)); err == nil ||
		!strings.Contains(err.Error(), "subject 1: the model expects NaN for c, where 5 was observed") {
		t.Errorf("a model that says NaN: %v", err)
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := evaluate.EvaluateIn(cancelled, nil, constant{}, small(t, nil)); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := evaluate.Project(ctx, constant{}, small(t, nil), "sex"); err == nil ||
		!strings.Contains(err.Error(), `no column "sex"`) {
		t.Errorf("no such label: %v", err)
	}
}

func TestProjectLeavesOutTheUnlabelled(t *testing.T) {
	s, err := evaluate.Project(ctx, constant{}, small(t, nil), "group")
	if err != nil || !slices.Equal(s.Labels, []string{"x", "y"}) || len(s.Latent) != 2 {
		t.Fatalf("got %v (%v)", s, err)
	}
}

func TestMinMaxKeepsGapsAndConstants(t *testing.T) {
	data := small(t, nil)
	scaling := testkit.Get(evaluate.FitMinMax(ctx, data))(t)
	var got []string
	for row, err := range scaling.Apply(data).Rows(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprint(row.ID, row.Views, row.Views[1] == nil, row.Subject))
	}
	want := []string{"1[[0 0] [0]] false [x]", "2[[0.5 NaN] []] true [y]", "3[[1 1] [0]] false []"}
	if !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	if data.Row(0).Views[0][1] != 10 {
		t.Fatal("scaling changed the rows of its source")
	}
}

func TestMinMaxLeavesCategoriesAlone(t *testing.T) {
	data := small(t, func(s *dataset.Schema) {
		s.Views[0].Columns[0].Kind = dataset.Category
		s.Views[0].Columns[0].Levels = []string{"0", "1", "2", "3", "4", "5"}
	})
	scaling, err := evaluate.FitMinMax(ctx, data)
	if err != nil || scaling.Shift[0][0] != 0 || scaling.Factor[0][0] != 1 {
		t.Fatalf("a category is scaled by %v (%v)", scaling, err)
	}
}

func TestPooledFitsRefuseUnlikeSources(t *testing.T) {
	other := small(t, func(s *dataset.Schema) { s.Views[1].Columns[0].Name = "d" })
	if _, err := evaluate.FitMinMax(ctx, small(t, nil), other); err == nil ||
		!strings.Contains(err.Error(), "source 2 has other views or columns") {
		t.Errorf("min-max: %v", err)
	}
	if _, err := evaluate.FitMean(ctx); err == nil || !strings.Contains(err.Error(), "no sources") {
		t.Errorf("mean of nothing: %v", err)
	}
}

func TestFitPCARefusals(t *testing.T) {
	unseen := evaluate.Select(small(t, nil), func(string) ([]int, bool) { return []int{1}, true })
	for want, err := range map[string]error{
		"4 components of 3 features":             second(evaluate.FitPCA(ctx, 4, small(t, nil))),
		"-1 components of 3 features":            second(evaluate.FitPCA(ctx, -1, small(t, nil))),
		"nobody observed feature c of view w":    second(evaluate.FitPCA(ctx, 1, unseen)),
		"the row has 1 views, the model 2":       infer(t, [][]float64{{1, 2}}),
		"view 2 of the row has 2 features, the ": infer(t, [][]float64{{1, 2}, {3, 4}}),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}

func second(_ *evaluate.PCA, err error) error { return err }

func infer(t *testing.T, views [][]float64) error {
	m := testkit.Get(evaluate.FitMean(ctx, small(t, nil)))(t)
	return m.Infer(&dataset.Row{Views: views}, &evaluate.Posterior{})
}

// adcsf returns adcsf with its views in the order clinic, immune, metabolic, vascular.
func adcsf(t *testing.T) *dataset.Table {
	t.Helper()
	dir := testkit.Get(dataset.Open(ctx, "testdata/adcsf", dataset.Options{}))(t)
	return testkit.Get(dataset.Collect(ctx, dir))(t)
}

func TestAllComponentsReconstructEverything(t *testing.T) {
	data := adcsf(t)
	m := testkit.Get(evaluate.FitPCA(ctx, 131, data))(t)
	s, err := evaluate.EvaluateIn(ctx, nil, m, data)
	if err != nil || s.MAE > 1e-10 {
		t.Fatalf("error %g (%v)", s.MAE, err)
	}
}

func TestPCADoesNotDependOnWhoHoldsTheRows(t *testing.T) {
	data := adcsf(t)
	s := evaluate.Split{Sites: 3}
	for i := range data.Len() {
		if id, site := data.Row(i).ID, i%4; site < s.Sites {
			s.Train = append(s.Train, evaluate.Placement{ID: id, Site: site})
		} else {
			s.Test = append(s.Test, id)
		}
	}
	sites, train, test := s.Sources(data)
	pooled := testkit.Get(evaluate.FitPCA(ctx, 6, train))(t)
	apart := testkit.Get(evaluate.FitPCA(ctx, 6, sites...))(t)
	a, errA := evaluate.Project(ctx, pooled, test, "group")
	b, errB := evaluate.Project(ctx, apart, test, "group")
	if errA != nil || errB != nil {
		t.Fatal(errA, errB)
	}
	for i := range a.Latent {
		for j := range a.Latent[i] {
			if math.Abs(a.Latent[i][j]-b.Latent[i][j]) > 1e-8*(1+math.Abs(a.Latent[i][j])) {
				t.Fatalf("subject %d, component %d: %v pooled, %v from sites", i, j, a.Latent[i][j], b.Latent[i][j])
			}
		}
	}
}

func TestFoldsHoldEverySubjectOutOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		subjects := drawSubjects(t)
		k, repeat, seed := rapid.IntRange(2, 6).Draw(t, "k"), rapid.IntRange(0, 2).Draw(t, "repeat"),
			rapid.Uint64().Draw(t, "seed")
		folds := testkit.Get(evaluate.FoldsOf(subjects, k, repeat, seed))(t)
		again, err := evaluate.FoldsOf(shuffled(subjects), k, repeat, seed)
		if err != nil || fmt.Sprint(folds) != fmt.Sprint(again) {
			t.Fatalf("another order of the subjects changes the folds (%v)", err)
		}
		var placed []evaluate.Placement
		for i, f := range folds {
			if f.Repeat != repeat || f.Index != i || !slices.IsSorted(f.Test) {
				t.Fatalf("fold %d of repeat %d: %v", i, repeat, f)
			}
			for _, id := range f.Test {
				placed = append(placed, evaluate.Placement{ID: id, Site: i})
			}
		}
		if len(placed) != len(subjects) {
			t.Fatalf("%d of %d subjects held out", len(placed), len(subjects))
		}
		n := count(subjects, placed, k)
		for _, s := range subjects {
			for i := range n {
				if d := n[i][s.Group] - n[0][s.Group]; d < -1 || d > 1 {
					t.Fatalf("group %s: fold %d has %d, the first %d", s.Group, i, n[i][s.Group], n[0][s.Group])
				}
			}
		}
		if other := testkit.Get(evaluate.FoldsOf(subjects, k, repeat+1, seed))(t); fmt.Sprint(folds[0].Test) ==
			fmt.Sprint(other[0].Test) {
			t.Fatal("repeats are alike")
		}
	})
}

func TestFoldsRefusals(t *testing.T) {
	subjects := []evaluate.Subject{{ID: "a", Group: "x"}, {ID: "b", Group: "x"}}
	for _, k := range []int{1, 3} {
		if _, err := evaluate.FoldsOf(subjects, k, 0, 1); err == nil {
			t.Errorf("%d folds of two subjects are accepted", k)
		}
	}
	if _, err := evaluate.FoldsOf([]evaluate.Subject{{ID: "a", Group: "x"}, {ID: "a", Group: "y"}}, 2, 0,
		1); err == nil || !strings.Contains(err.Error(), "subject a appears twice") {
		t.Errorf("a repeated id: %v", err)
	}
}

func TestCoverageOfNormalIntervals(t *testing.T) {
	c := evaluate.NewCoverage(0.95) // ±1.959964 standard deviations
	for _, v := range []float64{3.9, 3.93, -3.9, math.NaN(), 0} {
		c.Add(v, 0, 2)
	}
	if c.Inside != 3 || c.Total != 4 || c.Rate() != 0.75 {
		t.Fatalf("%d of %d inside", c.Inside, c.Total)
	}
}

// A site's mean is its own, and that of all for what it lacks.
func TestMeanOfASite(t *testing.T) {
	data := small(t, nil)
	all := testkit.Get(evaluate.FitMean(ctx, data))(t)
	site := testkit.Get(dataset.NewTable(data.Schema(), []dataset.Row{data.Row(1)}))(t) // 3, and nothing else
	at := testkit.Get(all.At(ctx, site))(t)
	var post evaluate.Posterior
	testkit.Do(t, at.Infer(&dataset.Row{Views: [][]float64{{7, 7}, {7}}}, &post))
	if got := slices.Concat(post.Mean...); !slices.Equal(got, []float64{3, 20, 5}) {
		t.Errorf("a mean of %v", got)
	}
}

// sure expects the constant with one standard deviation for everything.
type sure struct {
	constant
	sd float64
}

func (s sure) Predict(row *dataset.Row, dst *evaluate.Posterior, sd [][]float64) error {
	for k := range sd {
		for j := range sd[k] {
			if row.Views[k] == nil {
				sd[k][j] = s.sd
			}
		}
	}
	return s.Infer(row, dst)
}

func TestImputeHidesEachViewFromThoseWhoHaveAnother(t *testing.T) {
	// Subject 2 has one view only. The others: v is (1, 10) and (5, 30), w is 5 and 5.
	m := sure{constant{[][]float64{{2, 20}, {5}}, 0}, 4}
	got := testkit.Get(evaluate.Impute(ctx, nil, m, small(t, nil), 0.9))(t)
	// Inside 1.645 × 4 = 6.58: both of a, neither of b, both of c.
	if got.MAE != 24.0/6 || !slices.Equal(got.ViewMAE, []float64{6, 0}) || got.Coverage != 4.0/6 ||
		!slices.Equal(got.ViewCoverage, []float64{0.5, 1}) {
		t.Errorf("got %+v", got)
	}
	unit := testkit.Get(evaluate.FitMinMax(ctx, small(t, nil)))(t)
	// In parts of the ranges 4 and 20: ¼ + ¾ + ½ + ½ over four, and a constant.
	if got, err := evaluate.Impute(ctx, unit, m, small(t, nil), 0.9); err != nil || got.ViewMAE[0] != 0.5 ||
		got.Coverage != 4.0/6 {
		t.Errorf("scaled: got %+v (%v)", got, err)
	}
	if got, err := evaluate.Impute(ctx, nil, m.constant, small(t, nil), 0.9); err != nil || !math.IsNaN(got.Coverage) ||
		got.MAE != 4 {
		t.Errorf("not predictive: got %+v (%v)", got, err)
	}
}

func TestImputeSeesNothingOfWhatItHides(t *testing.T) {
	pca := testkit.Get(evaluate.FitMean(ctx, small(t, nil)))(t)
	got, err := evaluate.Impute(ctx, nil, pca, small(t, nil), 0.9)
	// Means 3, 20 and 5.
	if err != nil || got.ViewMAE[0] != (2+10+2+10)/4.0 || got.ViewMAE[1] != 0 {
		t.Errorf("got %+v (%v)", got, err)
	}
	bad := constant{mean: [][]float64{{math.NaN(), 0}, {0}}}
	if _, err := evaluate.Impute(ctx, nil, bad, small(t, nil), 0.9); err == nil ||
		!strings.Contains(err.Error(), "subject 1: the model expects NaN for a, where 1 was hidden") {
		t.Errorf("a model that says NaN: %v", err)
	}
	if _, err := evaluate.Impute(ctx, nil, pca, small(t, nil), 1); err == nil {
		t.Error("intervals of level 1 were accepted")
	}
}

func TestEvaluateInUnitsIsEvaluateOfScaledRows(t *testing.T) {
	data := small(t, nil)
	unit := &evaluate.Scaling{Shift: [][]float64{{1, 10}, {2}}, Factor: [][]float64{{0.25, 0.05}, {3}}}
	scaled := constant{[][]float64{{0.5, 0.1}, {1}}, -2}
	raw := constant{[][]float64{{3, 12}, {2 + 1.0/3}}, -2}
	want := testkit.Get(evaluate.EvaluateIn(ctx, nil, scaled, unit.Apply(data)))(t)
	got := testkit.Get(evaluate.EvaluateIn(ctx, unit, raw, data))(t)
	// A density of the values as they are becomes one of the scaled values.
	jacobian := -(5*math.Log(1) + 3*math.Log(0.25) + 2*math.Log(0.05) + 2*math.Log(3)) / 3
	if math.Abs(got.MAE-want.MAE) > 1e-14 || math.Abs(got.LogLik-(want.LogLik+jacobian)) > 1e-14 {
		t.Errorf("got %+v, want %+v with the density moved by %v", got, want, jacobian)
	}
}
