package mixture

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"testing"

	"parley/figure"
	"parley/methods/mixture/gmm"
)

// drawnMixture is one of k components in d features at known places, and the setup of a
// plan that looks for it.
func drawnMixture(k, d int) (*Setup, gmm.Mixture) {
	rng := rand.New(rand.NewPCG(uint64(k), uint64(d)))
	truth := gmm.NewMixture(k, d)
	for c := range k {
		truth.Weights[c] = 2 * float64(c+1) / float64(k*(k+1))
		for i := range d {
			truth.Mean(c)[i] = rng.Float64()*12 - 6
			truth.Cov(c)[i*d+i] = 1 + rng.Float64()
		}
	}
	return known(text(d, fmt.Sprintf("components: %d", k), noProtection)).Setup, truth
}

// A site's own pictures count every row, and are for the site alone.
func TestOwnPictures(t *testing.T) {
	integral := func(l figure.Line, steps bool) (s float64) {
		for i := range len(l.X) - 1 {
			y := l.Y[i]
			if !steps {
				y = (l.Y[i] + l.Y[i+1]) / 2
			}
			s += y * (l.X[i+1] - l.X[i])
		}
		return s
	}
	for _, d := range []int{1, 2, 3, 5} {
		s, truth := drawnMixture(2, d)
		rows := make([]float64, 300*d)
		if err := truth.Simulate(rand.New(rand.NewPCG(1, 1)), rows); err != nil {
			t.Fatal(err)
		}
		columns := make([]figure.Numbers, d)
		for i, x := range rows {
			columns[i%d] = append(columns[i%d], x)
		}
		all := ownFigures(s, truth, columns, figure.Numbers{75, 225})
		if len(all) != 1 {
			t.Errorf("%d features: %d pictures, want one of all", d, len(all))
		}
		for _, f := range all {
			if !f.PerSubject() {
				t.Errorf("%d features: %s may leave the site", d, f.ID)
			}
			if err := f.SVG(io.Discard); err != nil {
				t.Error(err)
			}
		}
		if d > 1 {
			continue
		}
		lines := all[0].Chart.(figure.Lines).Series
		// A component's curve spans all but its tails.
		for i, want := range []float64{1, 0.25, 0.75, 1} {
			if got := integral(lines[i], lines[i].Steps); math.Abs(got-want) > 0.03 {
				t.Errorf("%s has the area %v, want %v", lines[i].Name, got, want)
			}
		}
	}
}

func TestHistogramOfEqualRows(t *testing.T) {
	l := histogram("rows", figure.Numbers{3, 3, 3})
	if l.X[0] != 2.5 || l.X[len(l.X)-1] != 3.5 || len(l.X) != 9 {
		t.Errorf("bins at %v", l.X)
	}
}
