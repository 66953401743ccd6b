package use

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"

	"parley/dataset"
	"parley/figure"
	"parley/method/association"
	"parley/method/fitted"
	"parley/methods/mvppca/ppca"
	"parley/problem"
)

// Association is one factor against one column, given the columns that were adjusted for.
type Association struct {
	Column   string   `json:"column"`
	Kind     string   `json:"kind"` // number or category
	Factor   int      `json:"factor"`
	Subjects int      `json:"subjects"`
	Levels   int      `json:"levels,omitempty"`
	R        *float64 `json:"correlation,omitempty"` // of a number; partial where adjusted
	R2       float64  `json:"explained"`             // r², or η² of a category: share of the factor's variance that what was adjusted for leaves
	F        float64  `json:"f"`
	DF       [2]int   `json:"degrees_of_freedom"`
	P        float64  `json:"p"`
	Adjusted float64  `json:"p_adjusted"`
	// Reference is the level with the most subjects, with which Effects compare the
	// others; of a number Effects has the slope.
	Reference string   `json:"reference,omitempty"`
	Effects   []Effect `json:"effects"` // none where what was adjusted for tells some level already
}

// Effect is by how much a factor changes, in its standard deviations in the study, for
// one unit of a number or from the reference to a level.
type Effect struct {
	Level    string  `json:"level,omitempty"`
	Subjects int     `json:"subjects"` // of the level
	Estimate float64 `json:"estimate"`
	SE       float64 `json:"standard_error"`
}

// Associate implements [fitted.Associater]: a regression of each factor's posterior mean
// on each subject column, by ordinary least squares, given the columns of opts.Adjust.
// A column whose cells are all numbers has a slope; any other is a category, whose levels
// have a mean each. The test is the partial F test of the column, which without
// adjustment is that of the correlation (Pearson) or of the analysis of variance. P values
// are adjusted over all factors and columns ([association.BenjaminiHochberg]).
//
// Subjects without the column, without one that is adjusted for or without any value are
// left out. A posterior mean is drawn towards 0 the more, the less was observed of the
// subject: estimates are too small by about the reliability that is stated.
//
// With opts.Share it returns what may be combined with other sites' tables. Under
// differential privacy there is no such table, and groups under [association.Minimum]
// subjects are in none: it is exact, and so tells of subjects.
func (m *Model) Associate(ctx context.Context, data dataset.Source, opts fitted.AssociateOptions) (*fitted.Account, *association.Table, error) {
	if opts.Share && m.Options != nil && m.Options.Mechanism != "" {
		return nil, nil, problem.Problem{Where: "model " + m.Study, What: "was fitted in a study under differential privacy, and a table of exact tests would tell of its subjects beyond what the sites agreed to release",
			Hint: "leave out --share: the answer is then for this site alone"}
	}
	r, notes, err := m.use(false)
	if err != nil {
		return nil, nil, err
	}
	q, empty := len(m.Factors), 0
	tests := NewAssociations(data.Schema().Subject, opts.Categories, opts.Adjust, q)
	if _, err := r.each(ctx, data, func(row *dataset.Row, _ *ppca.Posterior, values []float64) error {
		if len(values) == 0 {
			empty++
			return nil
		}
		tests.Look(row.Subject)
		return nil
	}); err != nil {
		return nil, nil, err
	}
	z, reliability := make([]float64, q), make([]float64, q)
	if err := EachSubject(ctx, r.predictor, r.scale, data, func(row *dataset.Row, post *ppca.Posterior, values []float64) error {
		post.Latent(z, values)
		r.rotation.latent(z)
		if len(values) > 0 && tests.Add(row.Subject, z) {
			cov := r.rotation.covariance(post.Cov)
			for a := range reliability {
				reliability[a] += (1 - cov[a*q+a]) / float64(tests.complete) // the prior variance is 1
			}
		}
		return nil
	}); err != nil {
		return nil, nil, err
	}
	if empty > 0 {
		notes.Add(problem.Problem{Where: "subjects", What: fmt.Sprintf("%d without any value of the model's views were left out", empty)})
	}
	list, untested := tests.Tests(&notes)
	if err := untested.Err(); err != nil {
		return nil, nil, err
	}
	account := AssociationAccount(list, append(notes, r.units.notes()...))
	account.Value = sitesOwn{"this site only: exact, not for release", tests.adjusted(), reliability, list}
	account.Tables = append(account.Tables, effectTable(list, reliability))
	if len(opts.Adjust) > 0 {
		account.Facts = []figure.Fact{{Name: "adjusted for", Value: fmt.Sprint(tests.adjusted())}}
	}
	if !opts.Share {
		return account, nil, nil
	}
	table, err := m.share(tests, list, reliability)
	return account, table, err
}

