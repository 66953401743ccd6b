// Package methodtest holds the private half of a method to what the gate cannot
// see: that nothing leaves but what follows from noised sums, and that a row
// moves a sum by no more than its own contribution. Only tests import it.
package methodtest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"hash/fnv"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"parley/dataset"
	"parley/engine/local"
	"parley/method"
	"parley/privacy"
	"parley/privacy/privacytest"
	"parley/sitestore"
	"parley/study"
)

// Tasks runs a whole simulated study, and returns the tasks that each site was
// given, in order.
func Tasks(t testing.TB, m method.Method, p *study.Plan, data map[string]dataset.Source) map[string][]method.Task {
	t.Helper()
	r := &recorder{Method: m, tasks: map[string][]method.Task{}}
	if _, err := local.Run(t.Context(), local.Config{Plan: p, Methods: method.Registry{r}, Data: data}); err != nil {
		t.Fatal(err)
	}
	return r.tasks
}

type recorder struct {
	method.Method
	tasks map[string][]method.Task
}

func (r *recorder) Coordinator(p *study.Plan) (method.Coordinator, error) {
	c, err := r.Method.Coordinator(p)
	return recording{c, r}, err
}

type recording struct {
	method.Coordinator
	to *recorder
}

func (r recording) Next(s method.State) (method.Step, error) {
	step, err := r.Coordinator.Next(s)
	for _, t := range step.Tasks {
		r.to.tasks[t.Site] = append(r.to.tasks[t.Site], t)
	}
	return step, err
}

// Rows is a data set in any order, rows repeated or not.
type Rows struct {
	Of   dataset.Schema
	List []dataset.Row
}

// Schema implements [dataset.Source].
func (r Rows) Schema() dataset.Schema { return r.Of }

// Rows implements [dataset.Source].
func (r Rows) Rows(ctx context.Context) iter.Seq2[*dataset.Row, error] {
	return func(yield func(*dataset.Row, error) bool) {
		for i := range r.List {
			if err := ctx.Err(); err != nil {
				yield(nil, err)
				return
			}
			if !yield(&r.List[i], nil) {
				return
			}
		}
	}
}

// Collect returns the rows of a source.
func Collect(t testing.TB, src dataset.Source) Rows {
	t.Helper()
	r := Rows{Of: src.Schema()}
	for row, err := range src.Rows(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		own := dataset.Row{ID: row.ID, Subject: slices.Clone(row.Subject)}
		for _, v := range row.Views {
			own.Views = append(own.Views, slices.Clone(v))
		}
		r.List = append(r.List, own)
	}
	return r
}

// answers passes tasks through a fresh site, and returns what came of each: the
// sealed release, or an error's text.
func answers(t testing.TB, m method.Method, p *study.Plan, site string, data dataset.Source, tasks []method.Task,
	carried []byte, release func(string, [][]int64) [][]int64) (sealed [][]byte) {
	t.Helper()
	list, err := m.Requests(p, site)
	if err != nil {
		t.Fatal(err)
	}
	s, err := privacy.StudyOf(p, site, list)
	if err != nil {
		t.Fatal(err)
	}
	half, err := m.Site(p, site)
	if err != nil {
		t.Fatal(err)
	}
	var store privacy.Journal = sitestore.NewMemory()
	if carried != nil {
		store = carrying{sitestore.NewMemory(), carried}
	}
	gate := privacy.NewGate(s, privacy.SimulationPolicy(), store, data, privacytest.Replaced(release))
	for i, task := range tasks {
		session, err := gate.Admit(privacy.Ask{Study: s.Digest, Site: site, Round: i + 1, Kind: task.Kind,
			Task: sha256.Sum256(fmt.Append(task.Body, i))})
		if err != nil {
			t.Fatal(err)
		}
		a, err := half.Run(t.Context(), task, session)
		if err != nil {
			sealed = append(sealed, []byte("error: "+err.Error()))
			continue
		}
		r, err := session.Seal(a.Body, a.State)
		if err != nil {
			t.Fatal(err)
		}
		sealed = append(sealed, slices.Concat(r.Bytes(), []byte("state: "), a.State))
	}
	return sealed
}

// fixed returns what is released in place of noised sums: numbers that depend on
// the sum's name and shape, and on nothing else. Scale is their standard
// deviation, in steps.
func fixed(scale float64) func(sum string, exact [][]int64) [][]int64 {
	return func(sum string, exact [][]int64) [][]int64 {
		h := fnv.New64a()
		h.Write([]byte(sum))
		rng := rand.New(rand.NewPCG(h.Sum64(), 7))
		out := make([][]int64, len(exact))
		for i, block := range exact {
			for range block {
				out[i] = append(out[i], int64(min(max(math.Round(scale*rng.NormFloat64()), -1<<62), 1<<62)))
			}
		}
		return out
	}
}

// Transcript answers the tasks of a study at a site for several data sets, with
// the same noised sums forced for all of them, and demands the same bytes: body,
// state, and errors. So whatever else of the rows got into an answer shows. All
// tasks must be under differential protection.
func Transcript(t testing.TB, m method.Method, p *study.Plan, site string, tasks []method.Task, scale float64,
	data map[string]dataset.Source) {
	t.Helper()
	transcript(t, m, p, site, tasks, nil, scale, data)
}

