package private

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/floats"

	"parley/figure"
	"parley/method"
	"parley/methods/regression/glm"
)

// group is who a column of Table 1 describes, by what was released of them: totals, and second histograms of numbers.
type group struct {
	name           string
	totals, counts *released
}

// estimate is what noised sums say, and the standard deviation of what may be wrong with it; or why they say nothing.
type estimate struct {
	value, off float64
	not        string
}

const (
	unreleased, drowned = "not released", "hidden by noise"
	// within is how many standard deviations nine tenths of the draws of noise lie within.
	within = 1.645
	// seen is how many standard deviations of its noise a number of people is, at least, for a share or a mean of them.
	seen = 5
)

// baseline describes the subjects by what was released for the fit: Table 1, as of [method.Baseline] without noise.
// Counts and histograms have every row as one, however far its numbers lie, and nothing is charged for a second look at
// them. It is nil if all sites have left.
func (c coordinator) baseline(s *state, e *glm.Encoding) *figure.Table {
	groups := c.groups(s)
	if groups == nil {
		return nil
	}
	t := &figure.Table{ID: "baseline", Title: "Subjects", Columns: figure.TextColumns("", ""),
		Caption: "From the noised counts and histograms of the fit, in the data's own units; ± is one standard " +
			"deviation of what noise and bins leave open. A number beyond the limits counts as the nearer one."}
	for _, g := range groups {
		t.Columns = append(t.Columns, figure.Column{Name: g.name})
	}
	of := "" // what the row before is of
	add := func(name, level, unit string, cell func(g *group) estimate) {
		row := []any{name, level}
		if name == of {
			row[0] = ""
		}
		of = name
		for i := range groups {
			row = append(row, cell(&groups[i]).text(unit))
		}
		t.Add(row...)
	}
	number := 0
	addNumber := func(name string) {
		k := number
		number++
		limits := ""
		if s.Window != nil {
			edges := c.described(s, k)
			limits = fmt.Sprintf(" within %.3g … %.3g", edges[0], edges[bins])
		}
		for i, what := range []string{"mean", "sd"} {
			add(name, what+limits, "", func(g *group) estimate { return c.describe(s, g, k)[i] })
		}
	}
	add("subjects", "", "", func(g *group) estimate {
		n, variance := c.columns.rows(g.totals.Values, g.totals.Variance)
		return estimate{value: max(n, 0), off: math.Sqrt(variance)}
	})
	at := 0
	for i := range e.Columns {
		col := &e.Columns[i]
		first, own := at, col.Own()
		if at += col.Width(); len(col.Levels) == 0 {
			addNumber(col.Name)
		}
		for _, level := range col.Levels {
			k := slices.Index(own, level)
			if k < 0 && c.Options.Missing == glm.Neutral { // the reference, which all others leave
				level += " or missing"
			}
			add(col.Name, level, " %", func(g *group) estimate {
				if k >= 0 {
					return c.columns.shareOf(g, g.totals.Values[first+k], 1, 0).percent()
				}
				x := c.columns.shareOf(g, floats.Sum(g.totals.Values[first:at]), len(own), 0)
				x.value = 1 - x.value
				return x.percent()
			})
		}
	}
	if y := c.Options.Outcome; c.columns.linear && c.Options.Offset == "" {
		addNumber(y.Column)
	} else if n := c.columns.totalsLen(); c.columns.counts() > 1 {
		for k, level := range y.Levels {
			add(y.Column, level, " %", func(g *group) estimate {
				return c.columns.shareOf(g, g.totals.Values[n-2+k], 1, 1).percent()
			})
		}
	}
	return t
}

// groups are the sites, where a page has room for them, the classes of which totals are apart, and all.
func (c coordinator) groups(s *state) (all []group) {
	totals, counts, n := c.pooled(s, taskTotals), c.pooled(s, taskHistogram), c.columns.totalsLen()
	if totals.Values == nil {
		return nil
	}
	if sites := c.Plan.Sites; len(sites) > 1 && len(sites) <= method.MostSites {
		for _, site := range sites {
			if own := s.Sums[taskTotals][site]; own != nil {
				all = append(all, group{site, own.whole(n), s.Sums[taskHistogram][site]})
			}
		}
	}
	if c.columns.classes > 1 {
		for k, level := range c.Options.Outcome.Levels {
			all = append(all, group{c.Options.Outcome.Column + " = " + level, totals.part(k, n), nil})
		}
	}
	return append(all, group{"all", totals.whole(n), &counts})
}

