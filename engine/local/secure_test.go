package local_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"parley/dataset"
	"parley/engine/host"
	"parley/engine/local"
	"parley/figure"
	"parley/internal/testkit"
	"parley/internal/wire"
	"parley/method"
	"parley/methods/factors"
	"parley/methods/mixture"
	"parley/methods/published/dppvi"
	"parley/methods/published/fedmvppca"
	"parley/methods/published/graffl"
	"parley/methods/published/vae"
	"parley/methods/regression"
	"parley/privacy"
	"parley/privacy/ledger"
	"parley/privacy/masks"
	"parley/sitestore"
	"parley/study"
)

var ours = method.Registry{factors.Method{}, regression.Method{}, mixture.Method{}}

// totalsPlan is a plan of five sites, with or without a secure sum. What it is of may begin with its views.
func totalsPlan(t testing.TB, what, privacy string) *study.Plan {
	t.Helper()
	var features []string
	for j := range 5 {
		features = append(features, fmt.Sprintf("{name: x%d, range: [-8, 8]}", j))
	}
	if !strings.HasPrefix(what, "views: ") {
		what = "views: [{name: v, features: [" + strings.Join(features, ", ") + "]}]\n" + what
	}
	text := "parley: 1\nname: totals\nsites: [a, b, c, d, e]\nquorum: 4\n" + what + "\nprivacy: {" + privacy +
		"}\n"
	return testkit.Get(study.Parse("plan.yaml", []byte(text), ours))(t)
}

const (
	exactPlain  = "protection: none"
	exactSecure = "protection: none, sum: secure"
	noised      = "protection: differential, unit: subject, adjacency: add-remove, total: {epsilon: 8, delta: 1e-5}"
)

// lacks says whether cell j of subject i of a site is not there, by a number drawn from [0, 1).
type lacks func(site string, i, j int, drawn float64) bool

// totalsData are rows of five unlike sites that fit the plan, of five features in one view or several.
func totalsData(t testing.TB, p *study.Plan, lacks lacks) map[string]dataset.Source {
	t.Helper()
	data := map[string]dataset.Source{}
	for s, site := range p.Sites {
		rng := rand.New(rand.NewPCG(uint64(s), 7))
		var rows []dataset.Row
		for i := range 60 + 30*s {
			f, g, v := rng.NormFloat64(), rng.NormFloat64(), make([]float64, 5)
			for j := range v {
				v[j] = f*float64(j-2)/2 + g*float64(j%2) + 0.6*rng.NormFloat64()
				if drawn := rng.Float64(); lacks != nil && lacks(site, i, j, drawn) {
					v[j] = math.NaN()
				}
			}
			row := dataset.Row{ID: fmt.Sprintf("%s%04d", site, i)}
			for _, view := range p.Views {
				n := len(view.Features)
				row.Views, v = append(row.Views, v[:n]), v[n:]
			}
			for _, name := range p.Subjects {
				y := f + 0.7*rng.NormFloat64()
				label := map[bool]string{true: "yes", false: "no"}[y > 0.3]
				if name == "days" {
					label = fmt.Sprint(y)
				}
				row.Subject = append(row.Subject, label)
			}
			rows = append(rows, row)
		}
		data[site] = testkit.Get(dataset.NewTable(p.Schema(), rows))(t)
	}
	return data
}

const (
	ofFactors        = "method: {name: factors, latent: 2, site_means: pooled, outliers: keep}"
	ofPrivateFactors = "method: {name: factors, latent: 2}"
	ofRegression     = "subjects: [ill]\nmethod: {name: regression, outcome: {column: ill, levels: [no, yes]}}"
	ofNumber         = "subjects: [days]\nmethod: {name: regression, outcome: {column: days, range: [-9, 9]}}"
	ofMixture        = "method: {name: mixture, components: 2, draws: 64}"
)

