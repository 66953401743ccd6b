package regression

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"parley/dataset"
	"parley/internal/wire"
	"parley/method"
	"parley/method/methodtest"
	"parley/methods/regression/exact"
	"parley/methods/regression/glm"
	"parley/methods/regression/options"
	"parley/methods/regression/predict"
	"parley/privacy"
	"parley/study"
)

// wildNumbers are what no honest coordinator sends, and what one might.
var wildNumbers = []float64{0, 1, -1, 1e-3, -40, 1e3, 1e8, -1e12, 1e30, -1e30, 1e60, 7e74, -7e74, 1e76, 1.2e308, -1.2e308, 5e-75, 1e-76, 5e-324}

// crafted is a task with something changed.
type crafted struct {
	what string
	task method.Task
}

// craft changes every number of a task, one at a time and each vector as a whole,
// and its shapes.
func craft(t testing.TB, task method.Task, r *rand.Rand) (all []crafted) {
	t.Helper()
	switch task.Kind {
	case options.TaskUpdate:
		var honest options.UpdateTask
		if err := wire.Unmarshal(task.Body, &honest); err != nil {
			t.Fatal(err)
		}
		add := func(what string, change func(*options.UpdateTask)) {
			var u options.UpdateTask
			if err := wire.Unmarshal(task.Body, &u); err != nil {
				t.Fatal(err)
			}
			change(&u)
			all = append(all, crafted{what, method.Task{Site: task.Site, Kind: task.Kind, Body: pack(t, u)}})
		}
		for _, n := range []int{0, -1, honest.Update + 1, math.MaxInt64, math.MinInt64} {
			add(fmt.Sprint("update ", n), func(u *options.UpdateTask) { u.Update = n })
		}
		craftVectors(r, []string{"q.eta", "q.lambda", "factor.eta", "factor.lambda", "centre", "scale"}, func(u *options.UpdateTask) []*wire.Vector {
			v := []*wire.Vector{&u.Q.Eta, &u.Q.Lambda, &u.Factor.Eta, &u.Factor.Lambda}
			if u.Scale != nil {
				v = append(v, &u.Scale.Centre, &u.Scale.Scale)
			}
			return v
		}, honest, add)
		add("a scale or none", func(u *options.UpdateTask) { u.Scale = other(u.Scale) })
	case "early gradient", "gradient":
		all = craftNoised(t, task, r)
	case "sums":
		return append(craftJoint(t, task, r), crafted{"nothing", method.Task{Site: task.Site, Kind: task.Kind}})
	case options.TaskAssess:
		if wire.Unmarshal(task.Body, new(modelTask)) == nil {
			return craftNoisedModel(t, task, r)
		}
		if wire.Unmarshal(task.Body, new(exact.Task)) == nil {
			return craftJoint(t, task, r)
		}
		var honest options.AssessTask
		if err := wire.Unmarshal(task.Body, &honest); err != nil {
			t.Fatal(err)
		}
		add := func(what string, change func(*options.AssessTask)) {
			var u options.AssessTask
			if err := wire.Unmarshal(task.Body, &u); err != nil {
				t.Fatal(err)
			}
			change(&u)
			all = append(all, crafted{what, method.Task{Site: task.Site, Kind: task.Kind, Body: pack(t, u)}})
		}
		craftVectors(r, []string{"q.eta", "q.lambda", "centre", "scale"}, func(u *options.AssessTask) []*wire.Vector {
			v := []*wire.Vector{&u.Q.Eta, &u.Q.Lambda}
			if u.Scale != nil {
				v = append(v, &u.Scale.Centre, &u.Scale.Scale)
			}
			return v
		}, honest, add)
		add("a scale or none", func(u *options.AssessTask) { u.Scale = other(u.Scale) })
	}
	for _, body := range [][]byte{nil, {0xa0}, {0xf6}, task.Body[:len(task.Body)/2]} {
		all = append(all, crafted{fmt.Sprintf("a body of %d bytes", len(body)), method.Task{Site: task.Site, Kind: task.Kind, Body: body}})
	}
	return all
}

// gradientTask and modelTask are the tasks of package noised.
type (
	gradientTask struct {
		Mean wire.Vector `cbor:"mean"`
		Clip float64     `cbor:"clip"`
	}
	modelTask struct {
		Mean       wire.Vector `cbor:"mean"`
		Covariance wire.Vector `cbor:"covariance"`
	}
)

// craftNoised changes a task for a clipped gradient.
func craftNoised(t testing.TB, task method.Task, r *rand.Rand) (all []crafted) {
	t.Helper()
	var honest gradientTask
	if err := wire.Unmarshal(task.Body, &honest); err != nil {
		t.Fatal(err)
	}
	add := func(what string, change func(*gradientTask)) {
		u := gradientTask{Mean: slices.Clone(honest.Mean), Clip: honest.Clip}
		change(&u)
		all = append(all, crafted{what, method.Task{Site: task.Site, Kind: task.Kind, Body: pack(t, u)}})
	}
	craftVectors(r, []string{"mean"}, func(u *gradientTask) []*wire.Vector { return []*wire.Vector{&u.Mean} }, honest, add)
	for _, x := range wildNumbers {
		add(fmt.Sprint("clip ", x), func(u *gradientTask) { u.Clip = x })
	}
	return all
}

