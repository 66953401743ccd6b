package suffiae

import (
	"context"
	"errors"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"parley/internal/linalg"
	"parley/internal/nn"
	"parley/internal/vectors"
	"parley/judge/evaluate"

	"pgregory.net/rapid"
)

const vectorFile = "testdata/suffiae.json"

// twoClouds draws n rows of a few columns, one in four of label true, whose
// means differ.
func twoClouds(n, width int, rng *rand.Rand) (rows [][]float64, labels []bool) {
	for i := range n {
		row, y := make([]float64, width), i%4 == 0
		for j := range row {
			row[j] = 10 + 3*rng.NormFloat64()
			if y && j%2 == 0 {
				row[j] += 3
			}
		}
		rows, labels = append(rows, row), append(labels, y)
	}
	return rows, labels
}

func train(tb testing.TB, rows [][]float64, labels []bool, o Options, seed uint64) *Network {
	tb.Helper()
	in, err := FitInputs(rows, 4)
	if err != nil {
		tb.Fatal(err)
	}
	s, err := Train(context.Background(), in, rows, labels, o, rand.New(rand.NewPCG(seed, 0)))
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// pass passes a row through layers.
func pass(s nn.Stack, theta, x []complex128) []complex128 {
	for i := range s {
		l := &s[i]
		y := make([]complex128, l.Out)
		for c := range y {
			y[c] = theta[l.At+l.In*l.Stride()+c]
			for r, v := range x {
				y[c] += theta[l.At+r*l.Stride()+c] * v
			}
			if l.Tanh {
				y[c] = cmplx.Tanh(y[c])
			}
		}
		x = y
	}
	return x
}

// complexObjective is the objective written once more, without batches, kernels
// and padding, over complex numbers: its imaginary part along a tiny imaginary
// step is the derivative, exact to rounding (Squire and Trapp 1998).
func complexObjective(a *autoencoder, theta []complex128, m int) complex128 {
	width, d := a.encoder.In(), a.encoder.Out()
	var total complex128
	for r := range m {
		x := make([]complex128, width)
		for j := range x {
			x[j] = complex(a.up.Acts[0][r*linalg.Stride(width)+j], 0)
		}
		q := pass(a.encoder, theta, x)
		z := make([]complex128, d)
		for j := range z {
			z[j] = q[j] + complex(a.noise[r*linalg.Stride(d)+j], 0)
			total -= (q[j]*q[j] + complex(a.alpha-1-math.Log(a.alpha), 0)) / 2
		}
		for j, f := range pass(a.decoder, theta, z) {
			total -= complex(a.reconstruction/2, 0) * (x[j] - f) * (x[j] - f)
		}
		g := 1 / (1 + cmplx.Exp(-pass(a.classifier, theta, z)[0]))
		if a.label[r] {
			total += cmplx.Log(g)
		} else {
			total += cmplx.Log(1 - g)
		}
	}
	return total
}

func TestGradientIsThatOfTheObjective(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.IntRange(1, 11).Draw(t, "inputs")
		o := Defaults()
		o.Dimension = rapid.IntRange(1, 10).Draw(t, "d")
		o.Hidden = rapid.SliceOfN(rapid.IntRange(1, 12), 0, 3).Draw(t, "hidden")
		o.Noise = rapid.Float64Range(0.01, 1).Draw(t, "α")
		o.Reconstruction = rapid.SampledFrom([]float64{0, 0.3, 1, 5}).Draw(t, "λ")
		room := rapid.IntRange(1, 9).Draw(t, "room")
		m := rapid.IntRange(1, room).Draw(t, "rows")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))

		a := newAutoencoder(width, o, room)
		for r := range m {
			x := make([]float64, width)
			for j := range x {
				x[j] = rng.NormFloat64()
			}
			a.set(r, x, rng.IntN(2) == 0)
		}
		a.drawNoise(m, rng)
		var used []int // parameters that are not padding
		for _, s := range []nn.Stack{a.encoder, a.decoder, a.classifier} {
			s.Start(a.theta, 1, rng)
			for i := range s {
				l := &s[i]
				for k := range (l.In + 1) * l.Stride() {
					if k%l.Stride() < l.Out {
						used = append(used, l.At+k)
						a.theta[l.At+k] += 0.1 * rng.NormFloat64()
					}
				}
			}
		}
		value := a.ascent(m).Value(a.reconstruction)

		theta := make([]complex128, len(a.theta))
		for i, v := range a.theta {
			theta[i] = complex(v, 0)
		}
		if want := real(complexObjective(a, theta, m)); math.Abs(value-want) > 1e-11*(1+math.Abs(want)) {
			t.Fatalf("objective %v, want %v", value, want)
		}
		const step = 1e-100
		for _, i := range used {
			theta[i] += complex(0, step)
			want := imag(complexObjective(a, theta, m)) / step
			theta[i] = complex(a.theta[i], 0)
			if math.Abs(a.grad[i]-want) > 1e-10*(1+math.Abs(want)) {
				t.Fatalf("derivative by parameter %d: %v, want %v", i, a.grad[i], want)
			}
			a.grad[i] = 0
		}
		for i, g := range a.grad {
			if g != 0 {
				t.Fatalf("padding at %d has the gradient %v", i, g)
			}
		}
	})
}

