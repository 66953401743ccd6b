package mvppca

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/internal/wire"
	"parley/method"
)

// exchange is a study at the moment when one answer is missing.
type exchange struct {
	study  *small
	state  []byte // the coordinator's, before any answer of the round
	tasks  []method.Task
	bodies [][]byte // answers to the tasks
}

// exchanges plays a study and keeps one exchange of each kind, the last.
func exchanges(t testing.TB, s *small) (list []exchange) {
	t.Helper()
	p := newPlay(t, s)
	for {
		step, err := p.step()
		if err != nil {
			t.Fatal(err)
		}
		if step.Done {
			return list
		}
		x := exchange{study: s, tasks: step.Tasks}
		if x.state, err = p.state.MarshalBinary(); err != nil {
			t.Fatal(err)
		}
		for _, task := range step.Tasks {
			body, err := p.answer(task)
			if err != nil {
				t.Fatal(err)
			}
			x.bodies = append(x.bodies, body)
			if p.state, err = p.coordinator.Fold(p.state, method.Contribution{Site: task.Site, Kind: task.Kind, Body: body}); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(list); n > 0 && list[n-1].tasks[0].Kind == step.Tasks[0].Kind {
			list[n-1] = x
		} else {
			list = append(list, x)
		}
	}
}

// everyKind has an exchange of every kind of task: moments and parameters in
// the one shot, means and extremes for the scale, both variants.
func everyKind(t testing.TB) (list []exchange) {
	for _, options := range []string{federated, "  latent: 1\n  scaling: min-max\n  noise: feature\n  local_rank: 4\n", published} {
		list = append(list, exchanges(t, threeSites(t, options))...)
	}
	for _, options := range []string{differenceOptions, jointOptions} {
		list = append(list, exchanges(t, private(options, perReleaseBudget).study(t))...)
	}
	return append(list, exchanges(t, private(statisticsOptions, checkedBudget).study(t))...)
}

// last says one thing for the round's last site and lets the study go on: its
// error, or the state after it. Panics are what its callers look for.
func (x exchange) last(t testing.TB, body []byte) error {
	p := newPlay(t, x.study)
	var err error
	if p.state, err = p.coordinator.Restore(x.state); err != nil {
		t.Fatal(err)
	}
	for i, task := range x.tasks {
		said := x.bodies[i]
		if i == len(x.tasks)-1 {
			said = body
		}
		if p.state, err = p.coordinator.Fold(p.state, method.Contribution{Site: task.Site, Kind: task.Kind, Body: said}); err != nil {
			return err
		}
	}
	step, err := p.step() // which demands that what may be looked at is finite
	if err != nil {
		return err
	}
	if step.Done {
		r, err := p.coordinator.Result(p.state)
		if err != nil {
			return err
		}
		if _, err := json.Marshal(r.Metrics); err != nil {
			t.Fatalf("an answer that was accepted gives metrics that cannot be written: %v", err)
		}
		return nil
	}
	_, err = p.answer(step.Tasks[0]) // what the coordinator made of it may be refused by a site, no more
	return err
}

func TestBrokenContributionsAreErrors(t *testing.T) {
	for _, x := range everyKind(t) {
		task, body := x.tasks[len(x.tasks)-1], x.bodies[len(x.bodies)-1]
		if err := x.last(t, body); err != nil {
			t.Fatalf("%s: an honest answer: %v", task.Kind, err)
		}
		broken := map[string][]byte{
			"nothing": nil, "null": {0xf6}, "an empty map": {0xa0}, "a byte too many": append(slices.Clone(body), 0),
			"not a number": notANumber(body), "another site's task": task.Body, "text": []byte("no"),
		}
		for n := 1; n < len(body); n += 1 + len(body)/40 {
			broken["truncated at "+string(rune('0'+n%10))] = body[:n]
		}
		for name, body := range broken {
			err := x.last(t, body)
			if err == nil || !strings.Contains(err.Error(), task.Site) {
				t.Errorf("%s, %s: the error does not name %s: %v", task.Kind, name, task.Site, err)
			}
		}
	}
}

// notANumber overwrites the first number of the first typed array.
func notANumber(body []byte) []byte {
	out := slices.Clone(body)
	for i := 0; i+12 < len(out); i++ {
		if out[i] != 0xd8 || out[i+1] != 0x56 {
			continue
		}
		head := 3
		switch out[i+2] & 31 {
		case 0: // an empty array
			continue
		case 24:
			head = 4
		case 25:
			head = 5
		}
		for k := range 8 {
			out[i+head+k] = 0xff
		}
		return out
	}
	return nil
}

// answerTo returns what the answers to a kind of task are decoded into.
func answerTo(kind string) any {
	return map[string]any{
		taskScale: new(featureSums), taskFit: new(fitAnswer), taskRefine: new(refineAnswer), taskIterate: new(iterateAnswer), taskAssess: new(assessment), taskClip: new(clipAnswer),
		taskStatistics: new(statisticsAnswer), taskCheck: new(checkAnswer),
	}[kind]
}

// Answers that are well formed and lie are refused, or lead to a study that
// can go on; nothing of them ever panics.
func TestContributionsThatLie(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 4))
	for _, x := range everyKind(t) {
		kind := x.tasks[0].Kind
		refused, tried := 0, 0
		for range 120 {
			answer := answerTo(kind)
			if err := wire.Unmarshal(x.bodies[len(x.bodies)-1], answer); err != nil {
				t.Fatal(err)
			}
			target := reflect.ValueOf(answer).Elem()
			if fit, ok := answer.(*fitAnswer); ok && fit.Params != nil && r.IntN(3) > 0 {
				target = reflect.ValueOf(fit.Params).Elem()
			}
			mutate(r, target)
			body, err := wire.Marshal(answer)
			if err != nil {
				continue // what cannot be sent
			}
			tried++
			if x.last(t, body) != nil {
				refused++
			}
		}
		if refused < tried/5 {
			t.Errorf("%s: only %d of %d lies were refused", kind, refused, tried)
		}
	}
}

