package dppvi

import (
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"parley/dataset"
	"parley/engine/local"
	"parley/internal/testkit"
	"parley/internal/vectors"
	"parley/judge/evaluate"
	"parley/method/methodtest"
	"parley/privacy"
	"parley/privacy/account"
	"parley/problem"
	"parley/study"
)

// What a site is asked for is what was said beforehand, and keeps the total; noise is
// no more than it takes.
func TestChargesKeepTheTotal(t *testing.T) {
	withDiagnostics := strings.Replace(protected, "total", "diagnostics: 0.1, total", 1)
	for name, c := range map[string]struct {
		options, privacy string
		sums             int     // of site a
		least            float64 // of the total that is used
	}{
		"published":              {twoLevels + "" + publishedRows, protected, 0, 0.4}, // its accountant wastes half
		"published, diagnostics": {twoLevels + "" + publishedRows, withDiagnostics, 0, 0.3},
	} {
		p := planOf(t, 2, []string{"a", "b"}, c.options, c.privacy)
		cost, err := methods.Cost(p)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		site := cost.Sites[0]
		for _, l := range site.Losses {
			if l.Adjacency != p.Privacy.Adjacency {
				continue
			}
			if e := *l.Epsilon / p.Privacy.Total.Epsilon; e > 1 || e < c.least {
				t.Errorf("%s: uses %v of the total", name, e)
			}
		}
		if site.Unprotected > 0 || c.sums > 0 && site.Sums != c.sums {
			t.Errorf("%s: %d sums, %d releases without noise", name, site.Sums, site.Unprotected)
		}
		list := testkit.Get(Method{}.Requests(p, "a"))(t)
		asked := map[string]int{}
		for _, task := range methodtest.Tasks(t, Method{}, p, config(t, drawn(13, 60, 2, yesNo), p).Data)["a"] {
			asked[task.Kind]++
		}
		for _, l := range list {
			if asked[l.Kind] != l.Times || l.Request.Protection != privacy.Differential {
				t.Errorf("%s: task %q is listed %d times with protection %q, and was given %d times", name, l.Kind,
					l.Times, l.Request.Protection, asked[l.Kind])
			}
			delete(asked, l.Kind)
		}
		if len(asked) > 0 {
			t.Errorf("%s: given and not listed: %v", name, asked)
		}
	}
}

// Where the published accountant allows not one update, the plan is refused.
func TestPublishedTotalThatAllowsNothing(t *testing.T) {
	p := planOf(t, 2, []string{"a", "b"}, twoLevels+""+publishedRows,
		strings.Replace(protected, "epsilon: 2", "epsilon: 0.1", 1))
	_, err := methods.Cost(p)
	if wrong := (problem.Problem{}); !errors.As(err, &wrong) || wrong.Where != "privacy.total" {
		t.Errorf("got %v", err)
	}
}

// With delta_by_rows a site makes as many updates as the published accountant allows at its own
// δ, all of them keep the promise of the plan, and a promise of less than a site's δ is refused.
func TestPublishedDeltaByRows(t *testing.T) {
	options := twoLevels + "update: {steps: 25}\n" + publishedRows
	updates := func(options, delta, site string) int {
		p := planOf(t, 2, []string{"a", "b"}, options, strings.Replace(protected, "1e-5", delta, 1))
		list := testkit.Get(Method{}.Requests(p, site))(t)
		return list[0].Times
	}
	byRows := strings.Replace(options, "steps: 25", "steps: 25, delta_by_rows: true", 1)
	for site, delta := range map[string]string{"a": "1e-4", "b": "1e-3"} { // of 2000 and 400 rows
		got, want, other := updates(byRows, "1e-3", site), updates(options, delta, site), updates(options, "1e-5", site)
		if got != want || got <= other {
			t.Errorf("site %s: %d updates, %d at a δ of %s and %d at less", site, got, want, delta, other)
		}
	}
	p := planOf(t, 2, []string{"a", "b"}, byRows, strings.Replace(protected, "1e-5", "1e-3", 1))
	cost := testkit.Get(methods.Cost(p))(t)
	for _, site := range cost.Sites {
		for _, l := range site.Losses {
			if l.Adjacency == p.Privacy.Adjacency && (l.Delta != 1e-3 || *l.Epsilon > p.Privacy.Total.Epsilon) {
				t.Errorf("%+v spends %v at δ %v", site, *l.Epsilon, l.Delta)
			}
		}
	}
	p = planOf(t, 2, []string{"a", "b"}, byRows, strings.Replace(protected, "1e-5", "1e-4", 1))
	wrong := problem.Problem{}
	if _, err := methods.Cost(p); !errors.As(err, &wrong) || wrong.Where != "privacy.total.delta" ||
		!strings.Contains(wrong.What, "site b with 400 rows, 0.001") {
		t.Errorf("got %v", err)
	}
}

