package main

import (
	"context"
	"flag"
	"fmt"

	"parley/graffl"
)

func calibration(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("calibration", flag.ContinueOnError)
	replicates := flags.Int("replicates", 200, "parameters drawn from the prior, at least 20")
	rows := flags.Int("rows", 900, "rows of each replicate")
	noise := flags.Float64("noise", 0, "standard deviation of the noise on sums")
	particles := flags.Int("draws", graffl.DefaultSampling(0).Particles, "parameters in a sample")
	sweeps := flags.Int("sweeps", graffl.DefaultSampling(0).Sweeps, "moves after each resampling")
	if err := parse(flags, args, func() error { return nil }); err != nil {
		return err
	}
	lo, hi := []float64{-12, -12}, []float64{12, 12}
	prior, err := graffl.BoxPrior(lo, hi, 3)
	if err != nil {
		return err
	}
	marks, err := graffl.Grid(lo, hi, []float64{1.5, 1.5})
	if err != nil {
		return err
	}
	c := graffl.Replicate{Prior: prior, Landmarks: marks, Rows: *rows, Noise: *noise, Sampling: graffl.Sampling{Particles: *particles, Sweeps: *sweeps, Seed: 1}}
	var ranks [][]float64
	start := processorTime()
	for i := range *replicates {
		if err := ctx.Err(); err != nil {
			return err
		}
		r, err := c.Ranks(i)
		if err != nil {
			return err
		}
		ranks = append(ranks, r)
	}
	all, err := c.Calibrate(ranks)
	if err != nil {
		return err
	}
	for _, one := range all {
		fmt.Printf("%-45s p %.4f within %.3f %v\n", one.Name, one.P, one.Within, one.Counts)
	}
	fmt.Println(graffl.Pass(all, 0.01), (processorTime()-start).Seconds()/float64(*replicates))
	return nil
}
