package association

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"parley/figure"
	"parley/privacy"
	"parley/privacy/account"
	"parley/problem"
)

// guarantee is what stands in a table that was made of a noised sum.
type guarantee struct {
	Protocol  string            `json:"protocol_sha256"` // and of the model
	Site      string            `json:"site"`
	Sites     int               `json:"sites"` // tables that are combined at least
	Adjacency account.Adjacency `json:"adjacency"`
	Epsilon   float64           `json:"epsilon"`
	Delta     float64           `json:"delta"`
	// NoiseSD is the standard deviation of the noise in the number of subjects.
	NoiseSD float64 `json:"subjects_noise_sd"`
}

// standsOut is by how many times the noise's standard deviation the smallest eigenvalue of the
// columns' products must stand out: what is left of the estimates' bias is then of the order
// of 1/standsOut², 4 %.
const standsOut = 5

// tests are what follows from a site's noised sum: by ordinary least squares on the
// sums as if they were exact, with covariances that count the noise to first order. Counts
// of subjects are noised, too. It all follows from the noised sum, and costs no privacy.
// What the noise hides has no test, and is named in notes.
//
// Let S be the sum and E its noise, symmetric, with independent entries of variance d² on
// the diagonal and d²/2 beside it. With w = (−β, 1) on the terms of a regression and on the
// score, the normal equations are (S w)ₓ = 0, and their noise (E w)ₓ has covariance
// d²/2 (|w|² I + β βᵀ). So Cov(β̂) = σ² A⁻¹ + d²/2 A⁻¹ (|w|² I + β βᵀ) A⁻¹, A being the terms'
// own products and σ² the residual variance.
func (p *Protocol) tests(n *privacy.Noised, factors int) (tests []Test, subjects int, notes problem.List) {
	tests = []Test{}
	s := &noisedSum{Protocol: p, factors: factors, entries: n.Floats(0), size: p.terms() + factors, sd: n.SD()}
	subjects = s.subjects()
	for i, c := range p.Columns {
		if slices.Contains(p.Adjust, c.Name) {
			continue
		}
		r := s.regression(i)
		if r == nil {
			notes.Add(problem.Problem{Where: "column " + c.Name, What: "was left out: the noise hides how much it varies here",
				Hint: "a larger epsilon, fewer columns, a narrower range, levels merged, or more subjects; what was charged stays charged"})
			continue
		}
		for a := range factors {
			tests = append(tests, r.test(a))
		}
	}
	return tests, subjects, notes
}

// noisedSum is Σ t tᵀ with noise.
type noisedSum struct {
	*Protocol
	factors, size int
	entries       []float64 // the upper triangle by rows
	sd            float64   // of the noise on the diagonal
}

func (s *noisedSum) at(i, k int) float64 {
	i, k = min(i, k), max(i, k)
	return s.entries[i*s.size-i*(i-1)/2+k-i]
}

// places returns where the terms of a column are.
func (s *noisedSum) places(column int) (list []int) {
	at := 1
	for i := range column {
		at += s.Columns[i].terms()
	}
	for k := range s.Columns[column].terms() {
		list = append(list, at+k)
	}
	return list
}

// subjects is the noised number of subjects.
func (s *noisedSum) subjects() int { return whole(s.at(0, 0)) }

func whole(x float64) int { return int(math.Round(min(max(x, 0), 1<<40))) }

// count is the noised number of subjects with a level of a column.
func (s *noisedSum) count(column, level int) int {
	places := s.places(column)
	if level > 0 {
		return whole(s.at(0, places[level-1]))
	}
	n := s.at(0, 0)
	for _, i := range places {
		n -= s.at(0, i)
	}
	return whole(n)
}

// noisedRegression is that of the factors on a column and what is adjusted for.
type noisedRegression struct {
	*noisedSum
	column, first int   // first is the place of the tested terms among terms
	terms         []int // places of the intercept, what is adjusted for, and the column
	inverse       *mat.SymDense
}

// regression prepares the test of a column; nil if the noise hides its terms.
func (s *noisedSum) regression(column int) *noisedRegression {
	r := &noisedRegression{noisedSum: s, column: column, terms: []int{0}}
	for i, c := range s.Columns {
		if slices.Contains(s.Adjust, c.Name) {
			r.terms = append(r.terms, s.places(i)...)
		}
	}
	r.first = len(r.terms)
	r.terms = append(r.terms, s.places(column)...)
	k := len(r.terms)
	a := mat.NewSymDense(k, nil)
	for i, x := range r.terms {
		for j, y := range r.terms[:i+1] {
			a.SetSym(i, j, s.at(x, y))
		}
	}
	var eigen mat.EigenSym
	if !eigen.Factorize(a, false) || !(slices.Min(eigen.Values(nil)) > standsOut*s.sd) || s.subjects()-k < Minimum {
		return nil
	}
	var chol mat.Cholesky
	r.inverse = mat.NewSymDense(k, nil)
	if !chol.Factorize(a) || chol.InverseTo(r.inverse) != nil {
		return nil
	}
	return r
}

