package mixture

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"parley/internal/testkit"
	"parley/methods/mixture/fitted"
	"parley/methods/mixture/gmm"
	"parley/methods/mixture/sketch"
)

// A component whose weight may be nothing was not found, one whose mean moves by much of the
// distance to its neighbour may lie elsewhere, and nothing is said of one that is known.
func TestDoubtsNameTheComponents(t *testing.T) {
	prior := testkit.Get(gmm.BoxPrior([]float64{-8, -8}, []float64{8, 8}, 2))(t)
	sample := func(weight, sd, moves float64) *gmm.Posterior {
		r := rand.New(rand.NewPCG(1, 2))
		p := &gmm.Posterior{}
		const draws = 400
		for range draws {
			w := max(weight+sd*r.NormFloat64(), 0)
			m := gmm.Mixture{Dim: 2, Weights: []float64{1 - w, w}, Means: []float64{0, 0, 3, 4 + moves*r.NormFloat64()},
				Covs: []float64{1, 0, 0, 1, 1, 0, 0, 1}}
			p.Draws, p.Weights = append(p.Draws, m), append(p.Weights, 1./draws)
		}
		return p
	}
	for _, c := range []struct {
		weight, sd, moves float64
		want              string
	}{
		{0.4, 0.05, 0.1, ""},
		{0.05, 0.05, 0.1, "component 2 was not found"},
		{0.4, 0.05, 2, "a component may lie elsewhere"},  // of a distance of 5
		{0.021, 0.0045, 0.1, ""},                         // 20 of 1000 rows, and no doubt who they are
		{0.021, 0.012, 0.1, "component 2 was not found"}, // the same, hidden by noise
		{0.001, 0.001, 0.1, "component 2 was not found"}, // what the prior gives to a component of no row
	} {
		if got := strings.Join(groupDoubts(sample(c.weight, c.sd, c.moves), prior, 1000), "; "); c.want == "" &&
			got != "" || !strings.HasPrefix(got, c.want) {
			t.Errorf("weight %v ± %v, mean ± %v: %q, want %q", c.weight, c.sd, c.moves, got, c.want)
		}
	}
	// Two rivals whose evidence is e⁻⁵ of the best's have 1.3 % together, one alone 0.7 %.
	rivalled := sample(0.4, 0.05, 0.1)
	for _, c := range []struct {
		rivals []float64
		want   string
	}{{[]float64{5, 5}, "another mixture, with components elsewhere"}, {[]float64{5, 20}, ""}} {
		rivalled.Rivals = c.rivals
		if got := strings.Join(groupDoubts(rivalled, prior, 1000), "; "); c.want == "" && got != "" ||
			!strings.HasPrefix(got, c.want) {
			t.Errorf("rivals whose log evidence is %v lower: %q, want %q", c.rivals, got, c.want)
		}
	}
	one := &gmm.Posterior{Draws: []gmm.Mixture{{Dim: 1, Weights: []float64{1}, Means: []float64{0},
		Covs: []float64{1}}}, Weights: []float64{1}}
	if got := groupDoubts(one, prior, 1000); len(got) > 0 {
		t.Errorf("the only component: %v", got)
	}
}

func TestSubjectsWhoLackAFeatureAreCounted(t *testing.T) {
	for _, c := range []struct {
		lacking, all int
		says         bool
	}{{0, 0, false}, {0, 900, false}, {40, 900, false}, {208, 900, true}, {3, 3, true}} {
		if note := fitted.LeftOut(c.lacking, c.all); (note != nil) != c.says {
			t.Errorf("%d of %d: %+v", c.lacking, c.all, note)
		}
	}
}

// What is said of the groups does not depend on their shape, nor the other way round; a title, which is all that the
// terminal shows, has the reasons.
func TestGroupsAndShapeAreSaidApart(t *testing.T) {
	const notFound = "component 2 was not found: its weight may be nothing, with a probability of 3 %"
	const found, lost, shape = "The groups are found", "Do not rely on these groups: component 2 was not found",
		"The groups' shape is not normal, or there are more of them"
	for _, c := range []struct {
		lost   []string
		tail   float64
		titles []string
		first  string
	}{
		{nil, 0.5, []string{found}, "The groups are found, and the mixture agrees"},
		{nil, 0.01, []string{found, shape}, "The groups are found, and their shape is not normal"},
		{[]string{notFound}, 0.5, []string{lost}, "The groups are not to be relied on"},
		{[]string{notFound}, 0.01, []string{lost, shape}, "The groups are not to be relied on"},
	} {
		v := &view{fit: &sketch.Fit{Tail: c.tail}, lost: len(c.lost)}
		v.Setup = known(text(1, "components: 2", noProtection)).Setup
		v.Posterior = &gmm.Posterior{}
		v.Doubted = c.lost
		var titles []string
		for _, n := range v.statements() {
			titles = append(titles, n.Title)
			if n.Warning == (n.Title == found) {
				t.Errorf("%q warns: %t", n.Title, n.Warning)
			}
		}
		if !slices.Equal(titles, c.titles) || !strings.HasPrefix(v.sure(), c.first) {
			t.Errorf("titles %q, want %q; %q", titles, c.titles, v.sure())
		}
	}
}

// Two components that share one group do not stand apart, and two groups do, whatever their covariances.
func TestComponentsThatShareAGroupAreNamed(t *testing.T) {
	two := func(apart, wide float64) gmm.Mixture {
		return gmm.Mixture{Dim: 2, Weights: []float64{0.6, 0.4}, Means: []float64{0, 0, apart, 0},
			Covs: []float64{1, 0.3, 0.3, 1, wide, 0, 0, wide}}
	}
	for _, c := range []struct {
		apart, wide float64
		named       int
	}{{6, 1, 0}, {5, 0.3, 0}, {1.5, 1, 2}, {0.5, 9, 2}} {
		if got := together(two(c.apart, c.wide), 1); len(got) != c.named {
			t.Errorf("%v apart, %v wide: %v", c.apart, c.wide, got)
		}
	}
}
