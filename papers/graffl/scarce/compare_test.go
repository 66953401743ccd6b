package scarce

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"parley/judge/evaluate"

	"pgregory.net/rapid"
)

// ward draws scarce and other rows of d columns, whose classes are normal with means
// shift apart, the scarce one wider in every second column.
func ward(scarce, other, d int, shift float64, rng *rand.Rand) (l Labelled) {
	for i := range scarce + other {
		row := make([]float64, d)
		for j := range row {
			row[j] = 0.6 * rng.NormFloat64()
			if i < scarce {
				row[j] = row[j]*(1+0.3*float64(j%2)) + shift/math.Sqrt(float64(d))
			}
		}
		l.Rows, l.Labels = append(l.Rows, row), append(l.Labels, i < scarce)
	}
	return l
}

func TestPlacementsAverageToTheAUC(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 30).Draw(t, "n")
		labels := rapid.SliceOfN(rapid.Bool(), n, n).Draw(t, "labels")
		labels[0], labels[1] = true, false
		scores, p := make([]float64, n), make(placements, n)
		for i := range scores { // few values, so that there are ties
			scores[i] = float64(rapid.IntRange(0, 6).Draw(t, "score"))
		}
		others, count := 0.0, 0.0
		for i := range p {
			p[i] = place(scores, labels, i)
			if !labels[i] {
				others += p[i]
				count++
			}
		}
		want := evaluate.AUC(scores, labels)
		if math.Abs(p.auc(labels)-want) > 1e-12 || math.Abs(others/count-want) > 1e-12 {
			t.Fatalf("placements average to %v and %v, the AUC is %v", p.auc(labels), others/count, want)
		}
	})
}

func TestGainHasItsStandardError(t *testing.T) {
	labels := []bool{true, true, false, false, false}
	gain, err := placements{0.9, 0.5, 0.5, 0.6, 1}.gain(placements{0.5, 0.5, 0.5, 0.6, 0.4}, labels)
	// By hand: differences 0.4 and 0, mean 0.2, S² 0.08; 0, 0 and 0.6, S² 0.12.
	if want := math.Sqrt(0.08/2 + 0.12/3); math.Abs(gain-0.2) > 1e-15 || math.Abs(err-want) > 1e-15 {
		t.Errorf("gain %v, error %v, want 0.2 and %v", gain, err, want)
	}
}

func TestFoldsHaveBothClassesEvenly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		scarce, other := rapid.IntRange(5, 30).Draw(t, "scarce"), rapid.IntRange(5, 60).Draw(t, "other")
		labels := make([]bool, scarce+other)
		for i := range scarce {
			labels[i*len(labels)/scarce] = true
		}
		folds := min(maxFolds, scarce, other)
		count := map[bool][]int{true: make([]int, folds), false: make([]int, folds)}
		for i, f := range partition(labels, folds, rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))) {
			count[labels[i]][f]++
		}
		for class, n := range count {
			if slices.Max(n)-slices.Min(n) > 1 || slices.Min(n) < 1 {
				t.Fatalf("folds have %v rows of class %v", n, class)
			}
		}
	})
}

func TestF1(t *testing.T) {
	// By hand: one hit, one false alarm, one miss, two right rejections (½ is not above ½).
	if got := F1([]float64{0.9, 0.6, 0.2, 0.5, 0.1}, []bool{true, false, true, false, false}); got != 0.5 {
		t.Errorf("%v, want ½", got)
	}
	if got := F1([]float64{0.1, 0.2}, []bool{false, true}); got != 0 {
		t.Errorf("%v without a hit", got)
	}
}

func compare(t *testing.T, own, held Labelled, generated [][]float64, seed uint64) *Comparison {
	t.Helper()
	c, err := Compare(own, held, generated, seed)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestComparisonFollowsFromItsArguments(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 0))
	own, held := ward(8, 60, 5, 0.8, rng), ward(20, 20, 5, 0.8, rng)
	generated := ward(100, 0, 5, 0.8, rng).Rows
	one, two := compare(t, own, held, generated, 3), compare(t, own, held, generated, 3)
	if !reflect.DeepEqual(one, two) {
		t.Error("the same comparison came out otherwise")
	}
	if other := compare(t, own, held, generated, 4); reflect.DeepEqual(one.Results, other.Results) {
		t.Error("another seed gave the same folds")
	}
	for i, want := range []int{0, 52, 52} { // level with the other class
		if r := one.Results[i]; r.Arm != arms[i] || r.Added != want || !(r.Validated > 0) || !(r.Held > 0) || r.Problem != "" {
			t.Errorf("%+v", r)
		}
	}
	// Held rows have no part in the verdict.
	none := compare(t, own, Labelled{}, generated, 3)
	if none.Kept != one.Kept || none.Reason != one.Reason || !math.IsNaN(none.Results[0].Held) {
		t.Errorf("without held rows: %+v", none)
	}
}

