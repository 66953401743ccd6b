// Package association is what sites say of how the factors of a shared model go with
// columns that describe subjects, and how that is combined: [Combine] pools the sites'
// own regressions, of which a [Table] has estimates and no rows.
package association

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/mat"

	"parley/problem"
)

// Format names the format of a table and its version.
const Format = "parley/associations/1"

// Minimum is how many subjects a group needs to be in a table that leaves its site: an
// estimate for fewer tells of single subjects. A regression needs as many degrees of
// freedom. It is a common threshold of statistical disclosure control.
const Minimum = 10

// Table is what one site says: exactly, or with privacy noise.
type Table struct {
	Format   string   `json:"format"`
	Program  string   `json:"program"`
	Study    string   `json:"study"`
	Model    string   `json:"model_sha256"` // of the model whose factors these are
	Adjusted []string `json:"adjusted_for"` // columns in every regression, sorted
	Subjects int      `json:"subjects"`     // with values and all columns of Adjusted
	// Reliability is, by factor, the mean over subjects of 1 − Var(x | values)/Var(x):
	// estimates are about so many times those of the factor itself.
	Reliability []float64 `json:"reliability"`
	Tests       []Test    `json:"tests"`
	// Privacy is nil of an exact table. With it, counts of subjects are noised, covariances
	// count the noise, and Reliability is that of a subject with every view.
	Privacy *guarantee `json:"privacy,omitempty"`
}

// Test is the regression of one factor's score, in standard deviations of the factor in
// the study, on one column and what was adjusted for.
type Test struct {
	Column   string `json:"column"`
	Factor   int    `json:"factor"` // from 1
	Subjects int    `json:"subjects"`
	DF       int    `json:"degrees_of_freedom"` // of the residuals
	// Reference is the level that the others are compared with, and Levels are those,
	// with their subjects; both are empty for a number.
	Reference *Level  `json:"reference,omitempty"`
	Levels    []Level `json:"levels,omitempty"`
	// Estimates are the slope on a number, for one unit of it, or the differences of
	// the levels from the reference, and Covariance is theirs.
	Estimates  []float64   `json:"estimates"`
	Covariance [][]float64 `json:"covariance"`
}

// Level is one of the values of a category.
type Level struct {
	Name     string `json:"name"`
	Subjects int    `json:"subjects"`
}

// Encode writes the table: the same table always gives the same bytes.
func (t *Table) Encode() ([]byte, error) {
	data, err := json.MarshalIndent(t, "", " ")
	if err != nil {
		return nil, fmt.Errorf("writing a table of associations: %w", err)
	}
	return append(data, '\n'), nil
}

// Read reads a table that came from elsewhere and says what is wrong with it.
func Read(data []byte) (*Table, error) {
	t := new(Table)
	if err := json.Unmarshal(data, t); err != nil || t.Format != Format {
		return nil, problem.Problem{What: fmt.Sprintf("this is not a table of associations of format %q", Format), Hint: "parley model associate MODEL DATA --with COLUMN --share FILE.json writes one"}
	}
	type key struct {
		column string
		factor int
	}
	seen := map[key]bool{}
	for i := range t.Tests {
		k := key{t.Tests[i].Column, t.Tests[i].Factor}
		if seen[k] {
			return nil, fmt.Errorf("column %s, factor %d: tested twice", k.column, k.factor)
		}
		seen[k] = true
		if err := t.Tests[i].check(len(t.Reliability)); err != nil {
			return nil, fmt.Errorf("column %s, factor %d: %w", t.Tests[i].Column, t.Tests[i].Factor, err)
		}
	}
	return t, nil
}

// largest keeps what is made of a table's numbers finite.
const largest = 1e100

