package mixture_test

import (
	"bytes"
	"encoding/csv"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"parley/dataset"
	"parley/engine/local"
	"parley/internal/testkit"
	"parley/method"
	"parley/methods/mixture"
	"parley/sitestore"
	"parley/study"
)

var methods = method.Registry{mixture.Method{}}

const (
	unprotected = "{protection: none}"
	protected   = "{protection: differential, unit: subject, adjacency: add-remove, total: {epsilon: 5, delta: 1e-5}}"
)

// planText is a plan of one feature, two components and two sites, small enough to
// be run often.
func planText(options, privacy string) string {
	return fmt.Sprintf("parley: 1\nname: small\nsites: [a, b]\nviews:\n  - {name: v, features: [{name: x, range: [-8, "+
		"8]}]}\nmethod:\n  name: mixture\n  components: 2\n  %s\nprivacy: %s\n",
		strings.ReplaceAll(options, "\n", "\n  "), privacy)
}

func parse(t testing.TB, text string) *study.Plan {
	t.Helper()
	return testkit.Get(study.Parse("plan.yaml", []byte(text), methods))(t)
}

// twoModes gives site a the rows around −4 and site b those around 4.
func twoModes(t testing.TB, p *study.Plan, rows int) map[string]dataset.Source {
	t.Helper()
	r := rand.New(rand.NewPCG(8, 1))
	out := map[string]dataset.Source{}
	for j, site := range p.Sites {
		var table []dataset.Row
		for i := range rows {
			table = append(table, dataset.Row{ID: fmt.Sprintf("%04d", i),
				Views: [][]float64{{float64(8*j-4) + r.NormFloat64()}}})
		}
		// A row without its feature takes no part.
		table = append(table, dataset.Row{ID: "none", Views: [][]float64{nil}})
		source := testkit.Get(dataset.NewTable(p.Schema(), table))(t)
		out[site] = source
	}
	return out
}

func run(t testing.TB, c local.Config) *local.Outcome {
	t.Helper()
	return testkit.Get(local.Run(t.Context(), c))(t)
}

// column returns a column of model/posterior.csv.
func column(t testing.TB, r *method.Result, name string) (values []float64) {
	t.Helper()
	lines := testkit.Get(csv.NewReader(bytes.NewReader(posterior(t, r))).ReadAll())(t)
	at := slices.Index(lines[0], name)
	if at < 0 {
		t.Fatalf("no column %q in %q", name, lines[0])
	}
	for _, line := range lines[1:] {
		x := testkit.Get(strconv.ParseFloat(line[at], 64))(t)
		values = append(values, x)
	}
	return values
}

func posterior(t testing.TB, r *method.Result) []byte {
	t.Helper()
	i := slices.IndexFunc(r.Files, func(f method.File) bool { return f.Name == "model/posterior.csv" })
	if i < 0 {
		t.Fatal("no model/posterior.csv")
	}
	return r.Files[i].Data
}

// Two sites with a mode each: the posterior has both, with and without privacy. The
// tolerance is six standard errors of a mean of 300 rows, and for the weights of a
// share of 600; noise at ε 5 adds less than a tenth.
func TestTheModesOfTheSitesAreFound(t *testing.T) {
	for name, privacy := range map[string]string{"exact": unprotected, "private": protected} {
		t.Run(name, func(t *testing.T) {
			p := parse(t, planText("draws: 256", privacy))
			data := twoModes(t, p, 300)
			out := run(t, local.Config{Plan: p, Methods: methods, Data: data})
			m := out.Result.Metrics
			means := []float64{m["mean/1/x"], m["mean/2/x"]}
			slices.Sort(means)
			for k, want := range []float64{-4, 4} {
				if math.Abs(means[k]-want) > 0.4 {
					t.Errorf("component means %v, want −4 and 4", means)
				}
			}
			if math.Abs(m["weight/1"]-0.5) > 0.13 || math.Abs(m["weight/1"]+m["weight/2"]-1) > 1e-9 {
				t.Errorf("weights %v and %v, want ½ each", m["weight/1"], m["weight/2"])
			}
			if rows := m["rows"]; privacy == unprotected && rows != 600 || math.Abs(rows-600) > 50 {
				t.Errorf("%v rows, want 600", rows)
			}
			if left, told := m["left_out"]; told != (privacy == unprotected) || told && left != float64(len(data)) {
				t.Errorf("%v subjects left out, told: %v", left, told)
			}
			weights := column(t, out.Result, "sample_weight")
			sum := 0.0
			for _, w := range weights {
				sum += w
			}
			if len(weights) != 256 || math.Abs(sum-1) > 1e-9 {
				t.Errorf("%d draws of weight %v", len(weights), sum)
			}
			half := testkit.Get(mixture.Method{}.Site(p, "a"))(t)
			own, err := half.Report(t.Context(), out.Shares["a"], data["a"])
			if err != nil || own.Metrics["subjects"] != 300 || own.Metrics["left_out"] != 1 {
				t.Errorf("the report of site a: %+v, %v", own, err)
			}
		})
	}
}

