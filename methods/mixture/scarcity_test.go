package mixture_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"parley/dataset"
	"parley/engine/enginetest"
	"parley/engine/local"
	"parley/internal/testkit"
	"parley/method"
	"parley/methods/mixture"
	"parley/study"
)

// ward is some subjects, the first of whom are sick: that moves the first of two features by a shift.
func ward(t testing.TB, p *study.Plan, subjects, sick int, shift float64, seed uint64) dataset.Source {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 3))
	var table []dataset.Row
	for i := range subjects {
		x, level := []float64{r.NormFloat64(), r.NormFloat64()}, "no"
		if i < sick {
			x[0], level = x[0]+shift, "yes"
		}
		table = append(table, dataset.Row{ID: fmt.Sprintf("%05d", i), Views: [][]float64{x}, Subject: []string{level}})
	}
	return testkit.Get(dataset.NewTable(p.Schema(), table))(t)
}

func classPlan(t testing.TB, held float64, privacy string) *study.Plan {
	t.Helper()
	return parse(t, strings.Replace(scarcePlan(fmt.Sprintf("scarce: {outcome: {column: sick, levels: [no, yes]}, held: %v}\ndraws: 64", held), privacy), "components: 2", "components: 1", 1))
}

func siteReport(t testing.TB, p *study.Plan, site string, out *local.Outcome, data map[string]dataset.Source) *method.Result {
	t.Helper()
	half := testkit.Get(mixture.Method{}.Site(p, site))(t)
	return testkit.Get(half.Report(t.Context(), out.Shares[site], data[site]))(t)
}

// Rows of a class that is scarce at one site, drawn from a mixture of what all know of it, are tried there beside
// what the site can do alone; a site that has enough of the class is told so, and rows that are kept are of the
// class and in the features' units.
func TestRowsOfAllSitesAreTriedWhereAClassIsScarce(t *testing.T) {
	for _, privacy := range []string{unprotected, protected} {
		p := classPlan(t, 0.5, privacy)
		data := map[string]dataset.Source{"a": ward(t, p, 2400, 1200, 1.4, 2), "b": ward(t, p, 2000, 24, 1.4, 12)}
		out := run(t, local.Config{Plan: p, Methods: methods, Data: data})
		if len(out.Rounds) != 1 {
			t.Errorf("%s: %d rounds, want the one release", privacy, len(out.Rounds))
		}
		own := siteReport(t, p, "b", out, data)
		for _, arm := range []string{"raw", "oversampling", "synthetic rows"} {
			if auc := own.Metrics["auc/"+arm]; !(auc > 0.7 && auc < 0.95) || !(own.Metrics["cross_validated_auc/"+arm] > 0.5) {
				t.Errorf("%s: AUC %v of %s", privacy, auc, arm)
			}
		}
		at := slices.IndexFunc(own.Files, func(f method.File) bool { return f.Name == "synthetic.csv" })
		if kept := own.Metrics["kept"] == 1; kept != (at >= 0) {
			t.Errorf("%s: kept %t, file %d", privacy, kept, at)
		} else if kept {
			if n := bytes.Count(own.Files[at].Data, []byte(",yes\n")); float64(n) != own.Metrics["other_rows"]-own.Metrics["rows_of_class"] {
				t.Errorf("%s: %d rows are kept, of %v", privacy, n, own.Metrics)
			}
		}
		if a := siteReport(t, p, "a", out, data); a.Metrics["kept"] != 0 || !strings.Contains(a.Sections[0].Items[0].Note.Text, "not scarce here") {
			t.Errorf("%s: a site with enough of the class: %+v", privacy, a.Sections[0].Items[0].Note)
		}
	}
}

// releases are the bytes of every answer, by site and task.
type releases struct {
	method.Coordinator
	all map[string][]byte
}

func (r releases) Fold(s method.State, in method.Contribution) (method.State, error) {
	r.all[in.Site+" "+in.Kind] = append(r.all[in.Site+" "+in.Kind], in.Body...)
	return r.Coordinator.Fold(s, in)
}

// Neither held subjects nor those of the other class have a part in what sites release.
func TestTheMixtureIsOfTheClassThatMayBeLearnedFrom(t *testing.T) {
	p := classPlan(t, 0.3, unprotected)
	held := testkit.Get(mixture.NewSetup(p, p.Method.Options.(*mixture.Options)))(t)
	released := func(which func(dataset.Row) bool) map[string][]byte {
		data := map[string]dataset.Source{}
		for i, site := range p.Sites {
			var table []dataset.Row
			for row, err := range ward(t, p, 40, 20, 1, uint64(i)).Rows(t.Context()) {
				testkit.Do(t, err)
				one := dataset.Row{ID: row.ID, Views: [][]float64{slices.Clone(row.Views[0])}, Subject: slices.Clone(row.Subject)}
				if which(one) {
					one.Views[0][0] -= 3
				}
				table = append(table, one)
			}
			data[site] = testkit.Get(dataset.NewTable(p.Schema(), table))(t)
		}
		c := testkit.Get(enginetest.New(p.Sites...).Coordinator(mixture.Method{}, p, data))(t)
		r := releases{Coordinator: c.Method, all: map[string][]byte{}}
		c.Method = r
		testkit.Get(c.Run(t.Context()))(t)
		return r.all
	}
	of := func(scarce, isHeld bool) func(dataset.Row) bool {
		return func(row dataset.Row) bool { return (row.Subject[0] == "yes") == scarce && held.Held(row.ID) == isHeld }
	}
	before := released(func(dataset.Row) bool { return false })
	for _, c := range []struct{ scarce, held, same bool }{{true, true, true}, {false, true, true}, {false, false, true}, {true, false, false}} {
		for key, body := range released(of(c.scarce, c.held)) {
			if bytes.Equal(body, before[key]) != c.same {
				t.Errorf("%s: the same bytes %t after subjects changed: of the class %t, held %t", key, !c.same, c.scarce, c.held)
			}
		}
	}
}

// A class that no site has is named.
func TestAClassThatNobodyHasIsNamed(t *testing.T) {
	p := classPlan(t, 0.2, unprotected)
	data := map[string]dataset.Source{"a": ward(t, p, 20, 0, 0, 1), "b": ward(t, p, 20, 0, 0, 2)}
	_, err := local.Run(t.Context(), local.Config{Plan: p, Methods: methods, Data: data})
	if err == nil || !strings.Contains(err.Error(), "no site has a row of sick yes that may be learned from") {
		t.Error(err)
	}
}

// A mixture of one class says nothing of other rows, so that no evaluation of it is one of the plan's.
func TestAMixtureOfOneClassIsNotEvaluated(t *testing.T) {
	p := classPlan(t, 0.2, unprotected)
	if _, err := (mixture.Method{}).Evaluator(p, nil, false); err == nil || !strings.Contains(err.Error(), "the mixture is of one class") {
		t.Error(err)
	}
}
