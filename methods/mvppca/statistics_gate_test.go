package mvppca

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"

	"parley/dataset"
	"parley/figure"
	"parley/method"
	"parley/methods/mvppca/internal/synthetic"
	"parley/methods/mvppca/moments"
	"parley/methods/mvppca/options"
	"parley/privacy"
	"parley/privacy/account"
	"parley/privacy/ledger"
	"parley/privacy/privacytest"
	"parley/sitestore"
)

const (
	statisticsOptions = "  latent: 2\n  statistics: {minimum: 5}\n"
	checkedBudget     = "{protection: differential, unit: subject, adjacency: add-remove, total: {epsilon: 3, delta: 1e-5}, diagnostics: 0.1}"
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

// A study is charged its plan's total, in one release of each site, or two
// where the plan spends a share on diagnostics.
func TestStatisticsCostThePlansTotal(t *testing.T) {
	for _, adjacency := range []account.Adjacency{account.AddRemove, account.ReplaceOne} {
		for _, share := range []float64{0, 0.02, 0.4} {
			total := account.Budget{Epsilon: 2, Delta: 1e-6}
			s := private(statisticsOptions, fmt.Sprintf("{protection: differential, unit: subject, adjacency: %s, total: {epsilon: %v, delta: %v}, diagnostics: %v}",
				adjacency, total.Epsilon, total.Delta, share)).study(t)
			p := newPlay(t, s).behindGates(1)
			p.crash = true
			if _, err := p.run(); err != nil {
				t.Fatal(err)
			}
			want := []string{options.TaskStatistics, options.TaskCheck}[:1+int(math.Ceil(share))]
			if !slices.Equal(p.kinds, want) {
				t.Errorf("the sites were asked for %v, want %v", p.kinds, want)
			}
			for site, gate := range p.gates {
				var all, check []account.Mechanism
				for _, e := range gate.ledger(t) {
					if e.Attempt != 1 {
						t.Errorf("%s: attempt %d of round %d", site, e.Attempt, e.Round)
					}
					all = append(all, mechanisms(e.Request.Sums)...)
					if e.Kind == options.TaskCheck {
						check = mechanisms(e.Request.Sums)
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

func sectionOf(t *testing.T, r *method.Result, id string) figure.Section {
	t.Helper()
	i := slices.IndexFunc(r.Sections, func(s figure.Section) bool { return s.ID == id })
	if i < 0 {
		t.Fatalf("there is no section %s", id)
	}
	return r.Sections[i]
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
	c, st := p.coordinator.(*coordinator), p.state.(*state)
	model := synthetic.Must(st.Model.Params.params(c.layout))(t)
	checker := synthetic.Must(moments.NewChecker(c.layout, rangeScale(c.plan), model, st.Doubt))(t)
	sum := make([]float64, moments.CheckEntries*c.layout.Views())
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
	for k := range c.layout.Views() {
		views = append(views, checker.Read(k, sum, 1e-9))
	}
	return views
}

// A site may leave before it released anything, or before the diagnostics.
func TestSiteMayLeaveNoisedStatistics(t *testing.T) {
	for leaves := 1; leaves <= 2; leaves++ {
		for _, all := range []bool{false, true} {
			p := newPlay(t, private(statisticsOptions, checkedBudget).study(t)).behindGates(7)
			p.crash = true
			p.absent = func(round int, site string) bool { return round == leaves && (all || site == "site-0") }
			r, err := p.run()
			if leaves == 1 && all {
				if err == nil || !strings.Contains(err.Error(), "no site is left") {
					t.Errorf("no site released anything: %v", err)
				}
				continue
			}
			if err != nil {
				t.Fatalf("leaving in round %d: %v", leaves, err)
			}
			var file releasedFile
			i := slices.IndexFunc(r.Files, func(f method.File) bool { return f.Name == ReleasedName })
			if err := json.Unmarshal(r.Files[i].Data, &file); err != nil {
				t.Fatal(err)
			}
			checked := 0
			for _, site := range file.Sites {
				if site.Diagnostics != nil {
					checked++
				}
			}
			if want := 1 + leaves; len(file.Sites) != want {
				t.Errorf("leaving in round %d: the model rests on %d sites, want %d", leaves, len(file.Sites), want)
			}
			if want := map[bool]int{true: 0, false: 2}[all]; checked != want {
				t.Errorf("leaving in round %d: diagnostics of %d sites, want %d", leaves, checked, want)
			}
			if notes := notesOf(r); !strings.Contains(notes, "Not all sites said how well the model predicts") {
				t.Errorf("leaving in round %d: the result says:\n%s", leaves, notes)
			}
		}
	}
}

// wide is a study of n subjects like those of the paper, at two sites; another
// seed draws other subjects of another population.
func wide(t testing.TB, seed uint64, n int, privacy string) *small {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 22))
	l, rows := synthetic.PaperLike(r, n)
	views := &strings.Builder{}
	ranges := synthetic.RangesOf(rows)
	for k := range l.Dims {
		fmt.Fprintf(views, "  - name: v%d\n    features:\n", k)
		for lo, hi := l.View(k); lo < hi; lo++ {
			fmt.Fprintf(views, "      - {name: f%d, range: [%v, %v]}\n", lo, ranges[lo][0], ranges[lo][1])
		}
	}
	plan, err := parse(strings.Replace(planWith(views.String(), "  latent: 5\n"), "{protection: none}", privacy, 1))
	if err != nil {
		t.Fatal(err)
	}
	out := &small{plan: plan, data: map[string]*dataset.Table{}}
	for i, site := range out.plan.Sites {
		var mine []dataset.Row
		for k := i; k < n; k += len(out.plan.Sites) {
			mine = append(mine, dataset.Row{ID: fmt.Sprintf("%05d", k), Views: synthetic.Split(l, rows[k])})
		}
		table, err := dataset.NewTable(out.plan.Schema(), mine)
		if err != nil {
			t.Fatal(err)
		}
		out.data[site] = table
	}
	return out
}

// The intervals of models of 4000 subjects at ε = 3 hold about what they promise, by
// counting without noise, and the diagnostics say so within theirs. Over 150 other
// populations the coverage of intervals of 90 % was 0.886 on average, from 0.826 to
// 0.954, with a standard deviation of 0.018 to 0.020 by view: that is 0.007 for the
// mean of eight, which so keeps five of them from its limits. The noise depends on the last bits of the ranges, which differ
// between architectures, and so the test is of a mean and not of one draw. 168
// numbers beyond 4.5 standard deviations of a Gaussian come once in 900.
func TestIntervalsHoldWhatTheyPromise(t *testing.T) {
	const draws = 8
	var r *method.Result
	var mean [3]float64
	for seed := range uint64(draws) {
		s := wide(t, 21+seed, 4000, strings.Replace(checkedBudget, "0.1}", "0.05}", 1))
		p := newPlay(t, s).behindGates(5)
		var err error
		if r, err = p.run(); err != nil {
			t.Fatal(err)
		}
		checks, err := p.coordinator.(*coordinator).way.(*statisticsRounds).checks(p.state.(*state))
		if err != nil {
			t.Fatal(err)
		}
		for k, want := range p.counted(t) {
			got := checks[0].views[k]
			t.Logf("view %d: %.3v; noised: %.3v", k, want, got)
			mean[k] += want.Coverage[2] / draws
			if want.Coverage[2] < 0.8 || want.Coverage[2] > 0.97 {
				t.Errorf("view %d: intervals of 90 %% hold %.1f %%", k, 100*want.Coverage[2])
			}
			for _, x := range append([][3]float64{{got.Subjects, want.Subjects, got.SubjectsSD}, {got.Error, want.Error, got.ErrorSD}, {got.Gain, want.Gain, got.GainSD}},
				[3]float64{got.Coverage[0], want.Coverage[0], got.CoverageSD[0]}, [3]float64{got.Coverage[1], want.Coverage[1], got.CoverageSD[1]},
				[3]float64{got.Coverage[2], want.Coverage[2], got.CoverageSD[2]}, [3]float64{got.Coverage[3], want.Coverage[3], got.CoverageSD[3]}) {
				if !(math.Abs(x[0]-x[1]) <= 4.5*x[2]) {
					t.Errorf("view %d: diagnostics say %v ± %v of %v", k, x[0], x[2], x[1])
				}
			}
		}
	}
	for k, c := range mean {
		if c < 0.85 || c > 0.92 {
			t.Errorf("view %d: intervals of 90 %% hold %.1f %% on average", k, 100*c)
		}
	}
	t.Logf("on average intervals of 90 %% hold %.3f", mean)
	if len(sectionOf(t, r, "diagnostics").Items) != 2 {
		t.Error("the diagnostics are not a figure and a table")
	}
	for _, key := range []string{"left_out_coverage_90/v0", "left_out_r2/v2", "left_out_mean_absolute_error_noise_sd/v1", "left_out_coverage_50/v0/south"} {
		if _, ok := r.Metrics[key]; !ok {
			t.Errorf("there is no metric %s", key)
		}
	}
}
