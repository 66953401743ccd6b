package mixture

import (
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"parley/dataset"
	"parley/internal/testkit"
	"parley/method"
	"parley/method/methodtest"
	"parley/methods/mixture/report"
	"parley/methods/mixture/scarce"
	"parley/study"
)

const (
	plainPlan = `
parley: 1
name: hostile
sites: [a, b]
views:
  - {name: v, features: [{name: x, range: [-8, 8]}]}
method: {name: graffl, components: 2, %s}
privacy: %s
`
	stagedPlan = `
parley: 1
name: hostile
sites: [a, b]
quorum: 1
privacy: %s
views:
  - {name: v, features: [{name: x, range: [-8, 8]}, {name: y, range: [-8, 8]}]}
subjects: [sick]
method:
  name: graffl
  scarce: {outcome: {column: sick, levels: [no, yes]}, held: 0.3}
  draws: 64
  %s
`
	exact   = "{protection: none}"
	private = "{protection: differential, unit: subject, adjacency: add-remove, total: {epsilon: 2, delta: 1e-5}}"
)

// plans are of every form and stage.
var plans = map[string]string{
	"frequencies":          fmt.Sprintf(plainPlan, "draws: 64", exact),
	"staged 1":             fmt.Sprintf(stagedPlan, exact, "encoder: {dimension: 1, hidden: [2], epochs: 1}"),
	"classes alone":        fmt.Sprintf(stagedPlan, exact, "components: 1"),
	"own encoders":         fmt.Sprintf(stagedPlan, exact, "encoder: {shared: false, dimension: 1, hidden: [2], epochs: 1}"),
	"private":              fmt.Sprintf(plainPlan, "draws: 64", private),
	"private, replace-one": fmt.Sprintf(plainPlan, "draws: 64", strings.Replace(private, "add-remove", "replace-one", 1)),
	"private, few":         fmt.Sprintf(plainPlan, "sketch: {frequencies: 20}, draws: 64", private),
	"private classes":      fmt.Sprintf(stagedPlan, private, "components: 1"),
	"private codes":        fmt.Sprintf(stagedPlan, private, "encoder: {dimension: 1}"),
}

// digests of studies, on amd64; of private ones under seeded noise.
var digests = map[string]string{
	"frequencies":   "8f5011479e27cae1c208189fb3905954b669e71a501ddc1a9586e0fc313f25cc",
	"staged 1":      "ed777bec3cd69d42df39ef2a3b046346a927a9fe0eb02000f7687fcb919566b9",
	"private":       "6bd3651abf8df68a186d36980dd72c4a9b4da3b3960d23b2fd7654ffe41924b9",
	"private codes": "b821c86f3857b737ebe61bf5da1fb33b0013b6c9793919b86da2cba4d1305366",
}

func parsePlan(t testing.TB, text string) *study.Plan {
	t.Helper()
	return testkit.Get(study.Parse("plan.yaml", []byte(text), method.Registry{Method{}}))(t)
}

// rowsOf draws rows of a plan, of numbers as they are given; a third has each level of the outcome or none.
func rowsOf(t testing.TB, p *study.Plan, n int, number func() float64) dataset.Source {
	t.Helper()
	var rows []dataset.Row
	for i := range n {
		row := dataset.Row{ID: fmt.Sprintf("%05d", i)}
		for _, v := range p.Views {
			x := make([]float64, len(v.Features))
			for j := range x {
				x[j] = number()
			}
			row.Views = append(row.Views, x)
		}
		for range p.Subjects {
			row.Subject = append(row.Subject, []string{"no", "yes", ""}[i%3])
		}
		rows = append(rows, row)
	}
	return testkit.Get(dataset.NewTable(p.Schema(), rows))(t)
}

func caseOf(t testing.TB, name string, n int, number func() float64) methodtest.Case {
	x := methodtest.Case{Plan: parsePlan(t, plans[name]), Data: map[string]dataset.Source{}, Digest: digests[name]}
	for _, site := range x.Plan.Sites {
		x.Data[site] = rowsOf(t, x.Plan, n, number)
	}
	return x
}

func cases(t testing.TB) map[string]methodtest.Case {
	all := map[string]methodtest.Case{}
	for name := range plans {
		all[name] = caseOf(t, name, 30, rand.New(rand.NewPCG(4, 4)).NormFloat64)
	}
	return all
}

// awkward is a study of constants, of values far beyond the range, or of rows that are lacking.
func awkward(t testing.TB, r *rand.Rand) methodtest.Case {
	names := slices.Sorted(maps.Keys(plans))
	worst := []float64{0, 3, 1e300, math.MaxFloat64, -math.MaxFloat64, 5e-324, math.NaN()}[r.IntN(7):]
	x := caseOf(t, names[r.IntN(len(names))], 3+r.IntN(30), func() float64 { return worst[r.IntN(min(len(worst), 1+r.IntN(3)))] })
	x.Digest = ""
	return x
}

func TestContract(t *testing.T) {
	methodtest.Run(t, Method{}, cases(t), methodtest.Options{Studies: 1, Draw: awkward, Drawn: 100, Excuses: []string{
		"want finite ones", // of an encoder of values that are too large to add up
	}})
}

func FuzzAnswers(f *testing.F) { methodtest.FuzzAnswers(f, Method{}, cases(f)) }

func FuzzTasks(f *testing.F) { methodtest.FuzzTasks(f, Method{}, cases(f)) }

// A model or a classifier from elsewhere is read whole or refused.
func FuzzModel(f *testing.F) {
	x := cases(f)["staged 1"]
	d := &methodtest.Drive{Method: Method{}, Plan: x.Plan, Data: x.Data}
	ends := testkit.Get(d.Run(f))(f)
	own := testkit.Get(testkit.Get(Method{}.Site(x.Plan, "a"))(f).Report(f.Context(), ends.Shares["a"], x.Data["a"]))(f)
	for _, files := range [][]method.File{ends.Result.Files, own.Files} {
		f.Add(testkit.Get(method.ModelJSON(files))(f))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if m, err := report.LoadModel(data); err == nil {
			testkit.Get(m.Summary(3))(t)
			m.Schema()
		}
		c, err := scarce.LoadClassifier(data)
		if err != nil {
			return
		}
		testkit.Get(c.Summary(1))(t)
		row := dataset.Row{ID: "1"}
		for _, v := range c.Views {
			row.Views = append(row.Views, make([]float64, len(v.Columns)))
		}
		if rows, err := dataset.NewTable(c.Schema(), []dataset.Row{row}); err == nil { // else it has columns that no table has
			_, _, err := c.Predict(t.Context(), rows, io.Discard, method.PredictOptions{})
			testkit.Do(t, err)
		}
	})
}
