package statistics

import (
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"

	"parley/figure"
	"parley/methods/factors/factorstest"
	"parley/methods/factors/halves"
	"parley/methods/factors/moments"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
	"parley/study"
)

// textOf is what a table shows.
func textOf(f *figure.Table) string {
	var b strings.Builder
	for _, c := range f.Columns {
		b.WriteString(strings.Join(c.Text, " "))
	}
	return b.String()
}

// What noise hides is not shown, whatever sign it has, and what limits cut is
// said to be more.
func TestDiagnosticsSayWhatNoiseHides(t *testing.T) {
	c, tr := shownModel(t)
	plan := &study.Plan{Views: []study.View{{Name: "v0"}, {Name: "v1"}, {Name: "v2"}}}
	co := way{Common: halves.Common{Setup: options.Setup{Plan: plan, Layout: tr.L}}}
	r := rand.New(rand.NewPCG(37, 38))
	for range 200 {
		sum := make([]float64, 3*moments.CheckEntries)
		for i := range sum {
			sum[i] = 10 * r.NormFloat64()
		}
		at := checkOf{name: "All sites"}
		for k := range 3 {
			at.views = append(at.views, c.Read(k, sum, 10))
		}
		metrics := map[string]float64{}
		co.checkMetrics([]checkOf{at}, metrics)
		table := textOf(co.checkTable([]checkOf{at}))
		if len(metrics) > 0 || strings.ContainsAny(table, "-−±") || strings.Contains(table, "NaN") || co.coverageFigure(at) != nil {
			t.Fatalf("noise alone is shown as\n%s\n%v", table, metrics)
		}
	}
	sum := make([]float64, 3*moments.CheckEntries)
	for range 1000 {
		for i, x := range atTheEnds(tr.L, c) {
			sum[i] += x
		}
	}
	at := checkOf{name: "All sites"}
	for k := range 3 {
		at.views = append(at.views, c.Read(k, sum, 1))
	}
	metrics := map[string]float64{}
	co.checkMetrics([]checkOf{at}, metrics)
	if table := textOf(co.checkTable([]checkOf{at})); !strings.Contains(table, "more\u00a0than") || !strings.Contains(table, "less\u00a0than") {
		t.Errorf("errors beyond the limits are shown as\n%s", table)
	}
	for key := range metrics {
		if strings.Contains(key, "error") || strings.Contains(key, "r2") {
			t.Errorf("metric %s is of errors that were cut", key)
		}
	}
}

// shownModel is a model in parts of ranges, of views with a doubt.
func shownModel(t testing.TB) (*moments.Checker, factorstest.Truth) {
	t.Helper()
	r := rand.New(rand.NewPCG(31, 32))
	l := factorstest.Shape(t, ppca.NoisePerView, 3, 1, 2)
	tr := factorstest.NewTruth(r, l, 2, 0.2)
	return factorstest.Must(moments.NewChecker(l, options.StartScale(options.Setup{Options: new(options.Options), Layout: l}), nearTheMiddle(&tr.P), []float64{0, .001, 0, .002, 0, 0}))(t), tr
}

// nearTheMiddle brings a model's values to 0.5 ± about 0.1.
func nearTheMiddle(p *ppca.Params) *ppca.Params {
	out := p.Clone()
	for i := range out.W {
		out.W[i] *= 0.07
	}
	for j := range out.Mu {
		out.Mu[j] = 0.5
	}
	for k := range out.Noise {
		out.Noise[k] *= 0.0049
	}
	return &out
}

// atTheEnds is the heaviest vector of subjects at the ends of all ranges.
func atTheEnds(l ppca.Layout, c *moments.Checker) (most []float64) {
	for set := range 64 {
		row := make([]float64, 6)
		for j := range row {
			row[j] = float64(set >> j & 1)
		}
		v := make([]float64, 3*moments.CheckEntries)
		c.Add(factorstest.Split(l, row), v)
		if most == nil || floats.Dot(v, v) > floats.Dot(most, most) {
			most = v
		}
	}
	return most
}
