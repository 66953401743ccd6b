package fitted

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/mathext"

	"parley/dataset"
	"parley/figure"
	"parley/internal/stats"
	"parley/method"
	"parley/methods/factors/ppca"
	"parley/problem"
)

// tested is one factor against one column, given the columns that were adjusted for.
type tested struct {
	Column   string   `json:"column"`
	Kind     string   `json:"kind"` // number or category
	Factor   int      `json:"factor"`
	Subjects int      `json:"subjects"`
	Levels   int      `json:"levels,omitempty"`
	R        *float64 `json:"correlation,omitempty"` // of a number; partial where adjusted
	// r², or η² of a category: share of the factor's variance that what was adjusted for leaves
	R2       float64 `json:"explained"`
	F        float64 `json:"f"`
	DF       [2]int  `json:"degrees_of_freedom"`
	P        float64 `json:"p"`
	Adjusted float64 `json:"p_adjusted"`
	// Reference is the level with the most subjects, with which Effects compare the
	// others; of a number Effects has the slope.
	Reference string   `json:"reference,omitempty"`
	Effects   []effect `json:"effects"` // none where what was adjusted for tells some level already
}

// effect is by how much a factor changes, in its standard deviations in the study, for
// one unit of a number or from the reference to a level.
type effect struct {
	Level    string  `json:"level,omitempty"`
	Subjects int     `json:"subjects"` // of the level
	Estimate float64 `json:"estimate"`
	SE       float64 `json:"standard_error"`
}

// columnTests test factors against subject columns.
type columnTests struct {
	q          int
	adjust     []*covariate // what is adjusted for, in the order of the columns
	tests      []*covariate
	z          []float64 // q of each subject with all that is adjusted for
	incomplete int       // subjects without
}

// newColumnTests prepares tests of q factors against the columns that are not adjusted for.
func newColumnTests(schema []dataset.Column, categories, adjust []string, q int) *columnTests {
	a := &columnTests{q: q}
	for i, c := range schema {
		t := &covariate{name: c.Name, at: i, category: slices.Contains(categories, c.Name)}
		if slices.Contains(adjust, c.Name) {
			a.adjust = append(a.adjust, t)
		} else {
			a.tests = append(a.tests, t)
		}
	}
	return a
}

// Add takes in a subject's cells, one for each column, and the means of its factors, and
// says whether the subject counts: it does if all that is adjusted for is known.
func (a *columnTests) Add(cells []string, z []float64) bool {
	if slices.ContainsFunc(a.adjust, func(t *covariate) bool { return dataset.IsMissing(cells[t.at]) }) {
		a.incomplete++
		return false
	}
	for _, t := range slices.Concat(a.adjust, a.tests) {
		t.cells = append(t.cells, strings.Clone(cells[t.at])) // and not the row that it is part of
	}
	a.z = append(a.z, z...)
	return true
}

// complete counts the subjects with all that is adjusted for.
func (a *columnTests) complete() int { return len(a.z) / a.q }

// run fits a regression, or says why it cannot be.
func (a *columnTests) run(t *covariate) (*fittedRegression, *problem.Problem) {
	p := &problem.Problem{Where: "column " + t.name}
	for _, c := range append(slices.Clone(a.adjust), t) {
		if c.category && len(c.names) > dataset.MaxLevels {
			p.Where = "column " + c.name
			p.What = fmt.Sprintf("has more than %d different values, and not all are numbers", dataset.MaxLevels)
			p.Hint = "is it an identifier? mend cells that should be numbers, or choose another column"
			return nil, p
		}
	}
	if len(t.names) < 2 {
		p.What, p.Hint = "is the same for all subjects who have it", "choose a column that differs between subjects"
		return nil, p
	}
	fit := fitTo(a.z, a.q, a.adjust, t)
	switch {
	case fit.df[0] == 0:
		p.What, p.Hint = fmt.Sprintf("says nothing that %v does not say already", a.adjusted()),
			"leave one of them out of --adjust"
	case fit.df[1] < 1:
		p.What, p.Hint = fmt.Sprintf("%d subjects are too few for so many columns and levels", t.n),
			"choose a column with fewer values, or adjust for less"
	default:
		return fit, nil
	}
	return nil, p
}

// fewCodes is how many different whole numbers look like the codes of a category.
const fewCodes = 8

