package options

import (
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/floats"

	"parley/dataset"
	"parley/internal/linalg"
	"parley/internal/wire"
	"parley/methods/factors/ppca"
	"parley/problem"
	"parley/study"
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

// Largest bounds a covariate that is a number.
const Largest = 1e15

// Design reads the covariates of subjects, one number for each of [Terms].
type Design struct {
	of []Covariate
	at []int // of the subject columns
}

// Bind finds the covariates among the subject columns of data. The error names those that
// are not there.
func Bind(of []Covariate, columns []dataset.Column) (*Design, error) {
	d := &Design{of: of}
	var lacking []string
	for _, c := range of {
		i := slices.IndexFunc(columns, func(x dataset.Column) bool { return x.Name == c.Column })
		if d.at = append(d.at, i); i < 0 {
			lacking = append(lacking, c.Column)
		}
	}
	if len(lacking) > 0 {
		return nil, problem.Problem{Where: "subjects", What: "there is no column " + problem.Names(lacking) + ", which the model is adjusted for",
			Hint: "add it to subjects.csv: values are compared with what is expected at the subject's " + AdjustedFor(of)}
	}
	return d, nil
}

// Terms is how many numbers the covariates are.
func (d *Design) Terms() int { return len(Terms(d.of)) }

// Read puts the covariates of a subject into x, and says whether all are known. The error
// quotes the cell: it is for the people of the site.
func (d *Design) Read(row *dataset.Row, x []float64) (known bool, err error) {
	k := 0
	for i, c := range d.of {
		cell := row.Subject[d.at[i]]
		if dataset.IsMissing(cell) {
			return false, nil
		}
		if len(c.Levels) == 0 {
			v, err := strconv.ParseFloat(cell, 64)
			if err != nil || !(math.Abs(v) <= Largest) {
				return false, problem.Problem{Where: "column " + c.Column, What: fmt.Sprintf("subject %q: %q is not a number of at most %g in size", row.ID, cell, Largest),
					Hint: "a category is adjusted for with its levels in the plan, as in {column: " + c.Column + ", levels: [REFERENCE, OTHER]}"}
			}
			x[k] = v
			k++
			continue
		}
		level := slices.Index(c.Levels, cell)
		if level < 0 {
			return false, problem.Problem{Where: "column " + c.Column, What: fmt.Sprintf("subject %q: %q is not one of the levels %s", row.ID, cell, problem.Names(c.Levels)),
				Hint: "leave the cell empty if it is not known, or list the level in the plan"}
		}
		for l := 1; l < len(c.Levels); l++ {
			x[k] = 0
			if l == level {
				x[k] = 1
			}
			k++
		}
	}
	return true, nil
}

// Effects are what is expected of features given covariates, in the features' own units.
type Effects struct {
	Centre wire.Vector `cbor:"centre"` // means of the p covariates
	Slopes wire.Matrix `cbor:"slopes"` // features × p
}

// Check refuses effects that are not of p covariates on d features.
func (e *Effects) Check(d, p int) error {
	if len(e.Centre) != p || e.Slopes.Rows != d || e.Slopes.Cols != p || len(e.Slopes.Data) != d*p {
		return fmt.Errorf("%d × %d slopes and %d means for %d covariates of %d features", e.Slopes.Rows, e.Slopes.Cols, len(e.Centre), p, d)
	}
	if err := ppca.Within("means of covariates", e.Centre, Largest); err != nil {
		return err
	}
	return ppca.Within("slopes", e.Slopes.Data, ppca.LargestValue*ppca.LargestValue)
}

// Part is what the covariates x add to each feature, of a subject at their means nothing.
func (e *Effects) Part(x, out []float64) {
	for j := range out {
		out[j] = 0
		for k, b := range e.Slopes.Data[j*len(x):][:len(x)] {
			if b != 0 {
				out[j] += b * (x[k] - e.Centre[k])
			}
		}
	}
}

// Rows are data less what covariates add. Subjects of whom one is not known are left out.
type Rows struct {
	dataset.Source
	design  *Design
	effects *Effects
	// Part is what the covariates add to each feature of the subject who was read last.
	Part []float64
}

// Remove takes the effects of covariates out of data.
func Remove(design *Design, effects *Effects, data dataset.Source) *Rows {
	return &Rows{data, design, effects, make([]float64, effects.Slopes.Rows)}
}

// Rows implements [dataset.Source].
func (r *Rows) Rows(ctx context.Context) iter.Seq2[*dataset.Row, error] {
	return func(yield func(*dataset.Row, error) bool) {
		var out dataset.Row
		x, values := make([]float64, len(r.effects.Centre)), make([]float64, len(r.Part))
		for row, err := range r.Source.Rows(ctx) {
			known := false
			if err == nil {
				known, err = r.design.Read(row, x)
			}
			switch {
			case err != nil:
				yield(nil, err)
				return
			case !known:
				continue
			}
			r.effects.Part(x, r.Part)
			out = dataset.Row{ID: row.ID, Subject: row.Subject, Views: Less(row.Views, r.dims(), r.Part, values, out.Views)}
			if !yield(&out, nil) {
				return
			}
		}
	}
}

func (r *Rows) dims() []int {
	var dims []int
	for _, v := range r.Schema().Views {
		dims = append(dims, len(v.Columns))
	}
	return dims
}

// Less writes views less a part of each feature to values, and lists them in out.
func Less(views [][]float64, dims []int, part, values []float64, out [][]float64) [][]float64 {
	out, lo := out[:0], 0
	for k, v := range views {
		var less []float64
		if v != nil {
			less = values[lo : lo+dims[k]]
			for i, y := range v {
				less[i] = y - part[lo+i]
			}
		}
		out, lo = append(out, less), lo+dims[k]
	}
	return out
}

// FromScalar is a column of numbers that is written as its name.
func (c *Covariate) FromScalar(s string) { c.Column = s }

// Terms names what a regression on the covariates has a slope for: a column of numbers,
// or a level of a category but the first.
func Terms(covariates []Covariate) (names []string) {
	for _, c := range covariates {
		if len(c.Levels) == 0 {
			names = append(names, c.Column)
			continue
		}
		for _, level := range c.Levels[1:] {
			names = append(names, c.Column+" "+level)
		}
	}
	return names
}

// AdjustedFor names the covariates' columns.
func AdjustedFor(covariates []Covariate) string {
	var names []string
	for _, c := range covariates {
		names = append(names, c.Column)
	}
	return strings.Join(names, ", ")
}

// maxTerms bounds the terms of the regression on covariates.
const maxTerms = 64

func (o *Options) checkAdjust(p *study.Plan, report study.Report) {
	if len(o.Adjust) == 0 {
		return
	}
	if o.Mechanism != "" {
		report("adjust", "the regression on covariates is made of exact sums, which do not leave a site under differential privacy",
			"leave it out; parley model associate --adjust adjusts what is said of the factors, or each site can adjust its features before the study by coefficients that are published")
	}
	for i, c := range o.Adjust {
		at := fmt.Sprintf("adjust[%d]", i)
		switch {
		case c.Column == "":
			report(at, "no column is named", "the name of a column of numbers, or {column: NAME, levels: [REFERENCE, OTHER]}")
		case !slices.Contains(p.Subjects, c.Column):
			report(at, fmt.Sprintf("%q is not a column under subjects", c.Column), "list it there; it may not be a feature of a view")
		case slices.ContainsFunc(o.Adjust[:i], func(other Covariate) bool { return other.Column == c.Column }):
			report(at, fmt.Sprintf("column %s is named twice", c.Column), "each once")
		}
		if len(c.Levels) == 1 {
			report(at+".levels", "a category of one level says nothing", "all levels, the one that the others are compared with first; of numbers none")
		}
		for k, level := range c.Levels {
			if dataset.IsMissing(level) || slices.Contains(c.Levels[:k], level) {
				report(at+".levels", fmt.Sprintf("level %q stands for what is not known, or is there twice", level), "each level once")
			}
		}
	}
	if n := len(Terms(o.Adjust)); n > maxTerms {
		report("adjust", fmt.Sprintf("%d numbers and levels to adjust for", n), fmt.Sprintf("at most %d", maxTerms))
	}
}