func TestLiesWithoutAnExcuse(t *testing.T) {
	list := everyKind(t)
	lie := func(kind string, change func(answer any)) {
		t.Helper()
		for _, x := range list {
			if x.tasks[0].Kind != kind {
				continue
			}
			answer := answerTo(kind)
			if err := wire.Unmarshal(x.bodies[len(x.bodies)-1], answer); err != nil {
				t.Fatal(err)
			}
			change(answer)
			body, err := wire.Marshal(answer)
			if err != nil {
				t.Fatal(err)
			}
			if err := x.last(t, body); err == nil || !strings.Contains(err.Error(), "site-2") {
				t.Errorf("%s: %v", kind, err)
			}
		}
	}
	lie(taskScale, func(a any) { a.(*featureSums).N[0] = -1 })
	lie(taskScale, func(a any) { a.(*featureSums).N[0] = 1.5 })
	lie(taskScale, func(a any) { a.(*featureSums).A = a.(*featureSums).A[:2] })
	lie(taskScale, func(a any) { a.(*featureSums).A[1], a.(*featureSums).B[1] = 3, -2 })
	lie(taskFit, func(a any) { a.(*fitAnswer).Patterns = nil })
	lie(taskFit, func(a any) { a.(*fitAnswer).Patterns[0].Subjects = -20 })
	lie(taskFit, func(a any) { a.(*fitAnswer).Patterns[0].Views = []int{1, 0} })
	lie(taskFit, func(a any) { a.(*fitAnswer).Patterns[0].Views = []int{7} })
	lie(taskFit, func(a any) { a.(*fitAnswer).Patterns[0].Share = 1.01 })
	lie(taskFit, func(a any) { a.(*fitAnswer).Params, a.(*fitAnswer).Moments = nil, nil })
	lie(taskRefine, func(a any) { a.(*refineAnswer).Subjects = 0 })
	lie(taskRefine, func(a any) { a.(*refineAnswer).Class[0] = 99 })
	lie(taskRefine, func(a any) { a.(*refineAnswer).LogLik = math.Inf(-1) })
	lie(taskRefine, func(a any) { a.(*refineAnswer).Y = wire.Matrix{} })
	lie(taskRefine, func(a any) { a.(*refineAnswer).Xi[0] = -1 })
	lie(taskIterate, func(a any) { a.(*iterateAnswer).Params.Noise[0] = -1 })
	lie(taskIterate, func(a any) { a.(*iterateAnswer).Params.Runs = nil })
	lie(taskIterate, func(a any) {
		p := &a.(*iterateAnswer).Params
		p.W = wire.Matrix{Rows: p.W.Rows, Cols: 1, Data: p.W.Data[:p.W.Rows]}
	})
	lie(taskClip, func(a any) { a.(*clipAnswer).Sums = nil })
	lie(taskClip, func(a any) { s := a.(*clipAnswer); s.Sums = append(s.Sums, s.Sums[0]) })
	lie(taskClip, func(a any) { s := &a.(*clipAnswer).Sums[0]; s.Blocks[0] = s.Blocks[0][1:] })
	lie(taskClip, func(a any) { s := &a.(*clipAnswer).Sums[0]; s.Blocks = append(s.Blocks, []int64{1}) })
	lie(taskClip, func(a any) { a.(*clipAnswer).Sums[0].Step = math.Inf(1) })
	lie(taskClip, func(a any) { a.(*clipAnswer).Sums[0].SD = 1e-9 })
	lie(taskStatistics, func(a any) { a.(*statisticsAnswer).Lenses = nil })
	lie(taskStatistics, func(a any) { s := a.(*statisticsAnswer); s.Lenses = slices.Repeat(s.Lenses, 40) })
	lie(taskStatistics, func(a any) { s := a.(*statisticsAnswer); s.Lenses = s.Lenses[1:] })
	lie(taskStatistics, func(a any) { a.(*statisticsAnswer).Lenses[0].Views = []int{5} })
	lie(taskStatistics, func(a any) { a.(*statisticsAnswer).Lenses[0].Numbers = wire.Vector{1} })
	lie(taskStatistics, func(a any) { a.(*statisticsAnswer).Lenses[0].Numbers[2] = -1 })
	lie(taskStatistics, func(a any) { a.(*statisticsAnswer).Lenses[0].Scale[0] = -1 })
	lie(taskStatistics, func(a any) { s := a.(*statisticsAnswer); s.Overview.Blocks[0] = s.Overview.Blocks[0][1:] })
	lie(taskStatistics, func(a any) { a.(*statisticsAnswer).Overview.Step *= 2 })
	lie(taskStatistics, func(a any) { a.(*statisticsAnswer).Coarse.SD = 1e-9 })
	lie(taskStatistics, func(a any) { a.(*statisticsAnswer).Coarse.Blocks = nil })
	lie(taskStatistics, func(a any) { s := &a.(*statisticsAnswer).Fine; s.Blocks = append(s.Blocks, s.Blocks[0]) })
	lie(taskStatistics, func(a any) { a.(*statisticsAnswer).Fine.Blocks[0][0] = math.MinInt64 })
	lie(taskCheck, func(a any) { a.(*checkAnswer).Sum.Blocks = nil })
	lie(taskCheck, func(a any) { s := &a.(*checkAnswer).Sum; s.Blocks[0] = s.Blocks[0][1:] })
	lie(taskCheck, func(a any) { a.(*checkAnswer).Sum.SD = math.NaN() })
	lie(taskCheck, func(a any) { a.(*checkAnswer).Sum.Step = 0 })
	lie(taskCheck, func(a any) { a.(*checkAnswer).Sum.Blocks[0][3] = math.MinInt64 })
	lie(taskAssess, func(a any) { a.(*assessment).LogLik = math.NaN() })
	lie(taskAssess, func(a any) { a.(*assessment).AbsError[0] = -1 })
	lie(taskAssess, func(a any) { clear(a.(*assessment).Cells) })
	lie(taskAssess, func(a any) { a.(*assessment).Cov[0] = -1 })
	lie(taskAssess, func(a any) { a.(*assessment).Mean = nil })
	lie(taskAssess, func(a any) { a.(*assessment).Total[0] = 1e200 })
}

