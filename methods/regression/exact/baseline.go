package exact

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"parley/method"
	"parley/methods/regression/fitted"
	"parley/methods/regression/glm"
)

// baseline describes the subjects by site and outcome, from the moments and counts that came before the fit and the
// sums of its first exchange; empty where sites are no longer those that gave them.
func (c coordinator) baseline(s *state, m *fitted.Model, sites []fitted.Report) *method.Baseline {
	if c.Options.Counts() { // rows are several people, whom moments count as one
		return &method.Baseline{}
	}
	b, all := &method.Baseline{}, 0.0
	for _, r := range sites {
		n, known := fitted.Subjects(c.Options, r)
		if !known {
			n = math.NaN()
		}
		if s.Moments[r.Site] == nil {
			return &method.Baseline{}
		}
		for _, cells := range c.Cells(s.Moments[r.Site]) {
			n = max(n, cells) // of times, some count in no period
		}
		b.Sites, b.Sizes, all = append(b.Sites, r.Site), append(b.Sizes, n), all+n
	}
	if len(b.Sites) != len(s.Moments) {
		return &method.Baseline{}
	}
	groups := len(b.Sites)
	for k, n := range s.ByOutcome.Rows {
		b.Outcomes = append(b.Outcomes, c.Options.Outcome.Column+" = "+c.Options.Outcome.Levels[k])
		b.Sizes = append(b.Sizes, n)
	}
	if len(b.Outcomes) > 0 && math.Abs(floats.Sum(s.ByOutcome.Rows)-all) > 0.5 { // sites left in between
		b.Outcomes, b.Sizes = nil, b.Sizes[:groups]
	}
	b.Sizes = append(b.Sizes, all)
	units := map[string]string{}
	for _, v := range c.Plan.Views {
		for _, f := range v.Features {
			units[f.Name] = f.Unit
		}
	}
	number, level, at := 0, 0, 0
	for i := range m.Encoding.Columns {
		if col := &m.Encoding.Columns[i]; len(col.Levels) == 0 {
			n, mean, sd := s.number(b, number)
			for k := range b.Outcomes {
				if own := b.Sizes[groups+k]; n[len(n)-1] == all && len(col.Knots) == 0 {
					n[groups+k], mean[groups+k] = own, col.Centre+col.Scale*s.ByOutcome.Sums[k][at]/own
				}
			}
			b.Number(col.Name, units[col.Name], n, mean, sd)
			number++
		} else {
			b.Category(col.Name, col.Levels, s.levels(b, col, level, at))
			level += len(col.Levels)
		}
		at += m.Encoding.Columns[i].Width()
	}
	if names, _ := c.Counted(); len(names) > number && names[number] == c.Options.Outcome.Column {
		n, mean, sd := s.number(b, number)
		b.Number(names[number], "", n, mean, sd)
	}
	return b
}

// number is what the moments say of a number: at each site and of all, and nothing by outcome.
func (s *state) number(b *method.Baseline, i int) (n, mean, sd []float64) {
	n, mean, sd = unknown(b), unknown(b), unknown(b)
	all := glm.NewMoments(1)
	put := func(g int, a *glm.Moments) {
		if n[g] = a.N[0]; n[g] > 0 {
			mean[g], sd[g] = a.Mean[0], math.Sqrt(a.Squares[0]/(n[g]-1))
		}
	}
	for g, site := range b.Sites {
		a := s.Moments[site]
		own := glm.Moments{N: a.N[i : i+1], Mean: a.Mean[i : i+1], Squares: a.Squares[i : i+1]}
		put(g, &own)
		all.Merge(&own)
	}
	put(len(n)-1, &all)
	return n, mean, sd
}

// levels is how many have each level of a category, whose counts and columns begin at level and at. By outcome it is
// known where nobody lacks it.
func (s *state) levels(b *method.Baseline, c *glm.Column, level, at int) (counts [][]float64) {
	groups, last, observed := len(b.Sites), len(b.Sizes)-1, 0.0
	for l := range c.Levels {
		row := unknown(b)
		row[last] = 0
		for g, site := range b.Sites {
			row[g] = s.Moments[site].Levels[level+l]
			row[last] += row[g]
		}
		observed += row[last]
		counts = append(counts, row)
	}
	for k := range b.Outcomes {
		if observed != b.Sizes[last] {
			break
		}
		reference := b.Sizes[groups+k]
		for j, name := range c.Own() {
			n := math.Round(s.ByOutcome.Sums[k][at+j])
			counts[slices.Index(c.Levels, name)][groups+k] = n
			reference -= n
		}
		if r := slices.Index(c.Levels, c.Reference); r >= 0 {
			counts[r][groups+k] = reference
		}
	}
	return counts
}

// unknown is a number that nobody knows of each group.
func unknown(b *method.Baseline) []float64 { return slices.Repeat([]float64{math.NaN()}, len(b.Sizes)) }

// byOutcome are sums over the rows that have each level of the outcome.
type byOutcome struct {
	Rows []float64   `cbor:"rows"`
	Sums [][]float64 `cbor:"sums"` // of each column of the design matrix
}

// byOutcome takes apart the sums of a site's first exchange, at which all rows have the same activation. The gradient
// of a class is then Σ [y = k] x + c_k Σ x, where c_k follows from its intercept and the rows of the class, and the
// information of the intercept has Σ x. Nothing is told where rows have weights or offsets, or outcomes are no classes.
func (c common) byOutcome(to *byOutcome, s *rowSums) {
	o, width := c.Options, c.Encoding.Width()
	classes := len(o.Outcome.Levels)
	if classes < 2 || o.Outcome.Event != "" || o.Weights != nil || c.Encoding.Offset != "" || o.Random() {
		return
	}
	if to.Rows == nil {
		to.Rows = make([]float64, classes)
		for range classes {
			to.Sums = append(to.Sums, make([]float64, width))
		}
	}
	n := float64(s.Rows)
	sums := func(k int, own float64, add func(j int, with, of float64)) {
		at := k*width + width - 1 // the intercept
		base := s.Information[glm.Packed(at, at)]
		for j := range width {
			of := n * s.Information[glm.Packed(at, k*width+j)] / base
			add(j, s.Gradient[k*width+j]-(s.Gradient[at]-own)/n*of, of)
		}
	}
	if c.classes() > 1 {
		for k, own := range s.Classes {
			to.Rows[k] += own
			sums(k, own, func(j int, with, _ float64) { to.Sums[k][j] += with })
		}
		return
	}
	own := math.Round(s.Gradient[width-1] + n/2) // as at 0 either class has a probability of ½
	to.Rows[0], to.Rows[1] = to.Rows[0]+n-own, to.Rows[1]+own
	sums(0, own, func(j int, with, of float64) {
		to.Sums[0][j], to.Sums[1][j] = to.Sums[0][j]+of-with, to.Sums[1][j]+with
	})
}
