package halves

import (
	"crypto/sha256"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"parley/dataset"
	"parley/internal/testkit"
	"parley/method"
	"parley/method/methodtest"
	"parley/methods/factors/factorstest"
	"parley/methods/factors/fitted"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
	"parley/privacy"
	"parley/privacy/privacytest"
	"parley/sitestore"
)

// play runs a study behind the gates of its sites.
type play struct {
	options.Setup
	t     testing.TB
	way   Coordinator
	sites map[string]*Site
	lists map[string][]privacy.Listed
	gates map[string]*privacy.Gate
	study string // as the gates know it
}

func newPlay(t testing.TB, plan string) *play {
	t.Helper()
	set := testkit.Get(options.SetUp(methodtest.Plan(t, "factors", options.Defaults(), plan)))(t)
	p := &play{Setup: set, t: t, sites: map[string]*Site{}, lists: map[string][]privacy.Listed{}}
	p.way = testkit.Get(NewCoordinator(set))(t)
	for _, name := range set.Plan.Sites {
		p.sites[name] = testkit.Get(NewSite(set, name))(t)
		for kind, times := range set.Options.Schedule(set.Plan) {
			p.lists[name] = append(p.lists[name], privacy.Listed{Kind: kind, Times: times,
				Request: testkit.Get(p.sites[name].Request(kind))(t)})
		}
	}
	return p
}

// behindGates gives every site a gate for the whole study, with seeded noise.
func (p *play) behindGates(data map[string]*dataset.Table, seed uint64) {
	p.t.Helper()
	p.gates = map[string]*privacy.Gate{}
	for site, table := range data {
		study := testkit.Get(privacy.StudyOf(p.Plan, site, p.lists[site]))(p.t)
		p.gates[site], p.study = privacy.NewGate(study, privacy.SimulationPolicy(), sitestore.NewMemory(), table,
			privacytest.Seeded(seed)), study.Digest
	}
}

// answer lets a site answer a task, through its gate.
func (p *play) answer(round int, task method.Task) method.Contribution {
	p.t.Helper()
	session := testkit.Get(p.gates[task.Site].Admit(privacy.Ask{Study: p.study, Site: task.Site, Round: round,
		Kind: task.Kind, Task: sha256.Sum256(task.Body)}))(p.t)
	a := testkit.Get(p.sites[task.Site].Run(p.t.Context(), task, session))(p.t)
	release := testkit.Get(session.Seal(a.Body, a.State))(p.t)
	list := p.lists[task.Site]
	at := slices.IndexFunc(list, func(l privacy.Listed) bool { return l.Kind == task.Kind })
	o := testkit.Get(privacy.Open(release.Bytes(), list[at].Request))(p.t)
	return method.Contribution{Site: task.Site, Kind: task.Kind, Body: o.Body, Sums: o.Sums}
}

// run plays the study to its end.
func (p *play) run() (*State, *method.Result) {
	p.t.Helper()
	c := p.way
	state := testkit.Get(c.Init())(p.t)
	for round := 1; ; round++ {
		step := testkit.Get(c.Next(state))(p.t)
		if state = step.State; step.Done {
			return state.(*State), testkit.Get(c.Result(state))(p.t)
		}
		for _, task := range step.Tasks {
			state = testkit.Get(c.Fold(state, p.answer(round, task)))(p.t)
		}
	}
}

