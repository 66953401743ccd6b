package halves

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"parley/dataset"
	"parley/internal/testkit"
	"parley/methods/factors/assess"
	"parley/methods/factors/factorstest"
	"parley/methods/factors/ppca"
)

// several is a private study of sites with rows subjects each, alike but for a change to their rows, of
// which mu is the mean. It returns the verdicts that begin so.
func several(t *testing.T, seed uint64, sites, rows int, epsilon string, change func(site int, mu, row []float64),
	begin string) (said []string) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 23))
	l := factorstest.Shape(t, ppca.NoisePerView, 5, 5, 4)
	tr := factorstest.NewTruth(r, l, 2, 0.3)
	var names []string
	all := map[string][][]float64{}
	var together [][]float64
	for i := range sites {
		site := fmt.Sprintf("s%02d", i)
		names, all[site] = append(names, site), tr.Subjects(r, rows)
		for _, row := range all[site] {
			change(i, tr.P.Mu, row)
		}
		together = append(together, all[site]...)
	}
	ranges := factorstest.RangesOf(together)
	plan := &strings.Builder{}
	fmt.Fprintf(plan, "parley: 1\nname: small\nsites: [%s]\nprivacy: {protection: differential, unit: subject, "+
		"adjacency: add-remove, total: {epsilon: %s, delta: 1e-5}}\nviews:\n", strings.Join(names, ", "), epsilon)
	for k := range l.Dims {
		fmt.Fprintf(plan, "  - name: v%d\n    features:\n", k)
		for lo, hi := l.View(k); lo < hi; lo++ {
			fmt.Fprintf(plan, "      - {name: f%d, range: [%v, %v]}\n", lo, ranges[lo][0], ranges[lo][1])
		}
	}
	fmt.Fprint(plan, "method:\n  name: factors\n  latent: 2\n")
	p := newPlay(t, plan.String())
	data := map[string]*dataset.Table{}
	for i, site := range names {
		var mine []dataset.Row
		for k, views := range factorstest.SplitAll(l, all[site]) {
			mine = append(mine, dataset.Row{ID: fmt.Sprintf("%d-%05d", i, k), Views: views})
		}
		data[site] = testkit.Get(dataset.NewTable(p.Plan.Schema(), mine))(t)
	}
	p.behindGates(data, seed)
	_, result := p.run()
	for _, v := range result.Verdicts() {
		if strings.HasPrefix(v, begin) {
			said = append(said, v)
		}
	}
	return said
}

// What is said of sites that differ.
const (
	otherMeans = "Sites' means differ, which is part of the variance: "
)

// unchanged changes nothing.
func unchanged(int, []float64, []float64) {}

// Sites whose means are one and a half apart, where values within them have a standard deviation of
// about 1, are named, and sites alike are not.
func TestSitesOfOtherMeansAreNamed(t *testing.T) {
	apart := func(site int, _, row []float64) {
		for j := range row {
			row[j] += 1.5 * float64((site+j)%2)
		}
	}
	unit := func(site int, _, row []float64) {
		if site == 0 {
			row[7] += 6
		}
	}
	if said := several(t, 700, 2, 800, "3", unit, otherMeans); len(said) != 1 || !strings.Contains(said[0], " in f7") ||
		strings.Count(said[0], " in ") != 1 {
		t.Errorf("one feature in another unit: %q", said)
	}
	named, all := 0, 0
	for _, c := range []struct {
		sites, rows int
		epsilon     string
	}{{2, 400, "3"}, {3, 250, "1"}, {10, 75, "3"}, {34, 40, "10"}} {
		for seed := range uint64(5) {
			if all++; several(t, 700+seed, c.sites, c.rows, c.epsilon, apart, otherMeans) != nil {
				named++
			}
			if said := several(t, 700+seed, c.sites, c.rows, c.epsilon, unchanged, otherMeans); said != nil {
				t.Errorf("%+v, seed %d, sites alike: %q", c, seed, said)
			}
		}
	}
	t.Logf("%d of %d", named, all)
	if named < 15 {
		t.Errorf("%d of %d studies are named", named, all)
	}
}

