package options

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"

	"parley/dataset"
	"parley/internal/linalg"
	"parley/internal/wire"
	"parley/methods/factors/ppca"
	"parley/problem"
)

// Sums is what a site says of its subjects so that d features can be regressed on p
// covariates over all sites. Products are of deviations from the site's means over the
// subjects who have the feature.
type Sums struct {
	Subjects float64     `cbor:"subjects"` // with any value, of whom all covariates are known
	Lacking  float64     `cbor:"lacking"`  // with any value, of whom one is not: they count for nothing
	Mean     wire.Vector `cbor:"mean"`     // of the covariates over Subjects: p
	N        wire.Vector `cbor:"n"`        // values of each feature: d
	XX       wire.Matrix `cbor:"xx"`       // products of covariates, d × p(p+1)/2: upper triangles by rows
	XY       wire.Matrix `cbor:"xy"`       // of covariates and feature, d × p
	YY       wire.Vector `cbor:"yy"`       // of the feature with itself: d
}

// Values is the number of numbers in the sums.
func Values(d, p int) int { return 2 + p + d*(p*(p+1)/2+p+2) }

// SumUp sums up a site's subjects.
func (set Setup) SumUp(ctx context.Context, data dataset.Source) (*Sums, error) {
	of, err := bind(set.Options.Adjust, data.Schema().Subject)
	if err != nil {
		return nil, err
	}
	d, p := set.Layout.Features(), of.terms()
	s := &Sums{
		Mean: make(wire.Vector, p), N: make(wire.Vector, d), YY: make(wire.Vector, d),
		XX: wire.Matrix{Rows: d, Cols: p * (p + 1) / 2, Data: make([]float64, d*p*(p+1)/2)},
		XY: wire.Matrix{Rows: d, Cols: p, Data: make([]float64, d*p)},
	}
	x, means, away := make([]float64, p), make([]float64, d*(p+1)), make([]float64, p+1)
	for row, err := range data.Rows(ctx) {
		if err != nil {
			return nil, err
		}
		if !hasAny(row.Views) {
			continue
		}
		known, err := of.read(row, x)
		if err != nil {
			return nil, err
		}
		if !known {
			s.Lacking++
			continue
		}
		if err := ppca.Measured(row.Views); err != nil {
			return nil, fmt.Errorf("subject %q: %w", row.ID, err)
		}
		s.Subjects++
		for k, v := range x {
			s.Mean[k] += (v - s.Mean[k]) / s.Subjects
		}
		for j, y := range set.Layout.Values(row.Views, nil) {
			s.add(j, x, y, means[j*(p+1):][:p+1], away)
		}
	}
	if s.Subjects == 0 {
		return nil, fmt.Errorf("no subject with any value of the plan's views has all that the plan adjusts for\n  " +
			"hint: subjects.csv needs the columns of adjust, with values")
	}
	return s, nil
}

