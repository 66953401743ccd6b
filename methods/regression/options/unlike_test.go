package options

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"parley/internal/wire"
	"parley/methods/regression/glm"
)

// At sites whose means differ by .3 and deviations by e^.2, another unit is told nearly always, mostly by its name, and
// of studies of nine numbers and a category without one fewer than one in thirty is doubted; where sites differ by
// more, one in eight.
func TestOtherUnitsAreTold(t *testing.T) {
	numbers := []struct{ mean, sd, times, plus float64 }{
		{120, 18, 0.133322, 0}, {37, 0.7, 1.8, 32}, {1, 0.4, 88.42, 0}, {5.4, 1.2, 18.02, 0}, {62, 14, -1, 2020},
		{80, 15, 1, 0}, {7.4, 0.06, 1, 0}, {0, 1, 1, 0}, {140, 5, 1, 0}}
	s := &Setup{Options: Default()}
	for j := range numbers {
		s.Encoding.Columns = append(s.Encoding.Columns, glm.Column{Name: fmt.Sprint("x", j), Scale: 1})
	}
	s.Encoding.Columns = append(s.Encoding.Columns, glm.Column{Name: "g", Levels: []string{"pre", "post", "prä"}})
	for _, c := range []struct{ mean, sd, most float64 }{{0.3, 0.2, 1.0 / 30}, {1, 0.35, 1.0 / 8}} {
		for _, sites := range []int{3, 10, 34} {
			const studies = 60
			alarms, told, named := 0, 0, 0
			for study := range studies {
				r := rand.New(rand.NewPCG(uint64(study), uint64(sites)))
				var names []string
				for k := range sites {
					names = append(names, fmt.Sprint("s", k))
				}
				draw := func(other int) []glm.Finding {
					moments := map[string]*ScaleAnswer{}
					for k, site := range names {
						n := math.Round(30 * math.Pow(100, r.Float64()))
						a := &ScaleAnswer{Moments: glm.NewMoments(9), Levels: wire.Vector{math.Round(n * 0.3),
							math.Round(n * 0.7), 0}}
						for j, x := range numbers {
							sd := x.sd * math.Exp(c.sd*r.NormFloat64()+r.NormFloat64()/math.Sqrt(2*n))
							a.N[j], a.Mean[j] = n, x.mean+x.sd*c.mean*r.NormFloat64()+sd*r.NormFloat64()/math.Sqrt(n)
							if k == 1 && j == other {
								a.Mean[j], sd = x.times*a.Mean[j]+x.plus, sd*math.Abs(x.times)
							}
							a.Squares[j] = n * sd * sd
						}
						moments[site] = a
					}
					return s.Unlike(names, moments)
				}
				if len(draw(-1)) > 0 {
					alarms++
				}
				for j, what := range []string{"kPa in place of mmHg", "°F in place of °C", "as of creatinine",
					"as of glucose", "years of birth"} {
					said := fmt.Sprint(draw(j))
					if strings.Contains(said, fmt.Sprintf("At site s1, x%d is unlike", j)) {
						told++
					}
					if strings.Contains(said, what) {
						named++
					}
				}
			}
			t.Logf("%d sites that differ by %v: %d of %d studies doubted, %d of %d told, %d by name", sites, c.mean,
				alarms, studies, told, 5*studies, named)
			if float64(alarms) > c.most*studies || told < 5*studies*9/10 || c.mean < 1 && named < 5*studies*6/10 {
				t.Errorf("%d sites that differ by %v: %d of %d studies doubted, %d of %d told, %d by name", sites,
					c.mean, alarms, studies, told, 5*studies, named)
			}
		}
	}
}

// Levels with another name, or that a site lacks, are told; of one site there is nothing to say.
func TestOtherLevelsAreTold(t *testing.T) {
	s := &Setup{Options: Default()}
	s.Encoding.Columns = []glm.Column{{Name: "g", Levels: []string{"pre", "post", "prä"}}}
	for want, counts := range map[string][3][3]float64{
		"": {{30, 70, 2}, {25, 60, 1}, {10, 40, 0}},
		"At site b, g has levels that no other site has: prä; lacks pre.": {{30, 70, 0}, {0, 60, 25}, {10, 40, 0}},
		"At site b, g has levels that no other site has: prä.":            {{30, 70, 0}, {20, 60, 25}, {10, 40, 0}},
		"At site b, g lacks pre.":                                         {{30, 70, 3}, {0, 60, 4}, {10, 40, 0}},
	} {
		moments := map[string]*ScaleAnswer{}
		for k, c := range counts {
			moments[string(rune('a'+k))] = &ScaleAnswer{Levels: c[:]}
		}
		if said := s.Unlike([]string{"a", "b", "c"}, moments); (said == nil) != (want == "") ||
			!strings.Contains(fmt.Sprint(said), want) {
			t.Errorf("%v: %q, want %q", counts, said, want)
		}
		if said := s.Unlike([]string{"b"}, moments); said != nil {
			t.Errorf("of one site: %q", said)
		}
	}
}

// A site that has standardised its numbers by itself is named; nothing is said where none has.
func TestNumbersThatOneSiteStandardisedAreNamed(t *testing.T) {
	s := &Setup{Options: Default()}
	s.Encoding.Columns = []glm.Column{{Name: "x", Scale: 1}, {Name: "y", Scale: 1}, {Name: "z", Scale: 1}}
	moments := map[string]*ScaleAnswer{}
	for _, site := range []string{"a", "b", "c"} {
		moments[site] = &ScaleAnswer{Moments: glm.Moments{N: wire.Vector{300, 300, 300},
			Mean: wire.Vector{40, 38, 41}, Squares: wire.Vector{43000, 44000, 45000}}}
	}
	if said := s.Unlike([]string{"a", "b", "c"}, moments); said != nil {
		t.Errorf("%q", said)
	}
	moments["b"].Mean, moments["b"].Squares = wire.Vector{1e-16, -1e-16, 0}, wire.Vector{300, 300, 300}
	if said := s.Unlike([]string{"a", "b", "c"}, moments); len(said) != 1 ||
		!strings.HasPrefix(said[0].Title, "At site b, numbers seem to have been standardised") {
		t.Errorf("%q", said)
	}
}
