package dppvi

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"parley/dataset"
	"parley/engine"
	"parley/engine/enginetest"
	"parley/engine/local"
	"parley/internal/testkit"
	"parley/method"
	"parley/method/methodtest"
	"parley/methods/regression/fitted"
	"parley/methods/regression/glm"
	"parley/study"
)

var methods = method.Registry{Method{}}

const publishedRows = "rows: [{site: a, rows: 2000}, {site: b, rows: 400}]\n"

func setupOf(t testing.TB, p *study.Plan) *common {
	t.Helper()
	return testkit.Get(newCommon(p, nil))(t)
}

// planOf is a plan with numbers x0, x1, … that need no scaling, and outcome y.
func planOf(t testing.TB, columns int, sites []string, options, privacy string) *study.Plan {
	t.Helper()
	return parse(t, planText(columns, sites, options, privacy))
}

func planText(columns int, sites []string, options, privacy string) string {
	var features, constants []string
	for j := range columns {
		features = append(features, fmt.Sprintf("x%d", j))
		constants = append(constants, fmt.Sprintf("{feature: x%d, centre: 0, scale: 1}", j))
	}
	return fmt.Sprintf("parley: 1\nname: small\nsites: [%s]\nviews:\n  - {name: v, features: [%s]}\nsubjects: "+
		"[y]\nmethod:\n  name: dp-pvi\n  intercept: false\n  constants: [%s]\n  %s\nprivacy: %s\n",
		strings.Join(sites, ", "), strings.Join(features, ", "), strings.Join(constants, ", "),
		strings.ReplaceAll(options, "\n", "\n  "), privacy)
}

const (
	unprotected = "{protection: none}"
	protected   = "{protection: differential, unit: subject, adjacency: add-remove, total: {epsilon: 2, delta: 1e-5}}"
	twoLevels   = "outcome: {column: y, levels: [no, yes]}\n"
)

type sample = methodtest.Sample

var drawn, yesNo = methodtest.Drawn, methodtest.YesNo

// config is a run with a sample's rows divided unevenly.
func config(t testing.TB, s sample, p *study.Plan) local.Config {
	t.Helper()
	return local.Config{Plan: p, Methods: methods, Data: s.Divided(t, p)}
}

func run(t testing.TB, c local.Config) (*fitted.Model, *local.Outcome) {
	t.Helper()
	out := testkit.Get(local.Run(t.Context(), c))(t)
	return modelOf(t, out.Result), out
}

func modelOf(t testing.TB, r *method.Result) *fitted.Model {
	t.Helper()
	i := slices.IndexFunc(r.Files, func(f method.File) bool { return f.Name == "model/model.json" })
	if i < 0 {
		t.Fatal("no model/model.json")
	}
	return testkit.Get(fitted.LoadModel(r.Files[i].Data))(t)
}

