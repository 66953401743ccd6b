package methodtest

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"iter"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"parley/internal/testkit"
	"parley/method"
	"parley/study"
)

var damagesTimes = flag.Int("damages", 1, "how many times as many damaged states are tried of each study")

// damagedStates damages the coordinator's state at every step of a study, before and after
// the answers: each field and each entry of its encoding is dropped, emptied, made shorter, longer, negative,
// huge, NaN or swapped with another, maps get an unknown site, and bytes are flipped. What Restore then takes
// must be of use: neither Next, nor Fold of the honest answers, nor Result, nor Share may panic. Of the first
// two steps in a phase each damage is tried once; of all that there are, most are drawn.
func damagedStates(t testing.TB, m method.Method, p *study.Plan, states []moment, most int) {
	t.Helper()
	c := testkit.Get(m.Coordinator(p))(t)
	type attempt struct {
		at moment
		damage
	}
	var all []attempt
	tried, steps, refused := map[string]bool{}, map[string]int{}, 0
	for i, at := range states {
		s, err := c.Restore(at.data)
		if err != nil {
			t.Fatalf("the state of step %d: %v", i, err)
		}
		if again, err := s.MarshalBinary(); err != nil || !bytes.Equal(again, at.data) {
			t.Fatalf("the state of step %d has other bytes when it has been restored; %v", i, err)
		}
		state := fmt.Sprint(at.phase, len(at.answers) > 0)
		if steps[state]++; steps[state] > 2 {
			continue
		}
		for _, d := range damages(t, at.data, uint64(i)) {
			if key := fmt.Sprint(at.phase, len(at.answers) > 0, d.what); !tried[key] {
				tried[key] = true
				all = append(all, attempt{at, d})
			}
		}
	}
	r := rand.New(rand.NewPCG(uint64(len(all)), 5))
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, x := range all[:min(len(all), most**damagesTimes)] {
		if !usable(t, c, p, x.at, x.damage) {
			refused++
		}
	}
	if refused == 0 && most > 9 {
		t.Errorf("of %d damaged states none was refused", len(tried))
	}
}

// history keeps a coordinator's states, each with what was answered next.
type history struct {
	method.Method
	states []moment
}

type moment struct {
	phase   string // the task that is asked for
	data    []byte
	tasks   []method.Task
	answers []method.Contribution
}

func (h *history) Coordinator(p *study.Plan) (method.Coordinator, error) {
	c, err := h.Method.Coordinator(p)
	return remembering{c, h}, err
}

type remembering struct {
	method.Coordinator
	to *history
}

func (r remembering) keep(s method.State, phase string) error {
	data, err := s.MarshalBinary()
	r.to.states = append(r.to.states, moment{phase: phase, data: data})
	return err
}

func (r remembering) Next(s method.State) (step method.Step, err error) {
	if err := r.keep(s, "before"); err != nil {
		return step, err
	}
	if step, err = r.Coordinator.Next(s); err != nil {
		return step, err
	}
	phase := "end"
	if len(step.Tasks) > 0 {
		phase = step.Tasks[0].Kind
	}
	err = r.keep(step.State, phase)
	r.to.states[len(r.to.states)-1].tasks = step.Tasks
	return step, err
}

func (r remembering) Fold(s method.State, a method.Contribution) (method.State, error) {
	at := &r.to.states[len(r.to.states)-1]
	at.answers = append(at.answers, a)
	return r.Coordinator.Fold(s, a)
}

// usable goes on from a damaged state, if it is taken, and says whether it was.
func usable(t testing.TB, c method.Coordinator, p *study.Plan, at moment, d damage) (taken bool) {
	t.Helper()
	doing := "Restore"
	defer func() {
		if x := recover(); x != nil {
			t.Errorf("a state in phase %q, %s: %s panics: %v\n%s", at.phase, d.what, doing, x, debug.Stack())
		}
	}()
	for _, answers := range [][]method.Contribution{nil, at.answers} {
		doing = "Restore"
		s, err := c.Restore(d.data)
		if err != nil {
			return false
		}
		doing = "Fold"
		for _, a := range answers {
			if s, err = c.Fold(s, a); err != nil {
				return true
			}
		}
		doing = "Next"
		step, err := c.Next(s)
		if err != nil {
			continue
		}
		doing = "encoding what Next leaves"
		if _, err := step.State.MarshalBinary(); err != nil || !step.Done {
			continue
		}
		doing = "Result"
		if _, err := c.Result(step.State); err != nil {
			continue
		}
		doing = "Share"
		for _, site := range p.Sites {
			if _, err := c.Share(step.State, site); err != nil {
				break
			}
		}
	}
	return true
}

type damage struct {
	what string
	path string // of the changed node in the encoding, or bits
	data []byte
}

// bits is the path of a damage that is no change of a value.
const bits = "*"