// What the plan promises is what its one release costs, whatever the adjacency.
func TestChargesMeetTheTotal(t *testing.T) {
	for _, adjacency := range []string{"add-remove", "replace-one"} {
		p := parse(t, planText("draws: 64", strings.Replace(protected, "add-remove", adjacency, 1)))
		list, err := mixture.Method{}.Requests(p, "a")
		if err != nil || len(list) != 1 || list[0].Times != 1 || len(list[0].Request.Sums) != 1 {
			t.Fatalf("%+v, %v", list, err)
		}
		if _, err := methods.Cost(p); err != nil {
			t.Errorf("%s: %v", adjacency, err)
		}
	}
}

// The seed decides the sample, and nothing else does.
func TestThePosteriorIsAFunctionOfTheSeed(t *testing.T) {
	sample := func(seed string) []byte {
		p := parse(t, planText("draws: 64", unprotected)+seed)
		return posterior(t, run(t, local.Config{Plan: p, Methods: methods, Data: twoModes(t, p, 50)}).Result)
	}
	if !bytes.Equal(sample(""), sample("")) {
		t.Error("two runs of one plan differ")
	}
	if bytes.Equal(sample(""), sample("seed: 9\n")) {
		t.Error("two seeds give one sample")
	}
}

var update = flag.Bool("update", false, "write the data of examples/mixture")

// exampleMeans are the modes of section 4.2 of the paper, one for each site of
// examples/mixture; every covariance is the identity.
var exampleMeans = []struct {
	site string
	mean [2]float64
}{{"west", [2]float64{-9, 3}}, {"south", [2]float64{0, -9}}, {"east", [2]float64{8, 3}}}

// The data of examples/mixture are drawn, by this test with -update.
func TestExampleDataAreWhatTheirSeedDraws(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 2))
	for _, s := range exampleMeans {
		var subjects, rows bytes.Buffer
		fmt.Fprintln(&subjects, "id")
		fmt.Fprintln(&rows, "id,x,y")
		for i := range 300 {
			fmt.Fprintf(&subjects, "%s%03d\n", s.site, i+1)
			fmt.Fprintf(&rows, "%s%03d,%.4f,%.4f\n", s.site, i+1, s.mean[0]+r.NormFloat64(), s.mean[1]+r.NormFloat64())
		}
		for name, want := range map[string][]byte{"subjects.csv": subjects.Bytes(), "view_point.csv": rows.Bytes()} {
			path := filepath.Join("..", "..", "examples", "mixture", "data", s.site, name)
			if *update {
				testkit.Do(t, os.MkdirAll(filepath.Dir(path), 0o777))
				testkit.Do(t, os.WriteFile(path, want, 0o666))
			}
			got, err := os.ReadFile(path)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s is not what the seed draws (%v): run this test with -update", path, err)
			}
		}
	}
}

// A private run that has lost its checkpoint comes to the same bits from the sites'
// stores alone, and no site is charged again: its ε stays what it was.
func TestPrivateRunsComeBackFromTheStores(t *testing.T) {
	p := parse(t, planText("draws: 64", protected))
	c := local.Config{Plan: p, Methods: methods, Data: twoModes(t, p, 100), Dir: t.TempDir()}
	first := posterior(t, run(t, c).Result)
	testkit.Do(t, os.Remove(filepath.Join(c.Dir, local.CheckpointName)))
	if again := posterior(t, run(t, c).Result); !bytes.Equal(first, again) {
		t.Error("from what the sites had released came another posterior")
	}
	for _, name := range p.Sites {
		store := testkit.Get(sitestore.Open(filepath.Join(c.Dir, "sites", name, "site.db")))(t)
		charges, err := store.Reservations(0)
		testkit.Do(t, errors.Join(err, store.Close()))
		if len(charges) != 1 {
			t.Errorf("site %s was charged %d times", name, len(charges))
		}
	}
}
