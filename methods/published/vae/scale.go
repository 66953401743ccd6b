package vae

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"parley/dataset"
	"parley/internal/wire"
)

// largestValue is what no value of a feature may exceed, so that no sum overflows.
const largestValue = 1e100

// scale brings features to [0, 1] by the smallest and the largest value over all sites, and
// says what stands for a value that was not observed: the mean over all sites.
type scale struct {
	Low  wire.Vector `cbor:"low"`
	High wire.Vector `cbor:"high"`
	Mean wire.Vector `cbor:"mean"`
}

// extent is what a site says of its values before the first round. Of a feature without
// any, the numbers are 0.
type extent struct {
	Low   wire.Vector `cbor:"low"`
	High  wire.Vector `cbor:"high"`
	Sum   wire.Vector `cbor:"sum"`
	Count wire.Vector `cbor:"count"` // of values, by feature
	Rows  wire.Vector `cbor:"rows"`  // subjects with any feature of it, by channel
}

// flatten returns the values of a row in one sequence, NaN for what is missing.
func flatten(dst []float64, dims []int, row *dataset.Row) []float64 {
	dst = dst[:0]
	for k, d := range dims {
		for j := range d {
			x := math.NaN()
			if v := row.Views[k]; v != nil {
				x = v[j]
			}
			dst = append(dst, x)
		}
	}
	return dst
}

// extentOf reads a source.
func (n *network) extentOf(ctx context.Context, dims []int, data dataset.Source) (*extent, error) {
	d := n.features
	e := &extent{make(wire.Vector, d), make(wire.Vector, d), make(wire.Vector, d), make(wire.Vector, d),
		make(wire.Vector, len(n.channels))}
	var x []float64
	for row, err := range data.Rows(ctx) {
		if err != nil {
			return nil, err
		}
		x = flatten(x, dims, row)
		s := subject{seen: make([]bool, d)}
		for j, v := range x {
			if math.IsNaN(v) {
				continue
			}
			s.seen[j] = true
			if math.Abs(v) > largestValue {
				return nil, fmt.Errorf("a value is beyond ±%g", largestValue)
			}
			if e.Count[j]++; e.Count[j] == 1 {
				e.Low[j], e.High[j] = v, v
			}
			e.Low[j], e.High[j] = min(e.Low[j], v), max(e.High[j], v)
			e.Sum[j] += v
		}
		for k := range n.channels {
			if s.observed(&n.channels[k]) {
				e.Rows[k]++
			}
		}
	}
	return e, nil
}

// check reports what no honest site says.
func (e *extent) check(n *network) error {
	for _, v := range []wire.Vector{e.Low, e.High, e.Sum, e.Count} {
		if len(v) != n.features {
			return fmt.Errorf("%d numbers for %d features", len(v), n.features)
		}
	}
	if len(e.Rows) != len(n.channels) {
		return fmt.Errorf("%d counts for %d channels", len(e.Rows), len(n.channels))
	}
	const most = 1e12
	for j, c := range e.Count {
		slack := 1e-9 * c * max(math.Abs(e.Low[j]), math.Abs(e.High[j]))
		if !(c >= 0 && c <= most && c == math.Trunc(c)) || !(e.Low[j] <= e.High[j]) ||
			!(math.Abs(e.Low[j]) <= largestValue) || !(math.Abs(e.High[j]) <= largestValue) ||
			!(e.Sum[j] >= c*e.Low[j]-slack && e.Sum[j] <= c*e.High[j]+slack) {
			return errors.New("number, sum and extremes of a feature's values do not fit together")
		}
	}
	for _, c := range e.Rows {
		if !(c >= 0 && c <= most && c == math.Trunc(c)) {
			return errors.New("a count of subjects is none")
		}
	}
	return nil
}

// scaleOf puts together what sites said. A feature that nobody has keeps its unit.
func scaleOf(d int, said []*extent) scale {
	s := scale{make(wire.Vector, d), make(wire.Vector, d), make(wire.Vector, d)}
	for j := range d {
		n, sum := 0.0, 0.0
		for _, e := range said {
			if e.Count[j] == 0 {
				continue
			}
			if n == 0 {
				s.Low[j], s.High[j] = e.Low[j], e.High[j]
			}
			s.Low[j], s.High[j] = min(s.Low[j], e.Low[j]), max(s.High[j], e.High[j])
			n += e.Count[j]
			sum += e.Sum[j]
		}
		if n > 0 {
			s.Mean[j] = min(max(sum/n, s.Low[j]), s.High[j])
		}
	}
	return s
}

// check reports a scale that came from elsewhere and cannot be used.
func (s *scale) check(n *network) error {
	if len(s.Low) != n.features || len(s.High) != n.features || len(s.Mean) != n.features {
		return fmt.Errorf("a scale of other than %d features", n.features)
	}
	for j := range s.Low {
		if !(s.Low[j] <= s.Mean[j] && s.Mean[j] <= s.High[j]) ||
			!(max(math.Abs(s.Low[j]), math.Abs(s.High[j])) <= largestValue) {
			return errors.New("a scale without a range")
		}
	}
	return nil
}

// width is the unit of a feature: of one that does not vary, 1.
func (s *scale) width(j int) float64 {
	if w := s.High[j] - s.Low[j]; w > 0 {
		return w
	}
	return 1
}

// subject scales values, NaN for what is missing.
func (s *scale) subject(x []float64) subject {
	out := subject{make([]float64, len(x)), make([]bool, len(x))}
	for j, v := range x {
		if out.seen[j] = !math.IsNaN(v); !out.seen[j] {
			v = s.Mean[j]
		}
		out.x[j] = (v - s.Low[j]) / s.width(j)
	}
	return out
}

// subjects reads a source.
func (s *scale) subjects(ctx context.Context, dims []int, data dataset.Source) (out []subject, err error) {
	var x []float64
	for row, err := range data.Rows(ctx) {
		if err != nil {
			return nil, err
		}
		x = flatten(x, dims, row)
		out = append(out, s.subject(x))
	}
	return out, nil
}

// most is how many subjects there are at least, all channels together.
func (e *extent) most() float64 { return slices.Max(e.Rows) }
