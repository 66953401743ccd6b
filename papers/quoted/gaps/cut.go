package gaps

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"parley/dataset"
	"parley/methods/factors/ppca"
)

// cut is a data set cut into sites, in units of the training rows' standard deviations: every
// fifth site, counted from the last, takes no part, and a fifth of the rows of all others is
// held out.
type cut struct {
	layout      ppca.Layout
	train, test [][]ppca.Block  // by site
	rows, held  [][][][]float64 // their rows of views, by site
	newTest     []ppca.Block    // of the sites that took no part
	newRows     [][][]float64
}

// division says how rows are cut into sites.
type division struct {
	sites        int
	seed         uint64
	cells, shift float64
	perFeature   bool
}

// newCut deals rows out to sites of log-normal sizes, at least 6 rows each, and takes views
// and cells away: a view from a twelfth of the sites altogether, from others at rates that
// differ by site and view.
func newCut(ctx context.Context, src dataset.Source, how division) (*cut, error) {
	sites, rng := how.sites, rand.New(rand.NewPCG(how.seed, 77))
	var rows [][][]float64
	for row, err := range src.Rows(ctx) {
		if err != nil {
			return nil, err
		}
		views := make([][]float64, len(row.Views))
		for k, v := range row.Views {
			views[k] = slices.Clone(v)
		}
		rows = append(rows, views)
	}
	const least = 6
	if len(rows) < least*sites {
		return nil, fmt.Errorf("%d rows are too few for %d sites", len(rows), sites)
	}
	rng.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	weights, sum := make([]float64, sites), 0.0
	for i := range weights {
		weights[i] = math.Exp(0.8 * rng.NormFloat64())
		sum += weights[i]
	}
	var c cut
	for _, v := range src.Schema().Views {
		c.layout.Dims = append(c.layout.Dims, len(v.Columns))
	}
	if how.perFeature {
		c.layout.Noise = ppca.NoisePerFeature
	}
	spare := float64(len(rows) - least*sites)
	at := 0
	parts := make([][][][]float64, sites)
	for i := range parts {
		n := least + int(spare*weights[i]/sum)
		if i == sites-1 {
			n = len(rows) - at
		}
		parts[i] = rows[at : at+n]
		at += n
		takeAway(rng, parts[i], how.cells)
	}
	takesPart := func(i int) bool { return (sites-1-i)%5 != 0 }
	mean, sd := moments(c.layout, parts, takesPart)
	for i, part := range parts {
		offset := make([]float64, c.layout.Features())
		for j := range offset {
			offset[j] = how.shift * rng.NormFloat64()
		}
		var train [][][]float64
		var test [][][]float64
		for n, row := range part {
			j := 0
			for k, v := range row {
				for a := range c.layout.Dims[k] {
					if v != nil {
						v[a] = (v[a]-mean[j])/sd[j] + offset[j]
					}
					j++
				}
			}
			if !takesPart(i) || n < max(1, len(part)/5) {
				test = append(test, row)
			} else {
				train = append(train, row)
			}
		}
		if !takesPart(i) {
			c.newRows = append(c.newRows, test...)
			continue
		}
		b, err := blocks(c.layout, train)
		if err != nil {
			return nil, err
		}
		h, err := blocks(c.layout, test)
		if err != nil {
			return nil, err
		}
		c.train, c.test, c.rows, c.held = append(c.train, b), append(c.test, h), append(c.rows, train), append(c.held, test)
	}
	var err error
	c.newTest, err = blocks(c.layout, c.newRows)
	return &c, err
}

// takeAway removes views, but never the last of a row, and single cells.
func takeAway(rng *rand.Rand, rows [][][]float64, cells float64) {
	for k := range rows[0] {
		rate := math.Pow(rng.Float64(), 3) * 0.5 // mean an eighth, most of it at few sites
		if rng.Float64() < 1.0/12 {
			rate = 1
		}
		for _, row := range rows {
			others := 0
			for i, v := range row {
				if i != k && v != nil {
					others++
				}
			}
			if others > 0 && rng.Float64() < rate {
				row[k] = nil
			}
			for a := range row[k] {
				if len(row[k]) > 1 && rng.Float64() < cells {
					row[k][a] = math.NaN()
				}
			}
		}
	}
}

