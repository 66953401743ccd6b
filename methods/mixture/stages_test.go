package mixture_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"parley/dataset"
	"parley/engine/enginetest"
	"parley/engine/local"
	"parley/figure"
	"parley/method"
	"parley/methods/mixture"
	"parley/methods/mixture/options"
	"parley/methods/mixture/scarce"
	"parley/privacy"
	"parley/study"
)

const wardFeatures = 12

// wardsPlan is a plan of three sites, of which the first has most subjects who are sick.
func wardsPlan(opts, privacy string) string {
	var all []string
	for i := range wardFeatures {
		all = append(all, fmt.Sprintf("{name: x%d, range: [-8, 8]}", i+1))
	}
	return fmt.Sprintf("parley: 1\nname: wards\nsites: [a, b, c]\nquorum: 1\nviews:\n  - {name: v, features: [%s]}\nsubjects: [ward, sick]\nmethod:\n  name: graffl\n  components: 1\n  %s\nprivacy: %s\n",
		strings.Join(all, ", "), strings.ReplaceAll(opts, "\n", "\n  "), privacy)
}

// ward is some subjects, the first of whom are sick. Sickness moves one direction of
// twelve features by a shift; two other directions vary as much.
func ward(t testing.TB, p *study.Plan, subjects, sick int, shift float64, seed uint64) dataset.Source {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 3))
	var table []dataset.Row
	for i := range subjects {
		x := make([]float64, wardFeatures)
		directions := []float64{r.NormFloat64(), r.NormFloat64(), r.NormFloat64()}
		level := "no"
		if i < sick {
			directions[0] += shift
			level = "yes"
		}
		for k := range x {
			x[k] = directions[k%3] + r.NormFloat64()
		}
		table = append(table, dataset.Row{ID: fmt.Sprintf("%05d", i), Views: [][]float64{x}, Subject: []string{"w", level}})
	}
	source, err := dataset.NewTable(p.Schema(), table)
	if err != nil {
		t.Fatal(err)
	}
	return source
}

// staged are plans with phases around a sampler, small enough to be run often.
var staged = map[string]string{
	"codes":     "encoder: {epochs: 2, dimension: 2, hidden: [4]}\ndraws: 64",
	"own codes": "encoder: {epochs: 2, dimension: 2, hidden: [], shared: false}\ndraws: 64",
}

const scarceSick = "scarce: {outcome: {column: sick, levels: [no, yes]}, held: %v}"

// scarceWards are 3 sites of which the last two learn from about 8 who are sick.
func scarceWards(t testing.TB, p *study.Plan, seed uint64) map[string]dataset.Source {
	return map[string]dataset.Source{"a": ward(t, p, 2400, 1200, 1.4, seed), "b": ward(t, p, 2000, 64, 1.4, 10+seed), "c": ward(t, p, 2000, 64, 1.4, 20+seed)}
}

// Rows of a class that is scarce at two sites, drawn from a mixture of what all know of it,
// are kept there and predict held subjects better than without; and a site that has
// enough of the class is told so.
func TestRowsOfAllSitesHelpWhereAClassIsScarce(t *testing.T) {
	p := parse(t, wardsPlan(fmt.Sprintf(scarceSick, 0.87)+"\ndraws: 256\nencoder: {epochs: 20}", unprotected))
	data := scarceWards(t, p, 2)
	out := run(t, local.Config{Plan: p, Methods: methods, Data: data})
	m := out.Result.Metrics
	for _, site := range []string{"b", "c"} {
		if m[site+"/kept"] != 1 || !(m[site+"/auc/synthetic rows"] > m[site+"/auc/raw"]) {
			t.Errorf("site %s: kept %v, AUC %v with synthetic rows, %v without", site, m[site+"/kept"], m[site+"/auc/synthetic rows"], m[site+"/auc/raw"])
		}
		own := report(t, p, site, out, data)
		if n := bytes.Count(file(t, own, "synthetic.csv"), []byte(",yes\n")); float64(n) != m[site+"/other_rows"]-m[site+"/rows_of_class"] {
			t.Errorf("site %s keeps %d rows, of %v others and %v of the class", site, n, m[site+"/other_rows"], m[site+"/rows_of_class"])
		}
		for name, x := range own.Metrics {
			if shared, ok := m[site+"/"+name]; ok && shared != x {
				t.Errorf("site %s reports %s %v, and released %v", site, name, x, shared)
			}
		}
	}
	own := report(t, p, "a", out, data)
	if m["a/kept"] != 0 || slices.ContainsFunc(own.Files, func(f method.File) bool { return f.Name == "synthetic.csv" }) {
		t.Error("site a has enough of the class and kept synthetic rows")
	}
}