func close2(t testing.TB, what string, want, got []float64, tol float64) {
	t.Helper()
	if len(want) != len(got) {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	for i := range want {
		if !(math.Abs(want[i]-got[i]) <= tol*max(1, math.Abs(want[i]))) {
			t.Fatalf("%s: entry %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}

// Without noise every schedule ends where central inference does, with every
// likelihood; the asynchronous one too, whoever is slow.
func TestSchedulesEndAtCentralInference(t *testing.T) {
	sites := []string{"a", "b", "c"}
	binary := drawn(1, 90, 3, yesNo)
	for name, c := range map[string]struct {
		options string
		s       sample
	}{
		"sequential":   {twoLevels + "schedule: sequential\nrounds: 60", binary},
		"synchronous":  {twoLevels + "schedule: synchronous\nrounds: 150", binary},
		"random":       {twoLevels + "schedule: random\ndamping: 0.8\nrounds: 120", binary},
		"asynchronous": {twoLevels + "schedule: asynchronous\nrounds: 150", binary},
		"asynchronous, slow": {twoLevels + "schedule: asynchronous\nrounds: 250\nrows: [{site: a, rows: 10}, {site: " +
			"b, rows: 10}, {site: c, rows: 90}]", binary},
		"linear": {"outcome: {column: y}\nnoise_variance: 0.5\nrounds: 60",
			drawn(2, 90, 3, func(r *rand.Rand, f float64) string {
				return fmt.Sprint(f + math.Sqrt(0.5)*r.NormFloat64())
			})},
	} {
		t.Run(name, func(t *testing.T) {
			p := planOf(t, len(c.s.X[0]), sites, c.options+"\nalgorithm: exact\ntolerance: 0", unprotected)
			m, out := run(t, config(t, c.s, p))
			central := testkit.Get(central(t.Context(), setupOf(t, p), c.s.Table(t, p, nil)))(t)
			close2(t, "eta", central.Model.Posterior.Eta, m.Posterior.Eta, 1e-5)
			close2(t, "lambda", central.Model.Posterior.Lambda, m.Posterior.Lambda, 1e-5)
			if out.Result.Metrics["subjects"] != 90 {
				t.Errorf("metrics %v", out.Result.Metrics)
			}
		})
	}
}

// Published steps of minibatches end near central inference, by data of sites that differ too; of a
// batch no row comes twice.
func TestGradientsEndNearCentralInference(t *testing.T) {
	s := drawn(5, 900, 3, yesNo)
	p := planOf(t, 3, []string{"a", "b"}, twoLevels+"rows: [{site: a, rows: 150}, {site: b, rows: 750}]", unprotected)
	small := func(i int) bool { return s.Y[i] == "yes" && i%3 == 0 }
	data := map[string]dataset.Source{"a": s.Table(t, p, small),
		"b": s.Table(t, p, func(i int) bool { return !small(i) })}
	c := local.Config{Plan: p, Methods: methods, Data: data}
	m, out := run(t, c)
	central := testkit.Get(central(t.Context(), setupOf(t, p), s.Table(t, p, nil)))(t)
	updates := out.Result.Metrics["updates"]
	if kl, err := divergence(m.Posterior, central.Model.Posterior); err != nil || kl > 1 || updates != 200 {
		t.Errorf("%v nats from central inference after %v updates, %v", kl, updates, err)
	}
	d := simulated(1, 30, 8, binary)
	seen := map[*float64]bool{}
	sum, err := minibatches(d, 30, 16, rand.New(rand.NewPCG(1, 2)))(func(x glm.Row, _ float64, v []float64) {
		v[0], seen[&x.Value[:1][0]] = 1, true
	})
	if err != nil || sum[0] != 30 || len(seen) != 30 {
		t.Errorf("%v: %d rows of 30, %v", sum, len(seen), err)
	}
}

// Slow sites make fewer updates, and different seeds another order of events.
func TestAsynchronousSitesWorkAtTheirOwnRates(t *testing.T) {
	sites := []string{"a", "b", "c"}
	s := drawn(1, 90, 3, yesNo)
	p := planOf(t, 3, sites, twoLevels+"schedule: asynchronous\nalgorithm: exact\nrounds: 40\ntolerance: 0\nrows: "+
		"[{site: a, rows: 10}, {site: b, rows: 20}, {site: c, rows: 200}]", unprotected)
	m, out := run(t, config(t, s, p))
	updates := map[string]int{}
	total := 0
	for _, x := range m.Sites {
		updates[x.Name] = x.Updates
		total += x.Updates
	}
	// Expected 75, 37 and 4 of 116 in so much time; far beyond chance.
	if total != 120 || !(updates["a"] > updates["b"] && updates["b"] > 3*updates["c"] && updates["c"] > 0) {
		t.Errorf("updates %v", updates)
	}
	if n := len(out.Rounds); n < 120 {
		t.Errorf("%d rounds", n)
	}
}

// Scaling by pooled moments is scaling by those of all rows: the fit is that of
// central inference, and effects are in the features' own units.
func TestStandardScalingPoolsMoments(t *testing.T) {
	s := drawn(4, 120, 2, yesNo)
	for i := range s.X {
		s.X[i][0] = 1000 + 50*s.X[i][0]
	}
	s.X[5][1] = math.NaN()
	text := planText(2, []string{"a", "b", "c"}, twoLevels+"algorithm: exact\nrounds: 80\ntolerance: 0", unprotected)
	text = strings.Replace(strings.Replace(text, "constants: ", "scaling: standard # ", 1), "intercept: false",
		"intercept: true", 1)
	p := parse(t, text)
	m, _ := run(t, config(t, s, p))
	central := testkit.Get(central(t.Context(), setupOf(t, p), s.Table(t, p, nil)))(t)
	close2(t, "eta", central.Model.Posterior.Eta, m.Posterior.Eta, 1e-5)
	c := m.Encoding.Columns[0]
	if math.Abs(c.Centre-1000) > 20 || math.Abs(c.Scale-50) > 10 {
		t.Errorf("centre %v and scale %v", c.Centre, c.Scale)
	}
	mean, _ := m.Posterior.Moments()
	if e := m.Effects[0]; math.Abs(e.Mean-mean[0]/c.Scale) > 1e-12 || e.Feature != "x0" {
		t.Errorf("effect %+v", e)
	}
}

// The baseline fails where sites differ, as published, and not where they do not;
// partitioned inference fails nowhere.
func TestGlobalVariantIsBiasedTowardsSitesThatComeOften(t *testing.T) {
	s := drawn(5, 600, 2, yesNo)
	rows := "rows: [{site: a, rows: 60}, {site: b, rows: 540}]"
	p := planOf(t, 2, []string{"a", "b"}, twoLevels+"algorithm: global\nrounds: 300\n"+rows, unprotected)
	c := local.Config{Plan: p, Methods: methods, Data: map[string]dataset.Source{}}
	yes := 0
	c.Data["a"] = s.Table(t, p, func(i int) bool { // the small site sees one class
		if s.Y[i] == "yes" && s.X[i][0] > 0 && yes < 60 {
			yes++
			return true
		}
		return false
	})
	c.Data["b"] = s.Table(t, p, nil)
	m, out := run(t, c)
	central := testkit.Get(central(t.Context(), setupOf(t, p), s.Table(t, p, nil)))(t)
	kl, err := divergence(m.Posterior, central.Model.Posterior)
	if err != nil || kl < 5 {
		t.Errorf("only %v nats from central inference, %v", kl, err)
	}
	if out.Result.Metrics["updates"] != 600 {
		t.Errorf("%v steps", out.Result.Metrics["updates"])
	}
}

// start puts the whole study together on what the world has kept.
func start(t *testing.T, w *enginetest.World, p *study.Plan, data map[string]dataset.Source) *engine.Coordinator {
	t.Helper()
	c := testkit.Get(w.Coordinator(Method{}, p, data))(t)
	w.Start(-1)
	return c
}

// A site that leaves keeps its factor in the posterior, as it stood.
func TestLeavingSiteKeepsItsFactor(t *testing.T) {
	s := drawn(8, 60, 2, yesNo)
	for _, schedule := range []string{"sequential", "synchronous", "asynchronous", "random"} {
		p := planOf(t, 2, []string{"a", "b", "c"}, twoLevels+"algorithm: exact\nrounds: 40\ntolerance: 0\ndamping: "+
			"0.4\nschedule: "+schedule, unprotected)
		p.Quorum = 2
		w := enginetest.New(p.Sites...)
		w.Refuses = map[string]int{"b": 3}
		out, err := start(t, w, p, config(t, s, p).Data).Run(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", schedule, err)
		}
		m := modelOf(t, out.Result)
		q := m.Prior
		for _, x := range m.Sites {
			q = times(q, x.Factor)
			if left := x.Name == "b"; x.Left != left || left && (x.Updates != 3 || x.Information <= 0) || !left &&
				x.Updates < 20 {
				t.Errorf("%s: site %s left: %v, after %d updates", schedule, x.Name, x.Left, x.Updates)
			}
		}
		close2(t, schedule, q.Eta, m.Posterior.Eta, 1e-12)
		close2(t, schedule, q.Lambda, m.Posterior.Lambda, 1e-12)
	}
}

// A model that is finished does not need the assessment, whoever fails to give it.
func TestModelStandsWithoutItsAssessment(t *testing.T) {
	s := drawn(8, 60, 2, yesNo)
	p := planOf(t, 2, []string{"a", "b", "c"}, twoLevels+"algorithm: exact\nrounds: 4\ntolerance: 0\nschedule: "+
		"synchronous", unprotected)
	data := config(t, s, p).Data
	quiet := testkit.Get(start(t, enginetest.New(p.Sites...), p, data).Run(t.Context()))(t)
	for _, refuses := range []map[string]int{{"c": 4}, {"a": 4, "b": 4, "c": 4}} {
		w := enginetest.New(p.Sites...)
		w.Refuses = refuses
		out := testkit.Get(start(t, w, p, data).Run(t.Context()))(t)
		if len(out.Left) != len(refuses) {
			t.Fatalf("left: %v", out.Left)
		}
		close2(t, "Λμ", modelOf(t, out.Result).Posterior.Eta, modelOf(t, quiet.Result).Posterior.Eta, 0)
	}
}

// A partitioned fit that says it has converged is where the fit to all rows is, and one that
// ends well before says so first, whatever the schedule. Collinear features are slow.
func TestPartitionedFitsKnowWhetherTheyConverged(t *testing.T) {
	s := drawn(21, 150, 3, yesNo)
	tied := drawn(22, 150, 3, yesNo)
	for _, x := range tied.X {
		x[1], x[2] = x[0]+0.01*x[1], -x[0]+0.01*x[2]
	}
	for _, c := range []struct {
		s         sample
		options   string
		converged bool
	}{
		{s, "", true},
		{s, "schedule: synchronous", true},
		{s, "schedule: synchronous\nrounds: 4", false},
		{s, "rounds: 1", false},
		{s, "rounds: 2", false},
		{s, "rounds: 200\ntolerance: 0", true},
		{tied, "", false},
		{tied, "rounds: 3000", true},
	} {
		p := planOf(t, 3, []string{"a", "b"}, twoLevels+"algorithm: exact\n"+c.options, unprotected)
		m, out := run(t, config(t, c.s, p))
		fit := testkit.Get(central(t.Context(), setupOf(t, p), c.s.Table(t, p, nil)))(t)
		want, variance := fit.Model.Posterior.Moments()
		got, _ := m.Posterior.Moments()
		far := 0.0
		for j := range want {
			far = max(far, math.Abs(got[j]-want[j])/math.Sqrt(variance[j]))
		}
		said := out.Result.Metrics["converged"] == 1
		t.Logf("%q: %.2g deviations from the end; %v", c.options, far, out.Result.Verdicts())
		if said != c.converged || m.Converged == nil || *m.Converged != said ||
			said != !strings.Contains(strings.Join(out.Result.Verdicts(), "\n"), "had not converged") || said &&
			far > 0.01 || !said && far < 0.001 {
			t.Errorf("%q: %.2g deviations from the end, converged %v: %v", c.options, far, said, out.Result.Verdicts())
		}
		if text := fmt.Sprint(out.Result.Headline[0]); said != (text == "{converged yes}") {
			t.Error(text)
		}
	}
}
