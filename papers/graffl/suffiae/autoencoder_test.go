package suffiae

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"parley/internal/linalg"
	"parley/internal/nn"
)

func TestDecoderMirrorsTheEncoder(t *testing.T) {
	o := Defaults()
	o.Dimension, o.Hidden = 3, []int{20, 9}
	a := newAutoencoder(31, o, 1)
	widths := func(s nn.Stack) (w []int) {
		w = append(w, s.In())
		for i := range s {
			w = append(w, s[i].Out)
		}
		return w
	}
	up, down := widths(a.encoder), widths(a.decoder)
	for i, w := range []int{31, 20, 9, 3} {
		if up[i] != w || down[3-i] != w {
			t.Fatalf("widths %v and %v", up, down)
		}
	}
	if o.Hidden[0] != 20 {
		t.Error("the options were changed")
	}
}

func TestNoiseHasVarianceAlpha(t *testing.T) {
	const m, d, alpha = 4000, 5, 0.09
	o := Defaults()
	o.Dimension, o.Noise = d, alpha
	a := newAutoencoder(2, o, m)
	a.drawNoise(m, rand.New(rand.NewPCG(1, 0)))
	sum, squares := 0.0, 0.0
	for i, v := range a.noise {
		if i%linalg.Stride(d) >= d && v != 0 {
			t.Fatal("the padding has noise")
		}
		sum += v
		squares += v * v
	}
	// Standard deviations of both statistics, over 20 000 draws, are 0.007 and 0.01:
	// five of them are exceeded once in 10⁶ seeds. The seed is fixed.
	const n = m * d
	if z := sum / n / math.Sqrt(alpha); math.Abs(z) > 0.035 {
		t.Errorf("the mean is %v standard deviations", z)
	}
	if r := squares / n / alpha; math.Abs(r-1) > 0.05 {
		t.Errorf("the variance is %v times α", r)
	}
}

// Every epoch shuffles the rows and draws fresh noise for each: training uses just
// the random numbers that this takes.
func TestTrainingDrawsWhatItSays(t *testing.T) {
	const n, width, epochs = 23, 4, 3
	rows, labels := twoClouds(n, width, rand.New(rand.NewPCG(1, 0)))
	in, err := FitInputs(rows, 4)
	if err != nil {
		t.Fatal(err)
	}
	o := Defaults()
	o.Epochs, o.Batch = epochs, 8
	used, same := rand.New(rand.NewPCG(9, 0)), rand.New(rand.NewPCG(9, 0))
	if _, err := Train(context.Background(), in, rows, labels, o, used); err != nil {
		t.Fatal(err)
	}
	h, d := o.Hidden[0], o.Dimension
	for range width*h + h*d + d*h + h*width + d {
		same.NormFloat64()
	}
	for range epochs {
		same.Shuffle(n, func(int, int) {})
		for range n * d {
			same.NormFloat64()
		}
	}
	if used.Uint64() != same.Uint64() {
		t.Error("training draws other random numbers than weights, orders and noise")
	}
}