func hasAny(views [][]float64) bool {
	return slices.ContainsFunc(views, func(v []float64) bool {
		return slices.ContainsFunc(v, func(y float64) bool { return !math.IsNaN(y) })
	})
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
	if len(s.Mean) != p || len(s.N) != d || len(s.YY) != d || s.XX.Rows != d || s.XX.Cols != p*(p+1)/2 ||
		s.XY.Rows != d || s.XY.Cols != p || len(s.XX.Data) != d*s.XX.Cols || len(s.XY.Data) != d*p {
		return fmt.Errorf("sums of %d covariates and %d features do not have %d and %d", len(s.Mean), len(s.N), p, d)
	}
	if s.Subjects < 1 {
		return fmt.Errorf("sums of no subject")
	}
	if err := cmp.Or(
		ppca.Counts("subjects", []float64{s.Subjects, s.Lacking}, ppca.LargestCount),
		ppca.Within("means of covariates", s.Mean, largest),
		ppca.Counts("values of a feature", s.N, s.Subjects),
	); err != nil {
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
	for k := range p + 1 {
		least, limit := 1/largest/largest, largest*largest // of what is not 0
		if k == p {
			least, limit = 0, ppca.LargestValue*ppca.LargestValue
		}
		if v := m[k*(p+2)]; !(v == 0 || v >= least && v <= n*limit) || n <= 1 && v != 0 {
			return fmt.Errorf("a sum of squares of %v over %v subjects", v, n)
		}
	}
	correlations(m, p+1)
	for k := range p + 1 {
		m[k*(p+2)] = 1 + rounding
	}
	if _, ok := linalg.Cholesky(m, p+1, p+1); !ok {
		return fmt.Errorf("products that no subjects have")
	}
	return nil
}

// correlations divides sums of products by the roots of their diagonal, which it returns. What does not vary goes with
// nothing; if it does all the same, that is no number.
func correlations(m []float64, n int) (scale []float64) {
	for k := range n {
		scale = append(scale, math.Sqrt(m[k*n+k]))
	}
	for i, x := range m {
		if x != 0 {
			m[i] = x / scale[i/n] / scale[i%n]
		}
	}
	return scale
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

// Estimates are the effects of covariates on features. A slope that could not be told is 0.
type Estimates struct {
	Effects  Effects `cbor:"effects"`
	Subjects float64 `cbor:"subjects"`
	Lacking  float64 `cbor:"lacking"` // who lack a covariate
}

// aliased is the share of a covariate's sum of squares about the sites' means that must be
// left when those before it are accounted for; one with less cannot be told from them.
const aliased = 1e-9

// exhausted is the share of a feature's sum of squares that must be left: with less, the
// feature is a function of the covariates.
const exhausted = 1e-12

// Solve regresses every feature on the covariates within sites, by ordinary least squares
// over the sites that said something. Covariates that do not vary within any site, or that
// follow from those before them, have no slope. It is an error if nothing is left of a feature.
func Solve(set Setup, sites []*Sums) (*Estimates, error) {
	d, p := set.Layout.Features(), len(Terms(set.Options.Adjust))
	slopes := wire.Matrix{Rows: d, Cols: p, Data: make([]float64, d*p)}
	e := &Estimates{Effects: Effects{make(wire.Vector, p), slopes}}
	for _, s := range sites {
		e.Subjects, e.Lacking = e.Subjects+s.Subjects, e.Lacking+s.Lacking
	}
	for _, s := range sites {
		floats.AddScaled(e.Effects.Centre, s.Subjects/e.Subjects, s.Mean)
	}
	var wrong problem.List
	for j := range d {
		sums, df, reach := pool(sites, j, p, e.Effects.Centre)
		if df < 1 {
			continue
		}
		if left := e.solve(j, sums, df, reach); left < exhausted {
			view, feature := set.Feature(j)
			wrong.Add(problem.Problem{Where: fmt.Sprintf("view %s, feature %s", view.Name, feature.Name),
				What: "nothing is left of it when it is adjusted for " + strings.Join(Terms(set.Options.Adjust), ", "),
				Hint: "leave it out of the plan: it says what these say"})
		}
	}
	return e, wrong.Err()
}

// pool adds up what sites say of feature j: products as a full matrix, with the feature
// last, the degrees of freedom about the sites' means, and how far any subject's covariates
// can be from the centre.
func pool(sites []*Sums, j, p int, centre []float64) (sums []float64, df float64, reach []float64) {
	sums, reach = make([]float64, (p+1)*(p+1)), make([]float64, p)
	for _, s := range sites {
		if s.N[j] == 0 {
			continue
		}
		df += s.N[j] - 1
		own := s.products(j, p)
		floats.Add(sums, own)
		for k := range reach {
			reach[k] = max(reach[k], math.Abs(s.Mean[k]-centre[k])+math.Sqrt(own[k*(p+1)+k]))
		}
	}
	return sums, df, reach
}

// solve puts in the slopes of feature j, and returns the share of its sum of squares that
// they leave.
func (e *Estimates) solve(j int, sums []float64, df float64, reach []float64) (left float64) {
	p, n := len(reach), len(reach)+1
	if sums[p*n+p] == 0 {
		return 1 // a constant, which the scale names
	}
	scale := correlations(sums, n)
	var told []int
	for k := range p {
		if sums[k*n+k] > aliased {
			linalg.Sweep(sums, n, k)
			told = append(told, k)
		}
	}
	if df-float64(len(told)) < 1 {
		return 1
	}
	left = max(0, sums[p*n+p])
	for _, k := range told {
		// A slope that takes values beyond measure is not one of measured values.
		if b := sums[k*n+p] * scale[p] / scale[k]; !(math.Abs(b)*reach[k] <= ppca.LargestValue/float64(4*p)) {
			return 1
		}
	}
	for _, k := range told {
		e.Effects.Slopes.Data[j*p+k] = sums[k*n+p] * scale[p] / scale[k]
	}
	return left
}

// Regress estimates by [Solve] what the plan's covariates add to the rows of sites that lie in one place, and returns
// these rows less that; no effects, and the rows as they are, where the plan has no covariates.
func Regress(ctx context.Context, set Setup, sites ...dataset.Source) (*Effects, []dataset.Source, error) {
	if len(set.Options.Adjust) == 0 {
		return nil, sites, nil
	}
	less, sums := make([]dataset.Source, len(sites)), make([]*Sums, len(sites))
	var err error
	for i, data := range sites {
		if sums[i], err = set.SumUp(ctx, data); err != nil {
			return nil, nil, fmt.Errorf("regressing the features on covariates: %w", err)
		}
	}
	found, err := Solve(set, sums)
	if err != nil {
		return nil, nil, err
	}
	for i, data := range sites {
		adjustment, err := Adjusting(set.Options.Adjust, &found.Effects, data.Schema())
		if err != nil {
			return nil, nil, err
		}
		less[i] = adjustment.Without(data)
	}
	return &found.Effects, less, nil
}