func (a *columnTests) results(notes *method.Notes) (list []tested, untested problem.List) {
	if a.incomplete > 0 {
		notes.Add(problem.Problem{Where: "subjects",
			What: fmt.Sprintf("%d without a value in [%s], which is adjusted for, were left out", a.incomplete,
				strings.Join(a.adjusted(), ", "))})
	}
	for _, t := range slices.Concat(a.adjust, a.tests) {
		t.read()
	}
	for _, t := range a.tests {
		fit, p := a.run(t)
		if p != nil {
			untested.Add(*p)
			continue
		}
		if missing := a.complete() - t.n; missing > 0 {
			notes.Add(problem.Problem{Where: "column " + t.name,
				What: fmt.Sprintf("is not known of %s, left out of its tests", figure.Plural(missing, "subject"))})
		}
		if !t.category && !t.fraction && len(t.names) <= fewCodes {
			notes.Add(problem.Problem{Where: "column " + t.name,
				What: fmt.Sprintf("was taken as a number, and has only %d different values", len(t.names)),
				Hint: "if they are codes of a category, say --category " + t.name})
		}
		for factor := range a.q {
			list = append(list, t.association(fit, factor))
		}
	}
	p := make([]float64, len(list))
	for i := range list {
		p[i] = list[i].P
	}
	for i, x := range stats.BenjaminiHochberg(p) {
		list[i].Adjusted = x
	}
	return list, untested
}

// adjusted names what is adjusted for, sorted.
func (a *columnTests) adjusted() []string {
	names := []string{}
	for _, c := range a.adjust {
		names = append(names, c.name)
	}
	slices.Sort(names)
	return names
}

// association is the test of one factor, from 0.
func (t *covariate) association(f *fittedRegression, factor int) tested {
	x := tested{Column: t.name, Kind: "number", Factor: factor + 1, Subjects: t.n, DF: f.df, Effects: []effect{}}
	if before := f.before[factor]; before > 0 { // else nothing here tells of the factor
		x.R2 = max(0, 1-f.after[factor]/before)
	}
	x.R2 = min(x.R2, 1-1e-15) // keeps F finite
	df1, df2 := float64(f.df[0]), float64(f.df[1])
	x.F = x.R2 / df1 / ((1 - x.R2) / df2)
	x.P = mathext.RegIncBeta(df2/2, df1/2, 1-x.R2) // P(F > x.F)
	order := t.order()
	if t.category {
		x.Kind, x.Levels, x.Reference = "category", len(order), t.names[order[0]]
	} else {
		r := math.Copysign(math.Sqrt(x.R2), f.estimates[factor][0])
		x.R = &r
	}
	for i, b := range f.estimates[factor] {
		e := effect{Subjects: t.n, Estimate: b, SE: math.Sqrt(f.variance(factor) * f.inverse[i][i])}
		if t.category {
			e.Level, e.Subjects = t.names[order[1+i]], t.counts[order[1+i]]
		}
		x.Effects = append(x.Effects, e)
	}
	return x
}

// variance is that of the residuals of a factor, from 0.
func (f *fittedRegression) variance(factor int) float64 { return f.after[factor] / float64(f.df[1]) }

// associationTable shows the tests.
func associationTable(list []tested) figure.Table {
	t := figure.Table{Title: "Factors and subject columns, for this site only",
		Caption: "Explained is r² for numbers and η² for categories: the share of the factor's variance among these " +
			"subjects, partial where other columns are adjusted for. p is of the F test, and adjusted by Benjamini " +
			"and Hochberg over all rows. These are exact numbers about this site's subjects: they are not protected " +
			"and not for release.",
		Columns: []figure.Column{{Name: "column"}, {Name: "kind"}, {Name: "factor", Format: figure.Count},
			{Name: "subjects", Format: figure.Count}, {Name: "correlation"},
			{Name: "explained", Format: figure.Percent}, {Name: "F"}, {Name: "p", Format: figure.P},
			{Name: "adjusted p", Format: figure.P}}}
	for _, x := range list {
		kind, r := x.Kind, math.NaN()
		if x.R != nil {
			r = *x.R
		} else {
			kind = fmt.Sprintf("category of %d", x.Levels)
		}
		t.Add(x.Column, kind, x.Factor, x.Subjects, r, x.R2, x.F, x.P, x.Adjusted)
	}
	return t
}

