package size

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"testing"

	"parley/judge/evaluate"
)

// What numpy reads is what the sites have, row by row.
func TestRowsAreTheSites(t *testing.T) {
	c := sized{"small", []int{3, 2}, 1, 0.4, []int{20, 30}}
	file := filepath.Join(t.TempDir(), "rows")
	sites, err := c.draw(file)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil || len(data) != 50*5*8 {
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
	if x, err := c.study(t.Context(), sites, "rounds: 0"); err != nil || !(x.CPU > 0) || !(x.LogLik < 0) {
		t.Errorf("the study cost %+v: %v", x, err)
	}
}

// BenchmarkStudy is whole studies, to be profiled.
func BenchmarkStudy(b *testing.B) {
	for _, c := range cases {
		for name, options := range map[string]string{"one exchange": oneExchange, "default": ""} {
			b.Run(c.name+"/"+name, func(b *testing.B) { benchmark(b, c, options) })
		}
	}
}

func benchmark(b *testing.B, c sized, options string) {
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