// held is the share of each view's values that intervals of 90 % hold, predicted from the subjects' other views.
func (p *play) held(s *State, subjects [][][]float64) []float64 {
	p.t.Helper()
	model, scale, l := s.Model, p.RangeScale(), p.Layout
	predictor := testkit.Get(ppca.NewPredictor(l, model))(p.t)
	inside, of := make([]float64, l.Views()), make([]float64, l.Views())
	for k := range of {
		for _, row := range subjects {
			if row[k] == nil {
				continue
			}
			hidden := slices.Clone(row)
			hidden[k] = nil
			post, values, err := predictor.Subject(hidden, scale)
			if err != nil {
				p.t.Fatal(err)
			}
			mean, variance := make([]float64, len(post.Missing)), make([]float64, len(post.Missing))
			post.Impute(mean, values)
			post.MissingVar(variance)
			lo, hi := l.View(k)
			for i, j := range post.Missing {
				if j < lo || j >= hi || math.IsNaN(row[k][j-lo]) {
					continue
				}
				of[k]++
				if math.Abs((row[k][j-lo]-scale.Shift[j])*scale.Factor[j]-mean[i]) < 1.6449*math.Sqrt(
					variance[i]+s.Doubt[j]) {
					inside[k]++
				}
			}
		}
		inside[k] /= of[k]
	}
	return inside
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
		"privacy: {protection: differential, unit: subject, adjacency: add-remove, total: {epsilon: 3, delta: "+
		"1e-5}}\nviews:\n")
	for k := range l.Dims {
		fmt.Fprintf(text, "  - name: v%d\n    features:\n", k)
		for lo, hi := l.View(k); lo < hi; lo++ {
			fmt.Fprintf(text, "      - {name: f%d, range: [%v, %v]}\n", lo, ranges[lo][0], ranges[lo][1])
		}
	}
	fmt.Fprint(text, "method:\n  name: factors\n  latent: 5\n")
	return text.String(), factorstest.SplitAll(l, rows)
}

// The intervals of models of 4000 subjects at ε = 3 hold what they promise, and a little more. Over 48 populations the
// coverage of intervals of 90 % was 0.930 on average, from 0.880 to 0.960, with a standard deviation of 0.015 to 0.018
// by view: that is 0.007 for the mean of eight, which so keeps five of them from its limits. The noise depends on the
// last bits of the ranges, which differ between architectures, and so the test is of a mean and not of one draw.
func TestIntervalsHoldWhatTheyPromise(t *testing.T) {
	const draws = 8
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
			data[site] = testkit.Get(dataset.NewTable(p.Plan.Schema(), mine))(t)
		}
		p.behindGates(data, 5)
		state, _ := p.run()
		for k, share := range p.held(state, subjects) {
			mean[k] += share / draws
			if share < 0.83 || share > 0.99 {
				t.Errorf("view %d: intervals of 90 %% hold %.1f %%", k, 100*share)
			}
		}
	}
	for k, c := range mean {
		if c < 0.895 || c > 0.965 {
			t.Errorf("view %d: intervals of 90 %% hold %.1f %% on average", k, 100*c)
		}
	}
	t.Logf("on average intervals of 90 %% hold %.3f", mean)
}

// held is the share of the values of view v0 at site s00, which lacks it, that intervals of 90 %
// of further subjects there hold, and the share without the site's bias, in a study at ε = 3 of
// sites that are alike but for a change to their rows, of which tr is the truth.
func held(t *testing.T, seed uint64, sites, rows int, change func(r *rand.Rand, tr factorstest.Truth) func(site int,
	row []float64), dims ...int) (share, without float64) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 29))
	l := factorstest.Shape(t, ppca.NoisePerView, dims...)
	tr := factorstest.NewTruth(r, l, 2, 0.5)
	changed, all := change(r, tr), map[string][][]float64{}
	var names []string
	var together [][]float64
	for i := range sites {
		site := fmt.Sprintf("s%02d", i)
		names, all[site] = append(names, site), tr.Subjects(r, rows+300)
		for _, row := range all[site] {
			changed(i, row)
		}
		together = append(together, all[site]...)
	}
	plan, ranges, views := &strings.Builder{}, factorstest.RangesOf(together), make([]string, len(dims))
	fmt.Fprintf(plan, "parley: 1\nname: small\nsites: [%s]\nprivacy: {protection: differential, unit: subject, "+
		"adjacency: add-remove, total: {epsilon: 3, delta: 1e-5}}\nviews:\n", strings.Join(names, ", "))
	for k := range l.Dims {
		views[k] = fmt.Sprintf("v%d", k)
		fmt.Fprintf(plan, "  - name: v%d\n    features:\n", k)
		for lo, hi := l.View(k); lo < hi; lo++ {
			fmt.Fprintf(plan, "      - {name: f%d, range: [%v, %v]}\n", lo, ranges[lo][0], ranges[lo][1])
		}
	}
	fmt.Fprintf(plan, "method:\n  name: factors\n  latent: 2\n  patterns:\n    - {views: [%s]}\n    - {site: s00, "+
		"views: [%s]}\n", strings.Join(views, ", "), strings.Join(views[1:], ", "))
	p := newPlay(t, plan.String())
	data := map[string]*dataset.Table{}
	for i, site := range names {
		var mine []dataset.Row
		for k, row := range all[site][:rows] {
			x := factorstest.Split(l, row)
			if i == 0 {
				x[0] = nil
			}
			mine = append(mine, dataset.Row{ID: fmt.Sprintf("%d-%05d", i, k), Views: x})
		}
		data[site] = testkit.Get(dataset.NewTable(p.Plan.Schema(), mine))(t)
	}
	p.behindGates(data, seed)
	_, result := p.run()
	at := slices.IndexFunc(result.Files, func(f method.File) bool { return f.Name == "model/model.json" })
	m := testkit.Get(fitted.LoadModel(result.Files[at].Data))(t)
	share = covered(t, m, l, all["s00"][rows:])
	m.Biases = nil
	return share, covered(t, m, l, all["s00"][rows:])
}

