package suffiae

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"

	"parley/internal/linalg"
	"parley/internal/nn"
	"parley/internal/vectors"
	"parley/papers/internal/logistic"
)

// vector is a file of schema graffl/suffiae/1: a network of one hidden
// layer, rows, noise, and what follows.
type vector struct {
	Schema         string                 `json:"schema"`
	Architecture   string                 `json:"architecture"`
	Alpha          float64                `json:"alpha"`
	Weights        map[string]vectorLayer `json:"weights"`
	X              [][]float64            `json:"x"`
	Y              []float64              `json:"y"`
	Noise          [][]float64            `json:"noise"`
	Mean           [][]float64            `json:"mean"`
	Z              [][]float64            `json:"z"`
	Reconstruction [][]float64            `json:"reconstruction"`
	Probability    []float64              `json:"probability"`
	Objective      float64                `json:"objective"`
	Parts          struct {
		Reconstruction float64 `json:"reconstruction"`
		Classification float64 `json:"classification"`
		KL             float64 `json:"kl"`
	} `json:"parts"`
	Gradient map[string]vectorLayer `json:"gradient_of_objective"`
	KLZeros  float64                `json:"kl_single_row_of_zeros"`
}

type vectorLayer struct {
	W [][]float64 `json:"W"`
	B []float64   `json:"b"`
}

// Verify compares the objective, its parts, everything on the way and its
// gradient with a file of test vectors.
func Verify(file []byte, list *vectors.List) error {
	var v vector
	d := json.NewDecoder(bytes.NewReader(file))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		return err
	}
	a, err := v.network()
	if err != nil {
		return err
	}
	m := len(v.X)
	got := a.ascent(m)
	tol := vectors.Tolerance{Rel: 1e-9, Floor: 0.1}
	compare := func(entry string, want [][]float64, padded []float64, width int) {
		list.Floats(entry, oneRow(want), unpad(padded, m, width), tol)
	}
	compare("mean", v.Mean, a.up.Output(), a.encoder.Out())
	compare("z", v.Z, a.back.Acts[0], a.encoder.Out())
	compare("reconstruction", v.Reconstruction, a.back.Output(), a.decoder.Out())
	p := unpad(a.aside.Output(), m, 1)
	for i := range p {
		p[i] = logistic.Sigma(p[i])
	}
	list.Floats("probability", v.Probability, p, tol)
	list.Float("objective", v.Objective, got.Value(1), tol)
	list.Floats("parts", []float64{v.Parts.Reconstruction, v.Parts.Classification, v.Parts.KL},
		[]float64{got.Reconstruction, got.Classification, got.KL}, tol)
	for _, l := range a.named() {
		want := v.Gradient[l.name]
		gw, gb := l.dense.Weights(a.grad)
		list.Floats("gradient_of_objective "+l.name+" W", oneRow(byInput(want.W, l.dense.In)),
			unpad(gw, l.dense.In, l.dense.Out), tol)
		list.Floats("gradient_of_objective "+l.name+" b", want.B, gb[:l.dense.Out], tol)
	}

	// A row of zeros through an encoder of zeros has the code 0.
	clear(a.theta)
	clear(a.noise)
	list.Float("kl_single_row_of_zeros", v.KLZeros, a.ascent(1).KL, tol)
	return nil
}

// network builds the file's network with its rows and noise in place.
func (v *vector) network() (*autoencoder, error) {
	if len(v.X) == 0 || len(v.X[0]) == 0 || len(v.Y) != len(v.X) || len(v.Noise) != len(v.X) {
		return nil, fmt.Errorf("%d rows, %d labels and %d rows of noise: want as many, and rows that are not empty",
			len(v.X), len(v.Y), len(v.Noise))
	}
	if !(v.Alpha > 0) {
		return nil, fmt.Errorf("alpha is %v: want a variance above 0", v.Alpha)
	}
	o := Options{Dimension: len(v.Weights["enc1"].B), Hidden: []int{len(v.Weights["enc0"].B)}, Noise: v.Alpha,
		Reconstruction: 1}
	if o.Dimension == 0 || o.Hidden[0] == 0 {
		return nil, fmt.Errorf("an encoder with layers of %d and %d biases", o.Hidden[0], o.Dimension)
	}
	a := newAutoencoder(len(v.X[0]), o, len(v.X))
	for r, x := range v.X {
		if len(x) != a.encoder.In() || len(v.Noise[r]) != a.encoder.Out() || v.Y[r] != 0 && v.Y[r] != 1 {
			return nil, fmt.Errorf("row %d has %d numbers, noise of %d and the label %v", r+1, len(x),
				len(v.Noise[r]), v.Y[r])
		}
		a.set(r, x, v.Y[r] == 1)
		copy(a.noise[r*linalg.Stride(a.encoder.Out()):], v.Noise[r])
	}
	for _, l := range a.named() {
		from := v.Weights[l.name]
		if len(from.W) != l.dense.Out || len(from.B) != l.dense.Out {
			return nil, fmt.Errorf("layer %s has %d rows and %d biases: want %d", l.name, len(from.W),
				len(from.B), l.dense.Out)
		}
		wt, b := l.dense.Weights(a.theta)
		copy(b, from.B)
		for c, row := range from.W {
			if len(row) != l.dense.In {
				return nil, fmt.Errorf("layer %s has a row of %d weights: want %d", l.name, len(row), l.dense.In)
			}
			for r, w := range row {
				wt[r*l.dense.Stride()+c] = w
			}
		}
	}
	return a, nil
}

type namedLayer struct {
	name  string
	dense *nn.Dense
}

// named returns the layers of a network with one hidden layer, as files name them.
func (a *autoencoder) named() []namedLayer {
	return []namedLayer{
		{"enc0", &a.encoder[0]}, {"enc1", &a.encoder[1]},
		{"dec0", &a.decoder[0]}, {"dec1", &a.decoder[1]},
		{"clf", &a.classifier[0]},
	}
}

// unpad returns the rows × width matrix that a thin one holds.
func unpad(padded []float64, rows, width int) []float64 {
	out := make([]float64, 0, rows*width)
	for r := range rows {
		at := r * linalg.Stride(width)
		out = append(out, padded[at:at+width]...)
	}
	return out
}

// oneRow strings rows together.
func oneRow(rows [][]float64) (out []float64) {
	for _, r := range rows {
		out = append(out, r...)
	}
	return out
}

// byInput turns rows of n numbers into n rows; numbers that a short row lacks are NaN.
func byInput(rows [][]float64, n int) [][]float64 {
	out := make([][]float64, n)
	for j := range out {
		for _, r := range rows {
			v := math.NaN()
			if len(r) == n {
				v = r[j]
			}
			out[j] = append(out[j], v)
		}
	}
	return out
}
