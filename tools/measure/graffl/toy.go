package graffl

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"parley/tools/measure/flags"

	"parley/dataset"
	"parley/engine/local"
	"parley/figure"
	"parley/internal/cputime"
	"parley/method"
	"parley/methods/graffl"
	"parley/methods/graffl/kernelmean"
	"parley/methods/graffl/mixture"
	"parley/privacy/account"
	"parley/study"
)

// The toy of the paper's section 4.2: one mode at each of three sites, every
// covariance the identity, in a public box.
var (
	toySites = []string{"west", "south", "east"}
	toyTruth = mixture.Mixture{Dim: 2, Means: []float64{-9, 3, 0, -9, 8, 3}, Covs: []float64{1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1}}
	toyBox   = [2]float64{-12, 12}
	toyNames = []string{"x", "y"}
)

const (
	toyDelta   = 1e-5
	level      = 0.9 // of the intervals
	exactDraws = 1000
)

// toyRow is one line of the table.
type toyRow struct {
	rows    []int   // of each site
	epsilon float64 // of the total; 0 for no privacy
}

func toy(ctx context.Context, args []string) error {
	set := flag.NewFlagSet("toy", flag.ContinueOnError)
	sets := set.Int("sets", 50, "data sets of each row, from seeds 1, 2, …; at least 2")
	draws := set.Int("draws", kernelmean.DefaultSampling(0).Particles, "parameters in a study's sample")
	out := set.String("out", "", "a folder for the picture of coverage; none without")
	places := set.String("rows", "300+300+300,630+180+90,3000+3000+3000", "rows of the three sites, for each part of the table")
	epsilons := set.String("epsilon", "0,5,1", "totals ε; 0 for no privacy")
	var sizes [][]int
	var totals []float64
	if err := flags.Parse(set, args, func() (err error) {
		if sizes, err = rowsOf(*places); err != nil {
			return err
		}
		if totals, err = flags.Numbers(*epsilons); err != nil {
			return err
		}
		if *sets < 2 || slices.Min(totals) < 0 {
			return fmt.Errorf("want at least 2 sets, and no negative ε")
		}
		return kernelmean.Sampling{Particles: *draws, Sweeps: 1}.Check()
	}); err != nil {
		return err
	}
	var rows []toyRow
	for _, n := range sizes {
		for _, epsilon := range totals {
			rows = append(rows, toyRow{n, epsilon})
		}
	}
	fmt.Printf("%d data sets a row, δ = %v. RMSE is that of the posterior mean over data sets and coordinates, coverage that of 90 %% intervals, width their mean width.\n\n", *sets, toyDelta)
	fmt.Println("| rows | privacy | RMSE μ | exact | width μ | exact | coverage μ | exact | coverage π | largest error of π | RMSE Σ | exact | coverage Σ | effective size | CPU s |")
	fmt.Println("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
	var curves []curve
	for _, r := range rows {
		own, err := r.measure(ctx, *sets, *draws)
		if err != nil {
			return err
		}
		if slices.Equal(r.rows, sizes[0]) {
			c := curve{name: "privacy: " + privacyName(r.epsilon)}
			for _, level := range mixture.Levels() {
				c.shares = append(c.shares, own.means.covers(level))
			}
			curves = append(curves, c)
		}
	}
	if *out == "" {
		return nil
	}
	return draw(*out, figure.Figure{ID: "graffl-toy-coverage", Title: fmt.Sprintf("What intervals of component means hold: %d data sets of %s rows", *sets, rowsName(sizes[0])),
		Chart: coverageLines(curves, *sets*len(toyTruth.Means)),
		Alt:   "Share of the true component means inside the central interval against its nominal level, one line for each ε, beside the diagonal with the band of chance."})
}

// measure runs a row's studies, prints it and returns how they did.
func (r toyRow) measure(ctx context.Context, sets, draws int) (own scores, err error) {
	truth := toyTruth.Clone()
	total := r.rows[0] + r.rows[1] + r.rows[2]
	for _, n := range r.rows {
		truth.Weights = append(truth.Weights, float64(n)/float64(total))
	}
	prior, err := mixture.BoxPrior([]float64{toyBox[0], toyBox[0]}, []float64{toyBox[1], toyBox[1]}, len(toySites))
	if err != nil {
		return own, err
	}
	var exact scores
	size, start := 0.0, cputime.Used()
	for seed := range sets {
		data := r.data(uint64(seed + 1))
		post, err := r.study(ctx, uint64(seed+1), draws, data)
		if err != nil {
			return own, fmt.Errorf("%v rows, ε %v, data set %d: %w", r.rows, r.epsilon, seed+1, err)
		}
		own.add(post, truth)
		size += post.Size / float64(sets)
	}
	used := (cputime.Used() - start).Seconds() / float64(sets)
	for seed := range sets {
		exact.add(conjugate(prior, r.data(uint64(seed+1)), exactDraws, rand.New(rand.NewPCG(uint64(seed+1), 3))), truth)
	}
	fmt.Printf("| %s | %s | %.4f | %.4f | %.3f | %.3f | %.3f | %.3f | %.3f | %.4f | %.3f | %.3f | %.3f | %.0f | %.2f |\n",
		rowsName(r.rows), privacyName(r.epsilon),
		own.means.rmse(), exact.means.rmse(), own.means.width(), exact.means.width(), own.means.coverage(), exact.means.coverage(),
		own.weights.coverage(), own.weights.largest, own.covs.rmse(), exact.covs.rmse(), own.covs.coverage(), size, used)
	return own, nil
}

func rowsName(rows []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(rows), " ", " + "), "[]")
}

