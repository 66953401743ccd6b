package report

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/engine"
	"parley/figure"
	"parley/internal/testkit"
	"parley/privacy"
	"parley/privacy/account"
	"parley/privacy/ledger"
	"parley/privacy/policy"
	"parley/sitestore"
	"parley/study"
)

var total = account.Budget{Epsilon: 3, Delta: 1e-5}

// private is the toy's plan with a promise; change makes another of it.
func private(t *testing.T, change func(*study.Privacy)) *study.Plan {
	t.Helper()
	p := plan(t, "1")
	p.Privacy = study.Privacy{Protection: study.ProtectionDifferential, Unit: study.UnitSubject,
		Adjacency: account.AddRemove, Total: &total}
	if change != nil {
		change(&p.Privacy)
	}
	return p
}

// sum has μ = 1/2 under add-remove when it is made once with this noise of 2.
func sum(count int) privacy.Sum {
	return privacy.Sum{Name: "count and sum", Unit: privacy.Subject, Form: privacy.Vectors,
		Blocks: []int{2, 3}, Bound: 4,
		Mechanism: account.Mechanism{Kind: account.Gaussian, Noise: 2, Rate: 1, Diameter: 2, Count: count}}
}

func released(site string, sums ...privacy.Sum) engine.Exchange {
	r := privacy.Request{Protection: privacy.Differential, Sums: sums}
	if len(sums) == 0 {
		r = privacy.Request{Protection: privacy.Unprotected, Contents: []privacy.Content{{What: "means", Values: 7}}}
	}
	return engine.Exchange{Site: site, Kind: "statistics", Down: 10, Up: 100, Release: strings.Repeat("a", 64),
		Request: r}
}

// quiet is two rounds of both sites, one sum in each; change may spoil it.
func quiet(change func([]engine.Round)) []engine.Round {
	rounds := []engine.Round{
		{Round: 1, Sites: []engine.Exchange{released("north", sum(1)), released("south", sum(1))}},
		{Round: 2, Sites: []engine.Exchange{released("north", sum(1)), {Site: "south", Kind: "statistics", Down: 10,
			Left: "refused"}}},
	}
	if change != nil {
		change(rounds)
	}
	return rounds
}

func addUp(t *testing.T, p *study.Plan, rounds []engine.Round) *privacyRecord {
	t.Helper()
	return testkit.Get(privacyOf(p, rounds))(t)
}

func epsilon(t *testing.T, m account.Mechanism, a account.Adjacency, delta float64) float64 {
	t.Helper()
	return testkit.Get(account.Epsilon([]account.Mechanism{m}, a, delta))(t)
}

