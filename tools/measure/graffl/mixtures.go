package graffl

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

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
}

// mixtureScore is what came of a line.
type mixtureScore struct {
	own, all                    toy.Scores // of the study, and of the Gibbs sampler
	found                       toy.Scores // of those runs that were not lost
	lost, flagged, alarms, sets int
	seconds                     float64
}

func mixtures(ctx context.Context, args []string) error {
	set := flag.NewFlagSet("mixtures", flag.ContinueOnError)
	sets := set.Int("sets", 10, "data sets of each line, from seeds 1, 2, …")
	dims := set.String("features", "2,5,8,10", "numbers of features")
	comps := set.String("components", "2,3,5", "numbers of components")
	aparts := set.String("apart", "6,4", "standard deviations between the nearest components")
	rows := set.Int("rows", 9000, "rows of three sites together")
	epsilons := set.String("epsilon", "0,5", "totals ε; 0 for no privacy")
	var ds, ks, as, es []float64
	if err := flags.Parse(set, args, func() (err error) {
		for _, x := range []struct {
			to   *[]float64
			text string
		}{{&ds, *dims}, {&ks, *comps}, {&as, *aparts}, {&es, *epsilons}} {
			if *x.to, err = flags.Numbers(x.text); err != nil {
				return err
			}
		}
		if *sets < 1 || *rows < 30 || slices.Min(ds) < 1 || slices.Min(ks) < 1 || slices.Min(as) <= 0 || slices.Min(es) < 0 {
			return fmt.Errorf("want sets, rows, features, components and distances, and no negative ε")
		}
		return nil
	}); err != nil {
		return err
	}
	fmt.Printf("%d data sets a line, %d rows at three sites, δ = %v. A run is lost if a component's mean is off by half of the distance between components; flagged if its report has a doubt. Gibbs is a sampler on all rows that begins at the truth.\n\n", *sets, *rows, toy.Delta)
	fmt.Println("| features | components | apart | privacy | RMSE μ | Gibbs | coverage μ | Gibbs | found | RMSE μ if found | lost and flagged | found and flagged | CPU s |")
	fmt.Println("|---:|---:|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
	lost, flagged, alarms, all := 0, 0, 0, 0
	for _, d := range ds {
		for _, k := range ks {
			for _, apart := range as {
				for _, epsilon := range es {
					c := mixtureCell{int(d), int(k), apart, *rows, epsilon}
					s, err := c.measure(ctx, *sets)
					if err != nil {
						return err
					}
					found := "–"
					if s.sets > s.lost {
						found = fmt.Sprintf("%.4f", s.found.Means.RMSE())
					}
					fmt.Printf("| %d | %d | %g | %s | %.4f | %.4f | %.3f | %.3f | %d of %d | %s | %d of %d | %d of %d | %.1f |\n", c.dim, c.components, apart, privacyName(epsilon), s.own.Means.RMSE(), s.all.Means.RMSE(),
						s.own.Means.Coverage(toy.Level), s.all.Means.Coverage(toy.Level), s.sets-s.lost, s.sets, found, s.flagged, s.lost, s.alarms, s.sets-s.lost, s.seconds/float64(s.sets))
					lost, flagged, alarms, all = lost+s.lost, flagged+s.flagged, alarms+s.alarms, all+s.sets
				}
			}
		}
	}
	fmt.Printf("\nOf %d lost runs %d were flagged, of %d others %d.\n", lost, flagged, all-lost, alarms)
	return nil
}

func (c mixtureCell) measure(ctx context.Context, sets int) (*mixtureScore, error) {
	s := &mixtureScore{sets: sets}
	for seed := range sets {
		if err := c.one(ctx, uint64(seed+1), s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// one runs the study and the Gibbs sampler on one data set.
func (c mixtureCell) one(ctx context.Context, seed uint64, s *mixtureScore) error {
	r := rand.New(rand.NewPCG(seed, 21))
	truth := c.truth(r)
	rows := make([]float64, c.rows*c.dim)
	if err := truth.Simulate(r, rows); err != nil {
		return err
	}
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
	lo, hi := slices.Repeat([]float64{-mixtureBox}, c.dim), slices.Repeat([]float64{mixtureBox}, c.dim)
	prior, err := mixture.BoxPrior(lo, hi, c.components)
	if err != nil {
		return err
	}
	s.own.Add(post, truth)
	s.all.Add(gibbs(prior, truth, rows, r), truth)
	mean, far := post.Mean(), 0.0
	mean = mean.Reorder(mixture.Match(truth, mean, nil))
	for k := range c.components {
		far = max(far, math.Sqrt(mixture.SquaredDistance(mean.Mean(k), truth.Mean(k))))
	}
	flagged := out.Result.Metrics["doubts"] > 0
	if far > lostAt*c.apart {
		s.lost++
		if flagged {
			s.flagged++
		}
		return nil
	}
	s.found.Add(post, truth)
	if flagged {
		s.alarms++
	}
	return nil
}

// truth draws a mixture whose nearest means are as far apart as the cell says, with
// variances from 0.5 to 1.6 and weights that fall from the first to half of it.
func (c mixtureCell) truth(r *rand.Rand) mixture.Mixture {
	m := mixture.NewMixture(c.components, c.dim)
	for far := math.Inf(1); far > mixtureBox-1; {
		least := math.Inf(1)
		for i := range m.Means {
			m.Means[i] = r.NormFloat64()
		}
		for a := range c.components {
			for b := range a {
				least = min(least, math.Sqrt(mixture.SquaredDistance(m.Mean(a), m.Mean(b))))
			}
		}
		far = 0
		for i := range m.Means {
			if c.components > 1 {
				m.Means[i] *= c.apart / least
			}
			far = max(far, math.Abs(m.Means[i]))
		}
	}
	sum := 0.0
	for k := range c.components {
		m.Weights[k] = 2 - float64(k)/float64(max(c.components-1, 1))
		sum += m.Weights[k]
		for i := range c.dim {
			m.Cov(k)[i*c.dim+i] = 0.5 + 1.1*r.Float64()
		}
	}
	for k := range m.Weights {
		m.Weights[k] /= sum
	}
	return m
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