// Encoders that are trained apart have unrelated axes: what is made of all codes misleads,
// and the verdict keeps it out.
func TestRowsOfUnrelatedCodesAreNotKept(t *testing.T) {
	p := parse(t, wardsPlan(fmt.Sprintf(scarceSick, 0.87)+"\ndraws: 64\nencoder: {epochs: 20, shared: false}", unprotected))
	data := scarceWards(t, p, 2)
	out := run(t, local.Config{Plan: p, Methods: methods, Data: data})
	m := out.Result.Metrics
	for _, site := range []string{"b", "c"} {
		if m[site+"/kept"] != 0 || !(m[site+"/auc/synthetic rows"] < m[site+"/auc/raw"]-0.03) {
			t.Errorf("site %s: kept %v, AUC %v with synthetic rows, %v without", site, m[site+"/kept"], m[site+"/auc/synthetic rows"], m[site+"/auc/raw"])
		}
		own := report(t, p, site, out, data)
		if slices.ContainsFunc(own.Files, func(f method.File) bool { return f.Name == "synthetic.csv" }) {
			t.Errorf("site %s has synthetic rows all the same", site)
		}
		// It has its own classifier.
		if c, err := scarce.LoadClassifier(file(t, own, "model/model.json")); err != nil || c.Synthetic != 0 || c.Site != site {
			t.Errorf("site %s: %+v, %v", site, c, err)
		}
	}
}