func TestPublishedVector(t *testing.T) {
	file, err := os.ReadFile(vectorFile)
	if err != nil {
		t.Fatal(err)
	}
	var list vectors.List
	if err := Verify(file, &list); err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		if !c.OK {
			t.Errorf("%s: want %s, got %s", c.Entry, c.Want, c.Got)
		}
	}
	if len(list) != 7+10 {
		t.Errorf("%d entries were compared", len(list))
	}

	// Every number of the file matters.
	for _, change := range [][2]string{
		{`-0.355`, `-0.356`}, {`0.962`, `0.963`}, {`0.244`, `0.245`}, {`"alpha": 0.05`, `"alpha": 0.06`},
		{`0.6074900840249611`, `0.6074900850249611`}, {`-17.880619929102615`, `-17.8806199`}, {`2.045732273553991`, `2.0457322`},
		{`0.590925321265161`, `0.590925331265161`}, {`-1.4301971285842132`, `-1.4301971`},
	} {
		changed := strings.Replace(string(file), change[0], change[1], 1)
		list = nil
		if err := Verify([]byte(changed), &list); err != nil || list.OK() {
			t.Errorf("%s for %s: agrees, or %v", change[1], change[0], err)
		}
	}
}

func TestTrainingFollowsFromTheSeedOnAnyNumberOfCores(t *testing.T) {
	rows, labels := twoClouds(150, 9, rand.New(rand.NewPCG(1, 0)))
	o := Defaults()
	o.Epochs, o.Hidden = 4, []int{12, 7}
	weights := func(seed uint64, cores int) []float64 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
		return train(t, rows, labels, o, seed).net.theta
	}
	one := weights(5, 1)
	if !slices.Equal(weights(5, 4), one) {
		t.Error("four cores gave other bits than one")
	}
	if slices.Equal(weights(6, 1), one) {
		t.Error("another seed gave the same encoder")
	}
}

func TestCodesKeepTheClassesAndTheRows(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 0))
	rows, labels := twoClouds(400, 6, rng)
	o := Defaults()
	o.Epochs, o.Reconstruction = 40, 1
	s := train(t, rows, labels, o, 3)
	if first, last := s.History[0], s.History[len(s.History)-1]; len(s.History) != o.Epochs ||
		last.Value(1) < first.Value(1)+1 {
		t.Errorf("a row's objective went from %v to %v in %d epochs", first.Value(1), last.Value(1), len(s.History))
	}
	fresh, truth := twoClouds(400, 6, rng)
	codes, err := s.Encode(fresh)
	if err != nil {
		t.Fatal(err)
	}
	squares, spread := 0.0, 0.0
	probability := make([]float64, len(codes))
	for i, z := range codes {
		if len(z) != o.Dimension {
			t.Fatalf("a code of %d numbers", len(z))
		}
		if probability[i], err = s.Probability(z); err != nil {
			t.Fatal(err)
		}
		x, err := s.Reconstruct(z)
		if err != nil {
			t.Fatal(err)
		}
		for j := range x {
			squares += (x[j] - fresh[i][j]) * (x[j] - fresh[i][j])
			spread += (fresh[i][j] - 10.75) * (fresh[i][j] - 10.75)
		}
	}
	// The best classifier of this data has an AUC of Φ(√3/√2) = 0.89; five numbers
	// of six would keep five sixths of the spread.
	if auc := evaluate.AUC(probability, truth); auc < 0.85 {
		t.Errorf("AUC %v of fresh rows", auc)
	}
	if squares > 0.5*spread {
		t.Errorf("reconstruction loses %v of the spread", squares/spread)
	}
	if _, err := s.Probability(nil); !errors.Is(err, errCode) {
		t.Errorf("probability of an empty code: %v", err)
	}
	if _, err := s.Reconstruct(make([]float64, 9)); !errors.Is(err, errCode) {
		t.Errorf("reconstruction of a long code: %v", err)
	}
}

func TestTrainingRefuses(t *testing.T) {
	rows, labels := twoClouds(20, 3, rand.New(rand.NewPCG(1, 0)))
	in, err := FitInputs(rows, 4)
	if err != nil {
		t.Fatal(err)
	}
	try := func(ctx context.Context, in *Inputs, rows [][]float64, labels []bool, rate float64) error {
		o := Defaults()
		o.Rate = rate
		_, err := Train(ctx, in, rows, labels, o, rand.New(rand.NewPCG(1, 0)))
		return err
	}
	const plain = 0.003
	ctx := context.Background()
	if err := try(ctx, in, rows, labels, plain); err != nil {
		t.Fatal(err)
	}
	if err := try(ctx, in, rows, labels, 1e8); err == nil || !strings.Contains(err.Error(), "did not converge") {
		t.Errorf("far too long steps: %v", err)
	}
	if try(ctx, in, nil, nil, plain) == nil || try(ctx, in, rows, labels[1:], plain) == nil {
		t.Error("rows without labels, or no rows, were accepted")
	}
	if err := try(ctx, in, append(rows[:19:19], []float64{1}), labels, plain); err == nil ||
		!strings.Contains(err.Error(), "row 20") {
		t.Errorf("a short row: %v", err)
	}
	if try(ctx, &Inputs{}, rows, labels, plain) == nil {
		t.Error("a scaling without columns was accepted")
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := try(ended, in, rows, labels, plain); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled context: %v", err)
	}
}

func BenchmarkTrain(b *testing.B) {
	rows, labels := twoClouds(4000, 190, rand.New(rand.NewPCG(1, 0)))
	o := Defaults()
	o.Dimension, o.Hidden = 24, []int{64}
	b.ReportAllocs()
	for b.Loop() {
		train(b, rows, labels, o, 1)
	}
}
