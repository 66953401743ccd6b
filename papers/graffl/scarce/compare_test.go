package scarce

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"parley/internal/testkit"
	"parley/judge/evaluate"
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

func TestVerdictFollowsFromItsArguments(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 0))
	own, made := ward(8, 60, 5, 0.8, rng), ward(100, 0, 5, 0.8, rng).Rows
	one, two := testkit.Get(crossValidate(own, made, 3))(t), testkit.Get(crossValidate(own, made, 3))(t)
	if !reflect.DeepEqual(one, two) {
		t.Error("the same comparison came out otherwise")
	}
	if other := testkit.Get(crossValidate(own, made, 4))(t); reflect.DeepEqual(one, other) {
		t.Error("another seed gave the same folds")
	}
}

func TestVerdicts(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 0))
	good := ward(300, 0, 5, 2, rng).Rows
	for name, c := range map[string]struct {
		own  Labelled
		made [][]float64
		fits bool
	}{
		"four of a class": {ward(4, 50, 5, 2, rng), good, true},
		"none of a class": {ward(0, 50, 5, 2, rng), good, false},
		"one class only":  {ward(50, 0, 5, 2, rng), good, false},
		"as many of both": {ward(30, 30, 5, 2, rng), good, true},
		"nothing made":    {ward(10, 50, 5, 2, rng), nil, true},
		"rows elsewhere":  {ward(10, 50, 5, 2, rng), ward(300, 0, 5, -4, rng).Rows, true},
	} {
		got, kept, err := Keep(c.own, c.made, 1)
		if kept || (err == nil) != c.fits {
			t.Errorf("%s: kept %v, %v", name, kept, err)
		}
		if c.fits {
			own := testkit.Get(FitLinear(c.own.Rows, c.own.Labels, Penalty))(t)
			if !slices.Equal(got.Weights, own.Weights) {
				t.Errorf("%s: the classifier is not that of the own rows", name)
			}
		}
	}
	if _, _, err := Keep(ward(8, 20, 2, 1, rng), [][]float64{{1, 2, 3}}, 1); err == nil {
		t.Error("rows of another length were judged")
	}
}

// kept counts over seeded sites how often synthetic rows are kept, and what these
// do to the AUC of fresh rows, in sum.
func kept(t *testing.T, sites, d int, shift float64, scarce int,
	generate func(rng *rand.Rand) [][]float64) (n int, gain float64) {
	t.Helper()
	for seed := range uint64(sites) {
		rng := rand.New(rand.NewPCG(seed, 7))
		own, held := ward(scarce, 10*scarce, d, shift, rng), ward(200, 200, d, shift, rng)
		auc := func(c *LinearClassifier) float64 {
			return evaluate.AUC(testkit.Get(c.Probability(held.Rows))(t), held.Labels)
		}
		c, keep, err := Keep(own, generate(rng), seed)
		if err != nil {
			t.Fatal(err)
		}
		if keep {
			n++
			gain += auc(c) - auc(testkit.Get(FitLinear(own.Rows, own.Labels, Penalty))(t))
		}
	}
	return n, gain
}
