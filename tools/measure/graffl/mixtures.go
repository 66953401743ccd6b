package graffl

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"parley/dataset"
	"parley/engine/local"
	"parley/experiment/graffl/toy"
	"parley/internal/cputime"
	"parley/method"
	"parley/methods/graffl"
	"parley/methods/graffl/mixture"
	"parley/study"
	"parley/tools/measure/flags"
)

const (
	mixtureBox    = 10. // features are in ± this
	gibbsDiscards = 100 // sweeps, from the truth
	gibbsSweeps   = 400 // that are kept
	lostAt        = 0.5 // of the separation: a component that is as far off was not found
)

// mixtureCell is one line of the table.
type mixtureCell struct {
	dim, components int
	apart           float64 // of the nearest components, in standard deviations
	rows            int     // of all sites together
	epsilon         float64
	shape           shape
}

func (c mixtureCell) String() string {
	s := fmt.Sprintf("%d | %d | %g | %d | %s", c.dim, c.components, c.apart, c.rows, privacyName(c.epsilon))
	if c.shape != shapeNormal {
		s += ", " + string(c.shape)
	}
	return s
}

// mixtureRun is what came of one data set.
type mixtureRun struct{ lost, flagged bool }

// mixtureScore is what came of a line.
type mixtureScore struct {
	runs     []mixtureRun
	own, all toy.Scores // of runs that neither lost: of the study, and of the Gibbs sampler
	seconds  float64
}

const (
	mostTimes                   = 1.5 // the Gibbs sampler's error
	leastCoverage, mostCoverage = 0.85, 0.95
	beyondChance                = 0.01
	mixtureDefinition           = "A run is lost if a component's mean is off by half of the distance between components. It fails if it is lost, or if its line does: if, over the runs of the line that neither it nor the Gibbs sampler loses, RMSE is above 1.5 times that of the Gibbs sampler, or the share of 90 % intervals that hold the mean is below .85 or above .95, all by more than chance. Where a line's few runs cannot tell whether RMSE is above 1.5 times (RMSE?), those that are not lost count neither as failing nor as good. A run is flagged if its report has a doubt. Gibbs is a sampler on all rows that begins at the truth."
)

// verdict is what is known of the runs of a line that are not lost.
type verdict string

const (
	verdictGood    verdict = "–"
	verdictBetween verdict = "RMSE?" // whether it is above 1.5 times cannot be told
	verdictRMSE    verdict = "RMSE"
	verdictHold    verdict = "coverage"
)

// verdict compares runs that were not lost with what is promised.
func (s *mixtureScore) verdict() verdict {
	n := float64(len(s.own.Means.Errors))
	if n == 0 {
		return verdictGood
	}
	log, chance := s.times()
	hold := math.Round(s.own.Means.Coverage(toy.Level) * n)
	few, many := distuv.Binomial{N: n, P: leastCoverage}, distuv.Binomial{N: n, P: mostCoverage}
	switch {
	case log > chance:
		return verdictRMSE
	case few.CDF(hold) < beyondChance || 1-many.CDF(hold-1) < beyondChance:
		return verdictHold
	case log > -chance:
		return verdictBetween
	}
	return verdictGood
}

// times is by how much the logarithm of the ratio of errors is above that of 1.5, and what chance
// makes of it in nine of ten cases: 1.64 standard errors, by leaving out one mean after the other.
func (s *mixtureScore) times() (log, chance float64) {
	own, all := s.own.Means.Errors, s.all.Means.Errors
	a, b := mixture.Squares(own), mixture.Squares(all)
	log = math.Log(a/b)/2 - math.Log(mostTimes)
	n, mean := float64(len(own)), 0.0
	without := make([]float64, len(own))
	for i, x := range own {
		without[i] = math.Log((a-x*x)/(b-all[i]*all[i])) / 2
		mean += without[i] / n
	}
	for _, x := range without {
		chance += (n - 1) / n * (x - mean) * (x - mean)
	}
	return log, 1.645 * math.Sqrt(chance)
}

// mixtureTally counts runs over lines.
type mixtureTally struct{ failing, flagged, good, alarms, between, doubted int }

func (t *mixtureTally) add(s *mixtureScore) (line mixtureTally) {
	v := s.verdict()
	for _, r := range s.runs {
		all, flagged := &line.good, &line.alarms
		switch {
		case r.lost || v == verdictRMSE || v == verdictHold:
			all, flagged = &line.failing, &line.flagged
		case v == verdictBetween:
			all, flagged = &line.between, &line.doubted
		}
		*all++
		if r.flagged {
			*flagged++
		}
	}
	t.failing, t.flagged, t.good = t.failing+line.failing, t.flagged+line.flagged, t.good+line.good
	t.alarms, t.between, t.doubted = t.alarms+line.alarms, t.between+line.between, t.doubted+line.doubted
	return line
}

