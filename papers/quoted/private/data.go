package private

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"parley/dataset"
	"parley/papers/melba"
)

// data is one draw: complete subjects of several views, one population.
type data struct {
	q           int
	ranges      [][2]float64 // of the training rows, standing in for public ones
	train, test *dataset.Table
}

// paper draws n subjects as the synthetic data of the paper are, of five factors. Two
// thirds are for training.
func paper(r *rand.Rand, n int) (*data, error) {
	x := &data{q: 5}
	features, shift := melba.Draw(r, x.q, 1), melba.Shift(r, x.q)
	rows := make([]drawn, n)
	for i := range rows {
		group, move := "moved", shift
		if !melba.Moved(i, n) {
			group, move = "other", make([]float64, x.q)
		}
		rows[i] = drawn{group, features.Subject(r, move)}
	}
	r.Shuffle(n, func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	return x, x.split(melba.Dims, rows, n-n/3)
}

// wide has views of 7, 41, 41 and 41 features and six factors, noise having a seventh of the
// variance.
func wide(r *rand.Rand, n int) (*data, error) {
	return normal(r, n, 6, []int{7, 41, 41, 41}, 1)
}

// normal draws n subjects for training, and half as many for testing, with q factors, views of
// some dimensions, and noise of one standard deviation.
func normal(r *rand.Rand, n, q int, dims []int, sd float64) (*data, error) {
	x, d := &data{q: q}, 0
	for _, k := range dims {
		d += k
	}
	features := melba.Features{Mu: make([]float64, d), SD: slices.Repeat([]float64{sd}, d)}
	for range d {
		row := make([]float64, q)
		for a := range row {
			row[a] = r.NormFloat64()
		}
		features.W = append(features.W, row)
	}
	rows := make([]drawn, n+n/2)
	for i := range rows {
		rows[i].values = features.Subject(r, make([]float64, q))
	}
	return x, x.split(dims, rows, n)
}

// drawn is one subject.
type drawn struct {
	group  string
	values []float64
}

// split sets the rows for training apart and takes their ranges for public.
func (x *data) split(dims []int, rows []drawn, train int) (err error) {
	schema := melba.Schema(dims)
	schema.Subject = []dataset.Column{{Name: "group"}}
	for j := range rows[0].values {
		r := [2]float64{math.Inf(1), math.Inf(-1)}
		for _, row := range rows[:train] {
			r = [2]float64{min(r[0], row.values[j]), max(r[1], row.values[j])}
		}
		x.ranges = append(x.ranges, r)
	}
	table := func(rows []drawn) (*dataset.Table, error) {
		var out []dataset.Row
		for i, row := range rows {
			out = append(out, dataset.Row{ID: fmt.Sprintf("%08d", i), Subject: []string{row.group},
				Views: melba.Views(dims, row.values)})
		}
		return dataset.NewTable(schema, out)
	}
	if x.train, err = table(rows[:train]); err != nil {
		return err
	}
	x.test, err = table(rows[train:])
	return err
}
