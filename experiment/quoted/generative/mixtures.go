// Package generative measures the method graffl: mixtures beside a Gibbs sampler on all rows,
// the calibration of its default variant, and what synthetic rows of a scarce class are worth.
package generative

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"parley/dataset"
	"parley/engine/local"
	"parley/experiment"
	"parley/experiment/graffl/toy"
	"parley/figure"
	"parley/method"
	"parley/methods/graffl"
	"parley/methods/graffl/mixture"
	"parley/study"
)

// Experiments are those of this package.
func Experiments() experiment.List {
	return experiment.List{mixtures(), calibration(), scarce(), verdicts()}
}

const (
	mixtureBox    = 10. // features are in ± this
	gibbsDiscards = 100 // sweeps, from the truth
	gibbsSweeps   = 400 // that are kept
	lostAt        = 0.5 // of the separation: a component that is as far off was not found
	components    = 3
)

// mixtureCell is one line of a table: data sets of one kind.
type mixtureCell struct {
	dim     int
	apart   float64 // of the nearest components, in standard deviations
	rows    int     // of all sites together
	epsilon float64 // 0 for no privacy
}

// mixtureTable is lines with so many data sets each.
type mixtureTable struct {
	id, title string
	sets      int
	lines     []mixtureCell
}

var mixtureTables = []mixtureTable{
	{"apart", "Many rows, components apart", 4, []mixtureCell{{5, 4, 9000, 0}, {5, 4, 9000, 5}, {10, 4, 9000, 0}, {10, 4, 9000, 5}}},
	{"close", "Few rows, components close", 10, []mixtureCell{{3, 2.5, 900, 0}, {3, 2.5, 900, 1}, {5, 2.5, 900, 0}, {5, 2.5, 900, 1}}},
}

// id names the cell of a data set.
func (c mixtureCell) id(set int) string {
	return experiment.Slug(fmt.Sprintf("%d %g %d %s %d", c.dim, c.apart, c.rows, privacyName(c.epsilon), set+1))
}

func privacyName(epsilon float64) string {
	if epsilon == 0 {
		return "none"
	}
	return fmt.Sprintf("ε %v", epsilon)
}

// The names of a run's values. Errors and ranks of means are of runs in which neither the
// study nor the Gibbs sampler loses a component.
const (
	lost      = "lost"
	flagged   = "flagged" // its report has a doubt
	ownErrors = "own errors"
	ownRanks  = "own ranks"
	allErrors = "Gibbs errors"
	allRanks  = "Gibbs ranks"
)

func mixtures() experiment.Experiment {
	return experiment.Experiment{Name: "parley-mixtures", Paper: "parley", Item: "Mixtures beside a sampler on all rows",
		About: fmt.Sprintf("Data sets of %d components are drawn, and three sites run the default variant with them, δ = %v. Gibbs is a sampler on all rows that begins at the truth.", components, toy.Delta),
		Notes: []string{"A run is lost if a component's mean is off by half of the distance between components. It fails if it is lost, or if its line does. " +
			"A line fails if RMSE is above 1.5 times that of the Gibbs sampler, or if the share of 90 % intervals that hold the mean is below .85 or above .95, all by more than chance. " +
			"Both are taken over the runs that neither it nor the Gibbs sampler loses. Where few runs cannot tell whether RMSE is above 1.5 times (RMSE?), those that are not lost count neither as failing nor as good. A run is flagged if its report has a doubt."},
		Cells: func(quick bool) (cells []experiment.Cell) {
			for _, t := range mixtureTables {
				for i, c := range t.lines {
					for set := range t.sets {
						if quick && (i > 0 || set > 0) {
							continue
						}
						cells = append(cells, experiment.Cell{ID: c.id(set), Run: func(ctx context.Context, _ experiment.Data) (experiment.Values, error) {
							return c.run(ctx, uint64(firstSet+set))
						}})
					}
				}
			}
			return cells
		},
		Conclude: func(o experiment.Outcomes) (out experiment.Conclusion) {
			for _, t := range mixtureTables {
				out.Tables = append(out.Tables, t.show(o))
			}
			return out
		},
	}
}

const firstSet = 101 // the seed of the first data set

// show concludes a table.
func (t mixtureTable) show(o experiment.Outcomes) figure.Table {
	out := figure.Table{ID: t.id, Title: t.title,
		Columns: figure.TextColumns("features", "apart", "rows", "privacy", "found", "RMSE μ", "Gibbs", "coverage μ", "Gibbs", "fails by", "failing and flagged", "good and flagged")}
	var total mixtureTally
	for _, c := range t.lines {
		s := &mixtureScore{}
		for set := range t.sets {
			if v := o[c.id(set)]; v != nil {
				s.add(v)
			}
		}
		if len(s.runs) == 0 {
			continue
		}
		line, found, scores := total.add(s), 0, []any{"–", "–", "–", "–"}
		for _, r := range s.runs {
			if !r.lost {
				found++
			}
		}
		if len(s.own.Errors) > 0 {
			scores = []any{fmt.Sprintf("%.4f", s.own.RMSE()), fmt.Sprintf("%.4f", s.all.RMSE()), fmt.Sprintf("%.3f", s.own.Coverage(toy.Level)), fmt.Sprintf("%.3f", s.all.Coverage(toy.Level))}
		}
		out.Add(slices.Concat([]any{fmt.Sprint(c.dim), fmt.Sprint(c.apart), fmt.Sprint(c.rows), privacyName(c.epsilon), fmt.Sprintf("%d of %d", found, len(s.runs))}, scores,
			[]any{string(s.verdict()), fmt.Sprintf("%d of %d", line.flagged, line.failing), fmt.Sprintf("%d of %d", line.alarms, line.good)})...)
	}
	out.Caption = fmt.Sprintf("%d data sets in each line. Of failing runs %s were flagged, of good ones %s; of those between, %d of %d.",
		t.sets, share(total.flagged, total.failing), share(total.alarms, total.good), total.doubted, total.between)
	return out
}

