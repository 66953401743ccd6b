package graffl

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"parley/experiment/graffl/toy"
	"parley/methods/graffl/mixture"
	"parley/tools/measure/flags"
)

const (
	sumsRows       = 1000 // of each site, and of each simulated set
	sumsDirections = 64   // of the sliced distance
)

// sums prints what discrepancies between a simulated set and the rows of every site come to
// over sites, for the toy's truth and for one mode in the middle.
func sums(_ context.Context, args []string) error {
	if err := flags.Parse(flag.NewFlagSet("sums", flag.ContinueOnError), args, func() error { return nil }); err != nil {
		return err
	}
	const seed = 1
	r := rand.New(rand.NewPCG(seed, 8))
	size := slices.Repeat([]int{sumsRows}, len(toy.Sites))
	truth, sites := toy.Truth(size), toy.Data(size, seed)
	blob := mixture.Mixture{Dim: 2, Weights: []float64{1}, Means: make([]float64, 2), Covs: []float64{1, 0, 0, 1}}
	for i, x := range truth.Means {
		blob.Means[i%2] += x / float64(len(toy.Sites))
	}
	fmt.Printf("Distances of every site to a simulated set, %d rows each, weighted by rows.\n\n| simulated from | energy distance | sliced Wasserstein distance |\n|---|---:|---:|\n", sumsRows)
	for _, c := range []struct {
		name string
		m    mixture.Mixture
	}{{"the truth", truth}, {"one mode in the middle", blob}} {
		set := make([]float64, sumsRows*c.m.Dim)
		if err := c.m.Simulate(r, set); err != nil {
			return err
		}
		energy, sliced := 0.0, 0.0
		for _, rows := range sites {
			energy += mixture.Discrepancy{Kind: mixture.Energy}.Between(set, rows, c.m.Dim) / float64(len(sites))
			sliced += slicedWasserstein(set, rows) / float64(len(sites))
		}
		fmt.Printf("| %s | %.2f | %.2f |\n", c.name, energy, sliced)
	}
	return nil
}

// slicedWasserstein is the mean over directions in the plane of the Wasserstein distance
// of order 1 between as many rows of a and b, projected on them.
func slicedWasserstein(a, b []float64) float64 {
	d := 0.0
	for k := range sumsDirections {
		sin, cos := math.Sincos(math.Pi * float64(k) / sumsDirections)
		along := func(rows []float64) (x []float64) {
			for at := 0; at < len(rows); at += 2 {
				x = append(x, cos*rows[at]+sin*rows[at+1])
			}
			slices.Sort(x)
			return x
		}
		x, y := along(a), along(b)
		for i := range x {
			d += math.Abs(x[i]-y[i]) / float64(len(x)*sumsDirections)
		}
	}
	return d
}
