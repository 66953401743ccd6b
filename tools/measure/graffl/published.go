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

// publishedRow is one line of the table.
type publishedRow struct {
	rounds, accepted, rows int // rows of each site
	alpha                  float64
}

var publishedRows = []publishedRow{
	{10, 100, 3000, 1}, {100, 1000, 3000, 1}, {500, 1000, 3000, 1}, {100, 1000, 3000, 0.1}, {100, 1000, 3000, 2.4},
	// As many proposals of fewer rows: does anything contract?
	{1000, 1000, 300, 1}, {10_000, 1000, 30, 1},
}

func published(ctx context.Context, args []string) error {
	set := flag.NewFlagSet("published", flag.ContinueOnError)
	sets := set.Int("sets", 3, "data sets of each row, from seeds 1, 2, …")
	only := set.Int("only", 0, "the number of the only row to measure, from 1; 0 for all")
	if err := flags.Parse(set, args, func() error {
		if *sets < 1 || *only < 0 || *only > len(publishedRows) {
			return fmt.Errorf("want at least 1 set, and a row from 1 to %d", len(publishedRows))
		}
		return nil
	}); err != nil {
		return err
	}
	fmt.Printf("%d data sets a row. ε is a squared distance: the largest accepted, and the smallest not. Modes are the three highest of all accepted component means; in brackets the largest error of a data set. Means are matched to the truth, a favour.\n\n", *sets)
	fmt.Println("| rows | N | L | α | ε, text | ε, formula | RMSE of the mean of μ | 90 % width of μ | RMSE of modes | bytes up | heap, MB | CPU s |")
	fmt.Println("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
	if *only > 0 {
		return publishedRows[*only-1].measure(ctx, *sets)
	}
	prior, err := toyPrior(1)
	if err != nil {
		return err
	}
	var before, exact scores
	for seed := range uint64(*sets) {
		before.add(priorSample(prior, exactDraws, seed+1), thirds())
		exact.add(conjugate(prior, variantStudy{rows: 3000, seed: seed + 1}.data(), exactDraws, rand.New(rand.NewPCG(seed+1, 3))), thirds())
	}
	fmt.Printf("| prior itself | | | 1 | | | %.2f | %.1f | | | | |\n", before.means.rmse(), before.means.width())
	for _, r := range publishedRows {
		if err := r.measure(ctx, *sets); err != nil {
			return err
		}
	}
	fmt.Printf("| 3 × 3000, exact | | | 1 | | | %.3f | %.3f | | | | |\n", exact.means.rmse(), exact.means.width())
	return nil
}

// measure runs a row's studies and prints it.
func (p publishedRow) measure(ctx context.Context, sets int) error {
	var own scores
	var used, largest, next, modes, worst, up, n float64
	var heap uint64
	for seed := range sets {
		r, err := variantStudy{map[string]any{"variant": options.VariantPublished, "prior": map[string]any{"concentration": p.alpha},
			"published": map[string]any{"rounds": p.rounds, "accepted": p.accepted}}, p.rows, uint64(seed + 1)}.run(ctx)
		if err != nil {
			return fmt.Errorf("%+v, data set %d: %w", p, seed+1, err)
		}
		own.add(r.sample, thirds())
		e := modesError(r.metrics)
		each := 1 / float64(sets)
		used, up, n = used+each*r.used.Seconds(), up+each*float64(r.up), r.metrics["proposals"]
		largest, next = largest+each*r.metrics["largest_accepted_distance"], next+each*r.metrics["smallest_rejected_distance"]
		modes, worst, heap = modes+each*e, max(worst, e), max(heap, r.heap)
	}
	fmt.Printf("| 3 × %d | %.0f | %d | %v | %.4f | %.4f | %.2f | %.1f | %.2f (%.2f) | %.1f MB | %.0f | %.2f |\n",
		p.rows, n, p.accepted, p.alpha, largest, next, own.means.rmse(), own.means.width(), modes, worst, up/1e6, float64(heap)/1e6, used)
	return nil
}

// modesError is the root mean squared error of the modes that a study reports, matched
// to the truth; NaN where there are fewer.
func modesError(metrics map[string]float64) float64 {
	truth := thirds()
	found := truth.Clone()
	for k := range toySites {
		for i, name := range toyNames {
			x, ok := metrics[fmt.Sprintf("mode/%d/%s", k+1, name)]
			if !ok {
				return math.NaN()
			}
			found.Mean(k)[i] = x
		}
	}
	found = found.Reorder(mixture.Match(truth, found, nil))
	s := 0.0
	for i, x := range found.Means {
		s += (x - truth.Means[i]) * (x - truth.Means[i])
	}
	return math.Sqrt(s / float64(len(found.Means)))
}