// mixtureRun is what came of one data set.
type mixtureRun struct{ lost, flagged bool }

// mixtureScore is what came of a line.
type mixtureScore struct {
	runs     []mixtureRun
	own, all toy.Tally // means of runs that neither lost: of the study, and of the Gibbs sampler
}

// add adds a run's values.
func (s *mixtureScore) add(v experiment.Values) {
	s.runs = append(s.runs, mixtureRun{v[lost][0] > 0, v[flagged][0] > 0})
	s.own.Errors, s.own.Ranks = append(s.own.Errors, v[ownErrors]...), append(s.own.Ranks, v[ownRanks]...)
	s.all.Errors, s.all.Ranks = append(s.all.Errors, v[allErrors]...), append(s.all.Ranks, v[allRanks]...)
}

const (
	mostTimes                   = 1.5 // the Gibbs sampler's error
	leastCoverage, mostCoverage = 0.85, 0.95
	beyondChance                = 0.01
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
	n := float64(len(s.own.Errors))
	if n == 0 {
		return verdictGood
	}
	log, chance := s.times()
	hold := math.Round(s.own.Coverage(toy.Level) * n)
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
	own, all := s.own.Errors, s.all.Errors
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

// run runs the study and the Gibbs sampler on one data set.
func (c mixtureCell) run(ctx context.Context, seed uint64) (experiment.Values, error) {
	r := rand.New(rand.NewPCG(seed, 21))
	truth := c.truth(r)
	rows := c.simulate(truth, r)
	config, err := c.config(seed, rows)
	if err != nil {
		return nil, err
	}
	out, err := local.Run(ctx, *config)
	if err != nil {
		return nil, err
	}
	post, err := toy.Sample(out.Result.Files, components, c.dim)
	if err != nil {
		return nil, err
	}
	v := experiment.Values{lost: {0}, flagged: {0}}
	if out.Result.Metrics["doubts"] > 0 {
		v[flagged][0] = 1
	}
	if farthest(post, truth) > lostAt*c.apart {
		v[lost][0] = 1
		return v, nil
	}
	lo, hi := slices.Repeat([]float64{-mixtureBox}, c.dim), slices.Repeat([]float64{mixtureBox}, c.dim)
	prior, err := mixture.BoxPrior(lo, hi, components)
	if err != nil {
		return nil, err
	}
	if all := gibbs(prior, truth, rows, r); farthest(all, truth) <= lostAt*c.apart {
		var own, whole toy.Scores
		own.Add(post, truth)
		whole.Add(all, truth)
		v[ownErrors], v[ownRanks] = own.Means.Errors, own.Means.Ranks
		v[allErrors], v[allRanks] = whole.Means.Errors, whole.Means.Ranks
	}
	return v, nil
}

// truth draws a mixture whose nearest means are as far apart as the cell says, with
// variances from 0.5 to 1.6 and weights that fall from the first to half of it.
func (c mixtureCell) truth(r *rand.Rand) mixture.Mixture {
	m := mixture.NewMixture(components, c.dim)
	for far := math.Inf(1); far > mixtureBox-1; {
		least := math.Inf(1)
		for i := range m.Means {
			m.Means[i] = r.NormFloat64()
		}
		for a := range components {
			for b := range a {
				least = min(least, math.Sqrt(mixture.SquaredDistance(m.Mean(a), m.Mean(b))))
			}
		}
		far = 0
		for i := range m.Means {
			m.Means[i] *= c.apart / least
			far = max(far, math.Abs(m.Means[i]))
		}
	}
	sum := 0.0
	for k := range components {
		m.Weights[k] = 2 - float64(k)/(components-1)
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

// simulate draws the rows of all sites.
func (c mixtureCell) simulate(truth mixture.Mixture, r *rand.Rand) []float64 {
	of := make([]int, c.rows)
	for i := range of {
		of[i] = mixture.Pick(r, truth.Weights)
	}
	rows := make([]float64, 0, c.rows*c.dim)
	for _, k := range of {
		for i, mean := range truth.Mean(k) {
			rows = append(rows, mean+math.Sqrt(truth.Cov(k)[i*c.dim+i])*r.NormFloat64())
		}
	}
	return rows
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
		"parley": study.Version, "name": "mixtures", "seed": seed, "sites": toy.Sites, "method": map[string]any{"name": graffl.Method{}.Name(), "components": components},
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
