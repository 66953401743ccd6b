package options

import (
	"context"
	"fmt"
	"math"
	"slices"

	"parley/dataset"
	"parley/internal/linalg"
	"parley/internal/wire"
	"parley/methods/factors/ppca"
)

// Sums is what a site says of its subjects so that d features can be regressed on p
// covariates over all sites. Products are of deviations from the site's means over the
// subjects who have the feature.
type Sums struct {
	Subjects float64     `cbor:"subjects"` // with any value, of whom all covariates are known
	Lacking  float64     `cbor:"lacking"`  // with any value, of whom one is not: they count for nothing
	Far      float64     `cbor:"far"`      // of Subjects, those with a number far from all others of the site, or like a code
	Mean     wire.Vector `cbor:"mean"`     // of the covariates over Subjects: p
	N        wire.Vector `cbor:"n"`        // values of each feature: d
	XX       wire.Matrix `cbor:"xx"`       // products of covariates, d × p(p+1)/2: upper triangles by rows
	XY       wire.Matrix `cbor:"xy"`       // of covariates and feature, d × p
	YY       wire.Vector `cbor:"yy"`       // of the feature with itself: d
}

// Values is the number of numbers in the sums.
func Values(d, p int) int { return 3 + p + d*(p*(p+1)/2+p+2) }

// SumUp sums up a site's subjects.
func SumUp(ctx context.Context, l ppca.Layout, design *Design, data dataset.Source) (*Sums, error) {
	d, p := l.Features(), design.Terms()
	s := &Sums{
		Mean: make(wire.Vector, p), N: make(wire.Vector, d), YY: make(wire.Vector, d),
		XX: wire.Matrix{Rows: d, Cols: p * (p + 1) / 2, Data: make([]float64, d*p*(p+1)/2)}, XY: wire.Matrix{Rows: d, Cols: p, Data: make([]float64, d*p)},
	}
	var seen []float64 // p numbers of each subject
	x, means, away := make([]float64, p), make([]float64, d*(p+1)), make([]float64, p+1)
	for row, err := range data.Rows(ctx) {
		if err != nil {
			return nil, err
		}
		if !hasAny(row.Views) {
			continue
		}
		known, err := design.Read(row, x)
		if err != nil {
			return nil, err
		}
		if !known {
			s.Lacking++
			continue
		}
		s.Subjects++
		seen = append(seen, x...)
		for k, v := range x {
			s.Mean[k] += (v - s.Mean[k]) / s.Subjects
		}
		lo := 0
		for k, v := range row.Views {
			for i, y := range v {
				if math.Abs(y) > ppca.LargestValue {
					return nil, fmt.Errorf("subject %q: value %d of view %d is beyond %g: no measurement is as large", row.ID, i+1, k+1, ppca.LargestValue)
				}
				if !math.IsNaN(y) {
					s.add(lo+i, x, y, means[(lo+i)*(p+1):][:p+1], away)
				}
			}
			lo += l.Dims[k]
		}
	}
	if s.Subjects == 0 {
		return nil, fmt.Errorf("no subject with any value of the plan's views has all that the plan adjusts for\n  hint: subjects.csv needs the columns of adjust, with values")
	}
	s.Far = design.Far(seen)
	return s, nil
}

// farAway is how many times their spread numbers of one kind do not lie from their median.
const farAway = 20

// Far counts the subjects with a number that is so far from the others, or looks like a code
// for a missing value; seen are the numbers of each subject in turn. The spread is the median absolute deviation of the
// numbers that differ from the median, in standard deviations of a normal law.
func (d *Design) Far(seen []float64) float64 {
	p, at := d.Terms(), 0
	far := make([]bool, len(seen)/p)
	median := func(values []float64) float64 {
		slices.Sort(values)
		return values[len(values)/2]
	}
	for _, c := range d.of {
		if len(c.Levels) > 0 {
			at += len(c.Levels) - 1
			continue
		}
		var values, off []float64
		for i := at; i < len(seen); i += p {
			values = append(values, seen[i])
		}
		codes := dataset.SuspectCodes(values)
		for i := range far {
			far[i] = far[i] || slices.Contains(codes, seen[i*p+at])
		}
		centre := median(values)
		for _, v := range values {
			if v != centre {
				off = append(off, math.Abs(v-centre))
			}
		}
		if len(off) > 0 {
			limit := farAway * 1.4826 * median(off)
			for i := range far {
				far[i] = far[i] || math.Abs(seen[i*p+at]-centre) > limit
			}
		}
		at++
	}
	count := 0.0
	for _, is := range far {
		if is {
			count++
		}
	}
	return count
}

