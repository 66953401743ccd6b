package ppca

import (
	"slices"
	"testing"
)

// A view that lies apart is named with its site, however sites are scaled; sites that differ
// as sites do are not.
func TestFarApart(t *testing.T) {
	l := Layout{Dims: []int{2, 2}}
	site := func(n int, offset float64) *FeatureSums {
		s := newFeatureSums(4)
		for i := range n {
			x := float64(i%7) - 3
			for j := range 4 {
				by := x + 0.1*float64(j)
				if j >= 2 {
					by += offset
				}
				s.add(j, 1, by, 0, false)
			}
		}
		return s
	}
	for name, c := range map[string]struct {
		sites []*FeatureSums
		want  []Apart
	}{
		"alike":       {[]*FeatureSums{site(30, 0), site(14, 3), site(7, -5)}, nil},
		"1e12 at one": {[]*FeatureSums{site(30, 0), site(14, 1e12), site(7, 3)}, []Apart{{Site: 1, View: 1}}},
		"two sites": {[]*FeatureSums{site(30, 0), site(14, 1e6)},
			[]Apart{{Site: 0, View: 1}, {Site: 1, View: 1}}},
		"one subject": {[]*FeatureSums{site(30, 0), site(1, 1e12), site(9, 0)}, []Apart{{Site: 1, View: 1}}},
		"nobody":      {[]*FeatureSums{site(0, 0), site(1, 0), site(1, 9)}, nil},
		"does not vary": {[]*FeatureSums{{N: []float64{5, 5, 5, 5}, A: []float64{1, 1, 1, 1},
			B: []float64{0, 0, 0, 0}}}, nil},
		"a site by itself": {[]*FeatureSums{site(30, 1e12)}, nil},
	} {
		got := liesApart(l, c.sites, false)
		for i := range got {
			if got[i].Times < farApart {
				t.Errorf("%s: %v", name, got[i])
			}
			got[i].Times = 0
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	ranges := func(low, high float64) *FeatureSums {
		return &FeatureSums{N: []float64{9, 9, 9, 9}, A: []float64{low, low, 0, 0}, B: []float64{high, high, 1, 1}}
	}
	if got := liesApart(l, []*FeatureSums{ranges(0, 1), ranges(100, 101), ranges(0, 2)}, true); len(got) != 1 ||
		got[0].Site != 1 || got[0].View != 0 {
		t.Errorf("ranges: %v", got)
	}
}
