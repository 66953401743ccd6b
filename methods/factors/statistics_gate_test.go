package factors

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"

	"parley/method"
	"parley/methods/factors/factorstest"
	"parley/methods/factors/halves"
	"parley/methods/factors/moments"
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
	l, err := ledger.Read(g.journal)
	if err != nil {
		t.Fatal(err)
	}
	return l.Entries
}

// A study is charged its plan's total, in three releases of each site, or four
// where the plan spends a share on diagnostics.
func TestStatisticsCostThePlansTotal(t *testing.T) {
	for _, adjacency := range []account.Adjacency{account.AddRemove, account.ReplaceOne} {
		for _, share := range []float64{0, 0.02, 0.4} {
			total := account.Budget{Epsilon: 2, Delta: 1e-6}
			s := private(statisticsOptions, fmt.Sprintf("{protection: differential, unit: subject, adjacency: %s, total: {epsilon: %v, delta: %v}, diagnostics: %v}",
				adjacency, total.Epsilon, total.Delta, share)).study(t)
			p := newPlay(t, s).behindGates(1)
			if _, err := p.run(); err != nil {
				t.Fatal(err)
			}
			want := []string{options.TaskOverview, options.TaskCoarse, options.TaskFine, options.TaskCheck}[:3+int(math.Ceil(share))]
			if !slices.Equal(p.kinds, want) {
				t.Errorf("the sites were asked for %v, want %v", p.kinds, want)
			}
			for site, gate := range p.gates {
				var all, check []account.Mechanism
				for _, e := range gate.ledger(t) {
					if e.Attempt != 1 {
						t.Errorf("%s: attempt %d of round %d", site, e.Attempt, e.Round)
					}
					for _, sum := range e.Request.Sums {
						all = append(all, sum.Mechanism)
						if e.Kind == options.TaskCheck {
							check = append(check, sum.Mechanism)
						}
					}
				}
				epsilon, err := account.Epsilon(all, adjacency, total.Delta)
				if err != nil {
					t.Fatal(err)
				}
				if epsilon > total.Epsilon || epsilon < total.Epsilon*(1-1e-3) {
					t.Errorf("%s, %s, share %v: ε = %v, want at most %v and hardly less", site, adjacency, share, epsilon, total.Epsilon)
				}
				mu, _ := account.Mu(all, adjacency)
				part, _ := account.Mu(check, adjacency)
				if got := part * part / (mu * mu); math.Abs(got-share) > 1e-3*share {
					t.Errorf("%s, %s: diagnostics took %v of the budget, want %v", site, adjacency, got, share)
				}
			}
		}
	}
}

func TestDiagnosticsNeedTwoViews(t *testing.T) {
	text := planWith("  - {name: clinic, features: [{name: age, range: [0, 100]}, {name: weight, range: [20, 200]}]}\n", "  latent: 1\n")
	_, err := parse(strings.Replace(text, "{protection: none}", checkedBudget, 1))
	if err == nil || !strings.Contains(err.Error(), "diagnostics predict views from each other") {
		t.Errorf("one view: %v", err)
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
	data, err := json.Marshal(r.Metrics)
	if err != nil {
		t.Fatal(err)
	}
	b.Write(data)
	for _, f := range r.Files {
		b.Write(f.Data)
	}
	return b.String()
}

// Twenty subjects at ε = 0.1 tell nothing. The result says so and has no hole:
// every interval is wide, and what noise hides is not shown. The sites lack
// views and their subjects values.
func TestNothingIsLearnedFromNextToNothing(t *testing.T) {
	var all, held float64
	for seed := range uint64(4) {
		s := shape{dims: []int{3, 2, 1}, sites: 2, rows: 10, gaps: 0.2, missing: 0.2, lacks: map[[2]int]bool{{1, 1}: true}, options: statisticsOptions,
			privacy: strings.Replace(checkedBudget, "epsilon: 3", "epsilon: 0.1", 1), seed: 3 + seed}.study(t)
		p := newPlay(t, s).behindGates(seed)
		r, err := p.run()
		if err != nil {
			t.Fatal(err)
		}
		if text := numbersOf(t, r); strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
			t.Error("the result has a number that is none")
		}
		for key, x := range r.Metrics {
			if math.IsNaN(x) || math.IsInf(x, 0) || strings.HasPrefix(key, "left_out") {
				t.Errorf("metric %s is %v", key, x)
			}
		}
		if notes := notesOf(r); !strings.Contains(notes, "Noise hides how many values the intervals hold") {
			t.Errorf("the result says:\n%s", notes)
		}
		for _, view := range p.counted(t) {
			all += view.Subjects
			held += view.Subjects * view.Coverage[2]
		}
	}
	t.Logf("intervals of 90 %% held %.1f %% of %v views", 100*held/all, all)
	if held < 0.9*all {
		t.Errorf("intervals of 90 %% held %.1f %%", 100*held/all)
	}
}

// counted is what the diagnostics would say of each view without noise.
func (p *play) counted(t *testing.T) (views []moments.ViewCheck) {
	t.Helper()
	set, st := factorstest.Must(options.SetUp(p.plan))(t), p.state.(*halves.State)
	model := factorstest.Must(st.Model.Params.Unpack(set.Layout))(t)
	checker := factorstest.Must(moments.NewChecker(set.Layout, set.RangeScale(), model, st.Doubt))(t)
	sum := make([]float64, moments.CheckEntries*set.Layout.Views())
	for _, table := range p.data {
		for row, err := range table.Rows(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			v := make([]float64, len(sum))
			checker.Add(row.Views, v)
			floats.Add(sum, v)
		}
	}
	for k := range set.Layout.Views() {
		views = append(views, checker.Read(k, sum, 1e-9))
	}
	return views
}

func notesOf(r *method.Result) string {
	var b strings.Builder
	for _, s := range r.Sections {
		for _, item := range s.Items {
			if item.Note != nil {
				fmt.Fprintln(&b, item.Note.Title+": "+item.Note.Text)
			}
		}
	}
	return b.String()
}