// craftNoisedModel changes a task for how well the model of a private study predicts.
func craftNoisedModel(t testing.TB, task method.Task, r *rand.Rand) (all []crafted) {
	t.Helper()
	var honest modelTask
	if err := wire.Unmarshal(task.Body, &honest); err != nil {
		t.Fatal(err)
	}
	add := func(what string, change func(*modelTask)) {
		u := modelTask{Mean: slices.Clone(honest.Mean), Covariance: slices.Clone(honest.Covariance)}
		change(&u)
		all = append(all, crafted{what, method.Task{Site: task.Site, Kind: task.Kind, Body: pack(t, u)}})
	}
	craftVectors(r, []string{"mean", "covariance"}, func(u *modelTask) []*wire.Vector { return []*wire.Vector{&u.Mean, &u.Covariance} }, honest, add)
	return all
}

// craftJoint changes a task under a joint posterior.
func craftJoint(t testing.TB, task method.Task, r *rand.Rand) (all []crafted) {
	t.Helper()
	var honest exact.Task
	if err := wire.Unmarshal(task.Body, &honest); err != nil {
		t.Fatal(err)
	}
	add := func(what string, change func(*exact.Task)) {
		var u exact.Task
		if err := wire.Unmarshal(task.Body, &u); err != nil {
			t.Fatal(err)
		}
		change(&u)
		all = append(all, crafted{what, method.Task{Site: task.Site, Kind: task.Kind, Body: pack(t, u)}})
	}
	craftVectors(r, []string{"mean", "covariance"}, func(u *exact.Task) []*wire.Vector {
		return []*wire.Vector{&u.At.Mean, &u.At.Covariance}
	}, honest, add)
	for _, x := range wildNumbers {
		add(fmt.Sprint("noise ", x), func(u *exact.Task) { u.At.Noise = x })
		add(fmt.Sprint("a reference ", x), func(u *exact.Task) { u.Scale.References = append(u.Scale.References, int(min(max(x, -1e9), 1e9))) })
	}
	add("no scale", func(u *exact.Task) { u.Scale = nil })
	return all
}

func other(s *options.Scale) *options.Scale {
	if s != nil {
		return nil
	}
	return &options.Scale{Centre: constant(2, 0), Scale: constant(2, 1)}
}

func craftVectors[T any](r *rand.Rand, names []string, vectors func(*T) []*wire.Vector, honest T, add func(string, func(*T))) {
	wild := func() float64 { return wildNumbers[r.IntN(len(wildNumbers))] }
	for i, v := range vectors(&honest) {
		for j, old := range *v {
			x := wild()
			add(fmt.Sprintf("%s[%d] = %v", names[i], j, x), func(u *T) { (*vectors(u)[i])[j] = x })
			add(fmt.Sprintf("%s[%d] = %v", names[i], j, -old), func(u *T) { (*vectors(u)[i])[j] = -old })
		}
		for range 6 {
			x, y := wild(), wild()
			add(fmt.Sprintf("%s of %v and %v", names[i], x, y), func(u *T) {
				for j := range *vectors(u)[i] {
					(*vectors(u)[i])[j] = x
					if r.IntN(3) == 0 {
						(*vectors(u)[i])[j] = y
					}
				}
			})
		}
		add(names[i]+", shorter", func(u *T) { *vectors(u)[i] = (*vectors(u)[i])[1:] })
		add(names[i]+", longer", func(u *T) { *vectors(u)[i] = append(*vectors(u)[i], 1) })
		add(names[i]+", none", func(u *T) { *vectors(u)[i] = nil })
	}
	// All numbers at once, within bounds or nearly.
	for k := range 12 {
		add(fmt.Sprint("everything, ", k), func(u *T) {
			for i, v := range vectors(u) {
				for j := range *v {
					x := math.Pow(10, 150*r.Float64()-75)
					if i%2 == 0 && r.IntN(2) == 0 {
						x = -x
					}
					(*v)[j] = x
				}
			}
		})
	}
}

// tasksOfDriven are the tasks of site a, one of each kind, from the middle of the
// study on.
func tasksOfDriven(t testing.TB, p *study.Plan) []method.Task {
	t.Helper()
	last := map[string]method.Task{}
	for _, task := range tasksOf(t, p) {
		last[task.Kind] = task
	}
	var tasks []method.Task
	for _, kind := range []string{options.TaskScale, options.TaskUpdate, "sums", "totals", "products", "early gradient", "gradient", options.TaskAssess} {
		if task, ok := last[kind]; ok {
			tasks = append(tasks, task)
		}
	}
	return tasks
}

