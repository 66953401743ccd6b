package suffiae

import (
	"errors"
	"fmt"
	"math"

	"parley/internal/linalg"
)

// Inputs brings rows to the units in which a network sees them:
// (x − Centre)/Scale, moved to the nearest end of ±Limit. What was not observed
// (NaN) becomes 0, the centre.
type Inputs struct {
	Centre, Scale []float64
	Limit         float64
}

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
			return nil, fmt.Errorf("suffiae: scaling of inputs: row %d has %d columns, the first %d", i+1,
				len(row), width)
		}
	}
	in := &Inputs{make([]float64, width), make([]float64, width), limit}
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
	return in, nil
}

// Apply returns a row in the network's units.
func (in *Inputs) Apply(row []float64) ([]float64, error) {
	if len(row) != len(in.Centre) {
		return nil, fmt.Errorf("suffiae: a row of %d columns, want %d", len(row), len(in.Centre))
	}
	x := make([]float64, len(row))
	for j, v := range row {
		if v = (v - in.Centre[j]) / in.Scale[j]; !math.IsNaN(v) {
			x[j] = min(max(v, -in.Limit), in.Limit)
		}
	}
	return x, nil
}

// Encode returns the codes q(x) of rows, without noise; rows are in their own units.
func (n *Network) Encode(rows [][]float64) (codes [][]float64, err error) {
	s := n.net.encoder
	t := s.NewTape(len(rows))
	for i, row := range rows {
		x, err := n.inputs.Apply(row)
		if err != nil {
			return nil, fmt.Errorf("encoding row %d: %w", i+1, err)
		}
		copy(t.Acts[0][i*linalg.Stride(s.In()):], x)
	}
	s.Forward(n.net.theta, t, len(rows))
	for i := range rows {
		codes = append(codes, t.Output()[i*linalg.Stride(s.Out()):][:s.Out():s.Out()])
	}
	return codes, nil
}
