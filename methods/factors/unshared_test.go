package factors

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"parley/dataset"
	"parley/methods/factors/factorstest"
)

const unshared = "Subjects differ from each other in a way in which those of other sites do not: "

// wayOfTheirOwn is the verdict on directions of single sites, if there is one.
func wayOfTheirOwn(t *testing.T, s *small) string {
	for _, v := range factorstest.Must(newPlay(t, s).run())(t).Verdicts() {
		if strings.HasPrefix(v, unshared) {
			return v
		}
	}
	return ""
}

// A batch in half of a site's rows, which moves every feature by less than its standard deviation
// within the site, and a file of which half has the ids of the next subject, are named with the
// site, whether the model has a factor left for it or not. The features are those that the batch moves.
func TestSitesThatVaryInAWayOfTheirOwnAreNamed(t *testing.T) {
	for _, latent := range []string{"1", "2"} {
		study := func() *small {
			return shape{dims: []int{8, 9, 6}, sites: 4, rows: 80, seed: 10, options: "  latent: " + latent + "\n  rounds: 0\n"}.study(t)
		}
		sd := func(table *dataset.Table, k, j int) float64 {
			sum, squares, n := 0.0, 0.0, float64(table.Len())
			for i := range table.Len() {
				x := table.Row(i).Views[k][j]
				sum, squares = sum+x, squares+x*x
			}
			return math.Sqrt(squares/n - sum*sum/(n*n))
		}
		s := study()
		dealt(t, s, "site-2", func(table *dataset.Table, i int) [][]float64 {
			v := slices.Clone(table.Row(i).Views)
			if v[1] = slices.Clone(v[1]); i < 40 {
				for j := range v[1] {
					v[1][j] += 0.8 * sd(table, 1, j) * float64(1-j%2*2)
				}
			}
			return v
		})
		if got := wayOfTheirOwn(t, s); !strings.HasPrefix(got, unshared+"site-2 (") || strings.Contains(got, "f0_") && strings.Contains(got, "f2_") {
			t.Errorf("latent %s, a batch: %q", latent, got)
		}
		s = study()
		dealt(t, s, "site-1", func(table *dataset.Table, i int) [][]float64 {
			v := slices.Clone(table.Row(i).Views)
			if i >= 40 {
				v[1] = table.Row(40 + (i+1)%40).Views[1]
			}
			return v
		})
		if got := wayOfTheirOwn(t, s); !strings.HasPrefix(got, unshared+"site-1 (") {
			t.Errorf("latent %s, half of a file with other ids: %q", latent, got)
		}
	}
}

// Sites that do not differ have no direction of their own, nor do those that see other patients, that
// have other noise, whose subjects are far from the mean in everything, or of which the model has
// too few factors. Of 60 studies, more than three would get one in one of 300 suites.
func TestSitesThatDoNotDifferHaveNoWayOfTheirOwn(t *testing.T) {
	said := 0
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 3))
		q := "2"
		if seed%6 == 4 {
			q = "1"
		}
		sites, rows := 3+int(seed%5), 20+20*int(seed%3)
		if seed%6 == 3 {
			sites, rows = 15, 100
		}
		s := shape{dims: []int{6, 5 + int(seed%4)*6}, sites: sites, rows: rows, seed: 300 + seed, options: "  latent: " + q + "\n  rounds: 0\n"}.study(t)
		for at, site := range s.plan.Sites {
			patients := 0.5 + rng.Float64()
			dealt(t, s, site, func(table *dataset.Table, i int) (views [][]float64) {
				x, y := rng.NormFloat64(), rng.NormFloat64()
				heavy, noise := 1.0, 1.0
				switch seed % 6 {
				case 1:
					x, y = patients*x+float64(at), y/patients
				case 2:
					noise = 1 + 0.5*float64(at%2)
				case 3:
					heavy = math.Sqrt(2 / (rng.ExpFloat64() + rng.ExpFloat64()))
				}
				for _, v := range table.Row(i).Views {
					w := make([]float64, len(v))
					for j := range w {
						w[j] = heavy * (x*math.Sin(float64(7*j+len(v))) + y*math.Cos(float64(5*j)) + noise*rng.NormFloat64())
					}
					views = append(views, w)
				}
				return views
			})
		}
		if got := wayOfTheirOwn(t, s); got != "" {
			said++
			t.Logf("kind %d: %s", seed%6, got)
		}
	}
	if said > 3 {
		t.Errorf("%d verdicts on 60 studies of sites that do not differ", said)
	}
}