// report is what a site's own people get.
func report(t testing.TB, p *study.Plan, site string, out *local.Outcome, data map[string]dataset.Source) *method.Result {
	t.Helper()
	half, err := mixture.Method{}.Site(p, site)
	if err != nil {
		t.Fatal(err)
	}
	r, err := half.Report(t.Context(), out.Shares[site], data[site])
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func file(t testing.TB, r *method.Result, name string) []byte {
	t.Helper()
	i := slices.IndexFunc(r.Files, func(f method.File) bool { return f.Name == name })
	if i < 0 {
		t.Fatalf("no file %s", name)
	}
	return r.Files[i].Data
}

// What a site's report leaves predicts other subjects, from their features as they are, and
// says how well.
func TestASitesClassifierPredictsItsSubjects(t *testing.T) {
	for name, opts := range map[string]string{"codes": "encoder: {epochs: 5, dimension: 3}", "projection": "encoder: {kind: projection}", "features": "sketch: {frequencies: 100}"} {
		t.Run(name, func(t *testing.T) {
			p := parse(t, wardsPlan(fmt.Sprintf(scarceSick, 0.25)+"\ndraws: 64\n"+opts, unprotected))
			data := map[string]dataset.Source{"a": ward(t, p, 200, 100, 2, 1), "b": ward(t, p, 100, 30, 2, 2), "c": ward(t, p, 100, 30, 2, 3)}
			out := run(t, local.Config{Plan: p, Methods: methods, Data: data})
			opened, err := method.OpenModel(methods, file(t, report(t, p, "a", out, data), "model/model.json"))
			if err != nil {
				t.Fatal(err)
			}
			m, ok := opened.(method.Predictor)
			want := p.Schema().Views
			for _, v := range want {
				for j := range v.Columns {
					v.Columns[j].Range = nil // the plan's, and no part of the classifier
				}
			}
			if !ok || m.Outcome()[0] != "sick" || !reflect.DeepEqual(opened.Schema().Views, want) {
				t.Fatalf("%T of %+v", opened, opened.Schema())
			}
			if _, err := opened.(method.Summariser).Summary(1); err != nil {
				t.Error(err)
			}
			schema := opened.Schema()
			schema.Subject = []dataset.Column{{Name: "sick", Kind: dataset.Label}}
			var rows []dataset.Row
			for row, err := range ward(t, p, 400, 200, 2, 4).Rows(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				rows = append(rows, dataset.Row{ID: row.ID, Views: [][]float64{slices.Clone(row.Views[0])}, Subject: []string{row.Subject[1]}})
			}
			rows[0].Views = [][]float64{nil} // with an encoder it is at the centre
			others, err := dataset.NewTable(schema, rows)
			if err != nil {
				t.Fatal(err)
			}
			var to bytes.Buffer
			n, account, err := m.Predict(t.Context(), others, &to, method.PredictOptions{Score: true, Level: 0.9})
			if err != nil || n != 400 {
				t.Fatalf("%d subjects, %v", n, err)
			}
			// A shift of 2 in one direction of noise: at best an AUC of Φ(2·√(4/5)/√2) = .90.
			at := slices.IndexFunc(account.Facts, func(f figure.Fact) bool { return f.Name == "AUC" })
			if auc, err := strconv.ParseFloat(account.Facts[at].Value, 64); err != nil || auc < 0.75 {
				t.Errorf("%v, %v", account.Facts, err)
			}
			lines := strings.Split(to.String(), "\n")
			if lines[0] != "id,predicted,p=yes" || name == "features" && lines[1] != "00000,," || name != "features" && lines[1] == "00000,," {
				t.Errorf("%q", lines[:2])
			}
		})
	}
}

// releases are the bytes of every answer, by site and task.
type releases struct {
	method.Coordinator
	all map[string][]byte
}

func (r releases) Fold(s method.State, in method.Contribution) (method.State, error) {
	key := in.Site + " " + in.Kind
	r.all[key] = append(r.all[key], in.Body...)
	return r.Coordinator.Fold(s, in)
}

func released(t *testing.T, p *study.Plan, data map[string]dataset.Source) map[string][]byte {
	t.Helper()
	w := enginetest.New(p.Sites...)
	c, err := w.Coordinator(mixture.Method{}, p, data)
	if err != nil {
		t.Fatal(err)
	}
	r := releases{Coordinator: c.Method, all: map[string][]byte{}}
	c.Method = r
	if _, err := c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r.all
}

// Held subjects have no part in anything but the scores that are to judge it.
func TestNothingIsLearnedFromHeldRows(t *testing.T) {
	for name, opts := range staged {
		t.Run(name, func(t *testing.T) {
			p := parse(t, wardsPlan(fmt.Sprintf(scarceSick, 0.3)+"\n"+opts, unprotected))
			held, err := options.New(p)
			if err != nil {
				t.Fatal(err)
			}
			data := map[string]dataset.Source{}
			changed := map[string]dataset.Source{}
			for i, site := range p.Sites {
				data[site] = ward(t, p, 60, 25, 1, uint64(i))
				changed[site] = change(t, p, data[site], func(row dataset.Row) bool { return held.Held(row.ID) })
			}
			before, after := released(t, p, data), released(t, p, changed)
			for key, body := range before {
				judges := strings.HasSuffix(key, " worth")
				if same := bytes.Equal(body, after[key]); same == judges {
					t.Errorf("%s: the same bytes %v after held subjects changed", key, same)
				}
			}
		})
	}
}

// Where nothing is trained, subjects who are not of the class have no part in the mixture.
func TestTheMixtureIsOfTheClassAlone(t *testing.T) {
	for name, opts := range map[string]string{
		"features":   "sketch: {frequencies: 100}\ndraws: 64",
		"projection": "encoder: {kind: projection, dimension: 2}\ndraws: 64",
	} {
		t.Run(name, func(t *testing.T) {
			p := parse(t, wardsPlan(fmt.Sprintf(scarceSick, 0.3)+"\n"+opts, unprotected))
			data := map[string]dataset.Source{}
			other, sick := map[string]dataset.Source{}, map[string]dataset.Source{}
			for i, site := range p.Sites {
				data[site] = ward(t, p, 40, 20, 1, uint64(i))
				other[site] = change(t, p, data[site], func(row dataset.Row) bool { return row.Subject[1] != "yes" })
				sick[site] = change(t, p, data[site], func(row dataset.Row) bool { return row.Subject[1] == "yes" })
			}
			a, b, c := released(t, p, data), released(t, p, other), released(t, p, sick)
			for key, body := range a {
				if strings.HasSuffix(key, " worth") || strings.HasSuffix(key, " classifier") {
					continue
				}
				if !bytes.Equal(body, b[key]) {
					t.Errorf("%s: other bytes after subjects of the other class changed", key)
				}
				if bytes.Equal(body, c[key]) {
					t.Errorf("%s: the same bytes after subjects of the class changed", key)
				}
			}
		})
	}
}

// change moves the features of some rows.
func change(t *testing.T, p *study.Plan, data dataset.Source, which func(dataset.Row) bool) dataset.Source {
	t.Helper()
	var table []dataset.Row
	for row, err := range data.Rows(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		one := dataset.Row{ID: row.ID, Views: [][]float64{slices.Clone(row.Views[0])}, Subject: slices.Clone(row.Subject)}
		if which(one) {
			for k := range one.Views[0] {
				one.Views[0][k] -= 3
			}
		}
		table = append(table, one)
	}
	source, err := dataset.NewTable(p.Schema(), table)
	if err != nil {
		t.Fatal(err)
	}
	return source
}

// Under differential privacy the one sum is all that leaves, whatever is made of it, and costs
// what the plan says; the site's own report has all but what others would have had to release.
func TestPrivatePlansReleaseOneSum(t *testing.T) {
	for name, opts := range map[string]string{"projection": "encoder: {kind: projection, dimension: 1}", "features": "sketch: {frequencies: 100}"} {
		t.Run(name, func(t *testing.T) {
			p := parse(t, wardsPlan(fmt.Sprintf(scarceSick, 0.25)+"\ndraws: 64\n"+opts, protected))
			if _, err := methods.Cost(p); err != nil {
				t.Fatal(err)
			}
			data := map[string]dataset.Source{"a": ward(t, p, 80, 40, 2, 1), "b": ward(t, p, 80, 20, 2, 2), "c": ward(t, p, 80, 20, 2, 3)}
			out := run(t, local.Config{Plan: p, Methods: methods, Data: data})
			if len(out.Rounds) != 1 || len(out.Rounds[0].Sites) != 3 {
				t.Fatalf("%+v", out.Rounds)
			}
			for _, x := range out.Rounds[0].Sites {
				if x.Request.Protection != privacy.Differential || len(x.Request.Sums) != 1 {
					t.Errorf("site %s released %+v", x.Site, x.Request)
				}
			}
			m := report(t, p, "b", out, data).Metrics
			if _, ok := m["auc/raw"]; !ok {
				t.Errorf("the site's own report has no table: %v", m)
			}
			if _, ok := m["auc/another site's classifier"]; ok {
				t.Error("a classifier of another site, which nobody paid for")
			}
		})
	}
}

// A class that no site has is named, whatever the form.
func TestAClassThatNobodyHasIsNamed(t *testing.T) {
	for _, opts := range []string{"draws: 64", "sketch: {}"} {
		p := parse(t, wardsPlan(fmt.Sprintf(scarceSick, 0.2)+"\n"+opts, unprotected))
		data := map[string]dataset.Source{}
		for i, site := range p.Sites {
			data[site] = ward(t, p, 20, 0, 0, uint64(i))
		}
		_, err := local.Run(t.Context(), local.Config{Plan: p, Methods: methods, Data: data})
		if err == nil || !strings.Contains(err.Error(), "no site has a row of sick yes that may be learned from") {
			t.Errorf("%s: %v", opts, err)
		}
	}
}
