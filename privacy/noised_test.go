package privacy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"parley/dataset"
	"parley/internal/testkit"
	"parley/internal/wire"
	"parley/privacy"
	"parley/privacy/privacytest"
	"parley/sitestore"
)

func noisedSum(t testing.TB) *privacy.Noised {
	t.Helper()
	return testkit.Get(granted(t, subjects(3), vectors(1, 2, 3)).Sum(t.Context(), "v",
		func(*dataset.Row, []float64) int { return 1 }))(t)
}

func TestNoisedSumTravelsAsWholeNumbers(t *testing.T) {
	n := noisedSum(t)
	b := testkit.Get(wire.Marshal(n))(t)
	var back privacy.Noised
	testkit.Do(t, wire.Unmarshal(b, &back))
	if err := back.Check(vectors(1, 2, 3)); err != nil || fmt.Sprint(back) != fmt.Sprint(*n) {
		t.Fatalf("%v became %v, %v", *n, back, err)
	}
}

// kept is a noised sum as a file holds it.
type kept struct {
	Blocks [][]int64 `json:"blocks"`
	Step   float64   `json:"step"`
	SD     float64   `json:"sd"`
}

func TestNoisedSumMustBeWhatWasDeclared(t *testing.T) {
	s := vectors(1, 2, 3)
	for want, change := range map[string]func(f *kept){
		"0 blocks where 2":          func(f *kept) { f.Blocks = nil },
		"3 blocks where 2":          func(f *kept) { f.Blocks = append(f.Blocks, []int64{1}) },
		"block 1 has 2 entries":     func(f *kept) { f.Blocks[1] = f.Blocks[1][:2] },
		"block 0 has 0 entries":     func(f *kept) { f.Blocks[0] = nil },
		"are not the declared":      func(f *kept) { f.Step *= 2 },
		"noise 0 are not":           func(f *kept) { f.SD = 0 },
		"entry 1 of block 0 is out": func(f *kept) { f.Blocks[0][1] = math.MinInt64 },
	} {
		written := testkit.Get(json.Marshal(noisedSum(t)))(t)
		var f kept
		if err := json.Unmarshal(written, &f); err != nil || f.Step == 0 || f.SD == 0 || len(f.Blocks) != 2 {
			t.Fatalf("%s, %v", written, err)
		}
		change(&f)
		written = testkit.Get(json.Marshal(f))(t)
		n := &privacy.Noised{}
		testkit.Do(t, json.Unmarshal(written, n))
		if err := n.Check(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if err := privacy.NoisedOf([][]int64{{1, 2}, {3, 4, 5}}, math.NaN(), 1).Check(s); err == nil ||
		!strings.Contains(err.Error(), "step NaN") {
		t.Errorf("a step that is no number: %v", err)
	}
	if err := privacy.NoisedOf([][]int64{{1, 2}}, 1, 1).Check(vectors(1, 2, 3)); err == nil {
		t.Error("the first of two blocks was taken for both")
	}
	bad := s
	bad.Mechanism.Noise = -1
	if err := noisedSum(t).Check(bad); err == nil {
		t.Error("a declaration that makes no sense was taken")
	}
}

// Whatever a site sends as its sum is an error, or finite numbers in the
// declared shape.
func FuzzNoised(f *testing.F) {
	good := testkit.Get(wire.Marshal(noisedSum(f)))(f)
	f.Add(good)
	f.Add([]byte{0xa0})
	s := vectors(1, 2, 3)
	f.Fuzz(func(t *testing.T, data []byte) {
		var n privacy.Noised
		if wire.Unmarshal(data, &n) != nil || n.Check(s) != nil {
			return
		}
		for i, length := range s.Blocks {
			v := n.Floats(i)
			if i >= n.Blocks() && v == nil {
				continue
			}
			if len(v) != length {
				t.Fatalf("block %d has %d entries", i, len(v))
			}
			for _, x := range v {
				if math.IsNaN(x) || math.IsInf(x, 0) {
					t.Fatalf("block %d: %v", i, v)
				}
			}
		}
	})
}

func ExampleSession_Sum() {
	sum := vectors(2, 2) // two numbers of each subject, noise of twice the bound
	gate := privacy.NewGate(study, privacy.SimulationPolicy(), sitestore.NewMemory(), subjects(400),
		privacytest.Seeded(1))
	session, err := gate.AdmitAny(ask, privacy.Request{Protection: privacy.Differential, Sums: []privacy.Sum{sum}})
	if err != nil {
		panic(err)
	}
	noised, err := session.Sum(context.Background(), sum.Name, func(_ *dataset.Row, v []float64) int {
		v[0], v[1] = 1, 0.5
		return 0
	})
	if err != nil {
		panic(err)
	}
	total := noised.Floats(0)
	fmt.Printf("noise of %.1f around 400: %v, around 200: %v\n", noised.SD(), math.Abs(total[0]-400) < 50,
		math.Abs(total[1]-200) < 50)
	// Output: noise of 10.0 around 400: true, around 200: true
}