func hasAny(views [][]float64) bool {
	for _, v := range views {
		for _, y := range v {
			if !math.IsNaN(y) {
				return true
			}
		}
	}
	return false
}

// add takes in one value of feature j (Welford 1962).
func (s *Sums) add(j int, x []float64, y float64, mean, away []float64) {
	p := len(x)
	s.N[j]++
	for k, v := range x {
		away[k] = v - mean[k]
		mean[k] += away[k] / s.N[j]
	}
	away[p] = y - mean[p]
	mean[p] += away[p] / s.N[j]
	rest := (s.N[j] - 1) / s.N[j] // deviations from the new mean are as many times those from the old
	xx, xy := s.XX.Data[j*s.XX.Cols:][:s.XX.Cols], s.XY.Data[j*p:][:p]
	at := 0
	for k := range p {
		for l := k; l < p; l++ {
			xx[at] += rest * away[k] * away[l]
			at++
		}
		xy[k] += rest * away[k] * away[p]
	}
	s.YY[j] += rest * away[p] * away[p]
}

// Check refuses what no site could say of d features and p covariates.
func (s *Sums) Check(d, p int) error {
	if len(s.Mean) != p || len(s.N) != d || len(s.YY) != d || s.XX.Rows != d || s.XX.Cols != p*(p+1)/2 || s.XY.Rows != d || s.XY.Cols != p ||
		len(s.XX.Data) != d*s.XX.Cols || len(s.XY.Data) != d*p {
		return fmt.Errorf("sums of %d covariates and %d features do not have %d and %d", len(s.Mean), len(s.N), p, d)
	}
	if err := ppca.Counts("subjects", []float64{s.Subjects, s.Lacking}, ppca.LargestCount); err != nil {
		return err
	}
	if err := ppca.Counts("subjects far from others", []float64{s.Far}, s.Subjects); err != nil {
		return err
	}
	if s.Subjects < 1 {
		return fmt.Errorf("sums of no subject")
	}
	if err := ppca.Within("means of covariates", s.Mean, Largest); err != nil {
		return err
	}
	if err := ppca.Counts("values of a feature", s.N, s.Subjects); err != nil {
		return err
	}
	for j, n := range s.N {
		if err := s.possible(j, p, n); err != nil {
			return fmt.Errorf("sums of feature %d: %w", j, err)
		}
	}
	return nil
}

// possible says whether the products of one feature are those of n subjects.
func (s *Sums) possible(j, p int, n float64) error {
	m := s.products(j, p)
	scale := make([]float64, p+1)
	for k := range scale {
		least, limit := 1/Largest/Largest, Largest*Largest // of what is not 0
		if k == p {
			least, limit = 0, ppca.LargestValue*ppca.LargestValue
		}
		v := m[k*(p+1)+k]
		if !(v == 0 || v >= least && v <= n*limit) || n <= 1 && v != 0 {
			return fmt.Errorf("a sum of squares of %v over %v subjects", v, n)
		}
		scale[k] = math.Sqrt(v)
	}
	for k := range scale {
		for l := range scale {
			x := &m[k*(p+1)+l]
			switch {
			case scale[k] == 0 || scale[l] == 0:
				if *x != 0 {
					return fmt.Errorf("products of what does not vary")
				}
			default:
				*x = *x / scale[k] / scale[l]
			}
			if k == l {
				*x = 1 + rounding
			}
		}
	}
	if _, ok := linalg.Cholesky(m, p+1, p+1); !ok {
		return fmt.Errorf("products that no subjects have")
	}
	return nil
}

// rounding is by how much correlations may miss what is possible.
const rounding = 1e-6

// products are those of the covariates and of feature j, the last, as a full matrix.
func (s *Sums) products(j, p int) []float64 {
	m := make([]float64, (p+1)*(p+1))
	at := j * s.XX.Cols
	for k := range p {
		for l := k; l < p; l++ {
			m[k*(p+1)+l], m[l*(p+1)+k] = s.XX.Data[at], s.XX.Data[at]
			at++
		}
		m[k*(p+1)+p], m[p*(p+1)+k] = s.XY.Data[j*p+k], s.XY.Data[j*p+k]
	}
	m[p*(p+1)+p] = s.YY[j]
	return m
}