// sitesOwn is the answer as JSON.
type sitesOwn struct {
	For          string         `json:"for"`
	AdjustedFor  []string       `json:"adjusted_for"`
	Reliability  figure.Numbers `json:"reliability"`
	Associations []Association  `json:"associations"`
}

// Associations tests factors against subject columns, in two readings of the same
// subjects: [Associations.Look] at all of them, then [Associations.Add] all of them.
type Associations struct {
	q                    int
	columns              []*covariate
	adjust               []int // of columns
	tests                []*columnTest
	complete, incomplete int // subjects with, and without, all that is adjusted for
	prepared             bool
	cells                []string // scratch
}

// columnTest is a column that is tested, and why it cannot be.
type columnTest struct {
	at         int // of columns
	wrong      *problem.Problem
	regression *regression
	fit        *fittedRegression
}

// NewAssociations prepares tests of q factors against the columns that are not adjusted for.
func NewAssociations(columns []dataset.Column, categories, adjust []string, q int) *Associations {
	a := &Associations{q: q}
	for i, c := range columns {
		a.columns = append(a.columns, newCovariate(c.Name, slices.Contains(categories, c.Name)))
		if slices.Contains(adjust, c.Name) {
			a.adjust = append(a.adjust, i)
		} else {
			a.tests = append(a.tests, &columnTest{at: i})
		}
	}
	return a
}

// whole says whether all that is adjusted for is known of a subject.
func (a *Associations) whole(cells []string) bool {
	return !slices.ContainsFunc(a.adjust, func(i int) bool { return !known(cells[i]) })
}

// Look takes in the cells of a subject, one for each column.
func (a *Associations) Look(cells []string) {
	if !a.whole(cells) {
		a.incomplete++
		return
	}
	a.complete++
	for i, c := range a.columns {
		if known(cells[i]) {
			c.look(cells[i])
		}
	}
}

// Add takes in a subject again with the factors' means, and says whether it counts.
func (a *Associations) Add(cells []string, z []float64) bool {
	if !a.whole(cells) {
		return false
	}
	a.prepare()
	a.cells = a.cells[:0]
	for _, i := range a.adjust {
		a.cells = append(a.cells, cells[i])
	}
	for _, t := range a.tests {
		if t.wrong == nil && known(cells[t.at]) {
			t.regression.add(a.cells, cells[t.at], z)
		}
	}
	return true
}

// prepare decides, after the first reading, what can be tested.
func (a *Associations) prepare() {
	if a.prepared {
		return
	}
	a.prepared = true
	var before []*covariate
	var wrong *problem.Problem
	for _, i := range a.adjust {
		c := a.columns[i]
		if c.category && len(c.levels) > dataset.MaxLevels {
			wrong = c.tooManyLevels()
		}
		before = append(before, c)
	}
	for _, t := range a.tests {
		c := a.columns[t.at]
		if t.wrong = c.untestable(); t.wrong == nil {
			t.wrong = wrong
		}
		if t.wrong == nil {
			t.regression = newRegression(before, c, a.q)
		}
	}
}