// test is the regression of one factor, from 0.
func (r *noisedRegression) test(factor int) Test {
	k, z := len(r.terms), r.size-r.factors+factor
	b, beta := mat.NewVecDense(k, nil), mat.NewVecDense(k, nil)
	for i, x := range r.terms {
		b.SetVec(i, r.at(x, z))
	}
	beta.MulVec(r.inverse, b)
	n := r.subjects()
	out := Test{Column: r.Columns[r.column].Name, Factor: factor + 1, Subjects: n, DF: n - k}
	rest := max(0, r.at(z, z)-mat.Dot(beta, b)) // the residual sum of squares
	noise := mat.NewSymDense(k, nil)
	noise.SymOuterK(1, mat.NewDense(k, 1, slices.Clone(beta.RawVector().Data)))
	for i := range k {
		noise.SetSym(i, i, noise.At(i, i)+1+mat.Dot(beta, beta))
	}
	var left, cov mat.Dense
	left.Mul(r.inverse, noise)
	cov.Mul(&left, r.inverse)
	unit := radius(r.factors) / r.longest() // from what was summed to scores
	c := r.Columns[r.column]
	if c.Range != nil {
		unit /= c.Range[1]/2 - c.Range[0]/2
	}
	for i := r.first; i < k; i++ {
		out.Estimates = append(out.Estimates, unit*beta.AtVec(i))
		var row []float64
		for j := r.first; j < k; j++ {
			lo, hi := min(i, j), max(i, j) // the same from both sides
			row = append(row, unit*unit*(rest/float64(out.DF)*r.inverse.At(lo, hi)+r.sd*r.sd/2*cov.At(lo, hi)))
		}
		out.Covariance = append(out.Covariance, row)
	}
	for l, name := range c.Levels {
		level := Level{Name: name, Subjects: r.count(r.column, l)}
		if l == 0 {
			out.Reference = &level
		} else {
			out.Levels = append(out.Levels, level)
		}
	}
	return out
}

// checkGuarantees refuses tables that do not belong together: of exact tests and noised
// ones, of other protocols, twice of one site, or too few.
func checkGuarantees(names []string, tables []*Table) error {
	first, seen := tables[0].Privacy, map[string]string{}
	for i, t := range tables {
		switch g := t.Privacy; {
		case (g == nil) != (first == nil):
			return problem.Problem{File: names[i], What: fmt.Sprintf("of this table and %s one is exact and one has privacy noise", names[0]), Hint: "let every site share in the same way"}
		case g == nil:
		case g.Protocol != first.Protocol:
			return problem.Problem{File: names[i], What: fmt.Sprintf("it was made by another protocol than %s", names[0]), Hint: "let every site use the same --protocol"}
		case seen[g.Site] != "":
			return problem.Problem{File: names[i], What: fmt.Sprintf("it is of site %s, as %s is", g.Site, seen[g.Site]), Hint: "give each site's table once"}
		case len(tables) < g.Sites:
			return problem.Problem{File: names[i], What: fmt.Sprintf("the sites agreed that at least %d tables are combined, and here are %d", g.Sites, len(tables)), Hint: "wait for the others"}
		default:
			seen[g.Site] = names[i]
		}
	}
	return nil
}

// Figure shows a noised table's estimates.
func (t *Table) Figure() figure.Table {
	out := figure.Table{Title: "Slopes, and differences between levels, with privacy noise",
		Caption: "In standard deviations of the factor in the study: for one unit of a number, or against the first level. Counts are noised, and standard errors count the noise.",
		Columns: []figure.Column{{Name: "column"}, {Name: "effect"}, {Name: "factor", Format: figure.Count}, {Name: "estimate"}, {Name: "standard error"}}}
	for _, x := range t.Tests {
		for i, b := range x.Estimates {
			what := "slope"
			if x.Reference != nil {
				what = x.Levels[i].Name + " − " + x.Reference.Name
			}
			out.Add(x.Column, what, x.Factor, b, math.Sqrt(x.Covariance[i][i]))
		}
	}
	return out
}