// The published variant asks each site for as many updates as its own total allows,
// however often the others are asked.
func TestPublishedSitesRunToTheirOwnLimits(t *testing.T) {
	s := drawn(14, 120, 2, yesNo)
	p := planOf(t, 2, []string{"a", "b"}, twoLevels+"rows: [{site: a, rows: 4000}, {site: b, rows: 400}]\nupdate: "+
		"{noise: 8, steps: 5, draws: 4}", strings.Replace(protected, "epsilon: 2", "epsilon: 1", 1))
	charges := map[string]int{}
	for _, site := range p.Sites {
		list := testkit.Get(Method{}.Requests(p, site))(t)
		charges[site] = list[0].Times
	}
	m, _ := run(t, config(t, s, p))
	for _, site := range m.Sites {
		if site.Updates != charges[site.Name] {
			t.Errorf("site %s made %d updates of %d", site.Name, site.Updates, charges[site.Name])
		}
	}
	if charges["a"] <= charges["b"] {
		t.Errorf("a small rate allows %v updates, a large one %v", charges["a"], charges["b"])
	}
}

// Where the plan declares numbers of rows, another size of its study has others; else
// it stays as it is.
func TestDeclaredRowsAreThoseOfTheStudy(t *testing.T) {
	p := planOf(t, 2, []string{"a", "b"}, twoLevels+""+publishedRows, protected)
	before := slices.Clone(p.Method.Options.(*Options).Rows)
	own := *p
	own.Sites = []string{"b", "c"}
	sized := Method{}.Sized(&own, map[string]int{"b": 77, "c": 0})
	if rows := sized.Method.Options.(*Options).Rows; !slices.Equal(rows,
		[]SiteRows{{Site: "b", Rows: 77}, {Site: "c", Rows: 1}}) {
		t.Errorf("%+v", rows)
	}
	if !reflect.DeepEqual(p.Method.Options.(*Options).Rows, before) {
		t.Error("the plan itself was changed")
	}
	if p := planOf(t, 2, []string{"a", "b"}, twoLevels, unprotected); (Method{}).Sized(p, map[string]int{"a": 3}) != p {
		t.Error("a plan that declares no rows was changed")
	}
}