func (t *Test) check(factors int) error {
	n := len(t.Levels)
	if t.Reference == nil {
		n++
	}
	if t.Factor < 1 || t.Factor > factors || t.DF < 1 || t.Subjects <= t.DF || n == 0 || len(t.Levels) > 0 && t.Reference == nil ||
		len(t.Estimates) != n || len(t.Covariance) != n {
		return fmt.Errorf("its numbers do not fit together")
	}
	for _, x := range t.Estimates {
		if !(math.Abs(x) < largest) {
			return fmt.Errorf("an estimate is %v", x)
		}
	}
	cov := mat.NewSymDense(n, nil)
	for i, row := range t.Covariance {
		if len(row) != n {
			return fmt.Errorf("its numbers do not fit together")
		}
		for k := range i + 1 {
			cov.SetSym(i, k, row[k])
			if row[k] != t.Covariance[k][i] || !(math.Abs(row[k]) < largest) || i == k && !(row[k] > 1/largest) {
				return fmt.Errorf("a covariance is not one")
			}
		}
	}
	var chol mat.Cholesky
	if !chol.Factorize(cov) {
		return fmt.Errorf("a covariance is not positive definite")
	}
	return nil
}

// Combined is one effect over all sites that tell of it.
type Combined struct {
	Column    string `json:"column"`
	Factor    int    `json:"factor"`
	Level     string `json:"level,omitempty"`     // of a category, compared with
	Reference string `json:"reference,omitempty"` // this one
	Sites     int    `json:"sites"`
	Subjects  int    `json:"subjects"`
	pooled
	CommonAdjusted float64 `json:"common_p_adjusted"`
	RandomAdjusted float64 `json:"random_p_adjusted"`
}

// Combine pools what the sites' tables say. The tables are of one model and adjusted for
// the same columns; names are for errors. P values are adjusted over all effects
// ([BenjaminiHochberg]), those of either model by themselves. Effects that fewer than two
// sites tell of are left out and named in notes.
func Combine(names []string, tables []*Table) (list []Combined, notes problem.List, err error) {
	if len(tables) < 2 {
		return nil, nil, problem.Problem{What: "one table alone cannot be combined", Hint: "give the tables of two sites or more"}
	}
	for i, t := range tables {
		first := tables[0]
		if t.Model != first.Model {
			return nil, nil, problem.Problem{File: names[i], What: fmt.Sprintf("its factors are those of another model than in %s", names[0]), Hint: "let every site use the same model.json, and the same rotation of it"}
		}
		if !slices.Equal(t.Adjusted, first.Adjusted) {
			return nil, nil, problem.Problem{File: names[i], What: fmt.Sprintf("it is adjusted for [%s], and %s for [%s]", strings.Join(t.Adjusted, ", "), names[0], strings.Join(first.Adjusted, ", ")), Hint: "let every site use the same --adjust"}
		}
	}
	if err := checkGuarantees(names, tables); err != nil {
		return nil, nil, err
	}
	for _, key := range effects(tables) {
		c, err := combine(key, names, tables)
		if err != nil {
			return nil, nil, err
		}
		if c.Sites < 2 {
			notes.Add(problem.Problem{Where: "column " + key.column, What: fmt.Sprintf("%s was left out for factor %d: fewer than two sites tell of it", key.what(), key.factor)})
			continue
		}
		list = append(list, c)
	}
	common, random := make([]float64, len(list)), make([]float64, len(list))
	for i, c := range list {
		common[i], random[i] = c.Common.P, c.Random.P
	}
	common, random = BenjaminiHochberg(common), BenjaminiHochberg(random)
	for i := range list {
		list[i].CommonAdjusted, list[i].RandomAdjusted = common[i], random[i]
	}
	return list, append(notes, uneven(tables)...), nil
}

// effect names one number that sites tell of: a slope, or a difference of two levels.
type effect struct {
	column           string
	factor           int
	level, reference string
}

func (e effect) what() string {
	if e.reference == "" {
		return "the slope"
	}
	return e.level + " against " + e.reference
}

