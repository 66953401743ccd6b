package factors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"parley/internal/wire"
	"parley/method"
	"parley/methods/factors/federated"
	"parley/methods/factors/fitted"
	"parley/methods/factors/options"
	"parley/privacy"
)

// exchange is a study at the moment when one answer is missing.
type exchange struct {
	study *small
	round int
	state []byte // the coordinator's, before any answer of the round
	tasks []method.Task
	said  []method.Contribution // answers to the tasks
}

// exchanges plays a study and keeps the first exchange of each kind and the last.
func exchanges(t testing.TB, s *small) (list []exchange) {
	t.Helper()
	p := newPlay(t, s).seeded()
	for {
		step, err := p.step()
		if err != nil {
			t.Fatal(err)
		}
		if step.Done {
			return list
		}
		p.round++
		x := exchange{study: s, round: p.round, tasks: step.Tasks}
		if x.state, err = p.state.MarshalBinary(); err != nil {
			t.Fatal(err)
		}
		for _, task := range step.Tasks {
			said, err := p.answer(task)
			if err != nil {
				t.Fatal(err)
			}
			x.said = append(x.said, said)
			if p.state, err = p.coordinator.Fold(p.state, said); err != nil {
				t.Fatal(err)
			}
		}
		kind := func(back int) string {
			if back > len(list) {
				return ""
			}
			return list[len(list)-back].tasks[0].Kind
		}
		if n := len(list); kind(1) == step.Tasks[0].Kind && kind(2) == kind(1) {
			list[n-1] = x
		} else {
			list = append(list, x)
		}
	}
}

// everyKind has an exchange of every kind of task: moments and parameters in
// the one shot, means and extremes for the scale.
func everyKind(t testing.TB) (list []exchange) {
	for _, options := range []string{federatedOptions, "  latent: 1\n  scaling: min-max\n  noise: feature\n"} {
		list = append(list, exchanges(t, threeSites(t, options))...)
	}
	list = append(list, exchanges(t, threeSites(t, adjustedOptions))[0])
	return append(list, exchanges(t, private(statisticsOptions, checkedBudget).study(t))...)
}