// Every mistake is told by key, with what would be right.
func TestOptionsThatContradictThePlan(t *testing.T) {
	rows := "rows: [{site: a, rows: 100}, {site: b, rows: 900}]\n"
	globally, exactly := twoLevels+"algorithm: global\n", twoLevels+"algorithm: exact\n"
	for name, c := range map[string]struct{ options, privacy, want string }{
		"unknown algorithm":  {twoLevels + "algorithm: other", unprotected, `"other" is not known`},
		"unknown schedule":   {twoLevels + "schedule: other", unprotected, `"other" is not known`},
		"rows of a stranger": {twoLevels + "rows: [{site: z, rows: 1}]", unprotected, "not a site of the plan"},
		"rows of some":       {twoLevels + "rows: [{site: a, rows: 1}]", unprotected, "site b has no entry"},
		"rows twice": {twoLevels + "rows: [{site: a, rows: 1}, {site: a, rows: 1}, {site: b, rows: 1}]",
			unprotected, "named twice"},
		"no row":              {twoLevels + "rows: [{site: a, rows: 0}, {site: b, rows: 1}]", unprotected, "0 rows"},
		"global without rows": {twoLevels + "algorithm: global", unprotected, "method.rows: missing"},
		"global in order": {globally + "schedule: sequential\n" + rows, unprotected,
			"is not one of algorithm: global"},
		"global with tolerance": {globally + "tolerance: 1\n" + rows, unprotected, "never settle"},
		"global batch": {globally + "global: {batch_share: 2}\n" + rows, unprotected,
			"cannot be in a minibatch"},
		"global steps": {globally + "global: {steps: 2}\n" + rows, unprotected, "takes one step"},
		"global draws": {globally + "global: {draws: 0}\n" + rows, unprotected, "method.global.draws"},
		"global elsewhere": {twoLevels + "global: {batch_share: 0.1}", unprotected,
			"belong to algorithm: global"},
		"update elsewhere": {exactly + "update: {steps: 2}", unprotected, "belong to algorithm: pvi"},
		"update both batches": {twoLevels + "update: {batch: 10, batch_share: 0.1}", unprotected,
			"one of batch and"},
		"update no batch":       {twoLevels + "update: {batch: -1}", unprotected, "method.update.batch"},
		"noise without privacy": {twoLevels + "update: {noise: 5}", unprotected, "mean nothing with protection: none"},
		"clip without privacy":  {twoLevels + "clip: 5", unprotected, "means nothing with protection: none"},
		"exact in private":      {exactly + rows, protected, "no differentially private form"},
		"tolerance of steps":    {twoLevels + "tolerance: 0.1", unprotected, "algorithm: exact"},
		"global in private": {twoLevels + "algorithm: global\n" + rows, protected,
			"no differentially private form"},
		"published without rows": {twoLevels, protected, "method.rows: missing"},
		"published by sites": {twoLevels + "" + rows, strings.Replace(protected, "unit: subject", "unit: site", 1),
			"one subject more or less"},
		"published noise": {twoLevels + "update: {noise: 0}\n" + rows, protected,
			"method.update.noise"},
		"published steps": {twoLevels + "update: {steps: 0}\n" + rows, protected,
			"method.update.steps"},
		"published draws": {twoLevels + "update: {draws: 0}\n" + rows, protected,
			"method.update.draws"},
		"counts": {"outcome: {column: y}\nlikelihood: poisson", unprotected, `"poisson" is not known`},
	} {
		_, err := study.Parse("plan.yaml", []byte(planText(2, []string{"a", "b"}, c.options, c.privacy)), methods)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// vectorsOf decodes numbers of an independent implementation, which testdata/vectors describes.
func vectorsOf(t *testing.T, name string, v any) {
	t.Helper()
	file, err := os.ReadFile("testdata/vectors/" + name)
	if err == nil {
		err = vectors.Decode(file, v)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// same holds a number against that of the vectors, with a relative tolerance.
func same(t *testing.T, what string, want, got, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance*max(math.Abs(want), 0.1)) {
		t.Errorf("%s: want %v, got %v", what, want, got)
	}
}

type moments struct {
	Round    int       `json:"round"`
	Mean     []float64 `json:"mean"`
	Var      []float64 `json:"var"`
	ELBO     float64   `json:"elbo"`
	MaxError float64   `json:"max_abs_error_to_global"`
}

// The published rounds, through the real engine: tasks, gates, stores and all.
func TestRoundsEqualTheVectors(t *testing.T) {
	var f struct {
		Schema string      `json:"schema"`
		X      [][]float64 `json:"X"`
		T      []float64   `json:"t"`
		Owner  []int       `json:"owner"`
		Prior  moments     `json:"prior"`
		Global moments     `json:"global_vi"`
		Runs   []struct {
			Schedule string    `json:"schedule"`
			Damping  float64   `json:"damping"`
			Rounds   []moments `json:"rounds"`
			After    moments   `json:"after_60_rounds"`
		} `json:"runs"`
	}
	vectorsOf(t, "pvi_exact.json", &f)
	s := sample{X: f.X}
	for _, y := range f.T {
		s.Y = append(s.Y, map[float64]string{-1: "no", 1: "yes"}[y])
	}
	sites := []string{"c0", "c1", "c2"}
	for _, r := range f.Runs {
		for _, want := range append(r.Rounds, moments{Round: 60, Mean: r.After.Mean, Var: r.After.Var}) {
			p := planOf(t, 3, sites, fmt.Sprintf(twoLevels+"algorithm: exact\nschedule: %s\nrounds: %d\ndamping: "+
				"%v\ntolerance: 0\nprior_variance: %v", r.Schedule, want.Round, r.Damping, f.Prior.Var[0]), unprotected)
			c := local.Config{Plan: p, Methods: methods, Data: map[string]dataset.Source{}}
			for m, site := range sites {
				c.Data[site] = s.Table(t, p, func(i int) bool { return f.Owner[i] == m })
			}
			m, _ := run(t, c)
			mean, variance := m.Posterior.Moments()
			tolerance := 1e-6
			if want.Round == 60 {
				tolerance = 1e-5
			}
			close2(t, fmt.Sprint(r.Schedule, " mean ", want.Round), want.Mean, mean, tolerance)
			close2(t, fmt.Sprint(r.Schedule, " var ", want.Round), want.Var, variance, tolerance)
		}
	}
	p := planOf(t, 3, sites, fmt.Sprintf(twoLevels+"prior_variance: %v", f.Prior.Var[0]), unprotected)
	central := testkit.Get(central(t.Context(), setupOf(t, p), s.Table(t, p, nil)))(t)
	mean, variance := central.Model.Posterior.Moments()
	close2(t, "global mean", f.Global.Mean, mean, 1e-6)
	close2(t, "global var", f.Global.Var, variance, 1e-6)
	same(t, "elbo", f.Global.ELBO, central.Info.Value, 1e-6)
}

// How the paper divides rows among clients, and which δ they have.
func TestClientsEqualTheVectors(t *testing.T) {
	var f struct {
		Schema string           `json:"schema"`
		Cases  []map[string]any `json:"cases"`
	}
	vectorsOf(t, "client_split.json", &f)
	for i, c := range f.Cases {
		of := func(key string) float64 { x, _ := c[key].(float64); return x }
		scheme := evaluate.Scheme{Rho: of("rho"), Kappa: of("kappa")}
		if name, _ := c["name"].(string); name != "" {
			if named, err := evaluate.ParseScheme(name); err != nil || named != scheme {
				t.Errorf("scheme %s is %+v, %v", name, named, err)
			}
		}
		h := testkit.Get(scheme.Shares(int(of("M")), int(of("N")), int(of("N_majority"))))(t)
		if h.Valid() != c["valid"] {
			t.Errorf("case %d is valid: %v", i, h.Valid())
		}
		for key, got := range map[string]float64{
			"N_small": float64(h.Small), "N_large": float64(h.Large), "small_majority": float64(h.SmallMajority),
			"small_minority": float64(h.SmallMinority),
			"unused":         float64(h.Unused), "majority_fraction": h.Majority, "target_fraction_small": h.Target,
			"minority_fraction_small": h.MinoritySmall,
			"minority_fraction_left":  h.MinorityLeft, "delta_small": paperDelta(h.Small),
			"delta_large": paperDelta(h.Large),
		} {
			if c[key] == nil {
				t.Errorf("case %d has no %s", i, key)
			}
			same(t, fmt.Sprintf("case %d, %s", i, key), of(key), got, 1e-12)
		}
	}
}

// What steps of sampled Gaussian noise cost, by the paper's accountant and by tight ones.
func TestAccountingEqualsTheVectors(t *testing.T) {
	var f struct {
		Schema string    `json:"schema"`
		Orders []float64 `json:"dense_orders"`
		RDP    []struct {
			Rate   float64 `json:"q"`
			Sigma  float64 `json:"sigma"`
			Values []struct {
				Alpha float64 `json:"alpha"`
				RDP   float64 `json:"rdp"`
			} `json:"values"`
		} `json:"rdp"`
		Epsilon []struct {
			Rate          float64  `json:"q"`
			Sigma         float64  `json:"sigma"`
			Steps         int      `json:"steps"`
			Delta         float64  `json:"delta"`
			Classic       float64  `json:"eps_integer_2_33_classic"`
			OrderClassic  float64  `json:"order_classic"`
			Improved      float64  `json:"eps_dense_improved"`
			OrderImproved float64  `json:"order_improved"`
			Lower         *float64 `json:"eps_tight_lower"`
			Upper         *float64 `json:"eps_tight_upper"`
		} `json:"epsilon"`
	}
	vectorsOf(t, "accounting.json", &f)
	sampled := func(rate, sigma float64, steps int) []account.Mechanism {
		return []account.Mechanism{{Kind: account.Gaussian, Noise: sigma, Rate: rate, Diameter: 2, Count: steps}}
	}
	costs := func(ms []account.Mechanism, orders []float64) []float64 {
		return testkit.Get(account.RDP(ms, account.AddRemove, orders))(t)
	}
	for _, r := range f.RDP {
		for _, v := range r.Values {
			same(t, fmt.Sprintf("rdp at q %v, σ %v, α %v", r.Rate, r.Sigma, v.Alpha), v.RDP,
				costs(sampled(r.Rate, r.Sigma, 1), []float64{v.Alpha})[0], 1e-6)
		}
	}
	var whole []float64
	for a := 2.0; a <= 33; a++ {
		whole = append(whole, a)
	}
	for i, c := range f.Epsilon {
		ms := sampled(c.Rate, c.Sigma, c.Steps)
		classic, classicOrder, err := account.ConvertRDPClassic(whole, costs(ms, whole), c.Delta)
		if err != nil {
			t.Fatal(err)
		}
		improved, order, err := account.ConvertRDP(f.Orders, costs(ms, f.Orders), c.Delta)
		if err != nil {
			t.Fatal(err)
		}
		close2(t, fmt.Sprint("ε ", i), []float64{c.Classic, c.OrderClassic, c.Improved, c.OrderImproved},
			[]float64{classic, classicOrder, improved, order}, 1e-6)
		if c.Lower == nil {
			continue
		}
		if epsilon, err := account.Epsilon(ms, account.AddRemove, c.Delta); err != nil || epsilon < *c.Lower ||
			epsilon > *c.Upper {
			t.Errorf("ε %d: %v, %v; between %v and %v", i, epsilon, err, *c.Lower, *c.Upper)
		}
	}
}
