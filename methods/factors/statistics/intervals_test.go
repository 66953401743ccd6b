package statistics

import (
	"crypto/sha256"
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
	"parley/method/methodtest"
	"parley/methods/factors/factorstest"
	"parley/methods/factors/halves"
	"parley/methods/factors/moments"
	"parley/methods/factors/options"
	"parley/privacy"
	"parley/privacy/privacytest"
	"parley/sitestore"
)

// play runs a study behind the gates of its sites.
type play struct {
	options.Setup
	t     testing.TB
	way   way
	sites map[string]*halves.Site
	lists map[string][]privacy.Listed
	gates map[string]*privacy.Gate
	study string // as the gates know it
}

func newPlay(t testing.TB, plan string) *play {
	t.Helper()
	set := factorstest.Must(options.SetUp(methodtest.Plan(t, "mvppca", options.Defaults(), plan)))(t)
	p := &play{Setup: set, t: t, sites: map[string]*halves.Site{}, lists: map[string][]privacy.Listed{}}
	p.way = way{halves.Common{Setup: set}, factorstest.Must(declaredBy(set))(t)}
	for _, name := range set.Plan.Sites {
		p.sites[name] = factorstest.Must(Site(set, name))(t)
		for kind, times := range set.Options.Schedule(set.Plan) {
			p.lists[name] = append(p.lists[name], privacy.Listed{Kind: kind, Times: times, Request: factorstest.Must(p.sites[name].Request(kind))(t)})
		}
	}
	return p
}

// behindGates gives every site a gate for the whole study, with seeded noise.
func (p *play) behindGates(data map[string]*dataset.Table, seed uint64) {
	p.t.Helper()
	p.gates = map[string]*privacy.Gate{}
	for site, table := range data {
		study := factorstest.Must(privacy.StudyOf(p.Plan, site, p.lists[site]))(p.t)
		p.gates[site], p.study = privacy.NewGate(study, privacy.SimulationPolicy(), sitestore.NewMemory(), table, privacytest.Seeded(seed)), study.Digest
	}
}

// answer lets a site answer a task, through its gate.
func (p *play) answer(round int, task method.Task) method.Contribution {
	p.t.Helper()
	session := factorstest.Must(p.gates[task.Site].Admit(privacy.Ask{Study: p.study, Site: task.Site, Round: round, Kind: task.Kind, Task: sha256.Sum256(task.Body)}))(p.t)
	a := factorstest.Must(p.sites[task.Site].Run(p.t.Context(), task, session))(p.t)
	release := factorstest.Must(session.Seal(a.Body, a.State))(p.t)
	list := p.lists[task.Site]
	at := slices.IndexFunc(list, func(l privacy.Listed) bool { return l.Kind == task.Kind })
	o := factorstest.Must(privacy.Open(release.Bytes(), list[at].Request))(p.t)
	return method.Contribution{Site: task.Site, Kind: task.Kind, Body: o.Body, Sums: o.Sums}
}

// run plays the study to its end.
func (p *play) run() (*halves.State, *method.Result) {
	p.t.Helper()
	c := halves.NewCoordinator(p.Setup, p.way)
	state := factorstest.Must(c.Init())(p.t)
	for round := 1; ; round++ {
		step := factorstest.Must(c.Next(state))(p.t)
		if state = step.State; step.Done {
			return state.(*halves.State), factorstest.Must(c.Result(state))(p.t)
		}
		for _, task := range step.Tasks {
			state = factorstest.Must(c.Fold(state, p.answer(round, task)))(p.t)
		}
	}
}

// counted is what the diagnostics would say of each view without noise.
func (p *play) counted(s *halves.State, subjects [][][]float64) (views []moments.ViewCheck) {
	p.t.Helper()
	model := factorstest.Must(s.Model.Params.Unpack(p.Layout))(p.t)
	checker := factorstest.Must(moments.NewChecker(p.Layout, p.RangeScale(), model, s.Doubt))(p.t)
	sum := make([]float64, moments.CheckEntries*p.Layout.Views())
	for _, row := range subjects {
		v := make([]float64, len(sum))
		checker.Add(row, v)
		floats.Add(sum, v)
	}
	for k := range p.Layout.Views() {
		views = append(views, checker.Read(k, sum, 1e-9))
	}
	return views
}

// wide is a plan for n subjects like those of the paper, at two sites, and their rows;
// another seed draws other subjects of another population.
func wide(t testing.TB, seed uint64, n int) (plan string, views [][][]float64) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 22))
	l, rows := factorstest.PaperLike(r, n)
	text := &strings.Builder{}
	ranges := factorstest.RangesOf(rows)
	fmt.Fprint(text, "parley: 1\nname: small\nsites: [north, south]\n"+
		"privacy: {protection: differential, unit: subject, adjacency: add-remove, total: {epsilon: 3, delta: 1e-5}, diagnostics: 0.05}\nviews:\n")
	for k := range l.Dims {
		fmt.Fprintf(text, "  - name: v%d\n    features:\n", k)
		for lo, hi := l.View(k); lo < hi; lo++ {
			fmt.Fprintf(text, "      - {name: f%d, range: [%v, %v]}\n", lo, ranges[lo][0], ranges[lo][1])
		}
	}
	fmt.Fprint(text, "method:\n  name: mvppca\n  latent: 5\n")
	return text.String(), factorstest.SplitAll(l, rows)
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
		plan, subjects := wide(t, 21+seed, 4000)
		p := newPlay(t, plan)
		data := map[string]*dataset.Table{}
		for i, site := range p.Plan.Sites {
			var mine []dataset.Row
			for k := i; k < len(subjects); k += len(p.Plan.Sites) {
				mine = append(mine, dataset.Row{ID: fmt.Sprintf("%05d", k), Views: subjects[k]})
			}
			data[site] = factorstest.Must(dataset.NewTable(p.Plan.Schema(), mine))(t)
		}
		p.behindGates(data, 5)
		var state *halves.State
		state, r = p.run()
		checks := factorstest.Must(p.way.checks(state))(t)
		for k, want := range p.counted(state, subjects) {
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
	if i := slices.IndexFunc(r.Sections, func(s figure.Section) bool { return s.ID == "diagnostics" }); i < 0 || len(r.Sections[i].Items) != 2 {
		t.Error("the diagnostics are not a figure and a table")
	}
	for _, key := range []string{"left_out_coverage_90/v0", "left_out_r2/v2", "left_out_mean_absolute_error_noise_sd/v1", "left_out_coverage_50/v0/south"} {
		if _, ok := r.Metrics[key]; !ok {
			t.Errorf("there is no metric %s", key)
		}
	}
}