// rowsOf reads numbers of rows, those of sites with + between.
func rowsOf(list string) (sizes [][]int, err error) {
	for part := range strings.SplitSeq(list, ",") {
		var rows []int
		for s := range strings.SplitSeq(part, "+") {
			n, err := strconv.Atoi(s)
			if err != nil || n < 1 {
				return nil, fmt.Errorf("%q is no number of rows", s)
			}
			rows = append(rows, n)
		}
		if len(rows) != len(toySites) {
			return nil, fmt.Errorf("%q has rows of %d sites, want %d", part, len(rows), len(toySites))
		}
		sizes = append(sizes, rows)
	}
	return sizes, nil
}

// data draws the sites' rows.
func (r toyRow) data(seed uint64) (sites [][]float64) {
	g := rand.New(rand.NewPCG(seed, 1))
	for j, n := range r.rows {
		var s []float64
		for range n {
			for _, m := range toyTruth.Mean(j) {
				s = append(s, m+g.NormFloat64())
			}
		}
		sites = append(sites, s)
	}
	return sites
}

// toyPlan is the plan of the toy at a total ε; 0 for no privacy.
func toyPlan(epsilon float64, seed uint64, draws int) (*study.Plan, error) {
	protection := map[string]any{"protection": study.ProtectionNone}
	if epsilon > 0 {
		protection = map[string]any{"protection": study.ProtectionDifferential, "unit": study.UnitSubject, "adjacency": account.AddRemove,
			"total": account.Budget{Epsilon: epsilon, Delta: toyDelta}}
	}
	var features []map[string]any
	for _, name := range toyNames {
		features = append(features, map[string]any{"name": name, "range": toyBox})
	}
	// JSON is YAML.
	text, err := json.Marshal(map[string]any{
		"parley": study.Version, "name": "toy", "seed": seed, "sites": toySites,
		"views":  []map[string]any{{"name": "point", "features": features}},
		"method": map[string]any{"name": graffl.Method{}.Name(), "components": len(toySites), "draws": draws}, "privacy": protection,
	})
	if err != nil {
		return nil, err
	}
	return study.Parse("plan", text, method.Registry{graffl.Method{}})
}

// study runs one study through the engine, in memory, and returns its sample.
func (r toyRow) study(ctx context.Context, seed uint64, draws int, data [][]float64) (*mixture.Posterior, error) {
	p, err := toyPlan(r.epsilon, seed, draws)
	if err != nil {
		return nil, err
	}
	config := local.Config{Plan: p, Methods: method.Registry{graffl.Method{}}, Data: map[string]dataset.Source{}}
	for j, name := range toySites {
		var rows []dataset.Row
		for i, x := range slices.Collect(slices.Chunk(data[j], len(toyNames))) {
			rows = append(rows, dataset.Row{ID: fmt.Sprintf("%05d", i), Views: [][]float64{x}})
		}
		if config.Data[name], err = dataset.NewTable(p.Schema(), rows); err != nil {
			return nil, err
		}
	}
	out, err := local.Run(ctx, config)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(out.Result.Files, func(f method.File) bool { return f.Name == "model/posterior.csv" })
	if at < 0 {
		return nil, fmt.Errorf("the result has no sample")
	}
	return readPosterior(out.Result.Files[at].Data, len(toySites), len(toyNames))
}