// share writes x of n with the interval that holds 95 % (Clopper and Pearson 1934).
func share(x, n int) string {
	if n == 0 {
		return "none of 0"
	}
	lo, hi := 0., 1.
	if x > 0 {
		lo = distuv.Beta{Alpha: float64(x), Beta: float64(n - x + 1)}.Quantile(0.025)
	}
	if x < n {
		hi = distuv.Beta{Alpha: float64(x + 1), Beta: float64(n - x)}.Quantile(0.975)
	}
	return fmt.Sprintf("%d of %d (%.0f %%, 95 %% interval %.0f to %.0f %%)", x, n, 100*float64(x)/float64(n), 100*lo, 100*hi)
}

func mixtures(ctx context.Context, args []string) error {
	set := flag.NewFlagSet("mixtures", flag.ContinueOnError)
	sets := set.Int("sets", 2, "data sets of each line")
	seed := set.Int("seed", 101, "the seed of the first")
	dims := set.String("features", "2,3,5", "numbers of features")
	comps := set.String("components", "2,3,5", "numbers of components")
	aparts := set.String("apart", "4", "standard deviations between the nearest components")
	rows := set.String("rows", "900,9000", "rows of three sites together")
	epsilons := set.String("epsilon", "0,5,1", "totals ε; 0 for no privacy")
	shapes := set.String("shapes", string(shapeNormal), "what components are like: "+shapeNames())
	var ds, ks, as, ns, es []float64
	var kinds []shape
	if err := flags.Parse(set, args, func() (err error) {
		for _, x := range []struct {
			to   *[]float64
			text string
		}{{&ds, *dims}, {&ks, *comps}, {&as, *aparts}, {&ns, *rows}, {&es, *epsilons}} {
			if *x.to, err = flags.Numbers(x.text); err != nil {
				return err
			}
		}
		if kinds, err = shapesOf(*shapes); err != nil {
			return err
		}
		if *sets < 1 || *seed < 0 || slices.Min(ns) < 30 || slices.Min(ds) < 1 || slices.Min(ks) < 1 || slices.Min(as) <= 0 || slices.Min(es) < 0 {
			return fmt.Errorf("want sets, rows, features, components and distances, and no negative ε or seed")
		}
		return nil
	}); err != nil {
		return err
	}
	fmt.Printf("%d data sets a line from seed %d, at three sites, δ = %v. %s\n\n", *sets, *seed, toy.Delta, mixtureDefinition)
	fmt.Println("| features | components | apart | rows | privacy | found | RMSE μ | Gibbs | coverage μ | Gibbs | fails by | failing and flagged | good and flagged | CPU s |")
	fmt.Println("|---:|---:|---:|---:|---|---:|---:|---:|---:|---:|---|---:|---:|---:|")
	var cells []mixtureCell
	for _, kind := range kinds {
		for _, n := range ns {
			for _, d := range ds {
				for _, k := range ks {
					for _, apart := range as {
						for _, epsilon := range es {
							cells = append(cells, mixtureCell{int(d), int(k), apart, int(n), epsilon, kind})
						}
					}
				}
			}
		}
	}
	var total mixtureTally
	for _, c := range cells {
		s, err := c.measure(ctx, *seed, *sets)
		if err != nil {
			return fmt.Errorf("%s: %w", c, err)
		}
		fmt.Println(c.line(s, total.add(s)))
	}
	fmt.Printf("\nOf failing runs %s were flagged, of good ones %s; of those between, %d of %d.\n", share(total.flagged, total.failing), share(total.alarms, total.good), total.doubted, total.between)
	return nil
}

// line is a row of the table.
func (c mixtureCell) line(s *mixtureScore, t mixtureTally) string {
	found := 0
	for _, r := range s.runs {
		if !r.lost {
			found++
		}
	}
	scores := "– | – | – | –"
	if len(s.own.Means.Errors) > 0 {
		scores = fmt.Sprintf("%.4f | %.4f | %.3f | %.3f", s.own.Means.RMSE(), s.all.Means.RMSE(), s.own.Means.Coverage(toy.Level), s.all.Means.Coverage(toy.Level))
	}
	return fmt.Sprintf("| %s | %d of %d | %s | %s | %d of %d | %d of %d | %.1f |", c, found, len(s.runs), scores, s.verdict(),
		t.flagged, t.failing, t.alarms, t.good, s.seconds/float64(len(s.runs)))
}

