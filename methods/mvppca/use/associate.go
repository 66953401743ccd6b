package use

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/mathext"

	"parley/dataset"
	"parley/figure"
	"parley/method/fitted"
	"parley/methods/mvppca/ppca"
	"parley/problem"
)

// Association is one factor against one column.
type Association struct {
	Column   string   `json:"column"`
	Kind     string   `json:"kind"` // number or category
	Factor   int      `json:"factor"`
	Subjects int      `json:"subjects"`
	Levels   int      `json:"levels,omitempty"`
	R        *float64 `json:"correlation,omitempty"` // of a number
	R2       float64  `json:"explained"`             // r², or η² of a category: share of the factor's variance
	F        float64  `json:"f"`
	DF       [2]int   `json:"degrees_of_freedom"`
	P        float64  `json:"p"`
	Adjusted float64  `json:"p_adjusted"`
}

// Associate implements [fitted.Associater]: each factor's posterior mean against
// each subject column. A column whose cells are all numbers is correlated with
// it (Pearson); any other is a category, whose levels' means are compared by
// analysis of variance. The p values are those of the F test, and adjusted over
// all factors and columns so that the expected share of false findings among
// those below a bound is at most the bound (Benjamini and Hochberg 1995).
//
// Subjects without the column or without any value are left out. A posterior
// mean is drawn towards 0 the more, the less was observed of the subject, so
// associations are weakened where views are missing.
func (m *Model) Associate(ctx context.Context, data dataset.Source, categories []string) (*fitted.Account, error) {
	r, notes, err := m.use(Population{})
	if err != nil {
		return nil, err
	}
	q := len(m.Factors)
	var columns []*Covariate
	for _, c := range data.Schema().Subject {
		columns = append(columns, &Covariate{Name: c.Name, category: slices.Contains(categories, c.Name), Number: NewRunning(q), Levels: map[string]*Running{}})
	}
	z, empty := make([]float64, q), 0
	if _, err := r.each(ctx, data, func(row *dataset.Row, post *ppca.Posterior, values []float64) error {
		if len(values) == 0 {
			empty++
			return nil
		}
		post.Latent(z, values)
		for i, c := range columns {
			c.Add(row.Subject[i], z)
		}
		return nil
	}); err != nil {
		return nil, err
	}
	if empty > 0 {
		notes.Add(problem.Problem{Where: "subjects", What: fmt.Sprintf("%d without any value of the model's views were left out", empty)})
	}
	list := []Association{}
	for _, c := range columns {
		found, err := c.Associations(q, &notes)
		if err != nil {
			return nil, err
		}
		list = append(list, found...)
	}
	Adjust(list)
	return AssociationAccount(list, append(notes, r.units.notes()...)), nil
}

// Running are running means and sums of squares of the factors, and of their
// products with one number x.
type Running struct {
	n        float64
	mean, ss []float64
	x, xx    float64
	xz       []float64
}

func NewRunning(q int) *Running {
	return &Running{mean: make([]float64, q), ss: make([]float64, q), xz: make([]float64, q)}
}

// add takes in one subject (Welford 1962).
func (m *Running) add(x float64, z []float64) {
	m.n++
	dx := x - m.x
	m.x += dx / m.n
	m.xx += dx * (x - m.x)
	for a, v := range z {
		d := v - m.mean[a]
		m.mean[a] += d / m.n
		m.ss[a] += d * (v - m.mean[a])
		m.xz[a] += dx * (v - m.mean[a])
	}
}

// Covariate is one subject column while it is read.
type Covariate struct {
	Name     string
	category bool // by request, or because a cell is no number
	Number   *Running
	Levels   map[string]*Running // of at most MaxLevels+1 values
	fraction bool                // a number is not whole
}

func (c *Covariate) Add(cell string, z []float64) {
	switch strings.ToLower(cell) {
	case "", "na", "nan", "null":
		return
	}
	x, err := strconv.ParseFloat(cell, 64)
	if err != nil || math.IsInf(x, 0) || math.IsNaN(x) {
		c.category, x = true, 0
	}
	c.fraction = c.fraction || x != math.Trunc(x)
	c.Number.add(x, z)
	l := c.Levels[cell]
	if l == nil {
		if len(c.Levels) > dataset.MaxLevels {
			return
		}
		l = NewRunning(len(z))
		c.Levels[cell] = l
	}
	l.add(0, z)
}

