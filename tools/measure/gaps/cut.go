package gaps

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"parley/dataset"
	"parley/methods/mvppca/ppca"
)

// cut is a data set cut into sites, a fifth of each held out, in units of the training
// rows' standard deviations.
type cut struct {
	layout      ppca.Layout
	train, test [][]ppca.Block
	held        [][][][]float64 // by site: rows of views
}

// newCut deals rows out to sites of log-normal sizes, at least 6 rows each, and takes views
// and cells away: a view from a twelfth of the sites altogether, from others at rates that
// differ by site and view.
func newCut(ctx context.Context, src dataset.Source, sites int, seed uint64, cells float64, perFeature bool) (*cut, error) {
	rng := rand.New(rand.NewPCG(seed, 77))
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
	if perFeature {
		c.layout.Noise = ppca.NoisePerFeature
	}
	spare, at := float64(len(rows)-least*sites), 0
	parts := make([][][][]float64, sites)
	for i := range parts {
		n := least + int(spare*weights[i]/sum)
		if i == sites-1 {
			n = len(rows) - at
		}
		parts[i] = rows[at : at+n]
		at += n
		takeAway(rng, parts[i], cells)
	}
	mean, sd := moments(c.layout, parts)
	for _, part := range parts {
		var train [][][]float64
		var test [][][]float64
		for i, row := range part {
			j := 0
			for k, v := range row {
				for a := range c.layout.Dims[k] {
					if v != nil {
						v[a] = (v[a] - mean[j]) / sd[j]
					}
					j++
				}
			}
			if i < max(1, len(part)/5) {
				test = append(test, row)
			} else {
				train = append(train, row)
			}
		}
		b, err := blocks(c.layout, train)
		if err != nil {
			return nil, err
		}
		h, err := blocks(c.layout, test)
		if err != nil {
			return nil, err
		}
		c.train, c.test, c.held = append(c.train, b), append(c.test, h), append(c.held, test)
	}
	return &c, nil
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
func moments(l ppca.Layout, parts [][][][]float64) (mean, sd []float64) {
	d := l.Features()
	n := make([]float64, d)
	mean, sd = make([]float64, d), make([]float64, d)
	for _, part := range parts {
		for i, row := range part {
			if i < max(1, len(part)/5) {
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

// hide hides each view of the held-out rows in turn, where another is present, and returns
// the root mean square error of what is imputed and the share of cells in intervals of
// 90 %.
func (c *cut) hide(p []*ppca.Predictor) (rmse, cover float64, err error) {
	squares, within, n := 0.0, 0.0, 0.0
	err = c.eachHidden(func(site int, rest [][]float64, k int, hidden []float64) error {
		post, values, err := p[site].Subject(rest, nil)
		if err != nil {
			return err
		}
		guess, variance := make([]float64, len(post.Missing)), make([]float64, len(post.Missing))
		post.Impute(guess, values)
		post.MissingVar(variance)
		lo, _ := c.layout.View(k)
		for i, j := range post.Missing {
			if j < lo || j >= lo+len(hidden) || math.IsNaN(hidden[j-lo]) {
				continue
			}
			off := hidden[j-lo] - guess[i]
			squares += off * off
			n++
			if math.Abs(off) < 1.6448536269514722*math.Sqrt(variance[i]) {
				within++
			}
		}
		return nil
	})
	return math.Sqrt(squares / n), within / n, err
}

// spread is the error of guessing each feature's mean.
func (c *cut) spread() float64 {
	squares, n := 0.0, 0.0
	c.eachHidden(func(_ int, _ [][]float64, _ int, hidden []float64) error {
		for _, x := range hidden {
			if !math.IsNaN(x) {
				squares += x * x
				n++
			}
		}
		return nil
	})
	return math.Sqrt(squares / n)
}

func (c *cut) eachHidden(do func(site int, rest [][]float64, k int, hidden []float64) error) error {
	for s, rows := range c.held {
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
