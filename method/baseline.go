package method

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"parley/figure"
)

// Baseline describes the subjects of a study without noise at each site, with each outcome, and of all: what journals
// have as Table 1. It is made of sums that sites have sent, and shows no cell of fewer than five people, nor what would
// give one away by a difference: see [hide].
type Baseline struct {
	Sites    []string  // none, or one, where only a total is known, or there are too many for a page
	Outcomes []string  // such as death = 1; none where outcomes are not classes
	Sizes    []float64 // subjects of each site, of each outcome, and of all; NaN where nobody knows
	features []described
}

// described is a feature, with its numbers in the order of Sizes. NaN is not known.
type described struct {
	name     string
	levels   []string    // of a category
	counts   [][]float64 // by level; of a number, how many have it
	mean, sd []float64   // of a number
	few      [][]bool    // what the table does not show: see [Baseline.few]
}

const (
	// fewestShown is the smallest cell that a table of people shows.
	fewestShown = 5
	// MostSites is how many sites a page has columns for.
	MostSites = 8
)

// Number adds a number: how many have it, its mean and its standard deviation.
func (b *Baseline) Number(name, unit string, n, mean, sd []float64) {
	if unit != "" {
		name += ", " + unit
	}
	b.features = append(b.features, described{name: name, counts: [][]float64{n}, mean: mean, sd: sd})
}

// Category adds how many have each level.
func (b *Baseline) Category(name string, levels []string, counts [][]float64) {
	b.features = append(b.features, described{name: name, levels: levels, counts: counts})
}

// Table is the table; nil without features.
func (b *Baseline) Table() *figure.Table {
	if len(b.features) == 0 {
		return nil
	}
	shown, names := b.shown()
	t := &figure.Table{ID: "baseline", Title: "Subjects by site",
		Columns: figure.TextColumns(append([]string{"", ""}, names...)...)}
	if len(b.Outcomes) > 0 {
		t.Title += " and outcome"
	}
	add := func(name, level string, cell func(g int) string) {
		row := []any{name, level}
		for _, g := range shown {
			row = append(row, cell(g))
		}
		t.Add(row...)
	}
	hidden := false
	add("subjects", "", func(g int) string { return figure.Count.Text(b.Sizes[g]) })
	for i := range b.features {
		d := &b.features[i]
		few := b.few(d, shown)
		d.few = few
		hidden = hidden || slices.ContainsFunc(few, func(row []bool) bool {
			return slices.ContainsFunc(shown, func(g int) bool { return row[g] })
		})
		if d.levels == nil {
			add(d.name, "mean ± sd", func(g int) string { return d.value(g, few[0][g]) })
		}
		for l, level := range d.levels {
			name := ""
			if l == 0 {
				name = d.name
			}
			add(name, level, func(g int) string {
				of := d.observed(g)
				if slices.ContainsFunc(few, func(row []bool) bool { return row[g] }) {
					of = 0 // a share would tell in how many it was observed, and so what is hidden
				}
				return share(d.counts[l][g], of, few[l][g])
			})
		}
		last := len(few) - 1
		if lacks := b.lacking(d); slices.ContainsFunc(lacks, func(n float64) bool { return n > 0 }) {
			add("", "missing", func(g int) string { return share(lacks[g], b.Sizes[g], few[last][g]) })
		}
	}
	t.Caption = "In the data's own units; sd is the standard deviation. Shares of levels are of those in whom it was " +
		"observed."
	if len(b.Outcomes) > 0 {
		t.Caption += " By outcome there are means without standard deviations: sites send no squares by outcome."
	}
	if hidden {
		t.Caption += fmt.Sprintf(" – is a number of fewer than %d people, or one that would give such a number away.",
			fewestShown)
	}
	if len(b.Sites) > MostSites {
		t.Caption += fmt.Sprintf(" Sites are not listed, as there are more than %d.", MostSites)
	}
	return t
}

// Hidden lists the levels, as feature=level, whose number at all sites together the table does not show.
func (b *Baseline) Hidden() (names []string) {
	for _, d := range b.features {
		for l, level := range d.levels {
			if d.few != nil && d.few[l][len(b.Sizes)-1] {
				names = append(names, d.name+"="+level)
			}
		}
	}
	return names
}

// shown are the places of the groups that the table has, and their names.
func (b *Baseline) shown() (groups []int, names []string) {
	for g, name := range slices.Concat(b.Sites, b.Outcomes, []string{"all"}) {
		if site := g < len(b.Sites); !site || len(b.Sites) > 1 && len(b.Sites) <= MostSites {
			groups, names = append(groups, g), append(names, name)
		}
	}
	return groups, names
}

// few says which cells the table may not show: of each level, or of the number itself, and at last of those who lack
// it.
func (b *Baseline) few(d *described, shown []int) [][]bool {
	cells := append(slices.Clone(d.counts), b.lacking(d))
	groups := len(b.Sizes)
	var columns [][]int
	for _, g := range shown {
		if !math.IsNaN(b.Sizes[g]) {
			columns = append(columns, make([]int, len(cells)))
			for r := range cells {
				columns[len(columns)-1][r] = r*groups + g
			}
		}
	}
	few := slices.Collect(slices.Chunk(hide(slices.Concat(cells...), append(b.lines(len(cells), shown), columns...)),
		groups))
	if d.levels == nil { // beside it, how many people its mean tells of
		people := slices.Clone(d.counts[0])
		part := func(g int) float64 { return d.mean[g] - math.Floor(d.mean[g]) }
		all, p := people[groups-1], part(groups-1)
		// two values next to each other, as 0 and 1
		if sd := d.sd[groups-1]; math.Abs(sd*sd*(all-1)-all*p*(1-p)) < 1e-9*all {
			for g, n := range people {
				if rarer := math.Round(n * min(part(g), 1-part(g))); rarer > 0 {
					people[g] = rarer
				}
			}
		}
		few[0] = hide(people, b.lines(1, shown))
	}
	return few
}

