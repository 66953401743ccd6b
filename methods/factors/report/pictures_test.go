package report

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"parley/methods/factors/factorstest"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
)

func TestGroupings(t *testing.T) {
	of := func(labels ...string) ([]string, []int) {
		g := &gallery{}
		for _, l := range labels {
			g.kept = append(g.kept, keptSubject{labels: []string{l}})
		}
		return g.grouping(0)
	}
	many, words := []string{"", "NA"}, []string{"rare"}
	for i := range 40 {
		many = append(many, fmt.Sprint(i))
		words = append(words, fmt.Sprintf("w%d", i%9))
	}
	for _, c := range []struct {
		labels, want []string
		first        int
	}{
		{[]string{"b", "a", "", "b"}, []string{"a", "b", "unknown"}, 1},
		{[]string{"10", "9", "10"}, []string{"9", "10"}, 1},
		{many, []string{"0 to 10", "above 10 to 20", "above 20 to 30", "above 30 to 39", "unknown"}, 4},
		{words, []string{"w0", "w1", "w2", "w3", "w4", "w5", "w6", "others"}, 7},
	} {
		names, of := of(c.labels...)
		if !slices.Equal(names, c.want) || of[0] != c.first || len(of) != len(c.labels) {
			t.Errorf("%v: got %v and %v", c.labels, names, of)
		}
	}
}

// A site whose subjects are shifted along the factors shows the shift itself,
// not what is left of it after shrinkage, within its interval.
func TestSiteMeansAreNotShrunken(t *testing.T) {
	l := factorstest.Shape(t, ppca.NoisePerView, 3, 2)
	r := rand.New(rand.NewPCG(17, 4))
	tr := factorstest.NewTruth(r, l, 1, 3)
	set := options.Setup{Options: &options.Options{Latent: 1}, Layout: l}
	p := factorstest.Must(ppca.NewPredictor(l, &tr.P))(t)
	inside, sum := 0, 0.0
	const tries, shift = 200, 0.8
	for range tries {
		rows := append(factorstest.Shifted(tr, tr.Subjects(r, 60), shift), factorstest.Lacking(l, factorstest.Shifted(tr, tr.Subjects(r, 60), shift), 0)...)
		blocks := factorstest.BlocksOf(t, l, rows)
		a := &options.Assessment{Patterns: options.PackPatterns(ppca.Patterns(l, blocks)), Mean: []float64{0}, Cov: []float64{0}}
		z, squares := []float64{0}, 0.0
		for _, row := range rows {
			post, values, err := p.Subject(factorstest.Split(l, row), nil)
			if err != nil {
				t.Fatal(err)
			}
			post.Latent(z, values)
			a.Mean[0] += z[0] / 120
			squares += (post.Cov[0] + z[0]*z[0]) / 120
		}
		a.Cov[0] = squares - a.Mean[0]*a.Mean[0]
		mean, se, err := siteMean(set, p, Site{"x", a})
		if err != nil {
			t.Fatal(err)
		}
		sum += mean[0] / tries
		if math.Abs(mean[0]-shift) < 1.645*se[0] {
			inside++
		}
	}
	if math.Abs(sum-shift) > 0.05 {
		t.Errorf("the mean of all estimates is %v, want %v", sum, shift)
	}
	// Binomial(200, 0.9) is outside 165 to 194 once in 300 times.
	if inside < 160 || inside > 197 {
		t.Errorf("%d of %d intervals of 90 %% hold the truth", inside, tries)
	}
}