// moments are the pooled mean and standard deviation of the training rows; 1 for what
// does not vary.
func moments(l ppca.Layout, parts [][][][]float64, takesPart func(int) bool) (mean, sd []float64) {
	d := l.Features()
	n := make([]float64, d)
	mean, sd = make([]float64, d), make([]float64, d)
	for p, part := range parts {
		for i, row := range part {
			if !takesPart(p) || i < max(1, len(part)/5) {
				continue
			}
			j := 0
			for k, v := range row {
				for a := range l.Dims[k] {
					if v != nil && !math.IsNaN(v[a]) {
						n[j]++
						delta := v[a] - mean[j]
						mean[j] += delta / n[j]
						sd[j] += delta * (v[a] - mean[j])
					}
					j++
				}
			}
		}
	}
	for j := range sd {
		sd[j] = math.Sqrt(sd[j] / max(n[j], 1))
		if !(sd[j] > 1e-9) {
			sd[j] = 1
		}
	}
	return mean, sd
}

func blocks(l ppca.Layout, rows [][][]float64) ([]ppca.Block, error) {
	acc, err := ppca.NewAccumulator(l, nil)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		if err := acc.Add(row); err != nil {
			return nil, err
		}
	}
	return acc.Blocks(), nil
}

// spreadOut returns guess and variance of each feature of the layout given the values of a
// subject; what the model does not describe, and everything if there is none, has the pooled
// mean and variance, 0 and 1.
func spreadOut(l ppca.Layout, post *ppca.Posterior, values []float64) (guess, variance []float64, err error) {
	guess, variance = make([]float64, l.Features()), make([]float64, l.Features())
	for j := range variance {
		variance[j] = 1
	}
	if post == nil {
		return guess, variance, nil
	}
	g, v := make([]float64, len(post.Missing)), make([]float64, len(post.Missing))
	post.Impute(g, values)
	post.MissingVar(v)
	for i, j := range post.Missing {
		guess[j], variance[j] = g[i], v[i]
	}
	return guess, variance, nil
}

// within are the halves of intervals of 50, 90 and 95 %, in standard deviations.
var within = [3]float64{0.6744897501960817, 1.6448536269514722, 1.959963984540054}

// hide hides each view of the rows in turn, where another is present, and says how well it
// is guessed. Without variances nothing is said of intervals.
func (c *cut) hide(to *judged, rows [][][][]float64, predict func(site int, rest [][]float64) (guess, variance []float64, err error)) error {
	squares, n := 0.0, 0.0
	err := eachHidden(rows, func(site int, rest [][]float64, k int, hidden []float64) error {
		guess, variance, err := predict(site, rest)
		if err != nil {
			return err
		}
		lo, _ := c.layout.View(k)
		for i, x := range hidden {
			if math.IsNaN(x) {
				continue
			}
			off := x - guess[lo+i]
			squares += off * off
			n++
			for a, z := range within {
				switch {
				case variance == nil:
					to.cover[a] = math.NaN()
				case math.Abs(off) < z*math.Sqrt(variance[lo+i]):
					to.cover[a]++
				}
			}
		}
		return nil
	})
	to.error = math.Sqrt(squares / n)
	for a := range to.cover {
		to.cover[a] /= n
	}
	return err
}

func eachHidden(sites [][][][]float64, do func(site int, rest [][]float64, k int, hidden []float64) error) error {
	for s, rows := range sites {
		for _, row := range rows {
			for k, v := range row {
				rest := slices.Clone(row)
				rest[k] = nil
				if v == nil || !slices.ContainsFunc(rest, func(x []float64) bool { return slices.ContainsFunc(x, func(y float64) bool { return !math.IsNaN(y) }) }) {
					continue
				}
				if err := do(s, rest, k, v); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
