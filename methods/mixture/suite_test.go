package mixture

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"parley/dataset"
	"parley/figure"
	"parley/internal/testkit"
	"parley/method"
	"parley/method/methodtest"
	"parley/methods/mixture/fitted"
	"parley/study"
)

const (
	plainPlan = `
parley: 1
name: hostile
sites: [a, b]
views:
  - {name: v, features: [{name: x, range: [-8, 8]}]}
method: {name: mixture, components: 2, %s}
privacy: %s
`
	quorumPlan = `
parley: 1
name: hostile
sites: [a, b]
quorum: 1
privacy: %s
views:
  - {name: v, features: [{name: x, range: [-8, 8]}, {name: y, range: [-8, 8]}]}
method: {name: mixture, components: 1, draws: 64}
`
	exact   = "{protection: none}"
	private = "{protection: differential, unit: subject, adjacency: add-remove, total: {epsilon: 2, delta: 1e-5}}"
)

// plans are of every form and stage.
var plans = map[string]string{
	"frequencies": fmt.Sprintf(plainPlan, "draws: 64", exact),
	"quorum":      fmt.Sprintf(quorumPlan, exact),
	"private":     fmt.Sprintf(plainPlan, "draws: 64", private),
	"private, replace-one": fmt.Sprintf(plainPlan, "draws: 64",
		strings.Replace(private, "add-remove", "replace-one", 1)),
	"private, few":    fmt.Sprintf(plainPlan, "sketch: {frequencies: 20}, draws: 64", private),
	"private, quorum": fmt.Sprintf(quorumPlan, private),
}

// digests of studies, on amd64; of private ones under seeded noise.
var digests = map[string]string{
	"frequencies": "a0711546be140fe1fa426ff8f5a8385156346a0758785af4511a405c7266d89c",
	"private":     "eaf4788fc68308ee9f73f119329243e8c6511479249c338e05a9fef3e9e8ba60",
}

func parsePlan(t testing.TB, text string) *study.Plan {
	t.Helper()
	return testkit.Get(study.Parse("plan.yaml", []byte(text), method.Registry{Method{}}))(t)
}

// rowsOf draws rows of a plan, of numbers as they are given.
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
	x := caseOf(t, names[r.IntN(len(names))], 3+r.IntN(30), func() float64 {
		return worst[r.IntN(min(len(worst), 1+r.IntN(3)))]
	})
	x.Digest = ""
	return x
}

func TestContract(t *testing.T) {
	methodtest.Run(t, Method{}, cases(t), methodtest.Options{Studies: 1, Draw: awkward, Drawn: 100})
}

func FuzzAnswers(f *testing.F) { methodtest.FuzzAnswers(f, Method{}, cases(f)) }

func FuzzTasks(f *testing.F) { methodtest.FuzzTasks(f, Method{}, cases(f)) }

// A model from elsewhere is read whole or refused.
func FuzzModel(f *testing.F) {
	x := cases(f)["frequencies"]
	ends := testkit.Get((&methodtest.Drive{Method: Method{}, Plan: x.Plan, Data: x.Data}).Run(f))(f)
	f.Add(testkit.Get(method.ModelJSON(ends.Result.Files))(f))
	f.Fuzz(func(t *testing.T, data []byte) {
		if m, err := fitted.LoadModel(data); err == nil {
			testkit.Get(m.Summary(3))(t)
			m.Schema()
		}
	})
}

// text is a plan of sites a and b with some features, each from −8 to 8; method is what it
// says of the method, as in components: 2, and privacy its protection.
func text(features int, method, privacy string) string {
	out := "parley: 1\nname: small\nsites: [a, b]\nviews:\n  - name: v\n    features:\n"
	for i := range features {
		out += fmt.Sprintf("      - {name: f%d, range: [-8, 8]}\n", i+1)
	}
	return out + fmt.Sprintf("subjects: [sick]\nmethod: {name: mixture, %s}\nprivacy: %s\n", method, privacy)
}

// known is what both halves know of a plan. It panics if the plan is wrong.
func known(text string) *setup {
	p, err := study.Parse("plan.yaml", []byte(text), method.Registry{Method{}})
	if err != nil {
		panic(err)
	}
	s, err := setupOf(p)
	if err != nil {
		panic(err)
	}
	return s
}

// shown returns the figures of a section, and an error if something in it cannot be shown,
// is not drawn twice alike, or shows a row.
func shown(s figure.Section) (figures []*figure.Figure, err error) {
	var all []error
	for _, item := range s.Items {
		switch {
		case item.Figure != nil:
			f := item.Figure
			var one, two bytes.Buffer
			all = append(all, f.SVG(&one), f.SVG(&two), f.CSV(io.Discard))
			if !bytes.Equal(one.Bytes(), two.Bytes()) || f.Alt == "" || f.Caption == "" || f.PerSubject() ||
				bytes.Contains(one.Bytes(), []byte("Not available")) {
				all = append(all, fmt.Errorf("figure %s: alt %q, caption %q, per subject %v, or it is not drawn twice "+
					"alike", f.ID, f.Alt, f.Caption, f.PerSubject()))
			}
			figures = append(figures, f)
		case item.Table != nil:
			if item.Table.Len() == 0 {
				all = append(all, fmt.Errorf("table %s is empty", item.Table.ID))
			}
		case item.Note == nil:
			all = append(all, errors.New("an empty item"))
		}
	}
	return figures, errors.Join(all...)
}