func (c *covariate) tooManyLevels() *problem.Problem {
	return &problem.Problem{Where: "column " + c.name, What: fmt.Sprintf("has more than %d different values, and not all are numbers", dataset.MaxLevels), Hint: "is it an identifier? mend cells that should be numbers, or choose another column"}
}

// untestable says why a column cannot be tested, nil if it can.
func (c *covariate) untestable() *problem.Problem {
	p, levels := problem.Problem{Where: "column " + c.name}, len(c.levels)
	switch {
	case c.n == 0:
		p.What = "no subject with values has anything in it"
	case levels < 2:
		p.What, p.Hint = "is the same for all subjects", "choose a column that differs between subjects"
	case !c.category && c.n < 3:
		p.What, p.Hint = fmt.Sprintf("%.0f subjects are too few for a correlation", c.n), "at least 3"
	case !c.category:
		return nil
	case levels > dataset.MaxLevels:
		return c.tooManyLevels()
	case int(c.n) <= levels:
		p.What, p.Hint = fmt.Sprintf("%.0f subjects with %d different values: there is no variance within them", c.n, levels), "choose a column with more subjects to a value"
	default:
		return nil
	}
	return &p
}

// fewCodes is how many different whole numbers look like the codes of a category.
const fewCodes = 8

// Tests returns the associations, and of the columns that cannot be tested why.
func (a *Associations) Tests(notes *fitted.Notes) (list []Association, untested problem.List) {
	a.prepare()
	if a.incomplete > 0 {
		notes.Add(problem.Problem{Where: "subjects", What: fmt.Sprintf("%d without a value in %v, which is adjusted for, were left out", a.incomplete, a.adjusted())})
	}
	for _, t := range a.tests {
		c := a.columns[t.at]
		if t.wrong == nil {
			t.fit = t.regression.fit()
			switch {
			case t.fit.df[0] == 0:
				t.wrong = &problem.Problem{Where: "column " + c.name, What: fmt.Sprintf("says nothing that %v does not say already", a.adjusted()), Hint: "leave one of them out of --adjust"}
			case t.fit.df[1] < 1:
				t.wrong = &problem.Problem{Where: "column " + c.name, What: fmt.Sprintf("%.0f subjects are too few for so many columns and levels to adjust for", c.n), Hint: "adjust for less"}
			}
		}
		if t.wrong != nil {
			untested.Add(*t.wrong)
			continue
		}
		if missing := a.complete - int(c.n); missing > 0 {
			notes.Add(problem.Problem{Where: "column " + c.name, What: fmt.Sprintf("%s without it left out", figure.Plural(missing, "subject"))})
		}
		if !c.category && !c.fraction && len(c.levels) <= fewCodes {
			notes.Add(problem.Problem{Where: "column " + c.name, What: fmt.Sprintf("was taken as a number, and has only %d different values", len(c.levels)), Hint: "if they are codes of a category, say --category " + c.name})
		}
		for factor := range a.q {
			list = append(list, t.association(c, factor))
		}
	}
	p := make([]float64, len(list))
	for i := range list {
		p[i] = list[i].P
	}
	for i, x := range association.BenjaminiHochberg(p) {
		list[i].Adjusted = x
	}
	return list, untested
}

// adjusted names what is adjusted for, sorted.
func (a *Associations) adjusted() []string {
	names := []string{}
	for _, i := range a.adjust {
		names = append(names, a.columns[i].name)
	}
	slices.Sort(names)
	return names
}