// shareOf is that of the rows which a sum counts, of so many noised entries, of which so many count all rows, too.
func (c *columns) shareOf(g *group, sum float64, of, shared int) (x estimate) {
	rows, variance := c.rows(g.totals.Values, g.totals.Variance)
	if !(rows > seen*math.Sqrt(variance)) {
		return estimate{not: drowned}
	}
	x.value = sum / rows
	x.off = math.Sqrt(g.totals.Variance*(float64(of)-2*x.value*float64(shared))+x.value*x.value*variance) / rows
	return x
}

// percent is of a share, which is from 0 to 1.
func (x estimate) percent() estimate {
	if within*x.off > 0.5 {
		x.not = drowned
	}
	return estimate{100 * min(max(x.value, 0), 1), 100 * x.off, x.not}
}

// describe tells mean and standard deviation of number k by its second histogram. A row lies anywhere in its bin, and
// all may at the same place: see binned.
func (c coordinator) describe(s *state, g *group, k int) [2]estimate {
	if s.Window == nil || g.counts == nil || g.counts.Values == nil {
		return [2]estimate{{not: unreleased}, {not: unreleased}}
	}
	counts, noise := g.counts.part(k, bins).Values, g.counts.sd()
	n := floats.Sum(counts)
	if !(n > seen*noise*math.Sqrt(bins)) {
		return [2]estimate{{not: drowned}, {not: drowned}}
	}
	edges := c.described(s, k)
	middle, d, width := make([]float64, bins), make([]float64, bins), 0.0 // of bins, on average over rows
	for bin := range middle {
		middle[bin] = (edges[bin] + edges[bin+1]) / 2
		width += max(counts[bin]/n, 1./bins) * (edges[bin+1] - edges[bin])
	}
	mean := estimate{value: min(max(floats.Dot(counts, middle)/n, edges[0]), edges[bins])}
	for bin, x := range middle {
		d[bin] = (x - mean.value) * (x - mean.value)
	}
	square := floats.Dot(counts, d) / n
	mean.off = math.Hypot(noise*math.Sqrt(floats.Sum(d))/n, binned*width)
	floats.AddConst(-square, d)
	square -= width * width / 12 // Sheppard's correction
	near := binned / math.Sqrt2 * width
	off := within * math.Hypot(noise*floats.Norm(d, 2)/n, 2*near*max(math.Sqrt(max(square, 0)), near))
	low, high := math.Sqrt(max(square-off, 0)), math.Sqrt(max(square+off, 0)) // of its root, too, if it is hardly known
	sd := estimate{value: (low + high) / 2, off: (high - low) / 2 / within}
	if high == 0 {
		sd.not = drowned
	}
	return [2]estimate{mean, sd}
}

// described are the edges of bins of number k, of which those far outside count as the nearest.
func (c coordinator) described(s *state, k int) []float64 {
	centre, reach := unit(s.Window, k)
	edges := c.columns.told[k].edges(centre, reach, true)
	for i, x := range edges {
		edges[i] = min(max(x, centre-2*reach), centre+2*reach)
	}
	return edges
}

// binned is how far from the middle of their bins all rows may be, in its width: whole numbers often are at its end.
const binned = 0.5

// text is the value ± its standard deviation, to two digits of the latter.
func (x estimate) text(unit string) string {
	if x.not != "" {
		return x.not
	}
	digits := min(max(1-int(math.Floor(math.Log10(x.off))), 0), 12)
	return strings.Replace(fmt.Sprintf("%s ± %s%s", strconv.FormatFloat(x.value, 'f', digits, 64),
		strconv.FormatFloat(x.off, 'f', digits, 64), unit), "-", "−", 1)
}
