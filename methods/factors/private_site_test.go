package factors

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"parley/dataset"
	"parley/internal/testkit"
	"parley/internal/wire"
	"parley/method"
	"parley/method/methodtest"
	"parley/methods/factors/factorstest"
	"parley/methods/factors/federated"
	"parley/methods/factors/halves"
	"parley/methods/factors/options"
	"parley/methods/factors/statistics"
	"parley/privacy"
)

const (
	perReleaseBudget = "{protection: differential, unit: subject, adjacency: replace-one, per_release: {epsilon: 10, delta: 0.01}}"
	totalBudget      = "{protection: differential, unit: subject, adjacency: add-remove, total: {epsilon: 3, delta: 1e-5}}"
)

// private is a study of three sites under differential protection.
func private(options, privacy string) shape {
	return shape{dims: []int{3, 2}, sites: 3, rows: 20, gaps: 0.1, lacks: map[[2]int]bool{{1, 1}: true}, options: options, privacy: privacy, seed: 5}
}

// privateStudies are studies under differential privacy. Subjects lack views and single values.
func privateStudies(t testing.TB) map[string]*small {
	t.Helper()
	out := map[string]*small{}
	for name, s := range map[string]shape{
		"statistics":                  private(statisticsOptions, totalBudget),
		"statistics and diagnostics":  private(patternsOptions, checkedBudget),
		"statistics, replace one":     private(statisticsOptions, strings.Replace(checkedBudget, "add-remove", "replace-one", 1)),
		"statistics, a variance each": private(patternsOptions+"  noise: feature\n", checkedBudget),
	} {
		s.missing = 0.15
		out[name] = s.study(t)
	}
	// Of one view there is one pattern, so that noised sums far out show directions
	// by which missing values are predicted.
	out["statistics, one view"] = shape{dims: []int{8}, sites: 2, rows: 25, missing: 0.2, options: statisticsOptions, privacy: totalBudget, seed: 6}.study(t)
	out["statistics, three views"] = shape{dims: []int{5, 4, 6}, sites: 2, rows: 30, missing: 0.1, gaps: 0.2, options: statisticsOptions, privacy: checkedBudget, seed: 7}.study(t)
	return out
}

func sources(s *small) map[string]dataset.Source {
	out := map[string]dataset.Source{}
	for name, table := range s.data {
		out[name] = table
	}
	return out
}

// neighbours are the rows of a site and others that are near them, and rows that
// have nothing to do with them.
func neighbours(rows methodtest.Rows) map[string]dataset.Source {
	out := methodtest.Neighbours(rows)
	r := rand.New(rand.NewPCG(9, 9))
	other := methodtest.Rows{Of: rows.Of}
	for i := range 3 * len(rows.List) {
		row := dataset.Row{ID: fmt.Sprintf("other-%d", i)}
		for _, v := range rows.Of.Views {
			var x []float64
			for range v.Columns {
				x = append(x, 5*r.NormFloat64()-8)
			}
			row.Views = append(row.Views, x)
		}
		other.List = append(other.List, row)
	}
	out["other rows"] = other
	return out
}

// forcedScales are those of noised sums in steps: nothing, about that of a little
// noise (2¹⁰ at least), 30 standard deviations of it and of much, and what no
// noise could be.
var forcedScales = []float64{0, 1 << 10, 30 << 10, 30 << 20, 1 << 33, 1 << 40, 1 << 60}

// A sum over subjects is made of what each of them gives alone: nothing is
// carried from one row to the next.
func TestSumsAreAddedUpOfRows(t *testing.T) {
	for name, s := range privateStudies(t) {
		tasks := methodtest.Tasks(t, Method{}, s.plan, sources(s))
		rows := methodtest.Collect(t, s.data["site-0"])
		for _, scale := range forcedScales {
			t.Run(fmt.Sprintf("%s/%g", name, scale), func(t *testing.T) {
				methodtest.Additive(t, Method{}, s.plan, "site-0", tasks["site-0"], scale, rows)
			})
		}
	}
}

// taskOf returns what the bodies of tasks of a kind are decoded into.
func taskOf(kind string) any {
	return map[string]any{
		options.TaskAdjust: new(halves.AdjustTask), options.TaskScale: new(options.ScaleTask), options.TaskFit: new(federated.FitTask), options.TaskAssess: new(options.AssessTask),
		options.TaskOverview: new(statistics.OverviewTask), options.TaskCoarse: new(statistics.MomentsTask), options.TaskFine: new(statistics.MomentsTask), options.TaskCheck: new(statistics.CheckTask),
	}[kind]
}

// hostileTask changes an honest task in some places.
func hostileTask(t testing.TB, r *rand.Rand, task method.Task) (method.Task, bool) {
	t.Helper()
	body := taskOf(task.Kind)
	if err := wire.Unmarshal(task.Body, body); err != nil {
		t.Fatal(err)
	}
	v := reflect.ValueOf(body).Elem()
	if v.NumField() == 0 { // it says nothing
		return task, false
	}
	for range []int{1, 1, 1, 2, 4}[r.IntN(5)] {
		hostile(r, v)
	}
	var err error
	task.Body, err = wire.Marshal(body)
	return task, err == nil
}