// fewCodes is how many different whole numbers look like the codes of a category.
const fewCodes = 8

func (c *Covariate) Associations(q int, notes *fitted.Notes) (list []Association, err error) {
	where := "column " + c.Name
	total, n := c.Number, int(c.Number.n)
	levels := len(c.Levels)
	base := Association{Column: c.Name, Kind: "number", Subjects: n}
	switch {
	case n == 0:
		return nil, problem.Problem{Where: where, What: "no subject with values has anything in it"}
	case levels < 2:
		return nil, problem.Problem{Where: where, What: "is the same for all subjects", Hint: "choose a column that differs between subjects"}
	case !c.category && n < 3:
		return nil, problem.Problem{Where: where, What: fmt.Sprintf("%d subjects are too few for a correlation", n), Hint: "at least 3"}
	case !c.category:
		if !c.fraction && levels <= fewCodes {
			notes.Add(problem.Problem{Where: where, What: fmt.Sprintf("was taken as a number, and has only %d different values", levels), Hint: "if they are codes of a category, say --category " + c.Name})
		}
		base.DF = [2]int{1, n - 2}
	case levels > dataset.MaxLevels:
		return nil, problem.Problem{Where: where, What: fmt.Sprintf("has more than %d different values, and not all are numbers", dataset.MaxLevels), Hint: "is it an identifier? mend cells that should be numbers, or choose another column"}
	case n <= levels:
		return nil, problem.Problem{Where: where, What: fmt.Sprintf("%d subjects with %d different values: there is no variance within them", n, levels), Hint: "choose a column with more subjects to a value"}
	default:
		base.Kind, base.Levels = "category", levels
		base.DF = [2]int{levels - 1, n - levels}
	}
	for a := range q {
		x := base
		x.Factor = a + 1
		if c.category {
			within := 0.0
			for _, l := range c.sorted() {
				within += l.ss[a]
			}
			x.R2 = max(0, 1-within/total.ss[a])
		} else {
			r := max(-1, min(1, total.xz[a]/math.Sqrt(total.xx*total.ss[a])))
			x.R, x.R2 = &r, r*r
		}
		if !(total.ss[a] > 0) { // a factor that nothing here tells of
			zero := 0.0
			if x.R2 = 0; x.R != nil {
				x.R = &zero
			}
		}
		x.R2 = min(x.R2, 1-1e-15) // keeps F finite
		df1, df2 := float64(x.DF[0]), float64(x.DF[1])
		x.F = x.R2 / df1 / ((1 - x.R2) / df2)
		x.P = mathext.RegIncBeta(df2/2, df1/2, 1-x.R2) // P(F > x.F)
		list = append(list, x)
	}
	return list, nil
}

// sorted returns the levels in a fixed order, that of their names.
func (c *Covariate) sorted() []*Running {
	names := make([]string, 0, len(c.Levels))
	for name := range c.Levels {
		names = append(names, name)
	}
	slices.Sort(names)
	out := make([]*Running, len(names))
	for i, name := range names {
		out[i] = c.Levels[name]
	}
	return out
}

// Adjust puts in the adjusted p values: the least of p_(j) m/j over all ranks
// j from the test's own on.
func Adjust(list []Association) {
	order := make([]int, len(list))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(list[a].P, list[b].P) })
	least := 1.0
	for rank := len(order); rank > 0; rank-- {
		x := &list[order[rank-1]]
		least = min(least, x.P*float64(len(list))/float64(rank))
		x.Adjusted = least
	}
}

func AssociationAccount(list []Association, notes fitted.Notes) *fitted.Account {
	t := figure.Table{Title: "Factors and subject columns, for this site only",
		Caption: "Explained is r² for numbers and η² for categories: the share of the factor's variance among these subjects. p is of the F test, and adjusted by Benjamini and Hochberg over all rows. These are exact numbers about this site's subjects: they are not protected and not for release.",
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
	value := struct {
		For          string        `json:"for"`
		Associations []Association `json:"associations"`
	}{"this site only: exact, not for release", list}
	return &fitted.Account{Tables: []figure.Table{t}, Notes: notes, Value: value}
}