func TestVerdicts(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 0))
	good := ward(300, 0, 5, 2, rng).Rows
	held := ward(30, 30, 5, 2, rng)
	for name, c := range map[string]struct {
		own        Labelled
		generated  [][]float64
		want       string
		classifier bool
	}{
		"four of a class": {ward(4, 50, 5, 2, rng), good, "cannot be judged with 4", true},
		"none of a class": {ward(0, 50, 5, 2, rng), good, "cannot be judged with 0", false},
		"one class only":  {ward(50, 0, 5, 2, rng), good, "not scarce here", false},
		"as many of both": {ward(30, 30, 5, 2, rng), good, "not scarce here", true},
		"nothing made":    {ward(10, 50, 5, 2, rng), nil, "no synthetic rows", true},
		"rows elsewhere":  {ward(10, 50, 5, 2, rng), ward(300, 0, 5, -4, rng).Rows, "is wanted", true},
	} {
		got := compare(t, c.own, held, c.generated, 1)
		if got.Kept || !strings.Contains(got.Reason, c.want) || (got.Classifier != nil) != c.classifier || len(got.Synthetic) > 0 {
			t.Errorf("%s: %+v", name, got)
		}
		for _, r := range got.Results {
			if math.IsNaN(r.Held) != (r.Problem != "") {
				t.Errorf("%s: %+v", name, r)
			}
		}
	}
}

// kept counts over seeded sites how often synthetic rows are kept, and what these
// do to the AUC of fresh rows, in sum.
func kept(t *testing.T, sites, d int, shift float64, scarce int, generate func(rng *rand.Rand) [][]float64) (n int, gain float64) {
	t.Helper()
	for seed := range uint64(sites) {
		rng := rand.New(rand.NewPCG(seed, 7))
		own, held := ward(scarce, 10*scarce, d, shift, rng), ward(200, 200, d, shift, rng)
		c := compare(t, own, held, generate(rng), seed)
		if !c.Kept {
			continue
		}
		n++
		gain += c.Results[2].Held - c.Results[0].Held
		if len(c.Synthetic) != 9*scarce || c.Results[2].Added != 9*scarce {
			t.Fatalf("seed %d: %d rows were kept", seed, len(c.Synthetic))
		}
		all := own.With(c.Synthetic)
		again, err := FitLinear(all.Rows, all.Labels, Penalty)
		if err != nil || !slices.Equal(again.Weights, c.Classifier.Weights) {
			t.Fatalf("seed %d: the classifier is not that of own and kept rows: %v", seed, err)
		}
	}
	return n, gain
}

func TestComparisonRefuses(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 0))
	own, held := ward(8, 20, 2, 1, rng), ward(5, 5, 2, 1, rng)
	for want, c := range map[string]struct {
		own, held Labelled
		generated [][]float64
	}{
		"own rows: there are none":           {},
		"own rows: 28 rows with 27 labels":   {own: Labelled{own.Rows, own.Labels[1:]}},
		"own rows: row 2 has 1 columns":      {own: Labelled{[][]float64{{1, 2}, {1}}, []bool{true, false}}},
		"own rows: row 1, column 2 is NaN":   {own: Labelled{[][]float64{{1, math.NaN()}}, []bool{true}}},
		"held rows have 3 columns":           {own: own, held: ward(2, 2, 3, 1, rng)},
		"held rows: row 1, column 1 is +Inf": {own: own, held: Labelled{[][]float64{{math.Inf(1), 0}}, []bool{true}}},
		"synthetic rows: row 1 has 3":        {own: own, held: held, generated: [][]float64{{1, 2, 3}}},
	} {
		if _, err := Compare(c.own, c.held, c.generated, 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}