func TestReleasesAddUpBySiteAndKind(t *testing.T) {
	p := addUp(t, private(t, nil), quiet(nil))
	two := sum(2).Mechanism
	for i, want := range []SitePrivacy{{Site: "north", Releases: 2, Sums: 2, Bytes: 200},
		{Site: "south", Releases: 1, Sums: 1, Bytes: 100}} {
		got := p.Sites[i]
		for j, a := range []account.Adjacency{account.AddRemove, account.ReplaceOne} {
			m := two
			m.Count = want.Sums
			if e := epsilon(t, m, a, 1e-5); got.Losses[j].Adjacency != a || math.Abs(*got.Losses[j].Epsilon-e) > 1e-9 {
				t.Errorf("%s, %s: %+v, want ε %v", want.Site, a, got.Losses[j], e)
			}
		}
		if got.Site != want.Site || got.Releases != want.Releases || got.Sums != want.Sums || got.Bytes != want.Bytes ||
			got.Unprotected+got.Seeded != 0 {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	if !p.Holds || len(p.Broken) > 0 || p.Rounds != 2 || len(p.Releases) != 1 {
		t.Fatalf("%+v", p)
	}
	k := p.Releases[0]
	if k.Times != 3 || k.Releases != 3 || k.Bytes != 300 || k.Entries != 5 || k.Sum.Mechanism.Count != 2 ||
		math.Abs(*k.Epsilon-epsilon(t, two, account.AddRemove, 1e-5)) > 1e-9 {
		t.Errorf("%+v", k)
	}
}

// sectionWords are all that the section says.
func sectionWords(s figure.Section) string {
	var text strings.Builder
	for _, item := range s.Items {
		switch {
		case item.Note != nil:
			text.WriteString(item.Note.Title + "\n" + item.Note.Text + "\n")
			if item.Note.Warning {
				text.WriteString("WARNING\n")
			}
		case item.Table != nil:
			item.Table.Text(&text)
		case item.Figure != nil:
			text.WriteString(item.Figure.Caption + "\n")
			item.Figure.CSV(&text)
		}
	}
	return text.String()
}

func TestSectionSaysWhatHoldsAndWhatDoesNot(t *testing.T) {
	sampled := sum(1)
	sampled.Mechanism.Rate = 0.02
	whole := sum(1)
	whole.Unit, whole.Blocks = privacy.WholeSite, []int{5}
	for name, c := range map[string]struct {
		plan   func(*study.Privacy)
		rounds func([]engine.Round)
		want   []string
		never  []string
	}{
		"a promise kept": {nil, nil, []string{
			"Guaranteed for every single subject: ε 3 at δ 1e−5",
			"almost as likely if any one subject had not taken part", "e^ε = 20.09",
			"on whether this one person took part",
			"at most 95.3 % sure", "one in 100\u202f000", "need not be trusted", "losses add up",
			"2 noised sums in 2 rounds", "No sampling of subjects is assumed", "What is not protected",
			"promised in total: ε 3", "sd 2 × the bound", "count and sum", "300",
		}, []string{"WARNING", "No guarantee", "weak", "seed:"}},
		"one subject for another": {func(p *study.Privacy) {
			p.Adjacency = account.ReplaceOne
			p.Total = &account.Budget{Epsilon: 8, Delta: 1e-6}
			p.Diagnostics = 0.05
		}, nil, []string{
			"if the data of any one subject had been others", "between any two possibilities",
			"How many subjects a site has.", "the promise is weak", "5.0 % went to diagnostics",
		}, []string{"WARNING"}},
		"a secure sum": {func(p *study.Privacy) { t := 2; p.Sum, p.Collusion = "secure", &t }, nil, []string{
			"one opener of the totals is honest, and the coordinator works together with at most 2 sites",
			"loses more than these sites' losses added up",
		}, []string{"need not be trusted", "losses add up"}},
		"whole sites": {func(p *study.Privacy) { p.Unit = study.UnitSite }, func(r []engine.Round) {
			for i := range r {
				for j := range r[i].Sites {
					if r[i].Sites[j].Left == "" {
						r[i].Sites[j].Request.Sums = []privacy.Sum{whole}
					}
				}
			}
		}, []string{"Guaranteed for every site as a whole", "whether this one site took part"},
			[]string{"WARNING", "several sites"}},
		"samples": {nil, func(r []engine.Round) { r[0].Sites[0].Request.Sums[0] = sampled },
			[]string{"Poisson sampling, probability 0.02", "of a Poisson sample at rate 0.02"},
			[]string{"No sampling"}},
		"one release in clear": {nil, func(r []engine.Round) { r[0].Sites[1] = released("south") }, []string{
			"No guarantee\nThe plan promises ε 3 at δ 1e−5 in total",
			"site south: 1 of its 1 releases left it without noise", "WARNING", "in any case",
			"exact numbers", "no bound",
		}, []string{"Guaranteed"}},
		"more than promised": {nil, func(r []engine.Round) { r[0].Sites[0].Request.Sums[0].Mechanism.Noise = 0.5 },
			[]string{
				"WARNING", "site north: its releases come to ε ", "above the ε 3 that was promised",
			}, []string{"Guaranteed"}},
		"noise of the wrong kind": {func(p *study.Privacy) { p.Unit = study.UnitSite }, nil,
			[]string{"WARNING", "promises nothing for a site"}, []string{"Guaranteed"}},
		"a seed": {nil, func(r []engine.Round) { r[0].Sites[0].Seeded = true }, []string{
			"The noise came from a seed: this protects nobody", "In 1 of 3 releases", "WARNING",
			"site north: the noise of 1 of its releases came from a seed",
		}, []string{"Guaranteed"}},
		"a budget for each release": {func(p *study.Privacy) {
			p.Total, p.PerRelease = nil, &account.Budget{Epsilon: 10, Delta: 0.01}
		}, nil, []string{
			"No guarantee for the study as a whole", "ε 10 at δ 0.01 for each noised sum, as if it were the only one",
			"the 2 noised sums of a site together have ε ", "claimed, for each noised sum alone: ε 10", "WARNING",
		}, []string{"Guaranteed", "promised in total"}},
		"the same, and a release in clear": {func(p *study.Privacy) {
			p.Total, p.PerRelease = nil, &account.Budget{Epsilon: 10, Delta: 0.01}
		},
			func(r []engine.Round) { r[0].Sites[0] = released("north") },
			[]string{"Beyond that nothing is bounded: site north: 1 of its 2 releases"}, nil},
	} {
		rounds := quiet(c.rounds)
		text := sectionWords(privacySection(addUp(t, private(t, c.plan), rounds), rounds))
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q is not in\n%s", name, want, text)
			}
		}
		for _, never := range c.never {
			if strings.Contains(text, never) {
				t.Errorf("%s: %q is in\n%s", name, never, text)
			}
		}
	}
	if text := sectionWords(privacySection(nil, outcome().Rounds)); !strings.Contains(text,
		"Not protected by differential privacy") {
		t.Errorf("without protection: %s", text)
	}
}

