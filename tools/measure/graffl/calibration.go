package graffl

import (
	"context"
	"flag"
	"fmt"
	"math"
	"slices"
	"strings"

	"parley/experiment/graffl/toy"
	"parley/internal/cputime"
	"parley/methods/graffl/kernelmean"
	"parley/methods/graffl/landmark"
	"parley/methods/graffl/mixture"
	"parley/tools/measure/flags"
)

const (
	verdictLevel = 0.01 // at which a calibrated method fails
	leastSets    = 20   // replicates that can be judged
)

// calibration repeats the toy's plan with parameters from its prior, and asks whether
// these look like draws from the posteriors.
func calibration(ctx context.Context, args []string) error {
	set := flag.NewFlagSet("calibration", flag.ContinueOnError)
	replicates := set.Int("replicates", 200, fmt.Sprintf("parameters drawn from the prior, at least %d", leastSets))
	rows := set.Int("rows", 900, "rows of each replicate, all sites together")
	epsilons := set.String("epsilon", "0,5", "totals ε to calibrate; 0 for no privacy")
	draws := set.Int("draws", kernelmean.DefaultSampling(0).Particles, "parameters in a sample")
	sweeps := set.Int("sweeps", kernelmean.DefaultSampling(0).Sweeps, "moves of every parameter after each resampling")
	assumed := set.Bool("assumed", false, "draw landmark means from the likelihood's own normal law instead of rows: then only the sampler can fail")
	var totals []float64
	if err := flags.Parse(set, args, func() (err error) {
		if totals, err = flags.Numbers(*epsilons); err != nil {
			return err
		}
		if *replicates < leastSets || *rows < 1 || slices.Min(totals) < 0 {
			return fmt.Errorf("want at least %d replicates, rows, and no negative ε", leastSets)
		}
		return kernelmean.Sampling{Particles: *draws, Sweeps: *sweeps}.Check()
	}); err != nil {
		return err
	}
	fmt.Printf("%d replicates of %d rows. Calibrated means p ≥ %v / 8 for each of 8 quantities: a calibrated method fails once in a hundred times.\n\n", *replicates, *rows, verdictLevel)
	fmt.Println("| privacy | quantity | p | 50 % intervals hold | 90 % intervals hold | verdict | CPU s |")
	fmt.Println("|---|---|---:|---:|---:|---|---:|")
	var failed []string
	for _, epsilon := range totals {
		p, err := toy.Study{Epsilon: epsilon, Seed: 1, Options: map[string]any{"draws": *draws}}.Plan()
		if err != nil {
			return err
		}
		c, err := landmark.NewReplicate(p, *rows)
		if err != nil {
			return err
		}
		c.Sampling.Sweeps, c.Assumed = *sweeps, *assumed
		start := cputime.Used()
		all, err := repeat(ctx, c, *replicates)
		if err != nil {
			return err
		}
		used := (cputime.Used() - start).Seconds() / float64(*replicates)
		verdict := "calibrated"
		if !mixture.Pass(all, verdictLevel) {
			verdict = "NOT calibrated"
			failed = append(failed, privacyName(epsilon))
		}
		for _, one := range all {
			fmt.Printf("| %s | %s | %.4f | %.3f | %.3f | %s | %.2f |\n", privacyName(epsilon), one.Name, one.P, one.Curve[slices.Index(mixture.Levels(), 0.5)], one.Within, verdict, used)
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("not calibrated: %s", strings.Join(failed, ", "))
	}
	return nil
}

// repeat runs the replicates.
func repeat(ctx context.Context, c kernelmean.Replicate, n int) ([]mixture.Calibrated, error) {
	var ranks [][]float64
	for i := range n {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		r, err := c.Ranks(i)
		if err != nil {
			return nil, fmt.Errorf("replicate %d: %w", i, err)
		}
		ranks = append(ranks, r)
	}
	return c.Calibrate(ranks)
}

func privacyName(epsilon float64) string {
	if epsilon == 0 {
		return "none"
	}
	return fmt.Sprintf("ε %v", math.Round(epsilon*1e6)/1e6)
}
