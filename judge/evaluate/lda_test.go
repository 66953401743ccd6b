package evaluate_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/internal/testkit"
	"parley/judge/evaluate"
)

func TestLDAInOneDimension(t *testing.T) {
	// Classes a = {0, 2, 0, 2} with mean 1, b = {4, 6} with mean 5.
	// Within scatter 4 + 2 = 6, n − K = 4, Σ = 1.5. The boundary is
	// (μ_a + μ_b)/2 + Σ·log(π_a/π_b)/(μ_b − μ_a) = 3 + 1.5·log 2/4 = 3.2599.
	lda, err := evaluate.FitLDA(evaluate.Scores{
		Latent: [][]float64{{0}, {2}, {0}, {2}, {4}, {6}},
		Labels: []string{"a", "a", "a", "a", "b", "b"},
	})
	if err != nil {
		t.Fatal(err)
	}
	boundary := 3 + 1.5*math.Ln2/4
	if a, b := lda.Classify([]float64{boundary - 1e-9}), lda.Classify([]float64{boundary + 1e-9}); a != "a" || b != "b" {
		t.Fatalf("%s below the boundary, %s above it", a, b)
	}
}

// cloud draws points of three classes around their own means.
func cloud(seed uint64, n int) evaluate.Scores {
	r := rand.New(rand.NewPCG(seed, 0))
	var s evaluate.Scores
	for i := range n {
		k := i % 3
		s.Latent = append(s.Latent, []float64{r.NormFloat64() + float64(k), r.NormFloat64() - float64(k*k)})
		s.Labels = append(s.Labels, fmt.Sprint(k))
	}
	return s
}

func TestLDADoesNotDependOnTheBasis(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		train, test := cloud(seed, 60), cloud(seed+1, 60)
		a := rapid.Float64Range(0.1, 10).Draw(t, "a")
		b := rapid.Float64Range(-3, 3).Draw(t, "b")
		moved := func(s evaluate.Scores) evaluate.Scores {
			m := evaluate.Scores{Labels: s.Labels}
			for _, x := range s.Latent {
				m.Latent = append(m.Latent, []float64{a*x[0] + b*x[1] + 7, x[1] - 2})
			}
			return m
		}
		plain := testkit.Get(evaluate.FitLDA(train))(t)
		other := testkit.Get(evaluate.FitLDA(moved(train)))(t)
		if p, q := plain.Accuracy(test), other.Accuracy(moved(test)); p != q {
			t.Fatalf("accuracy %v, and %v in another basis", p, q)
		}
	})
}

func TestLDAOfSingularScores(t *testing.T) {
	for name, s := range map[string]evaluate.Scores{
		"a dimension that is always 0":    {Latent: [][]float64{{0, 0}, {1, 0}, {0.5, 0}, {4, 0}, {5, 0}, {4.5, 0}}},
		"a dimension twice":               {Latent: [][]float64{{0, 0}, {1, 1}, {0.5, 0.5}, {4, 4}, {5, 5}, {4.5, 4.5}}},
		"classes that do not vary at all": {Latent: [][]float64{{1, 2}, {1, 2}, {1, 2}, {3, 4}, {3, 4}, {3, 4}}},
	} {
		s.Labels = []string{"a", "a", "a", "b", "b", "b"}
		lda, err := evaluate.FitLDA(s)
		if err != nil || lda.Accuracy(s) != 1 {
			t.Errorf("%s: accuracy %v (%v)", name, lda.Accuracy(s), err)
		}
	}
	same := evaluate.Scores{Latent: [][]float64{{1}, {1}, {1}}, Labels: []string{"a", "b", "b"}}
	if lda, err := evaluate.FitLDA(same); err != nil || lda.Classify([]float64{1}) != "b" {
		t.Errorf("points that are all alike go to the rarer class (%v)", err)
	}
}

func TestLDAWithoutDimensionsNamesTheMostFrequentClass(t *testing.T) {
	s := evaluate.Scores{Latent: [][]float64{{}, {}, {}}, Labels: []string{"a", "b", "b"}}
	lda, err := evaluate.FitLDA(s)
	if err != nil || lda.Classify(nil) != "b" {
		t.Fatal(err)
	}
}

func TestLDARefusals(t *testing.T) {
	for want, s := range map[string]evaluate.Scores{
		"0 points, 0 labels":             {},
		"1 points, 2 labels":             {Latent: [][]float64{{1}}, Labels: []string{"a", "b"}},
		"needs two classes":              {Latent: [][]float64{{1}, {2}}, Labels: []string{"a", "a"}},
		"more points than classes":       {Latent: [][]float64{{1}, {2}}, Labels: []string{"a", "b"}},
		"point 2 has 2 dimensions":       {Latent: [][]float64{{1}, {2, 3}, {4}}, Labels: []string{"a", "b", "b"}},
		"analysis: the scores are not f": {Latent: [][]float64{{1}, {math.NaN()}, {4}}, Labels: []string{"a", "b", "b"}},
	} {
		if _, err := evaluate.FitLDA(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}

func TestPairedAgainstATable(t *testing.T) {
	// Differences −1, −2, −3, 0: mean −1.5, s = 1.290994, t(0.975, 3) = 3.182446 (any table).
	a, b := []float64{1, 1, 1, 1}, []float64{2, 3, 4, 1}
	d, err := evaluate.Paired(a, b, 0.95, 0)
	half := 3.182446 * 1.290994 / 2
	if err != nil || d.Mean != -1.5 || math.Abs(d.Low+1.5+half) > 1e-5 || math.Abs(d.High+1.5-half) > 1e-5 {
		t.Fatalf("got %+v (%v), want −1.5 ± %v", d, err, half)
	}
	if d.Wins != 3 || d.Losses != 0 || d.Ties != 1 {
		t.Errorf("got %+v", d)
	}
	wide, err := evaluate.Paired(a, b, 0.95, 0.5)
	if err != nil || math.Abs((wide.High-wide.Low)/(d.High-d.Low)-math.Sqrt(3)) > 1e-9 {
		t.Errorf("√((1/4 + 1/2)/(1/4)) = √3 times wider, got %+v (%v)", wide, err)
	}
}

func TestPairedRefusals(t *testing.T) {
	one, two, bad := []float64{1}, []float64{1, 2}, []float64{1, math.NaN()}
	for want, err := range map[string]error{
		"1 scores against 1":     paired(one, one, 0.95, 0),
		"1 scores against 2":     paired(one, two, 0.95, 0),
		"have no difference":     paired(two, bad, 0.95, 0),
		"needs 0 < level < 1":    paired(two, two, 95, 0),
		"level 0.95, overlap -1": paired(two, two, 0.95, -1),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}

func paired(a, b []float64, level, overlap float64) error {
	_, err := evaluate.Paired(a, b, level, overlap)
	return err
}
