package statistics

import (
	"crypto/sha256"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"parley/dataset"
	"parley/method"
	"parley/method/methodtest"
	"parley/methods/factors/factorstest"
	"parley/methods/factors/halves"
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

// held is the share of each view's values that intervals of 90 % hold, predicted from the subjects' other views.
func (p *play) held(s *halves.State, subjects [][][]float64) []float64 {
	p.t.Helper()
	model, scale, l := factorstest.Must(s.Model.Params.Unpack(p.Layout))(p.t), p.RangeScale(), p.Layout
	predictor := factorstest.Must(ppca.NewPredictor(l, model))(p.t)
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
				if math.Abs((row[k][j-lo]-scale.Shift[j])*scale.Factor[j]-mean[i]) < 1.6449*math.Sqrt(variance[i]+s.Doubt[j]) {
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
		"privacy: {protection: differential, unit: subject, adjacency: add-remove, total: {epsilon: 3, delta: 1e-5}}\nviews:\n")
	for k := range l.Dims {
		fmt.Fprintf(text, "  - name: v%d\n    features:\n", k)
		for lo, hi := l.View(k); lo < hi; lo++ {
			fmt.Fprintf(text, "      - {name: f%d, range: [%v, %v]}\n", lo, ranges[lo][0], ranges[lo][1])
		}
	}
	fmt.Fprint(text, "method:\n  name: mvppca\n  latent: 5\n")
	return text.String(), factorstest.SplitAll(l, rows)
}

// The intervals of models of 4000 subjects at ε = 3 hold about what they promise. Over 150 other populations the
// coverage of intervals of 90 % was 0.886 on average, from 0.826 to 0.954, with a standard deviation of 0.018 to 0.020
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
			data[site] = factorstest.Must(dataset.NewTable(p.Plan.Schema(), mine))(t)
		}
		p.behindGates(data, 5)
		state, _ := p.run()
		for k, share := range p.held(state, subjects) {
			mean[k] += share / draws
			if share < 0.8 || share > 0.97 {
				t.Errorf("view %d: intervals of 90 %% hold %.1f %%", k, 100*share)
			}
		}
	}
	for k, c := range mean {
		if c < 0.85 || c > 0.92 {
			t.Errorf("view %d: intervals of 90 %% hold %.1f %% on average", k, 100*c)
		}
	}
	t.Logf("on average intervals of 90 %% hold %.3f", mean)
}
