package association

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"parley/dataset"
	"parley/internal/testkit"
	"parley/privacy"
	"parley/privacy/privacytest"
	"parley/sitestore"
)

const ageAndSex = `
associate: 1
sites: 3
columns:
  - {name: age, range: [40, 80]}
  - {name: sex, levels: [f, m]}
  - {name: centre, levels: [a, b, c]}
adjust: [sex]
privacy: {adjacency: add-remove, epsilon: 2, delta: 1e-6}
`

func protocolOf(t *testing.T, text string) *Protocol {
	return testkit.Get(ParseProtocol("p.yaml", []byte(text)))(t)
}

// One subject more, or another in a subject's place, moves the sum by no more than the
// declared bound squared, or √2 times that, whatever is in the cells and the scores.
func TestSensitivityOfNoisedAssociations(t *testing.T) {
	cells := [][]string{{"40", "60", "80", "-1e308", "1e308", "1e999", "nan", "", "x"}, {"f", "m", "?", ""}, {"a", "b", "c", "A", "NA"}}
	p := protocolOf(t, ageAndSex)
	rng := rand.New(rand.NewPCG(1, 14))
	for factors := 1; factors <= 6; factors++ {
		sum := testkit.Get(p.sum(factors))(t)
		size := sum.Blocks[0]
		draw := func() []float64 {
			z, v := make([]float64, factors), make([]float64, size)
			scale := math.Pow(10, 6*rng.Float64()-2)
			for a := range z {
				z[a] = scale * rng.NormFloat64()
			}
			var row []string
			for _, c := range cells {
				row = append(row, c[rng.IntN(len(c))])
			}
			if !p.vector(row, z, v) {
				return make([]float64, size)
			}
			return v
		}
		largest, farthest := 0.0, 0.0
		for range 20000 {
			v, w := draw(), draw()
			one, both := 0.0, 0.0
			for i := range size {
				for k := range size {
					one, both = math.Hypot(one, v[i]*v[k]), math.Hypot(both, v[i]*v[k]-w[i]*w[k])
				}
			}
			largest, farthest = max(largest, one), max(farthest, both)
		}
		// The bound is reached, or noise would be wasted.
		if b := sum.Bound * sum.Bound; largest > b*(1+1e-12) || farthest > sum.Mechanism.Diameter*b*(1+1e-12) || largest < 0.99*b {
			t.Errorf("%d factors: sums differ by up to %v and %v, and the bound is %v", factors, largest, farthest, b)
		}
	}
}

// site draws a site's subjects, with true slopes of the factor on age and sex.
func site(rng *rand.Rand, n int, slope, sex float64) (rows []dataset.Row) {
	shift := 0.3 * rng.NormFloat64()
	for i := range n {
		age, male := min(80, max(40, 60+10*rng.NormFloat64())), rng.IntN(2)
		z := shift + slope*(age-60) + sex*float64(male) + 0.7*rng.NormFloat64()
		rows = append(rows, dataset.Row{ID: fmt.Sprintf("%05d", i), Views: [][]float64{{z}},
			Subject: []string{strconv.FormatFloat(age, 'f', 3, 64), []string{"f", "m"}[male], []string{"a", "b", "c"}[rng.IntN(3)]}})
	}
	return rows
}

var oneFactor = dataset.Schema{Views: []dataset.View{{Name: "v", Columns: []dataset.Column{{Name: "z"}}}},
	Subject: []dataset.Column{{Name: "age", Kind: dataset.Label}, {Name: "sex", Kind: dataset.Label}, {Name: "centre", Kind: dataset.Label}}}

// released is a site's table, by way of a gate.
func released(t *testing.T, p *Protocol, name string, seed uint64, rows []dataset.Row) *Table {
	r, err := p.Release("mvppca", Table{Format: Format, Model: "model", Reliability: []float64{0.9}}, func(row *dataset.Row, z []float64) bool {
		return copy(z, row.Views[0]) == 1
	})
	if err != nil {
		t.Fatal(err)
	}
	data := testkit.Get(dataset.NewTable(oneFactor, rows))(t)
	r.Study.Site, r.Study.Subjects = name, len(rows)
	gate := privacy.NewGate(r.Study, privacy.SimulationPolicy(), sitestore.NewMemory(), data, privacytest.Seeded(seed))
	session := testkit.Get(gate.Admit(privacy.Ask{Study: r.Study.Digest, Site: name, Round: 1, Kind: "associate"}))(t)
	defer session.Close()
	n := testkit.Get(session.Sum(t.Context(), r.Study.Requests[0].Request.Sums[0].Name, r.Contribution))(t)
	table, _ := r.Table(name, n)
	encoded := testkit.Get(table.Encode())(t)
	table = testkit.Get(Read(encoded))(t)
	return table
}

// A site whose noise hides a column says so, and tests the others as if it were not there.
func TestNoiseThatHidesAColumn(t *testing.T) {
	p := protocolOf(t, strings.Replace(ageAndSex, "range: [40, 80]", "range: [-4000, 8000]", 1))
	table := released(t, p, "site", 1, site(rand.New(rand.NewPCG(3, 14)), 3000, 0, 0))
	for _, x := range table.Tests {
		if x.Column == "age" {
			t.Errorf("the range of age is a hundred times too wide, and its slope is %v ± %v", x.Estimates, x.Covariance)
		}
	}
	if len(table.Tests) != 1 || table.Tests[0].Column != "centre" || math.Abs(float64(table.Tests[0].Subjects)-3000) > 6*table.Privacy.NoiseSD {
		t.Errorf("tests are %+v", table.Tests)
	}
}

// Noised tables are combined with those of the same protocol and other sites, and not before
// as many are there as was agreed.
func TestNoisedTablesThatDoNotGoTogether(t *testing.T) {
	table := func(change func(*Table)) *Table {
		x := &Table{Model: "m", Reliability: []float64{1}, Privacy: &guarantee{Protocol: "p", Site: "c", Sites: 3}}
		change(x)
		return x
	}
	a, b := table(func(t *Table) { t.Privacy.Site = "a" }), table(func(t *Table) { t.Privacy.Site = "b" })
	for want, last := range map[string]*Table{
		"":                      table(func(*Table) {}),
		"one is exact":          table(func(t *Table) { t.Privacy = nil }),
		"another protocol":      table(func(t *Table) { t.Privacy.Protocol = "q" }),
		"it is of site b, as y": table(func(t *Table) { t.Privacy.Site = "b" }),
		"at least 4 tables":     table(func(t *Table) { t.Privacy.Sites = 4 }),
	} {
		_, _, err := Combine([]string{"x", "y", "z"}, []*Table{a, b, last})
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
}

// What is wrong with a protocol is said with its place.
func TestProtocolsThatAreWrong(t *testing.T) {
	for from, to := range map[string]string{
		"sites: 3": "sites: 1", "range: [40, 80]": "range: [80, 40]", "levels: [f, m]": "levels: [f, f]", "adjust: [sex]": "adjust: [size]",
		"epsilon: 2": "epsilon: 0", "add-remove": "either", "associate: 1": "associate: 2", "levels: [a, b, c]": "range: [0, 1], levels: [a, b]",
	} {
		_, err := ParseProtocol("p.yaml", []byte(strings.Replace(ageAndSex, from, to, 1)))
		if err == nil || !strings.Contains(err.Error(), "p.yaml") || !strings.Contains(err.Error(), "hint") && !strings.Contains(fmt.Sprintf("%+v", err), "Hint") {
			t.Errorf("%s: %v", to, err)
		}
	}
}
