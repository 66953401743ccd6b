package fitted

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"

	"parley/dataset"
	"parley/methods/factors/factorstest"
	"parley/methods/factors/ppca"
)

func drawnModel(t testing.TB) *Model {
	r := rand.New(rand.NewPCG(91, 1))
	return modelOf(t, factorstest.NewTruth(r, factorstest.Shape(t, ppca.NoisePerView, 3, 2), 2, 0.5), r)
}

func collect(t testing.TB, src dataset.Source, err error) *dataset.Table {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return factorstest.Must(dataset.Collect(context.Background(), src))(t)
}

// TestDrawsHaveTheMomentsOfTheModel: means and covariances of 20,000 subjects,
// in scaled units, are within five standard errors, which fails for one of
// 10⁵ seeds; the seed is fixed.
func TestDrawsHaveTheMomentsOfTheModel(t *testing.T) {
	m := drawnModel(t)
	const n = 20000
	src, err := m.Sample(n, 7, nil)
	table := collect(t, src, err)
	l, p, scale := factorstest.Must(m.Layout())(t), m.params(), m.scale()
	d := l.Features()
	columns := make([][]float64, d)
	for i := range n {
		row := table.Row(i)
		for j := range columns {
			k := l.ViewOf()[j]
			lo, _ := l.View(k)
			columns[j] = append(columns[j], (row.Views[k][j-lo]-scale.Shift[j])*scale.Factor[j])
		}
	}
	c := factorstest.Covariance(l, p, l.AllFeatures())
	for j := range d {
		if z := (stat.Mean(columns[j], nil) - p.Mu[j]) / math.Sqrt(c[j*d+j]/n); math.Abs(z) > 5 {
			t.Errorf("feature %d: mean is %v standard errors off", j, z)
		}
		for k := range d {
			se := math.Sqrt((c[j*d+j]*c[k*d+k] + c[j*d+k]*c[j*d+k]) / n)
			if z := (stat.Covariance(columns[j], columns[k], nil) - c[j*d+k]) / se; math.Abs(z) > 5 {
				t.Errorf("features %d and %d: covariance is %v standard errors off", j, k, z)
			}
		}
	}
}

func TestDrawsDependOnTheSeedAlone(t *testing.T) {
	m := drawnModel(t)
	draw := func(n int, seed uint64, views ...string) *dataset.Table {
		src, err := m.Sample(n, seed, views)
		return collect(t, src, err)
	}
	a, again, other, one := draw(12, 1), draw(12, 1), draw(12, 2), draw(12, 1, "view1")
	if a.Len() != 12 || a.Row(0).ID != "drawn-01" || a.Row(11).ID != "drawn-12" {
		t.Fatalf("%d subjects from %s on", a.Len(), a.Row(0).ID)
	}
	for i := range a.Len() {
		x, y, z, v := a.Row(i), again.Row(i), other.Row(i), one.Row(i)
		if factorstest.Worst(x.Views[0], y.Views[0]) != 0 || factorstest.Worst(x.Views[1], y.Views[1]) != 0 || factorstest.Worst(x.Views[0], z.Views[0]) == 0 {
			t.Fatalf("subject %d: %v, %v, with another seed %v", i, x.Views, y.Views, z.Views)
		}
		if v.Views[0] != nil || factorstest.Worst(v.Views[1], x.Views[1]) != 0 {
			t.Fatalf("subject %d with one view: %v, with both %v", i, v.Views, x.Views)
		}
		if x.Subject[0] != "model 0123456789ab" || a.Schema().Subject[0].Name != "drawn_from" {
			t.Fatalf("subject columns %v", x.Subject)
		}
	}
}

func TestDrawnSubjectsAreWrittenAndReadAgain(t *testing.T) {
	m := drawnModel(t)
	src := factorstest.Must(m.Sample(3, 1, nil))(t)
	dir := t.TempDir()
	if err := dataset.Write(context.Background(), dir, src); err != nil {
		t.Fatal(err)
	}
	schema := src.Schema()
	back := factorstest.Must(dataset.Open(context.Background(), dir, dataset.Options{Schema: &schema}))(t)
	table, want := collect(t, back, nil), collect(t, src, nil)
	for i := range table.Len() {
		for k := range table.Row(i).Views {
			if factorstest.Worst(table.Row(i).Views[k], want.Row(i).Views[k]) != 0 {
				t.Errorf("subject %d: %v, drawn %v", i, table.Row(i).Views, want.Row(i).Views)
			}
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := dataset.Collect(ctx, src); err == nil || !strings.Contains(err.Error(), "canceled") {
		t.Errorf("cancelled: %v", err)
	}
}