// association is the test of one factor, from 0.
func (t *columnTest) association(c *covariate, factor int) Association {
	f := t.fit
	x := Association{Column: c.name, Kind: "number", Factor: factor + 1, Subjects: int(c.n), DF: f.df, Effects: []Effect{}}
	if before := f.before[factor]; before > 0 { // else nothing here tells of the factor
		x.R2 = max(0, 1-f.after[factor]/before)
	}
	x.R2 = min(x.R2, 1-1e-15) // keeps F finite
	df1, df2 := float64(f.df[0]), float64(f.df[1])
	x.F = x.R2 / df1 / ((1 - x.R2) / df2)
	x.P = mathext.RegIncBeta(df2/2, df1/2, 1-x.R2) // P(F > x.F)
	levels := []string{""}
	if c.category {
		x.Kind, x.Levels, x.Reference, levels = "category", len(c.levels), c.order()[0], c.order()[1:]
	} else {
		r := math.Copysign(math.Sqrt(x.R2), f.estimates[factor][0])
		x.R = &r
	}
	for i, b := range f.estimates[factor] {
		e := Effect{Level: levels[i], Subjects: x.Subjects, Estimate: b, SE: math.Sqrt(f.variance(factor) * f.inverse[i][i])}
		if c.category {
			e.Subjects = c.levels[e.Level]
		}
		x.Effects = append(x.Effects, e)
	}
	return x
}

// variance is that of the residuals of a factor, from 0.
func (f *fittedRegression) variance(factor int) float64 { return f.after[factor] / float64(f.df[1]) }

// AssociationAccount shows the tests.
func AssociationAccount(list []Association, notes fitted.Notes) *fitted.Account {
	t := figure.Table{Title: "Factors and subject columns, for this site only",
		Caption: "Explained is r² for numbers and η² for categories: the share of the factor's variance among these subjects, partial where other columns are adjusted for. p is of the F test, and adjusted by Benjamini and Hochberg over all rows. These are exact numbers about this site's subjects: they are not protected and not for release.",
		Columns: []figure.Column{{Name: "column"}, {Name: "kind"}, {Name: "factor", Format: figure.Count}, {Name: "subjects", Format: figure.Count}, {Name: "correlation"},
			{Name: "explained", Format: figure.Percent}, {Name: "F"}, {Name: "p"}, {Name: "adjusted p"}}}
	for _, x := range list {
		kind, r := x.Kind, math.NaN()
		if x.R != nil {
			r = *x.R
		} else {
			kind = fmt.Sprintf("category of %d", x.Levels)
		}
		t.Columns[0].Text, t.Columns[1].Text = append(t.Columns[0].Text, x.Column), append(t.Columns[1].Text, kind)
		for j, y := range []float64{float64(x.Factor), float64(x.Subjects), r, x.R2, x.F, x.P, x.Adjusted} {
			t.Columns[2+j].Numbers = append(t.Columns[2+j].Numbers, y)
		}
	}
	return &fitted.Account{Tables: []figure.Table{t}, Notes: notes}
}

// effectTable shows slopes, and differences between levels.
func effectTable(list []Association, reliability []float64) figure.Table {
	t := figure.Table{Title: "Slopes, and differences between levels",
		Caption: "In standard deviations of the factor in the study: for one unit of a number, or against the level with the most subjects. Reliability is how much of the factor these subjects' scores show, on average: an estimate is too small by about so much.",
		Columns: []figure.Column{{Name: "column"}, {Name: "level"}, {Name: "factor", Format: figure.Count}, {Name: "subjects", Format: figure.Count}, {Name: "estimate"}, {Name: "standard error"}, {Name: "reliability"}}}
	for _, x := range list {
		for _, e := range x.Effects {
			level := "slope"
			if x.R == nil {
				level = e.Level + " − " + x.Reference
			}
			t.Columns[0].Text, t.Columns[1].Text = append(t.Columns[0].Text, x.Column), append(t.Columns[1].Text, level)
			for j, y := range []float64{float64(x.Factor), float64(e.Subjects), e.Estimate, e.SE, reliability[x.Factor-1]} {
				t.Columns[2+j].Numbers = append(t.Columns[2+j].Numbers, y)
			}
		}
	}
	return t
}
