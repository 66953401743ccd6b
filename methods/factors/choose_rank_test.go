package factors

import (
	"math"
	"math/rand/v2"
	"testing"

	"parley/dataset"
	"parley/internal/testkit"
	"parley/method"
	"parley/methods/factors/factorstest"
	"parley/methods/factors/fitted"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
)

// A study that chooses its number of factors finds as many as its subjects were drawn with in nine of ten, and is off
// by one at most. parley select chooses the same.
func TestAStudyChoosesItsNumberOfFactors(t *testing.T) {
	right, n := 0, 0
	for _, c := range testkit.Sized([]struct{ d, sites, n, shared int }{{40, 3, 300, 1}, {60, 12, 600, 2}},
		[]struct{ d, sites, n, shared int }{{40, 3, 300, 1}, {60, 12, 600, 2}, {24, 1, 200, 1}, {100, 2, 150, 2}, {300, 3, 120, 2}, {12, 5, 1000, 0}}) {
		for seed := range testkit.Sized[uint64](2, 10) {
			s, _ := viewsOf(t, seed+40, c.d, c.sites, c.n, c.shared, 1, false)
			s.plan.Method.Options.(*options.Options).Latent = options.Select
			m := factorstest.Must(fitted.LoadModel(fileOf(t, factorstest.Must(newPlay(t, s).run())(t), "model/model.json")))(t)
			found, truth := len(m.Factors), c.shared+4
			t.Logf("%+v: %d factors, drawn with %d", c, found, truth)
			if seed == 0 {
				candidates := method.SelectConfig{Values: []int{1, 2, 3, 4, 5, 6, 7, 8, 9}}
				chosen := factorstest.Must(Method{}.Select(t.Context(), s.plan, sources(s), candidates))(t)
				if got := chosen.Choices[0].Value; got != found || chosen.Recommended != found {
					t.Errorf("%+v: the study takes %d factors, parley select %d", c, found, got)
				}
			}
			if n++; found == truth {
				right++
			}
			if found > truth+1 || found < truth-1 {
				t.Errorf("%+v, seed %d: %d factors, drawn with %d", c, seed, found, truth)
			}
		}
	}
	if t.Logf("right in %d of %d", right, n); 10*right < 9*n {
		t.Errorf("right in %d of %d", right, n)
	}
}

// Where subjects lack several values together and factors explain nearly all of the others, the means that fill them at
// first look like further factors: with these alone, 27 of 30 other studies took too many, and with the number chosen
// again by what a model has filled, 2 did. parley select does the same.
func TestGapsAreNotTakenForFactors(t *testing.T) {
	right, n := 0, 0
	for _, c := range testkit.Sized([]gapped{{[]int{6, 6}, 3, 2, 0.01}, {[]int{10, 10, 5}, 2, 3, 0.5}}, []gapped{{[]int{6, 6}, 3, 2, 0.01}, {[]int{10, 10, 5}, 2, 3, 0.05}, {[]int{10, 10, 5}, 4, 3, 0.5}}) {
		for seed := range testkit.Sized[uint64](2, 6) {
			s := c.study(t, seed+20)
			m := factorstest.Must(fitted.LoadModel(fileOf(t, factorstest.Must(newPlay(t, s).run())(t), "model/model.json")))(t)
			if seed == 0 {
				chosen := factorstest.Must(Method{}.Select(t.Context(), s.plan, sources(s), method.SelectConfig{Values: []int{1, 2, 3, 4, 5, 6, 7, 8, 9}}))(t)
				if got := chosen.Choices[0].Value; got != len(m.Factors) {
					t.Errorf("%+v: the study takes %d factors, parley select %d", c, len(m.Factors), got)
				}
			}
			if n++; len(m.Factors) == c.factors {
				right++
			}
			t.Logf("%+v, seed %d: %d factors", c, seed, len(m.Factors))
		}
	}
	if 10*right < 7*n {
		t.Errorf("right in %d of %d", right, n)
	}
}

// gapped is a study of 600 subjects who lack three neighbouring values together, ever again, one in five times.
type gapped struct {
	dims           []int
	sites, factors int
	noise          float64
}

func (c gapped) study(t *testing.T, seed uint64) *small {
	s := shape{dims: c.dims, sites: c.sites, rows: 600 / c.sites, options: "  latent: select\n", seed: seed}.study(t)
	r := rand.New(rand.NewPCG(seed, 5))
	truth := factorstest.NewTruth(r, factorstest.Shape(t, ppca.NoisePerView, c.dims...), c.factors, c.noise)
	for _, site := range s.plan.Sites {
		dealt(t, s, site, func(*dataset.Table, int) [][]float64 {
			row := truth.Subject(r)
			for j := 0; j+2 < len(row); j += 4 {
				if r.Float64() < 0.2 {
					row[j], row[j+1], row[j+2] = math.NaN(), math.NaN(), math.NaN()
				}
			}
			return factorstest.Split(truth.L, row)
		})
	}
	return s
}