// transcript is Transcript at a site that carries something.
func transcript(t testing.TB, m method.Method, p *study.Plan, site string, tasks []method.Task, carried []byte,
	scale float64, data map[string]dataset.Source) {
	t.Helper()
	if len(tasks) == 0 {
		t.Fatal("there are no tasks")
	}
	var first string
	var want [][]byte
	for name, d := range data {
		got := answers(t, m, p, site, d, tasks, carried, fixed(scale))
		if want == nil {
			first, want = name, got
			continue
		}
		for i := range tasks {
			if !bytes.Equal(got[i], want[i]) {
				t.Errorf("task %d, %q: the answers for %s and %s differ although the noised sums are the "+
					"same:\n%.300q\n%.300q", i+1, tasks[i].Kind, first, name, want[i], got[i])
			}
		}
	}
}

// Neighbours are data sets whose answers [Transcript] compares: the rows
// themselves, without one, half of them, none, one repeated, and each kind of
// value that a row can hold: nothing, huge, not a number.
func Neighbours(rows Rows) map[string]dataset.Source {
	with := func(list ...dataset.Row) Rows { return Rows{rows.Of, slices.Concat(rows.List, list)} }
	changed := func(f func(x float64) float64) dataset.Row {
		r := rows.List[0]
		r.ID = "~changed"
		views := make([][]float64, len(r.Views))
		for k, v := range r.Views {
			if v == nil {
				continue
			}
			for _, x := range v {
				views[k] = append(views[k], f(x))
			}
		}
		r.Views = views
		return r
	}
	nothing := rows.List[0]
	nothing.ID, nothing.Views = "~nothing", make([][]float64, len(rows.Of.Views))
	return map[string]dataset.Source{
		"all rows":        rows,
		"all but one row": Rows{rows.Of, rows.List[1:]},
		"half the rows":   Rows{rows.Of, rows.List[:len(rows.List)/2]},
		"no rows":         Rows{rows.Of, nil},
		"a row twice":     with(rows.List[0]),
		"an empty row":    with(nothing),
		"a huge row":      with(changed(func(x float64) float64 { return 1e300 * (x + 1) })),
		"a row of NaN":    with(changed(func(float64) float64 { return math.NaN() })),
	}
}

// Additive demands that the exact integers of every sum over subjects are those
// of its rows, added up: rows in another order, repeated, or put between others
// change a sum by what they give alone, to the last step. So nothing is carried
// from one row to the next.
func Additive(t testing.TB, m method.Method, p *study.Plan, site string, tasks []method.Task,
	scale float64, rows Rows) {
	t.Helper()
	additive(t, m, p, site, tasks, nil, scale, rows, 3)
}

// additive is Additive at a site that carries something, so many times.
func additive(t testing.TB, m method.Method, p *study.Plan, site string, tasks []method.Task, carried []byte,
	scale float64, rows Rows, times int) {
	t.Helper()
	exact := func(list ...dataset.Row) (all [][][]int64, names []string) {
		forced := fixed(scale)
		answers(t, m, p, site, Rows{rows.Of, list}, tasks, carried, func(sum string, x [][]int64) [][]int64 {
			kept := make([][]int64, len(x))
			for i := range x {
				kept[i] = slices.Clone(x[i])
			}
			all, names = append(all, kept), append(names, sum)
			return forced(sum, x)
		})
		return all, names
	}
	whole, names := exact(rows.List...)
	if len(whole) == 0 {
		t.Fatal("no sum was made")
	}
	rng := rand.New(rand.NewPCG(3, uint64(len(rows.List))))
	compare := func(what string, got, want [][][]int64) {
		t.Helper()
		for i := range want {
			for b := range want[i] {
				if !slices.Equal(got[i][b], want[i][b]) {
					t.Errorf("%s: sum %q, block %d is not what its rows give", what, names[i], b)
					return
				}
			}
		}
	}
	for range times {
		list := slices.Clone(rows.List)
		rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		got, _ := exact(list...)
		compare("rows in another order", got, whole)

		row, at := rows.List[rng.IntN(len(list))], rng.IntN(len(list))
		alone, _ := exact(row)
		more, _ := exact(slices.Insert(slices.Clone(list), at, row, row)...)
		want := make([][][]int64, len(whole))
		for i := range whole {
			for b := range whole[i] {
				sum := slices.Clone(whole[i][b])
				for k := range sum {
					sum[k] += 2 * alone[i][b][k]
				}
				want[i] = append(want[i], sum)
			}
		}
		compare(fmt.Sprintf("a row twice more, at place %d", at), more, want)
	}
}

// Plan reads a plan of the method that has this name and these options.
func Plan(t testing.TB, name string, options any, text string) *study.Plan {
	t.Helper()
	p, err := study.Parse("plan.yaml", []byte(text), planned{name, options})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// planned is the one method that such a plan may name.
type planned struct {
	name    string
	options any
}

func (m planned) Options(name string) (any, bool) { return m.options, name == m.name }
func (m planned) Names() []string                 { return []string{m.name} }
