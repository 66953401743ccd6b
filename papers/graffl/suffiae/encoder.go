package suffiae

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"parley/internal/linalg"
	"parley/internal/nn"
	"parley/internal/wire"
)

// Limits of a network that this package trains or reads from elsewhere.
const (
	maxInputs = 1 << 16
	maxWidth  = 1 << 12
	maxLayers = 16
)

// Inputs brings rows to the units in which a network sees them:
// (x − Centre)/Scale, moved to the nearest end of ±Limit. What was not observed
// (NaN) becomes 0, the centre.
//
// Centres and scales that come from rows are released with the encoder, without
// noise. Public ones need no rows.
type Inputs struct {
	Centre wire.Vector `cbor:"centre" json:"centre"`
	Scale  wire.Vector `cbor:"scale" json:"scale"` // positive
	Limit  float64     `cbor:"limit" json:"limit"` // positive; at most 1e6
}

// largest bounds every number of an encoder, so that no code is infinite
// whatever the row: limits, widths and weights multiply to far below the
// largest float64.
const largest = 1e6

// FitInputs standardises each column by its observed values: to mean 0 and
// standard deviation 1. A column without spread, or never observed, gets scale
// 1. Both are taken a second time over values moved to within limit standard
// deviations: of n rows, one gross error then stretches the scale by a factor of some
// limit/√n less. It is an error if there are no rows, or rows of several lengths, or
// values whose squares overflow.
func FitInputs(rows [][]float64, limit float64) (*Inputs, error) {
	if len(rows) == 0 || len(rows[0]) == 0 {
		return nil, errors.New("suffiae: scaling of inputs: no rows, or rows of no columns")
	}
	width := len(rows[0])
	for i, row := range rows {
		if len(row) != width {
			return nil, fmt.Errorf("suffiae: scaling of inputs: row %d has %d columns, the first %d", i+1, len(row), width)
		}
	}
	in := &Inputs{Centre: make(wire.Vector, width), Scale: make(wire.Vector, width), Limit: limit}
	for j := range width {
		low, high := math.Inf(-1), math.Inf(1)
		for range 2 {
			n, sum := 0.0, 0.0
			for _, row := range rows {
				if v := row[j]; !math.IsNaN(v) {
					n++
					sum += min(max(v, low), high)
				}
			}
			mean, squares := 0.0, 0.0
			if n > 0 {
				mean = sum / n
			}
			for _, row := range rows {
				if v := row[j]; !math.IsNaN(v) {
					e := min(max(v, low), high) - mean
					squares += e * e
				}
			}
			sd := math.Sqrt(squares / max(n, 1))
			if !(sd > 1e-9*math.Abs(mean)) || sd < 1e-300 {
				sd = 1
			}
			in.Centre[j], in.Scale[j] = mean, sd
			low, high = mean-limit*sd, mean+limit*sd
		}
	}
	return in, in.Check()
}

// Check reports scalings that are not usable.
func (in *Inputs) Check() error {
	if len(in.Centre) == 0 || len(in.Centre) > maxInputs || len(in.Centre) != len(in.Scale) {
		return fmt.Errorf("suffiae: inputs with %d centres and %d scales: want as many, 1 to %d", len(in.Centre), len(in.Scale), maxInputs)
	}
	if !(in.Limit > 0 && in.Limit <= largest) {
		return fmt.Errorf("suffiae: inputs are limited to ±%v: want a limit above 0, at most %v", in.Limit, float64(largest))
	}
	for j, s := range in.Scale {
		if !(s > 0) || math.IsInf(s, 0) || math.IsNaN(in.Centre[j]) || math.IsInf(in.Centre[j], 0) {
			return fmt.Errorf("suffiae: input %d has centre %v and scale %v: want finite ones, the scale positive", j+1, in.Centre[j], s)
		}
	}
	return nil
}

// apply writes a row in the network's units to dst, which is as long as Centre.
func (in *Inputs) apply(dst, row []float64) error {
	if len(row) != len(in.Centre) {
		return fmt.Errorf("%d columns, want %d", len(row), len(in.Centre))
	}
	for j, v := range row {
		v = (v - in.Centre[j]) / in.Scale[j]
		if math.IsNaN(v) {
			v = 0
		}
		dst[j] = min(max(v, -in.Limit), in.Limit)
	}
	return nil
}

// Layer is one layer of an encoder, x ↦ Wx + b.
type Layer struct {
	Weights wire.Matrix `cbor:"w" json:"w"` // W, outputs × inputs
	Bias    wire.Vector `cbor:"b" json:"b"` // b, one for each output
}

