package private

import (
	"fmt"
	"math"
	"math/rand/v2"

	"parley/dataset"
)

// data is one draw: complete subjects of several views, one population.
type data struct {
	q           int
	ranges      [][2]float64 // of the training rows, standing in for public ones
	train, test *dataset.Table
}

// paper draws n subjects as the synthetic data of the paper are: three views of
// 15, 8 and 10 features, five factors, and five eighths of the subjects moved
// together in latent space. Two thirds are for training.
func paper(r *rand.Rand, n int) (*data, error) {
	x := &data{q: 5}
	dims := []int{15, 8, 10}
	size, noise := []float64{10, 5, 15}, []float64{2, 1, 3}
	var w [][]float64
	var mu, sd []float64
	for k, d := range dims {
		for range d {
			row := make([]float64, x.q)
			for a := range row {
				row[a] = size[k] * (2*r.Float64() - 1)
			}
			w, mu, sd = append(w, row), append(mu, size[k]*(2*r.Float64()-1)), append(sd, math.Sqrt(noise[k]))
		}
	}
	shift := make([]float64, x.q)
	for a := range shift {
		shift[a] = 20*r.Float64() - 10
	}
	rows := make([]drawn, n)
	for i := range rows {
		rows[i].group, rows[i].move = "moved", shift
		if 8*i >= 5*n {
			rows[i].group, rows[i].move = "other", make([]float64, x.q)
		}
		rows[i].draw(r, w, mu, sd)
	}
	r.Shuffle(n, func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	return x, x.split(dims, rows, n-n/3)
}

// wide draws n subjects for training, and half as many for testing, of views of
// 7, 41, 41 and 41 features and six factors, noise having a seventh of the variance.
func wide(r *rand.Rand, n int) (*data, error) {
	x := &data{q: 6}
	var w [][]float64
	d := 130
	sd := make([]float64, d)
	for j := range d {
		row := make([]float64, x.q)
		for a := range row {
			row[a] = r.NormFloat64()
		}
		w, sd[j] = append(w, row), 1
	}
	rows := make([]drawn, n+n/2)
	for i := range rows {
		rows[i].move = make([]float64, x.q)
		rows[i].draw(r, w, make([]float64, d), sd)
	}
	return x, x.split([]int{7, 41, 41, 41}, rows, n)
}

// drawn is one subject.
type drawn struct {
	group  string
	move   []float64 // in latent space
	values []float64
}

// draw draws W (x + move) + μ + noise.
func (s *drawn) draw(r *rand.Rand, w [][]float64, mu, sd []float64) {
	f := make([]float64, len(s.move))
	for a, m := range s.move {
		f[a] = m + r.NormFloat64()
	}
	for j := range w {
		x := mu[j] + sd[j]*r.NormFloat64()
		for a, v := range f {
			x += w[j][a] * v
		}
		s.values = append(s.values, x)
	}
}

// split sets the rows for training apart and takes their ranges for public.
func (x *data) split(dims []int, rows []drawn, train int) (err error) {
	schema := dataset.Schema{Subject: []dataset.Column{{Name: "group"}}}
	j := 0
	for k, d := range dims {
		v := dataset.View{Name: fmt.Sprintf("v%d", k+1)}
		for range d {
			v.Columns = append(v.Columns, dataset.Column{Name: fmt.Sprintf("x%d", j+1)})
			j++
		}
		schema.Views = append(schema.Views, v)
	}
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
			one, rest := dataset.Row{ID: fmt.Sprintf("%08d", i), Subject: []string{row.group}}, row.values
			for _, d := range dims {
				one.Views, rest = append(one.Views, rest[:d:d]), rest[d:]
			}
			out = append(out, one)
		}
		return dataset.NewTable(schema, out)
	}
	if x.train, err = table(rows[:train]); err != nil {
		return err
	}
	x.test, err = table(rows[train:])
	return err
}
