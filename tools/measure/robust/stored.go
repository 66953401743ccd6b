package robust

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"

	"gonum.org/v1/gonum/stat"

	"parley/dataset"
	"parley/engine/local"
	"parley/judge/evaluate"
	"parley/methods/mvppca"
	"parley/tools/measure/protocol"
)

// stored fits stored data sets with and without their outliers, and prints how well the
// models describe a fifth of the rows, which was held out, by the log-likelihood of the
// median row: that of outliers is in nobody's interest.
func stored(ctx context.Context, folder, names, noises string, sites, latent, seeds int) error {
	fmt.Println("| data | noise per | outliers | held-out nats, mean | median row | squared error of hidden views ÷ that of their means | verdicts of all draws |")
	fmt.Println("|---|---|---|---:|---:|---|---|")
	for name := range strings.SplitSeq(names, ",") {
		all, err := protocol.Open(ctx, filepath.Join(folder, name))
		if err != nil {
			return err
		}
		for noise := range strings.SplitSeq(noises, ",") {
			for _, rule := range []string{"exclude", "keep"} {
				var nats, middles []float64
				var said []string
				ratios := make([][]float64, len(all.Schema().Views))
				for seed := range uint64(seeds) {
					o, err := heldOut(ctx, all, seed, sites, latent, noise, rule)
					if err != nil {
						return fmt.Errorf("%s: %w", name, err)
					}
					nats, middles, said = append(nats, stat.Mean(o.nats, nil)), append(middles, median(o.nats)), append(said, o.verdicts...)
					for k, x := range o.ratio {
						ratios[k] = append(ratios[k], x)
					}
				}
				var errors []string
				for k, v := range all.Schema().Views {
					errors = append(errors, fmt.Sprintf("%s %.2f", v.Name, median(ratios[k])))
				}
				fmt.Printf("| %s | %s | %s | %.2f | %.2f | %s | %s |\n", name, noise, rule, median(nats), median(middles), strings.Join(errors, ", "), strings.Join(said, "; "))
			}
		}
	}
	return nil
}

// heldOut runs a study on four fifths of the rows, and scores its model on the others.
func heldOut(ctx context.Context, all *dataset.Table, seed uint64, sites, latent int, noise, outliers string) (*outcome, error) {
	order := rand.New(rand.NewPCG(seed, 5)).Perm(all.Len())
	test, train := all.Select(order[:all.Len()/5]...), all.Select(order[all.Len()/5:]...)
	spread, err := protocol.Spread(ctx, train, "", evaluate.IID, sites, seed)
	if err != nil {
		return nil, err
	}
	plan, err := planOf(all.Schema(), evaluate.SiteNames(sites), latent, seed, noise, outliers)
	if err != nil {
		return nil, err
	}
	result, err := local.Run(ctx, local.Config{Plan: plan, Methods: methods, Data: protocol.BySite(spread)})
	if err != nil {
		return nil, err
	}
	model, err := mvppca.Method{}.Evaluator(plan, result.Result.Files, false)
	if err != nil {
		return nil, err
	}
	o := &outcome{verdicts: result.Result.Verdicts()}
	return o, o.predict(model.(evaluate.Predictive), test)
}
