package graffl

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"

	"parley/tools/measure/flags"

	"parley/methods/graffl/mixture"
	"parley/methods/graffl/options"
)

// setRow is one line of the table.
type setRow struct {
	name    string
	options map[string]any // under method.set
}

func set(ctx context.Context, args []string) error {
	set := flag.NewFlagSet("set", flag.ContinueOnError)
	sets := set.Int("sets", 12, "data sets of each row, from seeds 1, 2, …")
	rows := set.Int("rows", 300, "rows of each site")
	add := set.Bool("sums", false, "only show that energy distances to sites add up and Wasserstein distances do not")
	scaling := set.Bool("scaling", false, "also with other numbers of proposals, and by MMD")
	if err := flags.Parse(set, args, func() error {
		if *sets < 1 || *rows < 2 {
			return fmt.Errorf("want at least 1 set, and 2 rows of each site")
		}
		return nil
	}); err != nil {
		return err
	}
	if *add {
		return sums(1)
	}
	table := []setRow{{"energy", map[string]any{}}}
	if *scaling {
		for _, n := range []int{3750, 7500, 30_000} {
			table = append(table, setRow{"energy", map[string]any{"proposals": n}})
		}
		table = append(table, setRow{"MMD, bandwidth 4", map[string]any{"discrepancy": string(mixture.MMD), "bandwidth": 4}})
	}
	fmt.Printf("%d data sets a row, 3 × %d rows, one mode a site. RMSE is that of the posterior mean over data sets and coordinates; in brackets that of the worst data set.\n\n", *sets, *rows)
	fmt.Println("| discrepancy | proposals | generations | RMSE μ | width μ | coverage μ | RMSE π | coverage π | RMSE Σ | coverage Σ | bytes up | down | heap, MB | CPU s |")
	fmt.Println("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
	for _, r := range table {
		if err := r.measure(ctx, *sets, *rows); err != nil {
			return err
		}
	}
	prior, err := toyPrior(1)
	if err != nil {
		return err
	}
	var exact scores
	for seed := range uint64(*sets) {
		exact.add(conjugate(prior, variantStudy{rows: *rows, seed: seed + 1}.data(), exactDraws, rand.New(rand.NewPCG(seed+1, 3))), thirds())
	}
	fmt.Printf("| exact | | | %.3f | %.3f | %.2f | %.3f | %.2f | %.2f | %.2f | | | | |\n", exact.means.rmse(), exact.means.width(), exact.means.coverage(),
		exact.weights.rmse(), exact.weights.coverage(), exact.covs.rmse(), exact.covs.coverage())
	return nil
}

// measure runs a row's studies and prints it.
func (s setRow) measure(ctx context.Context, sets, rows int) error {
	var own scores
	var used, up, down, proposals, generations, worst float64
	var heap uint64
	for seed := range sets {
		r, err := variantStudy{map[string]any{"variant": options.VariantSet, "set": s.options}, rows, uint64(seed + 1)}.run(ctx)
		if err != nil {
			return fmt.Errorf("%s, data set %d: %w", s.name, seed+1, err)
		}
		before := own.means
		own.add(r.sample, thirds())
		worst = max(worst, math.Sqrt((own.means.squares-before.squares)/float64(own.means.n-before.n)))
		each := 1 / float64(sets)
		used, up, down = used+each*r.used.Seconds(), up+each*float64(r.up), down+each*float64(r.down)
		proposals, generations = proposals+each*r.metrics["proposals"], generations+each*r.metrics["generations"]
		heap = max(heap, r.heap)
	}
	fmt.Printf("| %s | %.0f | %.0f | %.3f (%.2f) | %.2f | %.2f | %.3f | %.2f | %.2f | %.2f | %.0f kB | %.0f kB | %.0f | %.1f |\n", s.name, proposals, generations,
		own.means.rmse(), worst, own.means.width(), own.means.coverage(), own.weights.rmse(), own.weights.coverage(), own.covs.rmse(), own.covs.coverage(),
		up/1e3, down/1e3, float64(heap)/1e6, used)
	return nil
}
