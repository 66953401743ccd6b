package factors

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley/internal/testkit"
	"parley/method"
	"parley/methods/factors/options"
	"parley/privacy"
	"parley/privacy/account"
	"parley/privacy/ledger"
	"parley/privacy/privacytest"
	"parley/sitestore"
)

// gated is a site's gate with its ledger and the plan's guarantee.
type gated struct {
	*privacy.Gate
	study   string
	journal *sitestore.Memory
}

// behindGates gives every site of a play one gate for the whole study, with
// seeded noise.
func (p *play) behindGates(seed uint64) *play {
	p.t.Helper()
	p.gates = map[string]*gated{}
	for _, site := range p.plan.Sites {
		study, err := privacy.StudyOf(p.plan, site, p.lists[site])
		if err != nil {
			p.t.Fatal(err)
		}
		journal := sitestore.NewMemory()
		p.gates[site] = &gated{privacy.NewGate(study, privacy.SimulationPolicy(), journal, p.data[site], privacytest.Seeded(seed)), study.Digest, journal}
	}
	return p
}

// seeded makes the noise of a private study repeat, if it has any.
func (p *play) seeded() *play {
	if !p.plan.Privacy.Differential() {
		return p
	}
	return p.behindGates(1)
}

// ledger returns what a site was charged.
func (g *gated) ledger(t testing.TB) []ledger.Entry {
	t.Helper()
	l := testkit.Get(ledger.Read(g.journal))(t)
	return l.Entries
}

// A study is charged its plan's total, in three releases of each site.
func TestStatisticsCostThePlansTotal(t *testing.T) {
	for _, adjacency := range []account.Adjacency{account.AddRemove, account.ReplaceOne} {
		total := account.Budget{Epsilon: 2, Delta: 1e-6}
		s := private(statisticsOptions, fmt.Sprintf("{protection: differential, unit: subject, adjacency: %s, total: {epsilon: %v, delta: %v}}",
			adjacency, total.Epsilon, total.Delta)).study(t)
		p := newPlay(t, s).behindGates(1)
		if _, err := p.run(); err != nil {
			t.Fatal(err)
		}
		if want := []string{options.TaskOverview, options.TaskCoarse, options.TaskFine}; !slices.Equal(p.kinds, want) {
			t.Errorf("the sites were asked for %v, want %v", p.kinds, want)
		}
		for site, gate := range p.gates {
			var all []account.Mechanism
			for _, e := range gate.ledger(t) {
				if e.Attempt != 1 {
					t.Errorf("%s: attempt %d of round %d", site, e.Attempt, e.Round)
				}
				for _, sum := range e.Request.Sums {
					all = append(all, sum.Mechanism)
				}
			}
			epsilon, err := account.Epsilon(all, adjacency, total.Delta)
			if err != nil || epsilon > total.Epsilon || epsilon < total.Epsilon*(1-1e-3) {
				t.Errorf("%s, %s: ε = %v, want at most %v and hardly less (%v)", site, adjacency, epsilon, total.Epsilon, err)
			}
		}
	}
}

// numbersOf collects every text and number of a result that a reader sees.
func numbersOf(t *testing.T, r *method.Result) string {
	t.Helper()
	var b strings.Builder
	for _, s := range r.Sections {
		data, err := json.Marshal(s)
		if err != nil {
			t.Fatalf("section %s: %v", s.ID, err)
		}
		b.Write(data)
	}
	for _, h := range r.Headline {
		fmt.Fprintln(&b, h.Name, h.Value)
	}
	data := testkit.Get(json.Marshal(r.Metrics))(t)
	b.Write(data)
	for _, f := range r.Files {
		b.Write(f.Data)
	}
	return b.String()
}

// Twenty subjects at ε = 0.1 tell nothing. The result says so and has no hole.
func TestNothingIsLearnedFromNextToNothing(t *testing.T) {
	for seed := range uint64(4) {
		s := shape{dims: []int{3, 2, 1}, sites: 2, rows: 10, gaps: 0.2, missing: 0.2, lacks: map[[2]int]bool{{1, 1}: true}, options: statisticsOptions,
			privacy: strings.Replace(totalBudget, "epsilon: 3", "epsilon: 0.1", 1), seed: 3 + seed}.study(t)
		r := testkit.Get(newPlay(t, s).behindGates(seed).run())(t)
		if text := numbersOf(t, r); strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
			t.Error("the result has a number that is none")
		}
		if said := strings.Join(r.Verdicts(), " "); !strings.Contains(said, "as far as anybody can tell") {
			t.Errorf("the result says %q", said)
		}
	}
}
