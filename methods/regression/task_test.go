package regression

import (
	"slices"
	"testing"

	"parley/dataset"
	"parley/internal/wire"
	"parley/method/methodtest"
	"parley/methods/regression/glm"
	"parley/methods/regression/options"
	"parley/methods/regression/predict"
	"parley/privacy"
)

// Whatever a coordinator writes into a task, no row makes a contribution panic: that
// a session would count it as nothing is not relied on. And none costs more than its
// likelihood's bound.
func TestCraftedTasksPanicOnNoRow(t *testing.T) {
	for name, x := range privatePlans {
		t.Run(name, func(t *testing.T) {
			p := x.plan(t)
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
			for _, source := range methodtest.Neighbours(methodtest.Collect(t, rowsFor(t, p, "a", 12))) {
				if list := methodtest.Collect(t, source).List; len(list) > 0 {
					rows = append(rows, list[0], list[len(list)-1])
				}
			}
			accepted := 0
			for _, honest := range methodtest.Tasks(t, Method{}, p, dataFor(t, p))["a"] {
				for _, crafted := range append(methodtest.Damages(t, honest.Body), honest.Body) {
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
						if wire.Unmarshal(crafted, &task) != nil {
							continue
						}
						if _, q, err = h.OpenModel(task.Scale, task.Q); err == nil {
							contribute(predict.Contribution(h.Likelihood, q.Normal(), h.Encoding.Width()), length(options.TaskAssess))
						}
					} else {
						var task options.UpdateTask
						if wire.Unmarshal(crafted, &task) != nil {
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