// closeTo says whether two files of numbers say the same, each number to a share of the largest beside it.
func closeTo(a, b any, share float64) error {
	switch x := a.(type) {
	case map[string]any:
		y, _ := b.(map[string]any)
		for k := range x {
			if err := closeTo(x[k], y[k], share); err != nil {
				return fmt.Errorf("%s: %w", k, err)
			}
		}
	case []any:
		y, _ := b.([]any)
		if len(x) != len(y) {
			return fmt.Errorf("%d entries, not %d", len(x), len(y))
		}
		for i := range x {
			if err := closeTo(x[i], y[i], share); err != nil {
				return err
			}
		}
	case float64:
		if y, _ := b.(float64); math.Abs(x-y) > share*max(1, math.Abs(x)) {
			return fmt.Errorf("%v and %v", x, y)
		}
	}
	return nil
}

// saying is what a study's model file says, whatever the study learned of single sites: what is of the plan, of
// single sites, or of how sites differ, is another matter.
func saying(t *testing.T, out *local.Outcome) any {
	t.Helper()
	i := slices.IndexFunc(out.Result.Files, func(f method.File) bool { return f.Name == "model/model.json" })
	if i < 0 {
		t.Fatal("no model")
	}
	var m map[string]any
	if err := json.Unmarshal(out.Result.Files[i].Data, &m); err != nil {
		t.Fatal(err)
	}
	if out.Rounds[0].Sites[0].Request.Masked &&
		regexp.MustCompile(`_between_sites": *[0-9]`).Match(out.Result.Files[i].Data) {
		t.Error("a total tells how sites differ")
	}
	kept := map[string]any{"log-likelihood": out.Result.Metrics["log_likelihood_per_subject"]}
	for _, k := range []string{"loadings", "views", "effects", "covariance", "components", "mean"} {
		if v, ok := m[k]; ok {
			kept[k] = strip(v)
		}
	}
	if len(kept) == 1 {
		t.Fatalf("nothing to compare in %v", slices.Sorted(maps.Keys(m)))
	}
	return kept
}

// inUnits are rows of which feature j, counted over the views, is so many times as large, and then so much larger.
func inUnits(t testing.TB, data map[string]dataset.Source, unit func(j int) (times, more float64)) {
	for site, from := range data {
		var rows []dataset.Row
		for row, err := range from.Rows(t.Context()) {
			testkit.Do(t, err)
			j := 0
			for _, view := range row.Views {
				for i, x := range view {
					times, more := unit(j)
					view[i], j = x*times+more, j+1
				}
			}
			rows = append(rows, *row)
		}
		data[site] = testkit.Get(dataset.NewTable(from.Schema(), rows))(t)
	}
}

