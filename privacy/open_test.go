package privacy_test

import (
	"bytes"
	"math"
	"runtime/metrics"
	"strings"
	"testing"

	"parley/dataset"
	"parley/internal/testkit"
	"parley/internal/wire"
	"parley/privacy"
	"parley/privacy/account"
)

// several declares two sums that are sent, one of them twice, and one that is kept.
func several() privacy.Request {
	twice := vectors(2, 2, 3)
	twice.Mechanism.Count = 2
	moments := privacy.Sum{Name: "m", Unit: privacy.Subject, Form: privacy.Moments, Blocks: []int{2}, Bound: 3,
		Mechanism: mechanism(account.Gaussian, 2, math.Sqrt2)}
	kept := vectors(2, 1)
	kept.Name, kept.Kept = "k", true
	return privacy.Request{Protection: privacy.Differential, Contents: []privacy.Content{{What: "sums", Values: 13}},
		Sums: []privacy.Sum{twice, moments, kept}}
}

// sealed is a release of such sums, each made as often as declared.
func sealed(t testing.TB, r privacy.Request) []byte {
	t.Helper()
	s := granted(t, subjects(3), r.Sums...)
	for _, sum := range r.Sums {
		for range sum.Mechanism.Count {
			testkit.Get(s.Sum(t.Context(), sum.Name, func(*dataset.Row, []float64) int { return 0 }))(t)
		}
	}
	release := testkit.Get(s.Seal([]byte("body"), nil))(t)
	first := release.Bytes()
	first[0] ^= 1 // whoever is given the bytes changes no release
	if bytes.Equal(release.Bytes(), first) {
		t.Error("a release was changed from outside")
	}
	return release.Bytes()
}

// without is the request as granted makes it, which says nothing of contents.
func without(r privacy.Request) privacy.Request {
	r.Contents = nil
	return r
}

// forged is a release after somebody has changed it.
func forged(t testing.TB, good []byte, change func(map[string]any)) []byte {
	t.Helper()
	var fields map[string]any
	testkit.Do(t, wire.Unmarshal(good, &fields))
	change(fields)
	return testkit.Get(wire.Marshal(fields))(t)
}

