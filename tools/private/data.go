package main

import (
	"math"
	"math/rand/v2"
	"slices"
)

// data is one draw: complete subjects of several views, one population.
type data struct {
	dims        []int
	q           int
	ranges      [][2]float64 // of the training rows, standing in for public ones
	train, test [][]float64
}

// paper draws n subjects as the synthetic data of the paper are: three views of
// 15, 8 and 10 features, five factors, and five eighths of the subjects moved
// together in latent space. Two thirds are for training.
func paper(r *rand.Rand, n int) *data {
	x := &data{dims: []int{15, 8, 10}, q: 5}
	size, noise := []float64{10, 5, 15}, []float64{2, 1, 3}
	var w [][]float64
	var mu, sd []float64
	for k, d := range x.dims {
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
	rows := make([][]float64, n)
	for i := range rows {
		move := shift
		if 8*i >= 5*n {
			move = make([]float64, x.q)
		}
		rows[i] = subject(r, w, mu, sd, move)
	}
	r.Shuffle(n, func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	x.split(rows, n-n/3)
	return x
}

// wide draws n subjects for training, and half as many for testing, of views of
// 7, 41, 41 and 41 features and six factors, noise having a seventh of the variance.
func wide(r *rand.Rand, n int) *data {
	x := &data{dims: []int{7, 41, 41, 41}, q: 6}
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
	rows := make([][]float64, n+n/2)
	for i := range rows {
		rows[i] = subject(r, w, make([]float64, d), sd, make([]float64, x.q))
	}
	x.split(rows, n)
	return x
}

// subject draws W (x + move) + μ + noise.
func subject(r *rand.Rand, w [][]float64, mu, sd, move []float64) []float64 {
	f := make([]float64, len(move))
	for a, m := range move {
		f[a] = m + r.NormFloat64()
	}
	row := make([]float64, len(w))
	for j := range row {
		row[j] = mu[j] + sd[j]*r.NormFloat64()
		for a, v := range f {
			row[j] += w[j][a] * v
		}
	}
	return row
}

// split sets the rows for training apart and takes their ranges for public.
func (x *data) split(rows [][]float64, train int) {
	x.train, x.test = rows[:train], rows[train:]
	for _, v := range rows[0] {
		x.ranges = append(x.ranges, [2]float64{v, v})
	}
	for _, row := range x.train {
		for j, v := range row {
			x.ranges[j] = [2]float64{min(x.ranges[j][0], v), max(x.ranges[j][1], v)}
		}
	}
}

// widened returns ranges about the same middles, by a factor.
func (x *data) widened(by float64) [][2]float64 {
	out := slices.Clone(x.ranges)
	for j, r := range out {
		mid, half := (r[0]+r[1])/2, by*(r[1]-r[0])/2
		out[j] = [2]float64{mid - half, mid + half}
	}
	return out
}

// site returns every third training row, cut into views, those lacking left out.
func (x *data) site(i, sites int, lacking []int) [][][]float64 {
	var out [][][]float64
	for n := i; n < len(x.train); n += sites {
		out = append(out, x.views(x.train[n], lacking))
	}
	return out
}

func (x *data) views(row []float64, lacking []int) [][]float64 {
	views := make([][]float64, len(x.dims))
	lo := 0
	for k, d := range x.dims {
		if !slices.Contains(lacking, k) {
			views[k] = row[lo : lo+d]
		}
		lo += d
	}
	return views
}
