package main

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"testing"

	"parley/judge/evaluate"
	"parley/papers/deal"
)

// What numpy reads is what the sites have, row by row.
func TestRowsAreTheSites(t *testing.T) {
	c := sized{"small", []int{3, 2}, 1, 1, 0.4, []int{60, 90}}
	file := filepath.Join(t.TempDir(), "rows")
	sites, err := c.draw(file)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil || len(data) != 150*5*8 {
		t.Fatalf("%d bytes: %v", len(data), err)
	}
	missing := 0
	for _, name := range evaluate.SiteNames(2) {
		for row, err := range sites[name].Rows(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			for k, d := range c.dims {
				for j := range d {
					x := math.Float64frombits(binary.LittleEndian.Uint64(data))
					data = data[8:]
					if row.Views[k] == nil {
						missing++
					}
					if (row.Views[k] == nil) != math.IsNaN(x) || row.Views[k] != nil && row.Views[k][j] != x {
						t.Fatalf("subject %s of %s: %v, and the file has %v", row.ID, name, row.Views, x)
					}
				}
			}
		}
	}
	if missing == 0 {
		t.Error("nothing is missing")
	}
	var pooled float64
	for i, w := range works {
		x, err := w.run(c, t.Context(), sites)
		if err != nil {
			t.Fatalf("%s: %v", w.name, err)
		}
		if i == 0 {
			pooled = x.LogLik
		}
		// So few features are said exactly, and nothing is lost.
		if !(x.CPU > 0) || !(math.Abs(x.LogLik-pooled) < 1e-3) {
			t.Errorf("%s: %+v, and all rows in one place reach %v", w.name, x, pooled)
		}
	}
	if _, err := c.work(t.Context(), "nothing"); err == nil {
		t.Error("a work that does not exist was done")
	}
}

// BenchmarkStudy is whole studies, to be profiled.
func BenchmarkStudy(b *testing.B) {
	for _, c := range cases {
		for name, options := range map[string]deal.Keys{"one exchange": oneExchange, "default": nil} {
			b.Run(c.name+"/"+name, func(b *testing.B) { benchmark(b, c, options) })
		}
	}
}

func benchmark(b *testing.B, c sized, options deal.Keys) {
	sites, err := c.draw(filepath.Join(b.TempDir(), "rows"))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	used := 0.0
	for b.Loop() {
		x, err := c.study(b.Context(), sites, options)
		if err != nil {
			b.Fatal(err)
		}
		used += x.CPU
	}
	b.ReportMetric(used/float64(b.N), "cpu-s/op")
}