// A whole study of exact totals says what the same study says that learns each site's sums, factors bit for bit but for
// how sums of likelihoods are rounded, whatever subjects and sites lack, and says it again from its checkpoint.
func TestExactTotalsGiveTheSameStudy(t *testing.T) {
	const (
		one = "method: {name: factors, latent: 1, site_means: pooled"
		two = "views: [{name: v, features: [x, y, z]}, {name: w, features: [p, q]}]\n" + one
		set = two + ", patterns: [{views: [v, w]}, {views: [v]}, {views: [w]}]}"
	)
	few := func(_ string, _, _ int, drawn float64) bool { return drawn < 0.05 }
	many := func(_ string, _, _ int, drawn float64) bool { return drawn < 0.3 }
	views := func(site string, i, j int, _ float64) bool {
		return site == "b" && j > 2 || site == "c" && i%2 == 0 && j < 3
	}
	alone := func(site string, i, j int, _ float64) bool { return site == "b" && (i != 7 || j > 2) }
	feature := func(site string, _, j int, drawn float64) bool { return site == "b" && j == 1 || drawn < 0.05 }
	far := func(j int) (times, more float64) { return 0.1, 1000 * math.Pow(10, float64(j)) }
	odd := func(j int) (times, more float64) { return math.Pow(10, float64(3*j-4)), 0 }
	huge := func(j int) (times, more float64) { return math.Pow(10, float64(6*j-12)), math.Pow(10, float64(6*j-10)) }
	for name, x := range map[string]struct {
		what   string
		lacks  lacks
		units  func(j int) (times, more float64)
		rounds int // of the study of totals, two for each; 0 where sites have to fill cells
	}{
		"factors":          {ofFactors, nil, nil, 4},
		"regression":       {ofRegression, nil, nil, 0},
		"far, regression":  {ofRegression, few, far, 0},
		"far, number":      {strings.Replace(ofNumber, ", range: [-9, 9]", "", 1), nil, far, 0},
		"mixture":          {ofMixture, nil, nil, 0},
		"few cells":        {one + "}", few, nil, 0},
		"many cells":       {one + "}", many, nil, 0},
		"views":            {two + "}", views, nil, 0},
		"views, named":     {set, views, nil, 4},
		"one subject's":    {set, alone, nil, 4},
		"a site's feature": {one + "}", feature, nil, 0},
		"scaled by view":   {two + ", scaling: view}", feature, nil, 0},
		"chosen":           {strings.Replace(one, "latent: 1", "latent: select", 1) + "}", nil, nil, 4},
		"chosen, filled":   {strings.Replace(two, "latent: 1", "latent: select", 1) + "}", views, nil, 0},
		"hardly told":      {strings.Replace(one, "latent: 1", "latent: 3", 1) + "}", few, nil, 0},
		"far":              {one + "}", few, far, 0},
		"any units":        {one + "}", few, huge, 0},
		"any, regression":  {ofRegression, few, huge, 0},
		"not filled":       {set[:len(set)-1] + ", rounds: 0}", views, nil, 4},
		"odd units":        {two + ", scaling: view}", views, odd, 0},
	} {
		var found []any
		for _, privacy := range []string{exactPlain, exactSecure} {
			p := totalsPlan(t, x.what, privacy)
			config := local.Config{Plan: p, Methods: ours, Data: totalsData(t, p, x.lacks), Dir: t.TempDir()}
			if x.units != nil {
				inUnits(t, config.Data, x.units)
			}
			out := testkit.Get(local.Run(t.Context(), config))(t)
			again := testkit.Get(local.Run(t.Context(), config))(t)
			if !reflect.DeepEqual(again.Result.Files, out.Result.Files) {
				t.Errorf("%s, %s: another result from the checkpoint", name, privacy)
			}
			found = append(found, saying(t, out))
			if n := len(out.Rounds); privacy == exactSecure && x.rounds > 0 && n != x.rounds {
				t.Errorf("%s: %d rounds, not %d", name, n, x.rounds)
			}
			if privacy == exactSecure {
				asked(t, p, config.Data, out)
			}
		}
		share := 1e-9
		if strings.Contains(x.what, "name: factors") {
			share = 1e-14 // sums of likelihoods are rounded
		}
		if err := closeTo(found[0], found[1], share); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// asked are the kinds of task that a site was asked for in a study of totals, in which nothing leaves without a mask,
// and as many bytes, and little around them, as the site's people read before they approve.
func asked(t *testing.T, p *study.Plan, data map[string]dataset.Source, out *local.Outcome) map[string]bool {
	t.Helper()
	h := &host.Host{Site: "a", Methods: ours, Data: data["a"], Store: sitestore.NewMemory(),
		Policy: privacy.SimulationPolicy()}
	left, kinds := testkit.Get(h.Preview(t.Context(), p))(t).Bytes, map[string]bool{}
	for _, r := range out.Rounds {
		left -= ledger.BytesOf(r.Sites[0].Request) // of site a
		for _, s := range r.Sites {
			kinds[s.Kind] = true
			n, around, opens := ledger.BytesOf(s.Request), testkit.Get(wire.Marshal(s.Request))(t), s.Request.Opens > 0
			if !s.Request.Masked && !opens || s.Up < n && !opens || s.Up > n+len(around)+400 {
				t.Errorf("%d bytes left site %s for %q, and %d were previewed", s.Up, s.Site, s.Kind, n)
			}
		}
	}
	if left < 0 {
		t.Errorf("%d bytes left site a beyond those that were previewed", -left)
	}
	return kinds
}

// strip takes out what rests on sites' own sums, on the groups that are left out, which are sites or, of a total,
// folds, or on assessments by rows.
func strip(v any) any {
	switch x := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, y := range x {
			if !strings.Contains(k, "between") && !strings.Contains(k, "sd") && !strings.Contains(k, "r2") &&
				!strings.Contains(k, "held_out") && !strings.Contains(k, "standard_error") &&
				!strings.Contains(k, "predicted") {
				out[k] = strip(y)
			}
		}
		return out
	case []any:
		out := make([]any, len(x))
		for i := range x {
			out[i] = strip(x[i])
		}
		return out
	}
	return v
}

// Each private method runs on totals, and its model is at least as near to that of no noise as the plain one's, whose
// noise is that of five parties.
func TestNoisedTotalsAreOfEachMethod(t *testing.T) {
	for what, kinds := range map[string]int{ofPrivateFactors: 3, ofRegression: 5, ofNumber: 5, ofMixture: 1} {
		p := totalsPlan(t, what, noisedSecure)
		data := totalsData(t, p, nil)
		out := testkit.Get(local.Run(t.Context(), local.Config{Plan: p, Methods: ours, Data: data}))(t)
		if found := asked(t, p, data, out); len(found)-1 < kinds {
			t.Errorf("%s: sites were asked for %v", what, slices.Sorted(maps.Keys(found)))
		}
	}
}

// A total has the noise of one party at least, and no more than the sites in it bring beyond those that may collude.
func TestNoiseOfATotal(t *testing.T) {
	for _, x := range []struct {
		openers string
		times   float64
	}{{"[a, b]", math.Sqrt(5. / 3)}, {"[a, b, c]", math.Sqrt(5. / 2)}} {
		p := totalsPlan(t, ofMixture, noised+", sum: secure, openers: "+x.openers)
		var sd []float64
		for _, plan := range []*study.Plan{p, totalsPlan(t, ofMixture, noised)} {
			out := testkit.Get(local.Run(t.Context(),
				local.Config{Plan: plan, Methods: ours, Data: totalsData(t, plan, nil)}))(t)
			m := out.Result.Metrics
			sd = append(sd, m["noise_sd_of_frequency_means"]*m["rows"])
		}
		if one := sd[1] / math.Sqrt(5); !(math.Abs(sd[0]/(x.times*one)-1) < 0.001) {
			t.Errorf("openers %s: noise of %v, and one party's is %v", x.openers, sd[0], one)
		}
	}
}

// What a plan with a secure sum cannot have is an error that names the key and what would be right.
func TestPlansOfTotalsThatAreNone(t *testing.T) {
	all := append(slices.Clone(ours), fedmvppca.Method{}, dppvi.Method{}, graffl.Method{}, vae.Method{})
	var ranges []string
	for j := range 5 {
		ranges = append(ranges, fmt.Sprintf("{name: x%d, range: [-8, 8]}", j))
	}
	const frame = "parley: 1\nname: totals\nsites: [a, b, c, d, e]\nquorum: %d\nviews: [{name: v, features: " +
		"[%s]}]\nsubjects: [ill]\nmethod: {%s}\nprivacy: {%s}\n"
	const logistic = "name: regression, outcome: {column: ill, levels: [no, yes]}"
	const secure = noised + ", sum: secure"
	for _, x := range []struct {
		quorum                int
		method, privacy, says string
	}{
		{4, logistic, noised + ", sum: total", `privacy.sum: unknown sum "total"`},
		{4, logistic, noised + ", openers: [a, b]", "privacy.openers: means nothing without sum: secure"},
		{4, logistic, exactPlain + ", collusion: 1", "privacy.collusion: means nothing without sum: secure"},
		{4, logistic, secure + ", openers: [a]", "privacy.openers: 1 openers"},
		{4, logistic, secure + ", openers: [a, z]", `privacy.openers: "z" is not a site`},
		{4, logistic, secure + ", openers: [a, a]", "privacy.openers: a is named twice"},
		{4, logistic, secure + ", openers: [a, b, c], collusion: 1", "privacy.collusion: 1 is too few for 3 openers"},
		{4, logistic, secure + ", openers: [a, b], collusion: 4", "privacy.collusion: of a quorum of 4 sites"},
		{4, logistic, secure + ", openers: [a, b, c, d, e]",
			"privacy.collusion: of a quorum of 4 sites, 4 would leave nobody"},
		{4, logistic, secure + ", openers: [a, b], keys: [aa]", "privacy.keys: 1 keys for 5 sites"},
		{4, logistic, secure + ", openers: [a, b], keys: [aa, bb, cc, dd, ee]", "privacy.keys: the keys of site a"},
		{4, logistic, exactSecure + ", collusion: 1", "privacy.collusion: means nothing without noise"},
		{4, logistic, exactSecure + ", openers: [a, b], spare: c", "privacy.spare: means nothing without noise"},
		{4, logistic, secure + ", openers: [a, b], spare: z", `privacy.spare: "z" is not a site`},
		{4, logistic, secure + ", openers: [a, b], spare: b", "privacy.spare: b is an opener already"},
		{4, logistic, noised + ", spare: b", "privacy.spare: means nothing without sum: secure"},
		{2, logistic, exactSecure, "quorum: of an exact total over 2 sites"},
		{4, logistic + ", site_effects: random", exactSecure,
			"method.site_effects: random needs the sums of each site"},
		{4, "name: factors, latent: 2, site_means: separate", exactSecure,
			"method.site_means: separate needs the sums of each site"},
		{4, "name: factors, latent: 2, scaling: min-max", exactSecure,
			`method.scaling: "min-max" is not learned from sums`},
		{4, "name: factors, latent: 2, adjust: [ill]", exactSecure, "method.adjust: needs products about the means"},
		{4, "name: fed-mv-ppca, latent: 2", exactSecure, "privacy.sum: method fed-mv-ppca does not run on totals"},
		{4, "name: dp-pvi, outcome: {column: ill, levels: [no, yes]}", exactSecure,
			"privacy.sum: method dp-pvi does not run on totals"},
		{4, "name: graffl-abc, components: 2", exactSecure, "privacy.sum: method graffl-abc does not run on totals"},
		{4, "name: vae, latent: 2", exactSecure, "privacy.sum: method vae does not run on totals"},
	} {
		text := fmt.Sprintf(frame, x.quorum, strings.Join(ranges, ", "), x.method, x.privacy)
		if _, err := study.Parse("plan.yaml", []byte(text), all); err == nil || !strings.Contains(err.Error(), x.says) {
			t.Errorf("%s; %s: %v, which does not say %q", x.method, x.privacy, err, x.says)
		}
	}
	const own = "parley: 1\nname: totals\nsites: [a, b, c, d]\nviews: [{name: v, features: [x, y]}, {name: w, " +
		"features: [z]}]\nmethod: {name: factors, latent: 1, patterns: [{views: [v, w]}, {site: d, views: " +
		"[w]}]}\nprivacy: {protection: none, sum: secure}\n"
	if _, err := study.Parse("plan.yaml", []byte(own), all); err == nil ||
		!strings.Contains(err.Error(), "method.patterns: of 4 sites, 1 can have subjects with w alone") ||
		strings.Contains(err.Error(), "v, w alone") {
		t.Errorf("a set of views that one site alone has: %v", err)
	}
	for privacy, want := range map[string]string{secure: "[a b]", exactSecure: "[a b c d e]"} {
		if p := totalsPlan(t, ofRegression, privacy); fmt.Sprint(p.Privacy.Openers) != want {
			t.Errorf("%s: the openers are %v, not %v", privacy, p.Privacy.Openers, want)
		}
	}
	p := totalsPlan(t, ofRegression, exactPlain+", sum: plain")
	if q := totalsPlan(t, ofRegression, exactPlain); testkit.Get(p.Digest())(t) != testkit.Get(q.Digest())(t) {
		t.Error("a plan that says sum: plain is another one")
	}
}

// A site takes part under the keys that the plan names for it, a policy may demand more collusion than the plan
// stands, and what the plan would cost if all openers worked together is known beforehand.
func TestWhatASiteDemandsOfATotal(t *testing.T) {
	p := totalsPlan(t, ofRegression, noisedSecure)
	keys := testkit.Get(masks.Simulated("elsewhere", "a"))(t)
	if _, err := method.PartyOf(p, "a", &keys); err == nil || !strings.Contains(err.Error(), "submit it") {
		t.Errorf("a plan without keys, at a site with keys: %v", err)
	}
	named := *p
	for i := range p.Sites {
		named.Privacy.Keys = append(named.Privacy.Keys,
			testkit.Get(masks.Simulated("elsewhere", p.Sites[i]))(t).Member("").Text())
	}
	if _, err := method.PartyOf(&named, "a", nil); err == nil || !strings.Contains(err.Error(), "parley run") {
		t.Errorf("a plan with keys, in a simulation: %v", err)
	}
	if _, err := method.PartyOf(&named, "b", &keys); err == nil ||
		!strings.Contains(err.Error(), keys.Member("").Fingerprint()) {
		t.Errorf("keys of another site: %v", err)
	}
	if party := testkit.Get(method.PartyOf(&named, "a", &keys))(t); party.Self != 0 ||
		len(method.Fingerprints(&named)) != 5 {
		t.Errorf("%+v", party)
	}
	list := testkit.Get(method.ForPlan(regression.Method{}, p).Requests(p, "a"))(t)
	s := testkit.Get(privacy.StudyOf(p, "a", list))(t)
	rules := privacy.SimulationPolicy()
	for least, refused := range map[int]bool{1: false, 2: true} {
		rules.Minimum.Collusion = least
		err := testkit.Get(ledger.Read(sitestore.NewMemory()))(t).Check(rules, s, privacy.Requests(list)...)
		if refused != errors.Is(err, privacy.ErrRefused) || refused &&
			!strings.Contains(err.Error(), "minimum.collusion") {
			t.Errorf("a policy of %d: %v", least, err)
		}
	}
	cost := testkit.Get(ours.Cost(p))(t)
	plain := testkit.Get(ours.Cost(totalsPlan(t, ofRegression, noised)))(t)
	opened, one := cost.Sites[0].IfOpened, cost.Sites[0].Losses[0].Epsilon
	if opened == nil || one == nil || !(*opened > *one) || plain.Sites[0].IfOpened != nil ||
		*one != *plain.Sites[0].Losses[0].Epsilon {
		t.Errorf("losses of %v, and %v if all openers worked together", one, opened)
	}
	if text := strings.Join(cost.Lines(), "\n"); !strings.Contains(text,
		"deviates by 1.29 times that of one party; with one noise at each site it would by 2.24 times") {
		t.Errorf("%s", text)
	}
}

// What a report of totals says is about numbers that there are.
func TestReportsOfTotalsSayWhatIsKnown(t *testing.T) {
	for _, what := range []string{ofFactors, ofPrivateFactors, ofRegression, ofMixture} {
		privacy := exactSecure
		if what == ofPrivateFactors {
			privacy = noisedSecure
		}
		p := totalsPlan(t, what, privacy)
		r := testkit.Get(local.Run(t.Context(), local.Config{Plan: p, Methods: ours,
			Data: totalsData(t, p, nil)}))(t).Result
		says := r.Found + r.Sure
		for _, h := range r.Headline {
			says += h.Name + " " + h.Value + "; "
		}
		for _, wrong := range []string{"Inf", "NaN", "1 site"} {
			if strings.Contains(says, wrong) {
				t.Errorf("%s: %q in %s", what, wrong, says)
			}
		}
		m, _ := ours.Lookup(p.Method.Name)
		if again, ok := m.(method.Refitter); ok {
			// what was released is of this plan, and other models can be made of it
			if name, err := again.ReleasedFile(p); err == nil {
				i := slices.IndexFunc(r.Files, func(f method.File) bool { return f.Name == name })
				if _, err := again.Refit(method.HalfPlan(p), r.Files[i].Data, 1); err != nil {
					t.Errorf("%s: another model of what was released: %v", what, err)
				}
			}
		}
		if i := slices.IndexFunc(r.Files, func(f method.File) bool { return f.Name == "model/model.json" }); i >= 0 &&
			!strings.Contains(string(r.Files[i].Data), testkit.Get(p.Digest())(t).String()) {
			t.Errorf("%s: the model names another plan", what)
		}
		last := r.Sections[len(r.Sections)-1]
		if last.ID != "secure-sum" || !strings.Contains(last.Items[0].Note.Text,
			"is honest, nobody learns a site's own sums") {
			t.Errorf("%s: no word on who could have seen a site's sums", what)
		}
	}
}

// What speaks against a model by itself is said of one of totals too.
func TestModelsOfTotalsHaveVerdicts(t *testing.T) {
	p := totalsPlan(t, strings.Replace(ofFactors, "latent: 2", "latent: 3", 1), exactSecure)
	data := totalsData(t, p, nil)
	r := testkit.Get(local.Run(t.Context(), local.Config{Plan: p, Methods: ours, Data: data}))(t).Result
	const says = "3 factors are more than the covariances of 5 features can tell"
	if !slices.ContainsFunc(r.Sections, func(s figure.Section) bool {
		return slices.ContainsFunc(s.Items, func(i figure.Item) bool {
			return i.Note != nil && strings.Contains(i.Note.Title+i.Note.Text, says)
		})
	}) {
		t.Errorf("no word of it: %q", says)
	}
}

// A simulation of other sites keeps what a plan says of openers and collusion as far as it can.
func TestPlansAmongOtherSites(t *testing.T) {
	for _, x := range []struct {
		privacy string
		sites   []string
		openers string
		honest  int
	}{
		{noisedSecure, []string{"a", "b", "c", "d", "e"}, "[a b]", 3},
		{noisedSecure, []string{"b", "c", "d", "e"}, "[b c]", 2},
		{noisedSecure, []string{"s1", "s2", "s3", "s4", "s5", "s6"}, "[s1 s2]", 4},
		{noisedSecure, []string{"s1", "s2"}, "[s1 s2]", 1},
		{noisedSecure, []string{"a"}, "[]", 1},
		{exactSecure, []string{"a", "b", "z"}, "[a b z]", 1},
	} {
		p := totalsPlan(t, ofRegression, x.privacy).Among(x.sites)
		if spared := totalsPlan(t, ofRegression, noisedSecure+", spare: e"); x.privacy == noisedSecure {
			first := func(p *study.Plan) float64 {
				list := testkit.Get(regression.Method{}.Requests(p, p.Sites[0]))(t)
				return list[0].Request.Sums[0].Mechanism.Noise
			}
			if with, same := first(spared.Among(x.sites)), first(spared); with != same || with <= first(p) {
				t.Errorf("%v: noise of %v with a spare, %v in the study, %v without", x.sites, with, same, first(p))
			}
		}
		if fmt.Sprint(p.Privacy.Openers) != x.openers || p.Honest() != x.honest ||
			p.Privacy.Secure() != (len(x.sites) > 1) {
			t.Errorf("%v: openers %v, noise of %d", x.sites, p.Privacy.Openers, p.Honest())
		}
		if _, err := method.ForPlan(regression.Method{}, p).Coordinator(p); err != nil {
			t.Errorf("%v: %v", x.sites, err)
		}
	}
}

// A private regression of 34 sites, with 22 sums: go test ./engine/local -run '^$' -bench StudyOfTotals -benchtime 3x
func BenchmarkStudyOfTotals(b *testing.B) {
	for _, privacy := range []string{noised, noisedSecure} {
		p := totalsPlan(b, ofRegression, privacy).Among(strings.Split("abcdefghijklmnopqrstuvwxyzABCDEFGH", ""))
		b.Run(fmt.Sprintf("secure=%t", p.Privacy.Secure()), func(b *testing.B) {
			config := local.Config{Plan: p, Methods: ours, Data: totalsData(b, p, nil)}
			for b.Loop() {
				testkit.Get(local.Run(b.Context(), config))(b)
			}
		})
	}
}