func newLayer(in int, w, b []float64) Layer {
	return Layer{Weights: wire.Matrix{Rows: len(b), Cols: in, Data: w}, Bias: b}
}

// export returns a stack's layers as plain matrices, as the encoder travels.
func export(s nn.Stack, theta []float64) []Layer {
	var out []Layer
	for i := range s {
		l := &s[i]
		wt, b := l.Weights(theta)
		w := make([]float64, 0, l.Out*l.In)
		for c := range l.Out {
			for r := range l.In {
				w = append(w, wt[r*l.Stride()+c])
			}
		}
		out = append(out, newLayer(l.In, w, slices.Clone(b[:l.Out])))
	}
	return out
}

// Encoder is x ↦ q(x) of a [Network], without noise: layers with tanh after all
// but the last. It travels as plain matrices, as part of a message,
// whose reader calls Check.
//
// An encoder from another organisation is arbitrary: it may blow up what one
// subject has and hide the rest. What protects codes is the bound and the noise of
// what is released of them, never the encoder.
type Encoder struct {
	Inputs Inputs  `cbor:"inputs" json:"inputs"`
	Layers []Layer `cbor:"layers" json:"layers"`
}

// Dimension returns d, the length of a code.
func (e *Encoder) Dimension() int {
	if len(e.Layers) == 0 {
		return 0
	}
	return len(e.Layers[len(e.Layers)-1].Bias)
}

// Check reports an encoder that cannot be used: layers that do not fit together,
// too many or too wide ones, and numbers that are not finite or beyond ±1e6.
func (e *Encoder) Check() error {
	if err := e.Inputs.Check(); err != nil {
		return err
	}
	if len(e.Layers) == 0 || len(e.Layers) > maxLayers {
		return fmt.Errorf("suffiae: an encoder of %d layers: want 1 to %d", len(e.Layers), maxLayers)
	}
	width := len(e.Inputs.Centre)
	for i := range e.Layers {
		w, b := &e.Layers[i].Weights, e.Layers[i].Bias
		if len(b) == 0 || len(b) > maxWidth || w.Cols != width || w.Rows != len(b) || len(w.Data) != width*len(b) {
			return fmt.Errorf("suffiae: layer %d of an encoder has %d×%d weights (%d values) and %d biases: want %d columns, and a row for each of 1 to %d biases", i+1, w.Rows, w.Cols, len(w.Data), len(b), width, maxWidth)
		}
		for _, values := range [][]float64{w.Data, b} {
			for _, v := range values {
				if !(math.Abs(v) <= largest) {
					return fmt.Errorf("suffiae: layer %d of an encoder holds %v: want at most ±%v", i+1, v, float64(largest))
				}
			}
		}
		width = len(b)
	}
	return nil
}

// Encode returns the codes q(x) of rows, which are in their own units. All codes
// are finite, whatever is in the rows. A row of another length, and an encoder
// that does not pass Check, are errors.
func (e *Encoder) Encode(rows [][]float64) ([][]float64, error) {
	if err := e.Check(); err != nil {
		return nil, err
	}
	s, theta := e.stack()
	const batch = 64
	t := s.NewTape(min(batch, len(rows)))
	d, ld, ldIn := s.Out(), linalg.Stride(s.Out()), linalg.Stride(s.In())
	flat := make([]float64, len(rows)*d)
	codes := make([][]float64, len(rows))
	for at := 0; at < len(rows); at += batch {
		m := min(batch, len(rows)-at)
		for r, row := range rows[at : at+m] {
			if err := e.Inputs.apply(t.Acts[0][r*ldIn:r*ldIn+s.In()], row); err != nil {
				return nil, fmt.Errorf("encoding row %d: %w", at+r+1, err)
			}
		}
		s.Forward(theta, t, m)
		for r := range m {
			i := at + r
			codes[i] = flat[i*d : (i+1)*d : (i+1)*d]
			copy(codes[i], t.Output()[r*ld:r*ld+d])
		}
	}
	return codes, nil
}

// stack returns the encoder as layers for the kernels.
func (e *Encoder) stack() (nn.Stack, []float64) {
	widths := []int{len(e.Inputs.Centre)}
	for i := range e.Layers {
		widths = append(widths, len(e.Layers[i].Bias))
	}
	s, size := nn.NewStack(0, widths...)
	theta := make([]float64, size)
	for i := range s {
		l := &s[i]
		wt, b := l.Weights(theta)
		copy(b, e.Layers[i].Bias)
		for c := range l.Out {
			for r := range l.In {
				wt[r*l.Stride()+c] = e.Layers[i].Weights.Data[c*l.In+r]
			}
		}
	}
	return s, theta
}
