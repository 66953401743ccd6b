package options

import (
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"

	"parley/dataset"
	"parley/internal/wire"
	"parley/methods/factors/ppca"
	"parley/problem"
	"parley/study"
)

// largest bounds a covariate that is a number.
const largest = 1e15

// design reads the covariates of subjects, one number for each of [Terms].
type design struct {
	of []Covariate
	at []int // of the subject columns
}

// bind finds the covariates among the subject columns of data. The error names those that
// are not there.
func bind(of []Covariate, columns []dataset.Column) (*design, error) {
	d := &design{of: of}
	var lacking []string
	for _, c := range of {
		i := slices.IndexFunc(columns, func(x dataset.Column) bool { return x.Name == c.Column })
		if d.at = append(d.at, i); i < 0 {
			lacking = append(lacking, c.Column)
		}
	}
	if len(lacking) > 0 {
		return nil, problem.Problem{Where: "subjects", What: "there is no column " + problem.Names(lacking) +
			", which the model is adjusted for",
			Hint: "add it to subjects.csv: values are compared with what is expected at the subject's " +
				AdjustedFor(of)}
	}
	return d, nil
}

// terms is how many numbers the covariates are.
func (d *design) terms() int { return len(Terms(d.of)) }

// read puts the covariates of a subject into x, and says whether all are known. The error
// quotes the cell: it is for the people of the site.
func (d *design) read(row *dataset.Row, x []float64) (known bool, err error) {
	k := 0
	for i, c := range d.of {
		cell := row.Subject[d.at[i]]
		if dataset.IsMissing(cell) {
			return false, nil
		}
		if len(c.Levels) == 0 {
			v, err := strconv.ParseFloat(cell, 64)
			if err != nil || !(math.Abs(v) <= largest) {
				return false, problem.Problem{Where: "column " + c.Column,
					What: fmt.Sprintf("subject %q: %q is not a number of at most %g in size", row.ID, cell, largest),
					Hint: "a category is adjusted for with its levels in the plan, as in {column: " + c.Column +
						", levels: [REFERENCE, OTHER]}"}
			}
			x[k] = v
			k++
			continue
		}
		level := slices.Index(c.Levels, cell)
		if level < 0 {
			return false, problem.Problem{Where: "column " + c.Column,
				What: fmt.Sprintf("subject %q: %q is not one of the levels %s", row.ID, cell, problem.Names(c.Levels)),
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
		return fmt.Errorf("%d × %d slopes and %d means for %d covariates of %d features", e.Slopes.Rows, e.Slopes.Cols,
			len(e.Centre), p, d)
	}
	if err := ppca.Within("means of covariates", e.Centre, largest); err != nil {
		return err
	}
	return ppca.Within("slopes", e.Slopes.Data, ppca.LargestValue*ppca.LargestValue)
}

// Adjustment takes out of subjects' values what their covariates add to them.
type Adjustment struct {
	// Part is what they add to each feature of the subject who was read last.
	Part []float64

	design    *design
	effects   *Effects
	dims      []int
	x, values []float64
	less      dataset.Row
}

// Adjusting prepares for subjects of a schema; nil where there are no effects.
func Adjusting(of []Covariate, e *Effects, schema dataset.Schema) (*Adjustment, error) {
	if e == nil {
		return nil, nil
	}
	bound, err := bind(of, schema.Subject)
	if err != nil {
		return nil, err
	}
	a, d := &Adjustment{design: bound, effects: e, x: make([]float64, bound.terms())}, 0
	for _, v := range schema.Views {
		a.dims, d = append(a.dims, len(v.Columns)), d+len(v.Columns)
	}
	if d != e.Slopes.Rows {
		return nil, fmt.Errorf("effects of covariates on %d features, where there are %d", e.Slopes.Rows, d)
	}
	a.Part, a.values = make([]float64, d), make([]float64, d)
	return a, nil
}

// Less is a subject less what the covariates add, valid until the next. Known says whether all of them are; if not, the
// subject is taken to be at the means of all.
func (a *Adjustment) Less(row *dataset.Row) (less *dataset.Row, known bool, err error) {
	if known, err = a.design.read(row, a.x); err != nil {
		return nil, false, err
	}
	if !known {
		copy(a.x, a.effects.Centre)
	}
	for j := range a.Part {
		a.Part[j] = 0
		for k, b := range a.effects.Slopes.Data[j*len(a.x):][:len(a.x)] {
			if b != 0 {
				a.Part[j] += b * (a.x[k] - a.effects.Centre[k])
			}
		}
	}
	a.less = dataset.Row{ID: row.ID, Subject: row.Subject, Views: a.less.Views[:0]}
	lo := 0
	for k, v := range row.Views {
		var less []float64
		if v != nil {
			less = a.values[lo : lo+a.dims[k]]
			for i, y := range v {
				less[i] = y - a.Part[lo+i]
			}
		}
		a.less.Views, lo = append(a.less.Views, less), lo+a.dims[k]
	}
	return &a.less, known, nil
}

// Without is data less what the covariates add, without the subjects of whom one is not known. Of no adjustment (nil),
// it is the data.
func (a *Adjustment) Without(data dataset.Source) dataset.Source {
	if a == nil {
		return data
	}
	return adjusted{data, a}
}

type adjusted struct {
	dataset.Source
	*Adjustment
}

// Rows implements [dataset.Source].
func (s adjusted) Rows(ctx context.Context) iter.Seq2[*dataset.Row, error] {
	return func(yield func(*dataset.Row, error) bool) {
		for row, err := range s.Source.Rows(ctx) {
			known := true
			if err == nil {
				row, known, err = s.Less(row)
			}
			if known || err != nil {
				if !yield(row, err) {
					return
				}
			}
		}
	}
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
		report("adjust", "the regression on covariates is made of exact sums, which do not leave a site under "+
			"differential privacy",
			"leave it out; parley model associate --adjust adjusts what is said of the factors, or each site can "+
				"adjust its features before the study by coefficients that are published")
	}
	for i, c := range o.Adjust {
		at := fmt.Sprintf("adjust[%d]", i)
		switch {
		case c.Column == "":
			report(at, "no column is named", "the name of a column of numbers, or {column: NAME, levels: [REFERENCE, "+
				"OTHER]}")
		case !slices.Contains(p.Subjects, c.Column):
			report(at, fmt.Sprintf("%q is not a column under subjects", c.Column),
				"list it there; it may not be a feature of a view")
		case slices.ContainsFunc(o.Adjust[:i], func(other Covariate) bool { return other.Column == c.Column }):
			report(at, fmt.Sprintf("column %s is named twice", c.Column), "each once")
		}
		if len(c.Levels) == 1 {
			report(at+".levels", "a category of one level says nothing",
				"all levels, the one that the others are compared with first; of numbers none")
		}
		for k, level := range c.Levels {
			if dataset.IsMissing(level) || slices.Contains(c.Levels[:k], level) {
				report(at+".levels", fmt.Sprintf("level %q stands for what is not known, or is there twice", level),
					"each level once")
			}
		}
	}
	if n := len(Terms(o.Adjust)); n > maxTerms {
		report("adjust", fmt.Sprintf("%d numbers and levels to adjust for", n), fmt.Sprintf("at most %d", maxTerms))
	}
}
