package mixture

import (
	"slices"
	"strings"
	"testing"

	"parley/methods/mixture/gmm"
	"parley/methods/mixture/sketch"
)

// What is said of the groups does not depend on their shape, nor the other way round; a title, which is all that the
// terminal shows, has the reasons.
func TestGroupsAndShapeAreSaidApart(t *testing.T) {
	const notFound = "component 2 was not found: its weight may be nothing, with a probability of 3 %"
	const found, lost, shape, imprecise = "The groups are found", "Do not rely on these groups: component 2 was not found", "The groups' shape is not normal, or there are more of them", "This mixture is less precise than its rows would allow"
	for _, c := range []struct {
		lost      []string
		tail      float64
		imprecise float64
		titles    []string
		first     string
	}{
		{nil, 0.5, 1, []string{found}, "The groups are found, and the mixture agrees"},
		{nil, 0.01, 1, []string{found, shape}, "The groups are found, and their shape is not normal"},
		{[]string{notFound}, 0.5, 1, []string{lost}, "The groups are not to be relied on"},
		{[]string{notFound}, 0.01, 1, []string{lost, shape}, "The groups are not to be relied on"},
		{nil, 0.5, 2, []string{found, imprecise}, "The mixture agrees with what the sites released, but"},
	} {
		v := &view{imprecision: c.imprecise, fit: &sketch.Fit{Tail: c.tail}, lost: len(c.lost)}
		v.Setup = known(text(1, "components: 2", noProtection)).Setup
		v.Posterior = &gmm.Posterior{}
		v.Doubted = c.lost
		if says := tooImprecise(c.imprecise); says != "" {
			v.Doubted = append(v.Doubted, says)
		}
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
		return gmm.Mixture{Dim: 2, Weights: []float64{0.6, 0.4}, Means: []float64{0, 0, apart, 0}, Covs: []float64{1, 0.3, 0.3, 1, wide, 0, 0, wide}}
	}
	for _, c := range []struct {
		apart, wide float64
		named       int
	}{{6, 1, 0}, {5, 0.3, 0}, {1.5, 1, 2}, {0.5, 9, 2}} {
		if got := together(two(c.apart, c.wide), 1); len(got) != c.named {
			t.Errorf("%v apart, %v wide: %q", c.apart, c.wide, got)
		}
	}
}