// last says one thing for the round's last site and lets the study go on to its
// end: refused if the coordinator does not take it, and whatever goes wrong
// after it was taken. Panics are what its callers look for.
func (x exchange) last(t testing.TB, said method.Contribution) (refused, after error) {
	t.Helper()
	p := newPlay(t, x.study).seeded()
	p.round, p.crash, p.left = x.round, true, map[string]error{}
	var err error
	if p.state, err = p.coordinator.Restore(x.state); err != nil {
		t.Fatal(err)
	}
	for i := range x.tasks {
		if i == len(x.tasks)-1 {
			p.state, refused = p.coordinator.Fold(p.state, said)
			if refused != nil {
				return refused, nil
			}
			break
		}
		if p.state, err = p.coordinator.Fold(p.state, x.said[i]); err != nil {
			t.Fatal(err)
		}
	}
	p.reload()
	r, err := p.run() // which demands that what may be looked at is finite
	if err != nil {
		return nil, fmt.Errorf("%w; sites that left: %v", err, p.left)
	}
	if _, err := json.Marshal(r.Metrics); err != nil {
		return nil, fmt.Errorf("metrics that cannot be written: %w", err)
	}
	for _, s := range r.Sections {
		if _, err := json.Marshal(s); err != nil {
			return nil, fmt.Errorf("section %s cannot be written: %w", s.ID, err)
		}
	}
	if _, err := fitted.LoadModel(r.Files[0].Data); err != nil {
		return nil, err
	}
	for _, site := range x.study.plan.Sites {
		if _, err := p.coordinator.Share(p.state, site); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func TestBrokenContributionsAreErrors(t *testing.T) {
	for _, x := range everyKind(t) {
		task, said := x.tasks[len(x.tasks)-1], x.said[len(x.said)-1]
		if refused, after := x.last(t, said); refused != nil || after != nil {
			t.Fatalf("%s: an honest answer: %v, %v", task.Kind, refused, after)
		}
		body := said.Body
		broken := map[string][]byte{
			"nothing": nil, "null": {0xf6}, "an empty map": {0xa0}, "a byte too many": append(slices.Clone(body), 0),
			"another site's task": task.Body, "text": []byte("no"),
		}
		if x.typed() {
			broken["not a number"] = notANumber(body)
		}
		for n := 1; n < len(body); n += 1 + len(body)/40 {
			broken["truncated at "+string(rune('0'+n%10))] = body[:n]
		}
		for name, body := range broken {
			if bytes.Equal(body, said.Body) { // there is no body but the sums
				continue
			}
			err, _ := x.last(t, method.Contribution{Site: said.Site, Kind: said.Kind, Body: body, Sums: said.Sums})
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

// answerTo returns what the bodies of answers to a kind of task are decoded
// into; nil where the noised sums are all of an answer.
func answerTo(kind string) any {
	return map[string]any{
		options.TaskAdjust: new(options.Sums), options.TaskScale: new(options.FeatureSums), options.TaskFit: new(federated.FitAnswer), options.TaskAssess: new(options.Assessment),
	}[kind]
}

// typed says whether the answers have bodies, with numbers in them.
func (x exchange) typed() bool { return answerTo(x.tasks[0].Kind) != nil }

func TestLiesWithoutAnExcuse(t *testing.T) {
	list := everyKind(t)
	refuses := func(x exchange, said method.Contribution) {
		t.Helper()
		if err, _ := x.last(t, said); err == nil || !strings.Contains(err.Error(), "site-2") {
			t.Errorf("%s: %v", said.Kind, err)
		}
	}
	lie := func(kind string, change func(answer any)) {
		t.Helper()
		for _, x := range list {
			if x.tasks[0].Kind != kind {
				continue
			}
			said := x.said[len(x.said)-1]
			answer := answerTo(kind)
			if err := wire.Unmarshal(said.Body, answer); err != nil {
				t.Fatal(err)
			}
			change(answer)
			var err error
			if said.Body, err = wire.Marshal(answer); err != nil {
				t.Fatal(err)
			}
			refuses(x, said)
		}
	}
	// forge changes the only noised sum of an answer.
	forge := func(kind string, change func(*forged)) {
		t.Helper()
		for _, x := range list {
			if x.tasks[0].Kind == kind {
				said := x.said[len(x.said)-1]
				name := slices.Sorted(maps.Keys(said.Sums))[0]
				refuses(x, withSum(t, said, name, change))
			}
		}
	}
	lie(options.TaskScale, func(a any) { a.(*options.FeatureSums).N[0] = -1 })
	lie(options.TaskScale, func(a any) { a.(*options.FeatureSums).N[0] = 1.5 })
	lie(options.TaskScale, func(a any) { a.(*options.FeatureSums).A = a.(*options.FeatureSums).A[:2] })
	lie(options.TaskScale, func(a any) { a.(*options.FeatureSums).A[1], a.(*options.FeatureSums).B[1] = 3, -2 })
	lie(options.TaskScale, func(a any) { a.(*options.FeatureSums).N[0] = 1 << 40 })
	lie(options.TaskScale, func(a any) { a.(*options.FeatureSums).A[0] = -1e40 })
	lie(options.TaskScale, func(a any) { a.(*options.FeatureSums).B[0] = 1e100 })
	lie(options.TaskScale, func(a any) { a.(*options.FeatureSums).N[0] = 0 })
	sums := func(change func(s *options.Sums)) {
		lie(options.TaskAdjust, func(a any) { change(a.(*options.Sums)) })
	}
	sums(func(s *options.Sums) { s.Subjects = 0 })
	sums(func(s *options.Sums) { s.Lacking = 0.5 })
	sums(func(s *options.Sums) { s.Far = s.Subjects + 1 })
	sums(func(s *options.Sums) { s.N[0] = s.Subjects + 1 })
	sums(func(s *options.Sums) { s.N[0] = 1 }) // with sums of squares
	sums(func(s *options.Sums) { s.Mean[0] = 1e20 })
	sums(func(s *options.Sums) { s.Mean = s.Mean[1:] })
	sums(func(s *options.Sums) { s.XX.Data[0] = -1 })
	sums(func(s *options.Sums) { s.XX.Data[0], s.XX.Data[1], s.XY.Data[0] = 1e-40, 0, 0 })
	sums(func(s *options.Sums) { s.XX.Data[0] = 0 })
	sums(func(s *options.Sums) { s.XX.Data[1] = 2 * s.XX.Data[0] })
	sums(func(s *options.Sums) { s.XY.Data[0] = 1e9 })
	sums(func(s *options.Sums) { s.YY[0] = 1e80 })
	sums(func(s *options.Sums) { s.XY = wire.Matrix{} })
	block := func(change func(b *options.Block)) {
		lie(options.TaskFit, func(a any) { change(&a.(*federated.FitAnswer).Blocks[0]) })
	}
	lie(options.TaskFit, func(a any) { a.(*federated.FitAnswer).Blocks = nil })
	lie(options.TaskFit, func(a any) { s := a.(*federated.FitAnswer); s.Blocks = append(s.Blocks, s.Blocks[0]) })
	lie(options.TaskFit, func(a any) { a.(*federated.FitAnswer).LogLik = math.Inf(-1) })
	lie(options.TaskFit, func(a any) { a.(*federated.FitAnswer).Filled = -1 })
	block(func(b *options.Block) { b.N = 1 << 40 })
	block(func(b *options.Block) { b.N = -20 })
	block(func(b *options.Block) { b.N = 1.5 })
	block(func(b *options.Block) { b.Runs = [][2]int{{1, 1}} })
	block(func(b *options.Block) { b.Runs = [][2]int{{70, 71}} })
	block(func(b *options.Block) { b.Mean[0] = 1e40 })
	block(func(b *options.Block) { b.Mean = b.Mean[1:] })
	block(func(b *options.Block) {
		if len(b.Scatter) > 0 {
			b.Scatter[0] = -1
		} else {
			b.Diag[0] = -1
		}
	})
	block(func(b *options.Block) {
		if len(b.Scatter) > 0 {
			b.Factor = wire.Matrix{Rows: 1, Cols: b.Factor.Cols, Data: make(wire.Vector, b.Factor.Cols)}
		} else {
			b.Factor.Data[0] = 1e40
		}
	})
	block(func(b *options.Block) {
		if len(b.Scatter) > 0 {
			b.Scatter = b.Scatter[1:]
		} else { // of more factors than the plan has
			b.Factor = wire.Matrix{Rows: 40, Cols: b.Factor.Cols, Data: make(wire.Vector, 40*b.Factor.Cols)}
		}
	})
	for _, kind := range []string{options.TaskOverview, options.TaskCoarse, options.TaskFine, options.TaskCheck} {
		for _, x := range list {
			if x.tasks[0].Kind == kind {
				said := x.said[len(x.said)-1]
				name := slices.Sorted(maps.Keys(said.Sums))[0]
				for _, sums := range [][]*privacy.Noised{nil, slices.Repeat(said.Sums[name], 2)} {
					other := said
					other.Sums = maps.Clone(said.Sums)
					other.Sums[name] = sums
					refuses(x, other)
				}
			}
		}
		forge(kind, func(f *forged) { f.Blocks[0] = f.Blocks[0][1:] })
		forge(kind, func(f *forged) { f.Blocks = slices.Repeat(f.Blocks[:1], 9) })
		forge(kind, func(f *forged) { f.Blocks = nil })
		forge(kind, func(f *forged) { f.Blocks[0][0] = math.MinInt64 })
		forge(kind, func(f *forged) { f.Step = 0 })
		forge(kind, func(f *forged) { f.Step *= 2 })
		forge(kind, func(f *forged) { f.SD = 1e-9 })
	}
	for _, x := range list {
		if !x.typed() {
			said := x.said[len(x.said)-1]
			said.Body = []byte{0xa0}
			refuses(x, said)
		}
	}
	lie(options.TaskAssess, func(a any) { a.(*options.Assessment).Cells[0] += 0.5 })
	lie(options.TaskAssess, func(a any) { a.(*options.Assessment).LogLik = math.NaN() })
	lie(options.TaskAssess, func(a any) { a.(*options.Assessment).AbsError[0] = -1 })
	lie(options.TaskAssess, func(a any) { clear(a.(*options.Assessment).Cells) })
	lie(options.TaskAssess, func(a any) { a.(*options.Assessment).Cov[0] = -1 })
	lie(options.TaskAssess, func(a any) { a.(*options.Assessment).Mean = nil })
	lie(options.TaskAssess, func(a any) { a.(*options.Assessment).Total[0] = 1e200 })
}

// forged is what a noised sum is encoded as.
type forged struct {
	Blocks [][]int64 `json:"blocks"`
	Step   float64   `json:"step"`
	SD     float64   `json:"sd"`
}

// withSum returns a contribution with another noised sum, which may be none that
// a session makes.
func withSum(t testing.TB, said method.Contribution, name string, change func(*forged)) method.Contribution {
	t.Helper()
	data, err := json.Marshal(said.Sums[name][0])
	if err != nil {
		t.Fatal(err)
	}
	var f forged
	if err := json.Unmarshal(data, &f); err != nil {
		t.Fatal(err)
	}
	change(&f)
	if data, err = json.Marshal(f); err != nil {
		t.Fatal(err)
	}
	n := new(privacy.Noised)
	if err := json.Unmarshal(data, n); err != nil {
		t.Fatal(err)
	}
	said.Sums = maps.Clone(said.Sums)
	said.Sums[name] = []*privacy.Noised{n}
	return said
}

func TestAnswersOutOfTurnAreErrors(t *testing.T) {
	x := everyKind(t)[0]
	p := newPlay(t, x.study)
	state, err := p.coordinator.Restore(x.state)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.coordinator.Fold(state, method.Contribution{Site: "site-0", Kind: options.TaskAssess, Body: x.said[0].Body}); err == nil {
		t.Error("an answer to another task was folded")
	}
	if _, err := p.coordinator.Next(state); err == nil || !strings.Contains(err.Error(), "site site-0 has not answered") {
		t.Errorf("a round without answers: %v", err)
	}
}

// FuzzContribution lets one site say anything, at every stage of every variant,
// beside noised sums that may be anything: what is taken harms nothing that follows.
func FuzzContribution(f *testing.F) {
	list := everyKind(f)
	for i, x := range list {
		f.Add(uint8(i), x.said[len(x.said)-1].Body, []byte{})
		f.Add(uint8(i), x.said[0].Body, []byte{})
		if len(x.said[0].Sums) > 0 {
			f.Add(uint8(i), x.said[0].Body, binary.LittleEndian.AppendUint64(nil, 1<<62))
			f.Add(uint8(i), x.said[0].Body, binary.LittleEndian.AppendUint64([]byte{0, 0, 0, 1, 0, 0, 0, 0}, 1<<63+1))
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, body, sums []byte) {
		x := list[int(which)%len(list)]
		said := x.said[len(x.said)-1]
		said.Body = body
		at := 0 // sums is the integers, over and over
		for _, name := range slices.Sorted(maps.Keys(said.Sums)) {
			if len(sums) < 8 {
				break
			}
			said = withSum(t, said, name, func(f *forged) {
				for _, block := range f.Blocks {
					for i := range block {
						block[i] = int64(binary.LittleEndian.Uint64(sums[8*(at%(len(sums)/8)):]))
						at++
					}
				}
			})
		}
		if _, err := x.last(t, said); err != nil && !excused(err) {
			t.Fatalf("%s: an answer was taken, and then: %v", said.Kind, err)
		}
	})
}