// damages lists the ways in which an encoding is damaged.
func damages(t testing.TB, data []byte, seed uint64) (list []damage) {
	t.Helper()
	enc := testkit.Get(cbor.CoreDetEncOptions().EncMode())(t)
	var tree any
	testkit.Do(t, cbor.Unmarshal(data, &tree))
	encode := func(x any) []byte { return testkit.Get(enc.Marshal(x))(t) }
	// Each node is replaced in turn, with put making the whole of it.
	var visit func(path string, node any, put func(any) any)
	visit = func(path string, node any, put func(any) any) {
		instead := func(what string, x any) {
			list = append(list, damage{what + " " + path, path, encode(put(x))})
		}
		instead("null in place of", nil)
		switch x := node.(type) {
		case map[any]any:
			instead("nothing in", map[any]any{})
			keys := slices.SortedFunc(maps.Keys(x), func(a, b any) int {
				return strings.Compare(fmt.Sprint(a), fmt.Sprint(b))
			})
			with := func(change func(map[any]any)) map[any]any {
				other := maps.Clone(x)
				change(other)
				return other
			}
			for i, k := range keys {
				instead(fmt.Sprintf("no %v in", k), with(func(o map[any]any) { delete(o, k) }))
				instead(fmt.Sprintf("%v of an unknown name in", k), with(func(o map[any]any) { o["nobody"] = o[k] }))
				if next := keys[(i+1)%len(keys)]; next != k {
					instead(fmt.Sprintf("%v and %v swapped in", k, next),
						with(func(o map[any]any) { o[k], o[next] = o[next], o[k] }))
				}
				visit(fmt.Sprintf("%s/%v", path, k), x[k], func(y any) any {
					return put(with(func(o map[any]any) { o[k] = y }))
				})
			}
		case []any:
			instead("nothing in", []any{})
			if len(x) == 0 {
				instead("a number in", []any{1.0})
				instead("a name in", []any{"nobody"})
				break
			}
			instead("one less in", x[:len(x)-1])
			instead("one more in", append(slices.Clone(x), x[0]))
			for i := range min(len(x), 2) {
				visit(fmt.Sprintf("%s/[%d]", path, i), x[i], func(y any) any {
					other := slices.Clone(x)
					other[i] = y
					return put(other)
				})
			}
		case cbor.Tag:
			if b, ok := x.Content.([]byte); ok { // a vector
				for what, other := range damagedVectors(b) {
					instead(what, cbor.Tag{Number: x.Number, Content: other})
				}
				break
			}
			visit(path+"/matrix", x.Content, func(y any) any { return put(cbor.Tag{Number: x.Number, Content: y}) })
		case []byte:
			instead("no bytes in", []byte{})
			var inner any
			if len(x) > 1 && cbor.Unmarshal(x, &inner) == nil {
				visit(path+"/encoded", inner, func(y any) any { return put(encode(y)) })
			}
		case string:
			instead("no text in", "")
			instead("another text in", "nobody")
		case uint64, int64, float64, float32:
			for _, z := range []any{-1, 0, 1, 7, 1 << 40, math.NaN(), math.Inf(1), -2.5, 0.5, 1e300} {
				instead(fmt.Sprint(z, " in place of"), z)
			}
		case bool:
			instead("the opposite of", !x)
		}
	}
	visit("", tree, func(x any) any { return x })
	r := rand.New(rand.NewPCG(seed, 5))
	for i := range 40 {
		b := slices.Clone(data)
		for range 1 + i%3 {
			b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		}
		list = append(list, damage{fmt.Sprintf("with bytes flipped, %d of %d", i, seed), bits, b})
	}
	return append(list, damage{"of no bytes", "", nil}, damage{"cut in half", "", data[:len(data)/2]})
}

// damagedVectors are the ways in which the bytes of a vector are damaged.
func damagedVectors(b []byte) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		number := func(z float64) []byte { return binary.LittleEndian.AppendUint64(nil, math.Float64bits(z)) }
		if !yield("no numbers in", nil) || !yield("one number more in", append(slices.Clone(b), number(1)...)) {
			return
		}
		n := len(b)
		if n < 8 || !yield("one number less in", b[:n-8]) {
			return
		}
		for _, z := range []float64{math.NaN(), -3, 0, 0.5, 1e300} {
			if !yield(fmt.Sprint(z, " at first in"), append(number(z), b[8:]...)) ||
				!yield(fmt.Sprint(z, " at last in"), append(slices.Clone(b[:n-8]), number(z)...)) ||
				!yield(fmt.Sprint(z, " everywhere in"), slices.Repeat(number(z), n/8)) {
				return
			}
		}
	}
}

// stack is that of a panic, for a person.
func stack() string { return string(debug.Stack()) }

// damagedJSON lists the ways in which a JSON file is damaged: those of the same values in CBOR that JSON can say.
func damagedJSON(t testing.TB, data []byte) (list []damage) {
	t.Helper()
	var tree any
	testkit.Do(t, json.Unmarshal(data, &tree))
	named := testkit.Get(cbor.DecOptions{DefaultMapType: reflect.TypeFor[map[string]any]()}.DecMode())(t)
	for _, d := range damages(t, testkit.Get(cbor.Marshal(tree))(t), 4) {
		var x any
		if d.path == bits || named.Unmarshal(d.data, &x) != nil {
			continue
		}
		var err error
		if d.data, err = json.Marshal(x); err == nil {
			list = append(list, d)
		}
	}
	return list
}