// covered is the share of the values of view v0 that intervals of 90 % hold, if the subjects at
// site s00 lack it.
func covered(t *testing.T, m *fitted.Model, l ppca.Layout, subjects [][]float64) float64 {
	t.Helper()
	who := fitted.Population{}
	if m.Biases != nil {
		who.Site = "s00"
	}
	predictor, scale, err := m.PredictorFor(who)
	if err != nil {
		t.Fatal(err)
	}
	inside, mean, variance := 0.0, make([]float64, l.Dims[0]), make([]float64, l.Dims[0])
	for _, row := range subjects {
		x := factorstest.Split(l, row)
		x[0] = nil
		post, values, err := predictor.Subject(x, scale)
		if err != nil {
			t.Fatal(err)
		}
		post.Impute(mean, values)
		post.MissingVar(variance)
		for i, j := range post.Missing {
			if math.Abs((row[j]-scale.Shift[j])*scale.Factor[j]-mean[i]) < 1.6449*math.Sqrt(variance[i]) {
				inside++
			}
		}
	}
	return inside / float64(len(subjects)*l.Dims[0])
}

// other moves every feature of the first site by half a standard deviation, up or down.
func other(r *rand.Rand, tr factorstest.Truth) func(int, []float64) {
	by := make([]float64, len(tr.P.Mu))
	for j := range by {
		w := tr.P.W[j*tr.P.Rank:][:tr.P.Rank]
		by[j] = math.Sqrt(w[0]*w[0]+w[1]*w[1]+0.5) / 2 * float64(2*r.IntN(2)-1)
	}
	return func(site int, row []float64) {
		for j := range row {
			if site == 0 {
				row[j] += by[j]
			}
		}
	}
}

// Where a site lacks a view, and its features have other means by half a standard deviation,
// intervals of the view there allow for it, by what the site's other features show; and those of
// sites that are alike do not become wider than they have to be. Over 25 other seeds of each kind,
// intervals of 90 % held 0.890 of other means on average, where 0.784 are held without, and 0.891 of sites alike. The
// means of the fifteen here have standard deviations of about 0.01, which keeps them three from the limits.
func TestIntervalsAllowForOtherMeansAtASiteThatLacksAView(t *testing.T) {
	alike := func(*rand.Rand, factorstest.Truth) func(int, []float64) { return func(int, []float64) {} }
	for _, c := range []struct {
		name        string
		change      func(*rand.Rand, factorstest.Truth) func(int, []float64)
		least, most float64
	}{{"other means", other, 0.86, 0.96}, {"alike", alike, 0.87, 0.93}} {
		mean, without, n := 0.0, 0.0, 0.0
		for seed := range uint64(5) {
			for _, s := range []struct {
				sites, rows int
				dims        []int
			}{{3, 300, []int{5, 5, 5}}, {5, 200, []int{3, 5, 4, 4}}, {3, 400, []int{5, 5}}} {
				with, not := held(t, 800+seed, s.sites, s.rows, c.change, s.dims...)
				mean, without, n = mean+with, without+not, n+1
			}
		}
		if mean /= n; mean < c.least || mean > c.most {
			t.Errorf("%s: intervals of 90 %% hold %.3f", c.name, mean)
		}
		t.Logf("%s: intervals of 90 %% hold %.3f, and %.3f without the site's bias", c.name, mean, without/n)
	}
}
