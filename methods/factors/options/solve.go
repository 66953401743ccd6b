package options

import (
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

// Estimates are the effects of covariates on features, and how well they are known.
type Estimates struct {
	Effects Effects `cbor:"effects"`
	// SE are the standard errors of the slopes. A slope with a standard error of 0 could
	// not be told, and is 0.
	SE wire.Matrix `cbor:"se"`
	DF wire.Vector `cbor:"df"` // degrees of freedom of each feature's residuals
	// Standard deviations about the sites' means, of the covariates over the subjects who
	// have the feature that most have, and of the features.
	CovariateSD wire.Vector `cbor:"covariate_sd"`
	FeatureSD   wire.Vector `cbor:"feature_sd"`
	Subjects    float64     `cbor:"subjects"`
	Lacking     float64     `cbor:"lacking"` // who lack a covariate
	Far         float64     `cbor:"far"`     // of Subjects, those with a number far from all others of their site
}

// Check refuses estimates that are not of d features and p covariates.
func (e *Estimates) Check(d, p int) error {
	if e.SE.Rows != d || e.SE.Cols != p || len(e.DF) != d || len(e.CovariateSD) != p || len(e.FeatureSD) != d || slices.ContainsFunc(e.DF, func(n float64) bool { return !(n > 0) }) || slices.ContainsFunc(e.SE.Data, func(x float64) bool { return x < 0 }) || !(e.Subjects >= 1) || !(e.Lacking >= 0) || !(e.Far >= 0) {
		return fmt.Errorf("covariates: estimates that are not of %d features and %d covariates", d, p)
	}
	return e.Effects.Check(d, p)
}

// Told says whether the slope of feature j on covariate k is an estimate.
func (e *Estimates) Told(j, k int) bool { return e.SE.Data[j*e.SE.Cols+k] > 0 }

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
	matrix := func() wire.Matrix { return wire.Matrix{Rows: d, Cols: p, Data: make([]float64, d*p)} }
	e := &Estimates{Effects: Effects{make(wire.Vector, p), matrix()}, SE: matrix(), DF: make(wire.Vector, d), CovariateSD: make(wire.Vector, p), FeatureSD: make(wire.Vector, d)}
	for _, s := range sites {
		e.Subjects, e.Lacking, e.Far = e.Subjects+s.Subjects, e.Lacking+s.Lacking, e.Far+s.Far
	}
	for _, s := range sites {
		floats.AddScaled(e.Effects.Centre, s.Subjects/e.Subjects, s.Mean)
	}
	var wrong problem.List
	most := 0.0
	for j := range d {
		sums, df, reach := pool(sites, j, p, e.Effects.Centre)
		if df < 1 {
			continue
		}
		e.FeatureSD[j] = math.Sqrt(sums[p*(p+1)+p] / df)
		if df > most {
			most = df
			for k := range p {
				e.CovariateSD[k] = math.Sqrt(sums[k*(p+1)+k] / df)
			}
		}
		if left := e.solve(j, sums, df, reach); left < exhausted {
			k, i := set.Layout.ViewOf()[j], j
			for v := range k {
				i -= set.Layout.Dims[v]
			}
			wrong.Add(problem.Problem{Where: fmt.Sprintf("view %s, feature %s", set.Plan.Views[k].Name, set.Plan.Views[k].Features[i].Name),
				What: "nothing is left of it when it is adjusted for " + strings.Join(Terms(set.Options.Adjust), ", "), Hint: "leave it out of the plan: it says what these say"})
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
	scale, total := make([]float64, n), sums[p*n+p]
	for k := range scale {
		scale[k] = math.Sqrt(sums[k*n+k])
	}
	if total == 0 {
		return 1 // a constant, which the scale names
	}
	for k := range scale {
		for l := range scale {
			if sums[k*n+l] != 0 {
				sums[k*n+l] = sums[k*n+l] / scale[k] / scale[l]
			}
		}
	}
	var told []int
	for k := range p {
		if sums[k*n+k] > aliased {
			linalg.Sweep(sums, n, k)
			told = append(told, k)
		}
	}
	rest := df - float64(len(told))
	if rest < 1 {
		return 1
	}
	left = max(0, sums[p*n+p])
	for _, k := range told {
		// A slope that takes values beyond measure is not one of measured values.
		if b := sums[k*n+p] * scale[p] / scale[k]; !(math.Abs(b)*reach[k] <= ppca.LargestValue/float64(4*p)) {
			return 1
		}
	}
	e.DF[j] = rest
	for _, k := range told {
		e.Effects.Slopes.Data[j*p+k] = sums[k*n+p] * scale[p] / scale[k]
		e.SE.Data[j*p+k] = math.Sqrt(max(left, exhausted)*max(sums[k*n+k], 0)/rest) * scale[p] / scale[k]
	}
	return left
}

// Regress takes out of the rows of sites that lie in one place what the plan's covariates
// add to them, as [Solve] estimates it, and returns that too; nil, and the rows as they are,
// where the plan has no covariates.
func Regress(ctx context.Context, set Setup, sites ...dataset.Source) (*Effects, []dataset.Source, error) {
	if len(set.Options.Adjust) == 0 {
		return nil, sites, nil
	}
	designs, sums := make([]*Design, len(sites)), make([]*Sums, len(sites))
	for i, data := range sites {
		var err error
		if designs[i], err = Bind(set.Options.Adjust, data.Schema().Subject); err != nil {
			return nil, nil, err
		}
		if sums[i], err = SumUp(ctx, set.Layout, designs[i], data); err != nil {
			return nil, nil, fmt.Errorf("regressing the features on covariates: %w", err)
		}
	}
	found, err := Solve(set, sums)
	if err != nil {
		return nil, nil, err
	}
	less := make([]dataset.Source, len(sites))
	for i, data := range sites {
		less[i] = Remove(designs[i], &found.Effects, data)
	}
	return &found.Effects, less, nil
}