// lines are the cells that add up to a number that readers know: those of the sites shown, and those of the outcomes,
// are together those of all.
func (b *Baseline) lines(rows int, shown []int) (lines [][]int) {
	groups, all := len(b.Sizes), len(b.Sizes)-1
	for r := range rows {
		sites, outcomes := []int{r*groups + all}, []int{r*groups + all}
		for _, g := range shown {
			if g < len(b.Sites) {
				sites = append(sites, r*groups+g)
			} else if g < all {
				outcomes = append(outcomes, r*groups+g)
			}
		}
		for _, line := range [][]int{sites, outcomes} {
			if len(line) > 1 {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// observed is how many of a group have a level, or a number.
func (d *described) observed(g int) (n float64) {
	for _, row := range d.counts {
		n += row[g]
	}
	return n
}

// lacking is how many of each group lack the feature.
func (b *Baseline) lacking(d *described) (n []float64) {
	for g, size := range b.Sizes {
		n = append(n, size-d.observed(g))
	}
	return n
}

// value is a mean with a standard deviation, to three digits of the latter.
func (d *described) value(g int, hidden bool) string {
	if hidden {
		return "–"
	}
	m, sd := d.mean[g], d.sd[g]
	if math.IsNaN(m) || d.counts[0][g] == 0 {
		return ""
	}
	all := d.sd[len(d.sd)-1]
	if !(all > 0) || math.Abs(m) >= 1e7 {
		return figure.General.Text(m)
	}
	digits := min(max(2-int(math.Floor(math.Log10(all))), 0), 12)
	text := strconv.FormatFloat(m, 'f', digits, 64)
	if !math.IsNaN(sd) {
		text += " ± " + strconv.FormatFloat(sd, 'f', digits, 64)
	}
	return strings.Replace(text, "-", "−", 1)
}

// share is a number of people, and which share of all it is.
func share(n, all float64, hidden bool) string {
	switch {
	case hidden:
		return "–"
	case math.IsNaN(n):
		return ""
	case n == 0 || !(all > 0):
		return figure.Count.Text(n)
	}
	return fmt.Sprintf("%s (%.1f %%)", figure.Count.Text(n), 100*n/all)
}

// hide says which of some numbers of people must not be shown: those of fewer than [fewestShown], and so many others
// that none of these follows from what is shown. Readers know the sum of each line, which lists cells, or the
// difference of its first cell and the rest. In each line with something hidden two cells or more are, of enough people
// together; and no hidden cell is determined by the lines, as linear equations. NaN is what nobody knows.
//
// Suppression of this kind: Willenborg and de Waal, Elements of Statistical Disclosure Control, 2001, chapter 4.
func hide(counts []float64, lines [][]int) []bool {
	hidden := make([]bool, len(counts))
	for i, n := range counts {
		hidden[i] = n > 0 && n < fewestShown
	}
	lines = slices.DeleteFunc(lines, func(line []int) bool {
		return slices.ContainsFunc(line, func(i int) bool { return math.IsNaN(counts[i]) })
	})
	// another hides the next cell of a line: the smallest that is not empty, or an empty one.
	another := func(line []int) bool {
		best := -1
		for _, i := range line {
			if !hidden[i] && (best < 0 || counts[i] > 0 && (counts[best] == 0 || counts[i] < counts[best])) {
				best = i
			}
		}
		if best >= 0 {
			hidden[best] = true
		}
		return best >= 0
	}
	for again := true; again; {
		again = false
		for _, line := range lines {
			k, people := 0, 0.0
			for _, i := range line {
				if hidden[i] {
					k, people = k+1, people+counts[i]
				}
			}
			if k > 0 && (k == 1 || people < fewestShown) {
				again = another(line) || again
			}
		}
		if again {
			continue
		}
		for _, i := range determined(hidden, lines) {
			for _, line := range lines {
				if slices.Contains(line, i) {
					again = another(line) || again
				}
			}
		}
	}
	return hidden
}

// determined are the hidden cells that follow from the sums of lines: in their equations, brought to reduced
// row echelon form, they stand alone.
func determined(hidden []bool, lines [][]int) (cells []int) {
	var rows [][]float64
	for _, line := range lines {
		row, any := make([]float64, len(hidden)), false
		for _, i := range line {
			if hidden[i] {
				row[i], any = 1, true
			}
		}
		if any {
			rows = append(rows, row)
		}
	}
	next := 0
	for i := range hidden {
		pivot := next + slices.IndexFunc(rows[next:], func(row []float64) bool { return math.Abs(row[i]) > 1e-9 })
		if pivot < next {
			continue
		}
		rows[next], rows[pivot] = rows[pivot], rows[next]
		for r, row := range rows {
			if f := row[i] / rows[next][i]; r != next && f != 0 {
				for j := range row {
					row[j] -= f * rows[next][j]
				}
			}
		}
		next++
	}
	for _, row := range rows[:next] {
		alone := -1
		for i, x := range row {
			if math.Abs(x) > 1e-9 {
				if alone >= 0 {
					alone = -1
					break
				}
				alone = i
			}
		}
		if alone >= 0 {
			cells = append(cells, alone)
		}
	}
	return cells
}