// Whatever a coordinator writes into a task, a private site answers or refuses
// alike whoever its rows are.
func TestCraftedTasksTellNothing(t *testing.T) {
	for name, x := range privatePlans {
		t.Run(name, func(t *testing.T) {
			p := x.plan(t)
			r := rand.New(rand.NewPCG(8, uint64(len(name))))
			all := neighbours(t, p)
			data := map[string]dataset.Source{}
			for _, who := range []string{"all rows", "no rows", "a huge row", "other people", "unknown outcomes"} {
				data[who] = all[who]
			}
			for _, honest := range tasksOfDriven(t, p) {
				for _, c := range craft(t, honest, r) {
					methodtest.Transcript(t, Method{}, p, "a", []method.Task{c.task}, 1e5, data)
					if t.Failed() {
						t.Fatalf("task %q with %s", honest.Kind, c.what)
					}
				}
			}
		})
	}
}

// Whatever a coordinator writes into a task, no row makes a contribution panic: that
// a session would count it as nothing is not relied on. And none costs more than its
// likelihood's bound.
func TestCraftedTasksPanicOnNoRow(t *testing.T) {
	for name, x := range privatePlans {
		t.Run(name, func(t *testing.T) {
			p := x.plan(t)
			r := rand.New(rand.NewPCG(9, uint64(len(name))))
			h, err := options.New(p)
			if err != nil {
				t.Fatal(err)
			}
			if h.Options.Joint() { // see package private
				return
			}
			length := func(kind string) int {
				list, err := Method{}.Requests(p, "a")
				if err != nil {
					t.Fatal(err)
				}
				return list[slices.IndexFunc(list, func(l privacy.Listed) bool { return l.Kind == kind })].Request.Sums[0].Blocks[0]
			}
			b, err := h.Bind(&h.Encoding, p.Schema())
			if err != nil {
				t.Fatal(err)
			}
			var rows []dataset.Row
			for _, source := range neighbours(t, p) {
				if list := methodtest.Collect(t, source).List; len(list) > 0 {
					rows = append(rows, list[0], list[len(list)-1])
				}
			}
			accepted := 0
			for _, honest := range tasksOfDriven(t, p) {
				for _, c := range append(craft(t, honest, r), crafted{"nothing changed", honest}) {
					contribute := func(contribution func(glm.Row, float64, []float64), length int) {
						each := h.OverRows(b, contribution)
						for i := range rows {
							each(&rows[i], make([]float64, length))
						}
					}
					var q glm.Gaussian
					var err error
					if honest.Kind == options.TaskAssess {
						var task options.AssessTask
						if wire.Unmarshal(c.task.Body, &task) != nil {
							continue
						}
						if _, q, err = h.OpenModel(task.Scale, task.Q); err == nil {
							contribute(predict.Contribution(h.Likelihood, q.Normal(), h.Encoding.Width()), length(options.TaskAssess))
						}
					} else {
						var task options.UpdateTask
						if wire.Unmarshal(c.task.Body, &task) != nil {
							continue
						}
						if q, _, err = h.OpenUpdate(&task, h.Options.Rounds, false); err == nil {
							contribute(glm.Natural{Likelihood: h.Likelihood, Columns: h.Encoding.Width()}.Contribution(q), length(options.TaskUpdate))
						}
					}
					if err != nil {
						continue
					}
					accepted++
					demandBoundedCost(t, h, b, q, rows)
				}
			}
			if accepted < 20 {
				t.Errorf("only %d tasks were taken", accepted)
			}
		})
	}
}

// demandBoundedCost counts what rows cost beside their entries.
func demandBoundedCost(t testing.TB, h *options.Setup, b *glm.Binding, q glm.Gaussian, rows []dataset.Row) {
	t.Helper()
	m := predict.New(h.Likelihood, q.Normal(), h.Encoding.Width())
	for i := range rows {
		h.OverRows(b, func(x glm.Row, y float64, _ []float64) {
			m.Row(x)
			if work, most := glm.Work(h.Likelihood, m.A, m.C); work > most {
				t.Errorf("a row at %v, %v costs %d, and %d at most", m.A, m.C, work, most)
			}
		})(&rows[i], nil)
	}
}

// Sites without privacy take any task without a panic, too.
func TestCraftedTasksOfExactStudies(t *testing.T) {
	for name, x := range exactPlans {
		t.Run(name, func(t *testing.T) {
			p := x.plan(t)
			r := rand.New(rand.NewPCG(10, uint64(len(name))))
			data := rowsFor(t, p, "a", 12)
			half, err := Method{}.Site(p, "a")
			if err != nil {
				t.Fatal(err)
			}
			for _, honest := range tasksOfDriven(t, p) {
				for _, c := range craft(t, honest, r) {
					switch honest.Kind {
					case options.TaskUpdate, "sums":
						methodtest.Once(t, Method{}, p, half, data, c.task)
					case options.TaskAssess:
						if answer, err := methodtest.Once(t, Method{}, p, half, data, c.task); err == nil {
							a := new(predict.Assessment)
							if err := wire.Unmarshal(answer.Body, a); err != nil {
								t.Fatal(err)
							}
							if err := a.Check(); err != nil {
								t.Errorf("%s: the answer would be refused: %v", c.what, err)
							}
						}
						half.Report(t.Context(), c.task.Body, data)
					}
				}
			}
		})
	}
}