// effects lists what any site tells of, in the order of the tables. Levels of a category
// are compared with the one that most sites have; of those, with the most subjects. Sites
// with a protocol have agreed on it.
func effects(tables []*Table) (list []effect) {
	type key struct {
		column string
		factor int
	}
	sites, subjects := map[key]map[string]int{}, map[key]map[string]int{}
	var order []key
	for _, t := range tables {
		for _, x := range t.Tests {
			k := key{x.Column, x.Factor}
			if sites[k] == nil {
				sites[k], subjects[k] = map[string]int{}, map[string]int{}
				order = append(order, k)
			}
			if x.Reference == nil {
				continue
			}
			if t.Privacy != nil {
				sites[k][x.Reference.Name] += len(tables) // more than any other
			}
			for _, l := range append([]Level{*x.Reference}, x.Levels...) {
				sites[k][l.Name]++
				subjects[k][l.Name] += l.Subjects
			}
		}
	}
	for _, k := range order {
		var levels []string
		for l := range sites[k] {
			levels = append(levels, l)
		}
		if len(levels) == 0 {
			list = append(list, effect{column: k.column, factor: k.factor})
			continue
		}
		slices.SortFunc(levels, func(a, b string) int {
			return cmp.Or(cmp.Compare(sites[k][b], sites[k][a]), cmp.Compare(subjects[k][b], subjects[k][a]), cmp.Compare(a, b))
		})
		rest := slices.Clone(levels[1:])
		slices.Sort(rest)
		for _, l := range rest {
			list = append(list, effect{k.column, k.factor, l, levels[0]})
		}
	}
	return list
}

// combine pools one effect over the sites that tell of it.
func combine(e effect, names []string, tables []*Table) (c Combined, err error) {
	c = Combined{Column: e.column, Factor: e.factor, Level: e.level, Reference: e.reference}
	var estimates, variances []float64
	for i, t := range tables {
		for _, x := range t.Tests {
			if x.Column != e.column || x.Factor != e.factor {
				continue
			}
			if (x.Reference == nil) != (e.reference == "") {
				return c, problem.Problem{File: names[i], Where: "column " + e.column, What: "is a number at some sites and a category at others", Hint: "let every site say --category " + e.column}
			}
			estimate, variance, subjects, ok := x.contrast(e.level, e.reference)
			if !ok {
				continue
			}
			estimates, variances = append(estimates, estimate), append(variances, variance)
			c.Sites++
			c.Subjects += subjects
		}
	}
	if c.Sites >= 2 {
		c.pooled = pool(estimates, variances)
	}
	return c, nil
}

// contrast returns the slope, or the difference of two levels whichever the site took
// for its reference, with its variance and the subjects that it is about.
func (t *Test) contrast(level, reference string) (estimate, variance float64, subjects int, ok bool) {
	if t.Reference == nil {
		return t.Estimates[0], t.Covariance[0][0], t.Subjects, true
	}
	at := func(name string) int { return slices.IndexFunc(t.Levels, func(l Level) bool { return l.Name == name }) }
	a, b := at(level), at(reference)
	if a < 0 && t.Reference.Name != level || b < 0 && t.Reference.Name != reference {
		return 0, 0, 0, false
	}
	for _, i := range []int{a, b} {
		if i < 0 { // the site's own reference, from which the estimates are
			subjects += t.Reference.Subjects
			continue
		}
		subjects += t.Levels[i].Subjects
		variance += t.Covariance[i][i]
	}
	if a >= 0 {
		estimate += t.Estimates[a]
	}
	if b >= 0 {
		estimate -= t.Estimates[b]
	}
	if a >= 0 && b >= 0 {
		variance -= 2 * t.Covariance[a][b]
	}
	return estimate, variance, subjects, variance > 0
}

// uneven notes factors whose scores are much surer at some sites than at others.
func uneven(tables []*Table) (notes problem.List) {
	for a := range tables[0].Reliability {
		low, high := 1.0, 0.0
		for _, t := range tables {
			if a < len(t.Reliability) {
				low, high = min(low, t.Reliability[a]), max(high, t.Reliability[a])
			}
		}
		if high-low > 0.2 {
			notes.Add(problem.Problem{Where: fmt.Sprintf("factor %d", a+1), What: fmt.Sprintf("its scores have reliabilities from %.2f to %.2f at the sites, which weakens estimates unequally and looks like heterogeneity", low, high)})
		}
	}
	return notes
}
