package exact_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"parley/dataset"
	"parley/engine/local"
	"parley/internal/testkit"
	"parley/study"
)

// sitesOf draws sites of two classes by four numbers: the first two have effects .5 and −.5, of sites
// that differ by a standard deviation in the first, and in their intercepts about base.
type sitesOf struct {
	sites, rows        int
	unequal            float64 // standard deviation of the logarithm of rows
	base, between      float64 // mean of intercepts, and correlation of numbers
	intercepts, slopes float64 // standard deviations
	options            string
	studies, differ    int // how many, and of how many it is to be said at least
}

func (c sitesOf) draw(t *testing.T, seed uint64) (*study.Plan, map[string]dataset.Source) {
	t.Helper()
	var names []string
	for s := range c.sites {
		names = append(names, fmt.Sprintf("s%02d", s))
	}
	p, err := study.Parse("plan", []byte(fmt.Sprintf(`{parley: 1, name: slopes, sites: [%s], subjects: [y], views: [{name: v, features: [a, b, c, d]}],
		method: {name: regression, outcome: {column: y, levels: ["no", "yes"]}%s}, privacy: {protection: none}}`, strings.Join(names, ", "), c.options)), methods)
	if err != nil {
		t.Fatal(err)
	}
	r, id, data := rand.New(rand.NewPCG(seed, 77)), 0, map[string]dataset.Source{}
	for _, name := range names {
		n := max(20, int(float64(c.rows)*math.Exp(c.unequal*r.NormFloat64())))
		intercept, slope := c.base+c.intercepts*r.NormFloat64(), 0.5+c.slopes*r.NormFloat64()
		var rows []dataset.Row
		for range n {
			x, common := make([]float64, 4), r.NormFloat64()
			for j := range x {
				x[j] = math.Sqrt(c.between)*common + math.Sqrt(1-c.between)*r.NormFloat64()
			}
			rows = append(rows, dataset.Row{ID: fmt.Sprintf("%06d", id), Views: [][]float64{x},
				Subject: []string{binary(r)(intercept + slope*x[0] - 0.5*x[1])}})
			id++
		}
		data[name] = table(t, p, rows)
	}
	return p, data
}

// That an effect differs between sites is said beside that intercepts do, and also where sites have
// random ones; of sites that do not differ in effects hardly ever, however unequal they are and
// whatever their intercepts: at .001 more than three of the 430 studies come by chance once in 1000
// runs. Where slopes have a standard deviation of .6 about nine in ten studies show it: fewer
// than is asked for come by chance once in 1000 runs.
func TestEffectsThatDifferBetweenSites(t *testing.T) {
	const random = ", site_effects: random"
	doubted := 0
	for name, c := range map[string]sitesOf{
		"unequal":           {sites: 8, rows: 150, unequal: 1, studies: 100},
		"rare":              {sites: 8, rows: 80, unequal: 1, base: -4, studies: 100},
		"correlated":        {sites: 8, rows: 150, between: 0.8, studies: 100},
		"intercepts":        {sites: 8, rows: 150, intercepts: 1, studies: 100},
		"random intercepts": {sites: 8, rows: 60, intercepts: 0.5, options: random, studies: 30},
		"slopes":            {sites: 8, rows: 150, intercepts: 0.5, slopes: 0.6, studies: 40, differ: 30},
		"slopes, random intercepts": {sites: 8, rows: 150, intercepts: 0.5, slopes: 0.6, options: random,
			studies: 10, differ: 6},
	} {
		said, intercepts := 0, 0
		for seed := range uint64(c.studies) {
			p, data := c.draw(t, seed)
			out := testkit.Get(local.Run(t.Context(), local.Config{Plan: p, Methods: methods, Data: data}))(t)
			text := strings.Join(out.Result.Verdicts(), "\n")
			if strings.Contains(text, "Sites differ in the effect of") {
				said++
			}
			if strings.Contains(text, "Outcomes differ between sites") {
				intercepts++
			}
		}
		t.Logf("%s: said of %d of %d studies, of intercepts of %d", name, said, c.studies, intercepts)
		if c.slopes == 0 {
			doubted += said
		} else if said < c.differ || (c.options == "") != (intercepts > c.studies/2) {
			t.Errorf("%s: said of %d of %d studies, of intercepts of %d", name, said, c.studies, intercepts)
		}
	}
	if doubted > 3 {
		t.Errorf("said of %d of 430 studies whose sites have the same effects", doubted)
	}
}

// That a site writes events down as the end of follow-up, and the other way round, is said of it; of ten studies
// without a fault, of none: at .001 one comes by chance in a hundred runs.
func TestHazardsThatDifferBetweenSites(t *testing.T) {
	p := testkit.Get(study.Parse("plan", []byte(`{parley: 1, name: hazards, sites: [a, b, c, d],
		subjects: [days, y], views: [{name: v, features: [x]}], method: {name: regression, outcome: {column: days,
		event: y, levels: ["no", "yes"], cuts: [180, 365, 730, 1095]}}, privacy: {protection: none}}`), methods))(t)
	for exchanged, most := range map[bool]int{false: 0, true: 10} {
		said := 0
		for seed := range uint64(10) {
			r, data := rand.New(rand.NewPCG(seed, 3)), map[string]dataset.Source{}
			for _, site := range p.Sites {
				var rows []dataset.Row
				for i := range 400 {
					x := r.NormFloat64()
					dies, lost := 1500*math.Exp(-0.5*x)*r.ExpFloat64(), 200+1800*r.Float64()
					died := map[bool]string{true: "yes", false: "no"}[(dies < lost) != (exchanged && site == "c")]
					rows = append(rows, dataset.Row{ID: fmt.Sprintf("%s%03d", site, i), Views: [][]float64{{x}},
						Subject: []string{fmt.Sprint(math.Ceil(min(dies, lost))), died}})
				}
				data[site] = table(t, p, rows)
			}
			if strings.Contains(doubts(t, p, data), "events come at other times") {
				said++
			}
		}
		t.Logf("exchanged at one site of four: %v: said of %d of 10 studies", exchanged, said)
		if said > most || exchanged && said < 8 {
			t.Errorf("exchanged %v: said of %d of 10 studies", exchanged, said)
		}
	}
}