// effectTable shows slopes, and differences between levels.
func effectTable(list []tested, reliability []float64) figure.Table {
	t := figure.Table{Title: "Slopes, and differences between levels",
		Caption: "In standard deviations of the factor in the study: for one unit of a number, or against the level " +
			"with the most subjects. Reliability is how much of the factor's variance these subjects' scores show, " +
			"on average: estimates are about so many times those of the factor itself.",
		Columns: []figure.Column{{Name: "column"}, {Name: "level"}, {Name: "factor", Format: figure.Count},
			{Name: "subjects", Format: figure.Count}, {Name: "estimate"}, {Name: "standard error"},
			{Name: "reliability"}}}
	for _, x := range list {
		for _, e := range x.Effects {
			level := "slope"
			if x.R == nil {
				level = e.Level + " − " + x.Reference
			}
			t.Add(x.Column, level, x.Factor, e.Subjects, e.Estimate, e.SE, reliability[x.Factor-1])
		}
	}
	return t
}

// Associate implements [method.Associater]: a regression of each factor's posterior mean on each subject column, by
// ordinary least squares, given the columns of opts.Adjust. A column of numbers has a slope, any other levels with a
// mean each. The test is the partial F test, P values being adjusted over all factors and columns
// ([stats.BenjaminiHochberg]). Subjects without the column, one that is adjusted for, or any value are left out, and
// those of a site of the fit are scored about its means, if sites have some. Estimates are those of the factor itself
// times about the reliability that is stated.
func (m *Model) Associate(ctx context.Context, data dataset.Source,
	opts method.AssociateOptions) (*method.Account, error) {
	r, notes, err := m.use(data, Population{Site: opts.Site})
	if err != nil {
		return nil, err
	}
	if m.Separate() && opts.Site == "" {
		notes.Add(problem.Problem{Where: "--site", What: "sites have means of their own, and nothing says whose " +
			"subjects these are. Scores of subjects who lack a view are then off by what the site's means are, and " +
			"where lacking it goes with a column, p values can be far too small",
			Hint: "name the site of the fit that they are of"})
	}
	q, empty := len(m.Factors), 0
	tests := newColumnTests(data.Schema().Subject, opts.Categories, opts.Adjust, q)
	if len(opts.Tested) > 0 { // the data may have others that the model needs
		tests.tests = slices.DeleteFunc(tests.tests, func(t *covariate) bool {
			return !slices.Contains(opts.Tested, t.name)
		})
	}
	z, reliability := make([]float64, q), make([]float64, q)
	if _, err := r.each(ctx, data, func(row *dataset.Row, post *ppca.Posterior, values []float64) error {
		if len(values) == 0 {
			empty++
			return nil
		}
		post.Latent(z, values)
		m.Rotation.latent(z)
		if tests.Add(row.Subject, z) {
			cov := m.Rotation.covariance(post.Cov)
			for a := range reliability {
				reliability[a] += 1 - cov[a*q+a] // the prior variance is 1
			}
		}
		return nil
	}); err != nil {
		return nil, err
	}
	for a := range reliability {
		reliability[a] /= float64(tests.complete())
	}
	if empty > 0 {
		notes.Add(problem.Problem{Where: "subjects",
			What: fmt.Sprintf("%d without any value of the model's views were left out", empty)})
	}
	list, untested := tests.results(&notes)
	if err := untested.Err(); err != nil {
		return nil, err
	}
	account := &method.Account{
		Tables: []figure.Table{associationTable(list), effectTable(list, reliability)},
		Notes:  append(notes, r.notes()...),
		Value:  sitesOwn{"this site only: exact, not for release", tests.adjusted(), reliability, list},
	}
	if len(opts.Adjust) > 0 {
		account.Facts = []figure.Fact{{Name: "adjusted for", Value: strings.Join(tests.adjusted(), ", ")}}
	}
	return account, nil
}

// sitesOwn is the answer as JSON.
type sitesOwn struct {
	For          string         `json:"for"`
	AdjustedFor  []string       `json:"adjusted_for"`
	Reliability  figure.Numbers `json:"reliability"`
	Associations []tested       `json:"associations"`
}