func TestFactorsAreNotUnderstated(t *testing.T) {
	for e, want := range map[float64]string{1: "2.719", 3: "20.09", 100.5: "e^101, so large that it says nothing"} {
		if got := factor(e); got != want {
			t.Errorf("e^%v: %s, want %s", e, got, want)
		}
	}
	for e, want := range map[float64]string{1: "73.2 %", 3: "95.3 %", 9: "practically"} {
		if got := sure(e); got != want {
			t.Errorf("ε %v: %s, want %s", e, got, want)
		}
	}
}

// A run with a ledger: the shared page has the promise, the site's own what its
// ledger says, earlier studies included.
func TestPrivateRunLeavesItsAccounts(t *testing.T) {
	path := t.TempDir()
	p := private(t, nil)
	policyFile := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(policyFile, []byte("policy: 1\nadjacency: add-remove\nstudy: {epsilon: 6, delta: "+
		"1e-5}\nlifetime: {epsilon: 9, delta: 1e-5}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	terms, err := privacy.StudyOf(p, "north",
		[]privacy.Listed{{Kind: "sum", Times: 2, Request: privacy.Request{Protection: privacy.Differential,
			Sums: []privacy.Sum{sum(1)}}}})
	if err != nil {
		t.Fatal(err)
	}
	store := sitestore.NewMemory()
	for _, digest := range []string{"earlier", terms.Digest} {
		s := terms
		s.Digest = digest
		gate := privacy.NewGate(s, privacy.SimulationPolicy(), store, nil)
		for round := range 2 {
			testkit.Get(gate.Admit(privacy.Ask{Study: digest, Site: "north", Round: round + 1, Kind: "sum"}))(t)
		}
	}
	d, err := begin(path, p, data, began)
	if err != nil {
		t.Fatal(err)
	}
	if d.ledger, err = ledger.Read(store); err != nil {
		t.Fatal(err)
	}
	limits, err := policy.Load(policyFile)
	if err != nil {
		t.Fatal(err)
	}
	d.policy = &limits
	out := outcome()
	out.Rounds = quiet(nil)
	testkit.Do(t, d.Write(out, sites(), ended))
	all := tree(t, path)
	var shared privacyRecord
	var own siteSpending
	for name, into := range map[string]any{"privacy.json": &shared, "sites/north/privacy.json": &own} {
		if err := json.Unmarshal([]byte(all[name]), into); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	if !shared.Holds || shared.Sites[0].Sums != 2 || *shared.Total != total {
		t.Errorf("%+v", shared)
	}
	if own.Study.Charges != 2 || own.Study.Forfeited != 0 || own.Account.Charges != 4 ||
		len(own.Account.Studies) != 2 || len(own.Limits) != 1 || !(own.Limits[0].Left < 1) {
		t.Errorf("%+v", own)
	}
	if !strings.Contains(all["report.html"], "Guaranteed for every single subject") ||
		strings.Contains(all["report.html"], "ledger says") {
		t.Error("the shared page does not say what it should")
	}
	page := all["sites/north/report.html"]
	for _, want := range []string{"4 charges in 2 studies", "all time, ε 9, add-remove", "one study, ε 6, add-remove",
		"plan’s promise, ε 3"} {
		if !strings.Contains(strings.ReplaceAll(page, "&#39;", "’"), want) {
			t.Errorf("%q is not in the site's page", want)
		}
	}
	if _, ok := all["figures/privacy-budget.svg"]; !ok {
		t.Error("there is no picture of the budget")
	}
}

// Without stores there is no ledger to tell of, and the results say no less.
func TestPrivateRunWithoutStores(t *testing.T) {
	path := t.TempDir()
	d := testkit.Get(begin(path, private(t, nil), data, began))(t)
	out := outcome()
	out.Rounds = quiet(nil)
	testkit.Do(t, d.Write(out, sites(), ended))
	all := tree(t, path)
	if _, ok := all["sites/north/privacy.json"]; ok || all["privacy.json"] == "" {
		t.Errorf("got %v", namesOf(all))
	}
}