func TestOpenedReleaseHasWhatWasDeclared(t *testing.T) {
	declared := without(several())
	good := sealed(t, declared)
	o, err := privacy.Open(good, declared)
	if err != nil || len(o.Sums) != 2 || len(o.Sums["v"]) != 2 || len(o.Sums["m"]) != 1 || string(o.Body) != "body" ||
		o.Ask != ask {
		t.Fatalf("%+v, %v", o, err)
	}
	// The other end calibrates noise with its own arithmetic.
	near := without(several())
	near.Sums[0].Mechanism.Noise *= 1 + 1e-9
	if _, err := privacy.Open(good, near); err != nil {
		t.Errorf("noise that differs by rounding: %v", err)
	}

	sum := func(fields map[string]any, i int) map[any]any { return fields["sums"].([]any)[i].(map[any]any) }
	for _, c := range []struct {
		name, want string
		change     func(map[string]any)
	}{
		{"an older version", "its version is 2", func(f map[string]any) { f["version"] = 2 }},
		{"a version that is to come", "versions up to", func(f map[string]any) { f["version"] = 4 }},
		{"a field that is not known", "unknown field", func(f map[string]any) { f["extra"] = 1 }},
		{"a task that is none", "has 3 bytes", func(f map[string]any) { f["task"] = []byte{1, 2, 3} }},
		{"another request", "another request", func(f map[string]any) {
			f["request"].(map[any]any)["pattern_minimum"] = 5
		}},
		{"a longer request", "another request", func(f map[string]any) {
			f["request"].(map[any]any)["protection"] = strings.Repeat("x", 500)
		}},
		{"a request that makes no sense", "its request", func(f map[string]any) {
			f["request"].(map[any]any)["protection"] = "wishful"
		}},
		{"noise that is a hundredth less", "another request", func(f map[string]any) {
			f["request"].(map[any]any)["sums"].([]any)[0].(map[any]any)["mechanism"].(map[any]any)["noise"] = 1.98
		}},
		{"a sum that is not declared", "a sum 3, and 3 were declared", func(f map[string]any) { sum(f, 0)["sum"] = 3 }},
		{"a sum below", "a sum -1", func(f map[string]any) { sum(f, 0)["sum"] = -1 }},
		{"a sum that is kept", `"k" was sent more often`, func(f map[string]any) {
			sum(f, 0)["sum"], sum(f, 0)["blocks"] = 2, []any{[]any{1}}
		}},
		{"a sum more often", `"v" was sent more often`, func(f map[string]any) { f["sums"].([]any)[2] = sum(f, 0) }},
		{"more sums", "an array of 4 elements", func(f map[string]any) {
			f["sums"] = append(f["sums"].([]any), sum(f, 0))
		}},
		{"more blocks", "an array of 3 elements", func(f map[string]any) {
			sum(f, 0)["blocks"] = append(sum(f, 0)["blocks"].([]any), []any{})
		}},
		{"fewer blocks", "an array of 1 elements", func(f map[string]any) {
			sum(f, 0)["blocks"] = sum(f, 0)["blocks"].([]any)[:1]
		}},
		{"no blocks", "an array of 0 elements", func(f map[string]any) { sum(f, 0)["blocks"] = []any{} }},
		{"a longer block", "block 0: an array of 3 elements", func(f map[string]any) {
			sum(f, 0)["blocks"].([]any)[0] = []any{1, 2, 3}
		}},
		{"no integers", "block 0", func(f map[string]any) { sum(f, 0)["blocks"].([]any)[0] = []any{1.5, 2} }},
		{"an integer without an opposite", "out of range", func(f map[string]any) {
			sum(f, 0)["blocks"].([]any)[0] = []any{math.MinInt64, 2}
		}},
		{"sums that are none", "its sums", func(f map[string]any) { f["sums"] = "none" }},
		{"more than was declared", "takes at most", func(f map[string]any) { f["body"] = make([]byte, 1<<15) }},
	} {
		if o, err := privacy.Open(forged(t, good, c.change), declared); err == nil ||
			!strings.Contains(err.Error(), c.want) || o.Sums != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if _, err := privacy.Open(append(bytes.Clone(good), 0), declared); err == nil {
		t.Error("bytes after the release were taken")
	}
}

// allocated is how many bytes a call allocates, in all, to some kilobytes.
func allocated(do func()) uint64 {
	total := func() uint64 {
		sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	before := total()
	do()
	return total() - before
}

// A hostile release of a megabyte takes no more memory than a few times what was
// declared, whatever its bytes promise.
func TestOpeningTakesNoMoreMemoryThanWasDeclared(t *testing.T) {
	declared := privacy.Request{Protection: privacy.Differential, Sums: []privacy.Sum{vectors(2, 1<<17)}}
	good := sealed(t, declared)
	const many = 1<<20 - 1<<10
	of := func(element any) []any {
		list := make([]any, many)
		for i := range list {
			list[i] = element
		}
		return list
	}
	empty := map[string]any{}
	blocks := func(f map[string]any) map[any]any { return f["sums"].([]any)[0].(map[any]any) }
	for _, c := range []struct {
		name   string
		change func(map[string]any)
	}{
		{"nothing", nil},
		{"a million empty sums", func(f map[string]any) { f["sums"] = of(empty) }},
		{"a million sums that are null", func(f map[string]any) { f["sums"] = of(nil) }},
		{"a million empty blocks", func(f map[string]any) { blocks(f)["blocks"] = of([]any{}) }},
		{"a million integers", func(f map[string]any) { blocks(f)["blocks"] = []any{of(0)} }},
		{"a million empty sums in the request", func(f map[string]any) {
			f["request"].(map[any]any)["sums"], f["sums"] = of(empty), []any{}
		}},
		{"a million empty contents", func(f map[string]any) {
			f["request"].(map[any]any)["contents"], f["sums"] = of(empty), []any{}
		}},
		{"a million lengths of blocks", func(f map[string]any) {
			f["request"].(map[any]any)["sums"].([]any)[0].(map[any]any)["blocks"], f["sums"] = of(1), []any{}
		}},
		{"a long body", func(f map[string]any) { f["body"], f["sums"] = make([]byte, many), []any{} }},
		{"a long name", func(f map[string]any) { f["study"], f["sums"] = strings.Repeat("x", many), []any{} }},
		{"a million elements in place of a number", func(f map[string]any) {
			f["round"], f["sums"] = of(empty), []any{}
		}},
		{"a million elements in place of the task", func(f map[string]any) { f["task"], f["sums"] = of(0), []any{} }},
	} {
		bad := good
		if c.change != nil {
			bad = forged(t, good, c.change)
		}
		var err error
		n := allocated(func() { _, err = privacy.Open(bad, declared) })
		most := uint64(5 * 9 << 17) // 9 bytes an entry were declared
		t.Logf("%s: %d bytes, %d allocated, %v", c.name, len(bad), n, err)
		if n > most {
			t.Errorf("%s: %d bytes were made %d, more than %d", c.name, len(bad), n, most)
		}
	}
}

// Whatever another organisation sends: it is an error, or has the declared
// shape, and takes no more memory than what was declared allows.
func FuzzOpen(f *testing.F) {
	declared := without(several())
	good := sealed(f, declared)
	f.Add(good)
	f.Add(forged(f, good, func(x map[string]any) { x["sums"] = []any{map[string]any{}, nil, []any{}} }))
	f.Add(forged(f, good, func(x map[string]any) { x["request"].(map[any]any)["sums"] = []any{map[string]any{}, nil} }))
	f.Add(forged(f, good, func(x map[string]any) { delete(x, "sums") }))
	f.Add([]byte{0xa0})
	f.Fuzz(func(t *testing.T, data []byte) {
		var o privacy.Opened
		var err error
		open := func() { o, err = privacy.Open(data, declared) }
		n := allocated(open)
		for tries := 0; n > 1<<19 && tries < 3; tries++ { // what the fuzzer itself allocates is counted, too
			n = min(n, allocated(open))
		}
		if n > 1<<19 {
			t.Fatalf("%d bytes were made %d", len(data), n)
		}
		if err != nil {
			return
		}
		made := 0
		for _, s := range declared.Sums {
			made += len(o.Sums[s.Name])
			if n := len(o.Sums[s.Name]); n > s.Mechanism.Count || n > 0 && s.Kept {
				t.Fatalf("%d sums %q", n, s.Name)
			}
			for _, n := range o.Sums[s.Name] {
				testkit.Do(t, n.Check(s))
			}
		}
		total := 0
		for _, sums := range o.Sums {
			total += len(sums)
		}
		if made != total || len(o.Request.Sums) != len(declared.Sums) {
			t.Fatalf("%+v", o)
		}
	})
}