// A model that predicts a view worse than its mean does never goes without a warning on top, from next to no subjects
// to many, at one site and at many; and one that has learned much goes without. Gains are counted without noise over
// the subjects of the fit. With 20 seeds of each, 125 views were worse, none of them without a warning, and of 146 that
// gained more than half 17 were warned of.
func TestWorseThanTheMeanIsSaidFirst(t *testing.T) {
	worse, silent, good, alarmed := 0, 0, 0, 0
	for _, c := range []struct {
		sites, subjects int
		epsilon         string
	}{{2, 40, "1"}, {2, 200, "1"}, {12, 120, "1"}, {12, 240, "1"}, {2, 1000, "3"}} {
		for seed := range uint64(6) {
			plan, subjects := wide(t, 300+seed, c.subjects)
			var names []string
			for i := range c.sites {
				names = append(names, fmt.Sprintf("s%02d", i))
			}
			plan = strings.Replace(plan, "[north, south]", "["+strings.Join(names, ", ")+"]", 1)
			plan = strings.Replace(plan, "epsilon: 3", "epsilon: "+c.epsilon, 1)
			p := newPlay(t, plan)
			data := map[string]*dataset.Table{}
			for i, site := range names {
				var mine []dataset.Row
				for k := i; k < len(subjects); k += len(names) {
					mine = append(mine, dataset.Row{ID: fmt.Sprintf("%05d", k), Views: subjects[k]})
				}
				data[site] = testkit.Get(dataset.NewTable(p.Plan.Schema(), mine))(t)
			}
			p.behindGates(data, seed)
			state, result := p.run()
			first := ""
			if result.Sections[0].ID == "verdicts" {
				first = result.Sections[0].Items[0].Note.Text
				if len(result.Verdicts()) == 0 || result.Verdicts()[0] != result.Sections[0].Items[0].Note.Title {
					t.Errorf("the report begins with %q, and the metrics with %q",
						result.Sections[0].Items[0].Note.Title, result.Verdicts())
				}
			}
			for k, gain := range p.gains(state, subjects) {
				warned := strings.Contains(first, "any view") || strings.Contains(first, p.Plan.Views[k].Name)
				switch {
				case gain < -0.02:
					if worse++; !warned {
						silent++
						t.Logf("%+v, seed %d: view %d has gain %.2f, metric %.2f", c, seed, k, gain,
							result.Metrics["gain_over_mean/"+p.Plan.Views[k].Name])
					}
				case gain > 0.5:
					if good++; warned {
						alarmed++
					}
				}
			}
		}
	}
	if worse < 20 || silent > 1 || good < 40 || alarmed > good/4 {
		t.Errorf("too few views to tell, or a verdict that is wrong")
	}
	t.Logf("%d views were worse, %d of them silently; %d good ones, %d of them warned of", worse, silent, good, alarmed)
}

// A feature that hardly anybody has is named, and no other.
func TestRareFeaturesAreNamed(t *testing.T) {
	plan, subjects := wide(t, 5, 4000)
	for i, row := range subjects {
		if i%10 > 0 {
			row[0][0] = math.NaN()
		}
	}
	p := newPlay(t, plan)
	data := map[string]*dataset.Table{}
	for i, site := range p.Plan.Sites {
		var mine []dataset.Row
		for k := i * 2000; k < (i+1)*2000; k++ {
			mine = append(mine, dataset.Row{ID: fmt.Sprintf("%05d", k), Views: subjects[k]})
		}
		data[site] = testkit.Get(dataset.NewTable(p.Plan.Schema(), mine))(t)
	}
	p.behindGates(data, 1)
	_, result := p.run()
	if said := result.Verdicts(); !slices.ContainsFunc(said, func(s string) bool {
		return strings.HasSuffix(s, "lack a feature of a view that they have: f0")
	}) {
		t.Errorf("the report says %q", said)
	}
}

// gains are what predicting each view from the others gains over the subjects' own mean.
func (p *play) gains(s *State, subjects [][][]float64) (gains []float64) {
	p.t.Helper()
	model, scale := s.Model, p.RangeScale()
	others := assess.Of(testkit.Get(ppca.NewPredictor(p.Layout, model))(p.t))
	n, d := float64(len(subjects)), p.Layout.Features()
	sum, squares, x := make([]float64, d), make([]float64, d), make([]float64, d)
	sums := assess.NewSums(p.Layout.Views())
	for _, row := range subjects {
		for j, v := range slices.Concat(row...) {
			x[j] = (v - scale.Shift[j]) * scale.Factor[j]
			sum[j], squares[j] = sum[j]+x[j], squares[j]+x[j]*x[j]
		}
		testkit.Do(p.t, others.Add(sums, p.Layout.AllFeatures(), x))
	}
	for k := range p.Layout.Views() {
		whole := 0.0
		for lo, hi := p.Layout.View(k); lo < hi; lo++ {
			whole += squares[lo] - sum[lo]*sum[lo]/n
		}
		gains = append(gains, 1-sums.Error[k]/whole)
	}
	return gains
}