// A hostile coordinator learns nothing by numbers that no honest one sends:
// whatever stands in a task, a site's answer, or that it gives none, follows from
// the task and the noised sums.
func TestHostileTasksTellNothingOfTheRows(t *testing.T) {
	tries := 8
	if testkit.Sized(true, false) {
		tries = 3
	}
	r := rand.New(rand.NewPCG(23, 1))
	for _, s := range privateStudies(t) {
		tasks := methodtest.Tasks(t, Method{}, s.plan, sources(s))["site-0"]
		all := neighbours(methodtest.Collect(t, s.data["site-0"]))
		data := map[string]dataset.Source{}
		for _, name := range []string{"all rows", "no rows", "a huge row", "other rows"} {
			data[name] = all[name]
		}
		for range tries {
			task, ok := hostileTask(t, r, tasks[len(tasks)-1])
			if !ok {
				continue
			}
			methodtest.Transcript(t, Method{}, s.plan, "site-0", []method.Task{task}, 1<<20, data)
		}
	}
}

// Every number of every task may be anything: a site answers, or refuses with an
// error. (Work without end would run into the time that the tests have.)
func TestHostileTasksAreAnsweredOrRefused(t *testing.T) {
	tries := 30
	if testkit.Sized(true, false) {
		tries = 10
	}
	r := rand.New(rand.NewPCG(29, 1))
	refused, all := 0, 0
	for _, x := range everyStudy(t) {
		p := newPlay(t, x.study)
		p.round = x.round
		for range tries {
			task, ok := hostileTask(t, r, x.tasks[0])
			if !ok {
				continue
			}
			all++
			if _, err := p.answer(task); err != nil {
				refused++
			}
		}
	}
	t.Logf("%d of %d tasks were refused", refused, all)
	if refused < all/4 {
		t.Errorf("only %d of %d tasks were refused", refused, all)
	}
}

// What no honest coordinator sends is refused before a row is read.
func TestTasksWithoutAnExcuse(t *testing.T) {
	list := everyKind(t)
	lie := func(kind string, change func(task any)) {
		t.Helper()
		for _, x := range list {
			if x.tasks[0].Kind != kind {
				continue
			}
			task := x.tasks[0]
			body := taskOf(kind)
			if err := wire.Unmarshal(task.Body, body); err != nil {
				t.Fatal(err)
			}
			change(body)
			var err error
			if task.Body, err = wire.Marshal(body); err != nil {
				t.Fatal(err)
			}
			half := factorstest.Must(Method{}.Site(x.study.plan, task.Site))(t)
			empty := methodtest.Rows{Of: x.study.data[task.Site].Schema()}
			list := factorstest.Must(Method{}.Requests(x.study.plan, task.Site))(t)
			if list[0].Request.Protection == privacy.Unprotected {
				empty = methodtest.Collect(t, x.study.data[task.Site])
			}
			s := &small{plan: x.study.plan, data: map[string]*dataset.Table{task.Site: factorstest.Must(dataset.NewTable(empty.Of, empty.List))(t)}}
			p := newPlay(t, s)
			p.halves[task.Site] = half
			if _, err := p.answer(task); err == nil {
				t.Errorf("%s: a task that no coordinator sends was answered: %+v", kind, body)
			}
		}
	}
	lie(options.TaskFit, func(a any) { a.(*federated.FitTask).Scale.Factor[0] = -1 })
	lie(options.TaskFit, func(a any) { a.(*federated.FitTask).Scale.Shift = nil })
	lie(options.TaskFit, func(a any) { a.(*federated.FitTask).Model = &options.Params{} })
	lie(options.TaskAssess, func(a any) { a.(*options.AssessTask).Model.Noise[0] = -1 })
	lie(options.TaskAssess, func(a any) { a.(*options.AssessTask).Model.Mu[0] = 1e90 })
	lens := func(change func(m *statistics.MomentsTask)) {
		lie(options.TaskCoarse, func(a any) { change(a.(*statistics.MomentsTask)) })
		lie(options.TaskFine, func(a any) { change(a.(*statistics.MomentsTask)) })
	}
	lens(func(m *statistics.MomentsTask) { m.Lenses = nil })
	lens(func(m *statistics.MomentsTask) { m.Lenses[0].Views = []int{5} })
	lens(func(m *statistics.MomentsTask) { m.Lenses[0].Bound = -1 })
	lens(func(m *statistics.MomentsTask) { m.Lenses[0].Constant = 1 })
	lens(func(m *statistics.MomentsTask) { m.Lenses[0].Scale[0] = -1 })
	lens(func(m *statistics.MomentsTask) { m.Lenses[0].Centre = m.Lenses[0].Centre[1:] })
	lens(func(m *statistics.MomentsTask) { m.Lenses[0].Axes = make(wire.Vector, 1) })
	lie(options.TaskCheck, func(a any) { a.(*statistics.CheckTask).Model.Noise[0] = 0 })
	lie(options.TaskCheck, func(a any) { a.(*statistics.CheckTask).Model.Mu[0] = 1e90 })
	lie(options.TaskCheck, func(a any) { a.(*statistics.CheckTask).Doubt[0] = -1 })
	lie(options.TaskCheck, func(a any) { a.(*statistics.CheckTask).Doubt[0] = 2 })
	lie(options.TaskCheck, func(a any) { a.(*statistics.CheckTask).Doubt = a.(*statistics.CheckTask).Doubt[1:] })
}