func (c mixtureCell) measure(ctx context.Context, seed, sets int) (*mixtureScore, error) {
	s := &mixtureScore{}
	for i := range sets {
		if err := c.one(ctx, uint64(seed+i), s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// one runs the study and the Gibbs sampler on one data set.
func (c mixtureCell) one(ctx context.Context, seed uint64, s *mixtureScore) error {
	r := rand.New(rand.NewPCG(seed, 21))
	truth := c.truth(r)
	rows := c.simulate(truth, r)
	config, err := c.config(seed, rows)
	if err != nil {
		return err
	}
	start := cputime.Used()
	out, err := local.Run(ctx, *config)
	if err != nil {
		return err
	}
	s.seconds += (cputime.Used() - start).Seconds()
	post, err := toy.Sample(out.Result.Files, c.components, c.dim)
	if err != nil {
		return err
	}
	far := farthest(post, truth)
	run := mixtureRun{far > lostAt*c.apart, out.Result.Metrics["doubts"] > 0}
	s.runs = append(s.runs, run)
	m := out.Result.Metrics
	log.Printf("%s, seed %d: off by %.2f at most; %v doubts, imprecision %.2f, misfit p %.3f, effective size %.0f", c, seed, far, m["doubts"], m["imprecision"], m["misfit_p"], m["effective_sample_size"])
	if run.lost {
		return nil
	}
	lo, hi := slices.Repeat([]float64{-mixtureBox}, c.dim), slices.Repeat([]float64{mixtureBox}, c.dim)
	prior, err := mixture.BoxPrior(lo, hi, c.components)
	if err != nil {
		return err
	}
	if all := gibbs(prior, truth, rows, r); farthest(all, truth) <= lostAt*c.apart {
		s.own.Add(post, truth)
		s.all.Add(all, truth)
	}
	return nil
}

// farthest is how far off the component is that is off most.
func farthest(p *mixture.Posterior, truth mixture.Mixture) (far float64) {
	mean := p.Mean()
	mean = mean.Reorder(mixture.Match(truth, mean, nil))
	for k := range mean.Weights {
		far = max(far, math.Sqrt(mixture.SquaredDistance(mean.Mean(k), truth.Mean(k))))
	}
	return far
}

func (c mixtureCell) config(seed uint64, rows []float64) (*local.Config, error) {
	var features []map[string]any
	for i := range c.dim {
		features = append(features, map[string]any{"name": fmt.Sprintf("x%d", i+1), "range": [2]float64{-mixtureBox, mixtureBox}})
	}
	privacy := map[string]any{"protection": study.ProtectionNone}
	if c.epsilon > 0 {
		privacy = map[string]any{"protection": study.ProtectionDifferential, "unit": study.UnitSubject, "adjacency": "add-remove", "total": map[string]any{"epsilon": c.epsilon, "delta": toy.Delta}}
	}
	text, err := json.Marshal(map[string]any{ // JSON is YAML
		"parley": study.Version, "name": "mixtures", "seed": seed, "sites": toy.Sites, "method": map[string]any{"name": graffl.Method{}.Name(), "components": c.components},
		"views": []map[string]any{{"name": "point", "features": features}}, "privacy": privacy,
	})
	if err != nil {
		return nil, err
	}
	config := &local.Config{Methods: method.Registry{graffl.Method{}}, Data: map[string]dataset.Source{}}
	if config.Plan, err = study.Parse("plan", text, config.Methods); err != nil {
		return nil, err
	}
	each := (len(rows)/c.dim + len(toy.Sites) - 1) / len(toy.Sites) * c.dim
	for j, name := range toy.Sites {
		if config.Data[name], err = toy.Table(config.Plan.Schema(), rows[j*each:min((j+1)*each, len(rows))]); err != nil {
			return nil, err
		}
	}
	return config, nil
}

// gibbs samples the posterior given all rows (Diebolt and Robert 1994): every row's
// component, then all parameters given these. It begins at the truth, so that what it finds
// is as good as a sampler can be.
func gibbs(prior mixture.Prior, truth mixture.Mixture, rows []float64, r *rand.Rand) *mixture.Posterior {
	d, now := truth.Dim, truth
	out := &mixture.Posterior{}
	for sweep := range gibbsDiscards + gibbsSweeps {
		parts := make([][]float64, now.Components())
		logs := make([]float64, len(parts))
		l, logDet := slices.Clone(now.Covs), make([]float64, len(parts))
		for k := range parts {
			logDet[k], _ = mixture.Cholesky(l[k*d*d:][:d*d], d)
		}
		off := make([]float64, d)
		for x := range slices.Chunk(rows, d) {
			for k, w := range now.Weights {
				for i, v := range now.Mean(k) {
					off[i] = x[i] - v
				}
				mixture.Forward(l[k*d*d:][:d*d], d, off)
				logs[k] = math.Log(w) - (logDet[k]+mixture.Squares(off))/2
			}
			top, sum := slices.Max(logs), 0.0
			for k, v := range logs {
				logs[k] = math.Exp(v - top)
				sum += logs[k]
			}
			for k := range logs {
				logs[k] /= sum
			}
			k := mixture.Pick(r, logs)
			parts[k] = append(parts[k], x...)
		}
		now = toy.Conjugate(prior, parts, 1, r).Draws[0]
		if sweep >= gibbsDiscards {
			out.Draws = append(out.Draws, now)
			out.Weights = append(out.Weights, 1./gibbsSweeps)
		}
	}
	return out
}