func TestAnswersOutOfTurnAreErrors(t *testing.T) {
	x := everyKind(t)[0]
	p := newPlay(t, x.study)
	state, err := p.coordinator.Restore(x.state)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.coordinator.Fold(state, method.Contribution{Site: "site-0", Kind: taskAssess, Body: x.bodies[0]}); err == nil {
		t.Error("an answer to another task was folded")
	}
	if _, err := p.coordinator.Next(state); err == nil || !strings.Contains(err.Error(), "site site-0 has not answered") {
		t.Errorf("a round without answers: %v", err)
	}
}

// FuzzContribution lets one site say anything, at every stage of both variants.
func FuzzContribution(f *testing.F) {
	list := everyKind(f)
	for i, x := range list {
		f.Add(uint8(i), x.bodies[len(x.bodies)-1])
		f.Add(uint8(i), x.bodies[0])
	}
	f.Fuzz(func(t *testing.T, which uint8, body []byte) {
		list[int(which)%len(list)].last(t, body)
	})
}

func TestRunsAreTheirOwnInverse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := Layout{Dims: []int{rapid.IntRange(1, 40).Draw(t, "features")}}
		list := slices.DeleteFunc(l.AllFeatures(), func(int) bool { return rapid.Bool().Draw(t, "absent") })
		back, err := features(runs(list), l)
		if len(list) == 0 {
			if err == nil {
				t.Fatal("no features were accepted")
			}
			return
		}
		if err != nil || !slices.Equal(back, list) {
			t.Fatalf("%v became %v (%v)", list, back, err)
		}
	})
	for _, wrong := range [][][2]int{{{0, 0}}, {{-1, 1}}, {{0, 4}}, {{1, 2}, {0, 1}}, {{0, 1}, {1, 2}}, {{0, math.MaxInt}}} {
		if list, err := features(wrong, Layout{Dims: []int{3}}); err == nil {
			t.Errorf("%v was accepted as %v", wrong, list)
		}
	}
}
