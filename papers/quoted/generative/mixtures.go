// Package generative measures the method mixture: mixtures beside a Gibbs sampler on all rows.
package generative

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"parley/dataset"
	"parley/engine/local"
	"parley/figure"
	"parley/method"
	"parley/methods/mixture"
	"parley/methods/mixture/gmm"
	"parley/papers/deal"
	"parley/papers/experiment"
	"parley/papers/graffl/toy"
	"parley/papers/melba"
	"parley/study"
)

// Experiments are those of this package.
func Experiments() experiment.List {
	return experiment.List{mixtures(), components()}
}

const (
	mixtureBox    = 10. // features are in ± this
	gibbsDiscards = 100 // sweeps, from the truth
	gibbsSweeps   = 400 // that are kept
	lostAt        = 0.5 // of the separation: a component that is as far off was not found
)

// mixtureKind is what data sets have in common.
type mixtureKind struct {
	dim, components int
	apart           float64   // of the nearest components, in standard deviations
	rows            int       // of all sites together; 0 for as many as plan check asks for
	width           float64   // of components, in units of which they are so far apart
	weights         []float64 // nil if they fall from the first to half of it
}

// mixtureTable is kinds with so many data sets each, and a study of each for every total.
type mixtureTable struct {
	id, title string
	sets      int
	totals    []float64 // ε; 0 for no privacy
	kinds     []mixtureKind
}

var mixtureTables = []mixtureTable{
	{"apart", "9000 rows, components apart", 2, []float64{0, 5},
		mixtureGrid([]int{2, 5, 8, 10}, []int{2, 3, 4, 5}, []float64{6, 4}, 9000)},
	{"close", "900 rows, components close", 6, []float64{0, 1},
		mixtureGrid([]int{3, 5}, []int{3}, []float64{2.5}, 900)},
	{"small", "900 rows, a small component close to others", 6, []float64{0, 5, 1},
		[]mixtureKind{{2, 3, 2.5, 900, 1, []float64{0.6, 0.3, 0.1}}, {3, 3, 2.5, 900, 1, []float64{0.6, 0.3, 0.1}}}},
	{"wide", "9000 rows, other widths than the scale of the plan", 3, []float64{0, 5},
		[]mixtureKind{{5, 3, 4, 9000, 0.4, nil}, {5, 3, 4, 9000, 0.6, nil}, {5, 3, 4, 9000, 2, nil},
			{5, 3, 4, 9000, 3, nil}}},
	{"edge", "As many rows as plan check asks for", 6, []float64{1},
		[]mixtureKind{{3, 3, 4, 0, 1, nil}, {5, 5, 4, 0, 1, nil}, {8, 3, 4, 0, 1, nil}}},
}

func mixtureGrid(dims, components []int, apart []float64, rows int) (all []mixtureKind) {
	for _, d := range dims {
		for _, k := range components {
			for _, a := range apart {
				all = append(all, mixtureKind{d, k, a, rows, 1, nil})
			}
		}
	}
	return all
}

// id names the cell of a data set.
func (c mixtureKind) id(set int) string {
	return experiment.Slug(fmt.Sprintf("%d %d %g %d %g %v %d", c.dim, c.components, c.apart, c.rows, c.width,
		len(c.weights) > 0, set+1))
}

func privacyName(epsilon float64) string {
	if epsilon == 0 {
		return "none"
	}
	return fmt.Sprintf("ε %v", epsilon)
}

// The names of a run's values, before the name of its total. Errors and ranks of means are of runs
// in which neither the study nor the Gibbs sampler loses a component.
const (
	lost      = "lost"
	flagged   = "flagged" // its report has a doubt
	ownErrors = "own errors"
	ownRanks  = "own ranks"
	allErrors = "Gibbs errors"
	allRanks  = "Gibbs ranks"
	needs     = "rows needed" // says plan check; of the first data set
)

func of(name string, epsilon float64) string { return name + ", " + privacyName(epsilon) }

func mixtures() experiment.Experiment {
	return experiment.Experiment{Name: "parley-mixtures",
		Cells: func(quick bool) (cells experiment.Cells) {
			for _, t := range mixtureTables {
				for i, c := range t.kinds {
					for set := range t.sets {
						if quick && (i > 0 || set > 0) {
							continue
						}
						cells.Add(c.id(set), func(ctx context.Context, _ experiment.Data) (experiment.Values, error) {
							return c.run(ctx, uint64(firstSet+set), t.totals)
						})
					}
				}
			}
			return cells
		},
		Conclude: func(o experiment.Outcomes) (out experiment.Conclusion) {
			var all mixtureTally
			for i, t := range mixtureTables {
				table, tally, kept := t.show(o)
				out.Tables = append(out.Tables, table)
				all.join(tally)
				for _, epsilon := range t.totals {
					if i == 0 && !kept[epsilon].holds() {
						out.Broken = append(out.Broken, fmt.Sprintf("%s, %s: "+
							"the intervals of all lines together do not hold", t.title, privacyName(epsilon)))
					}
				}
			}
			out.Broken = append(out.Broken, all.broken()...)
			return out
		},
	}
}

const firstSet = 501 // the seed of the first data set

// show concludes a table: with its runs, and what came of all its lines together, by total.
func (t mixtureTable) show(o experiment.Outcomes) (out figure.Table, total mixtureTally,
	kept map[float64]*mixtureScore) {
	out = figure.Table{ID: t.id, Title: t.title,
		Columns: figure.TextColumns("features", "components", "apart", "width", "privacy", "rows by plan check",
			"found", "RMSE μ", "Gibbs", "coverage μ", "Gibbs", "intervals hold", "failing and flagged",
			"good and flagged")}
	kept = map[float64]*mixtureScore{}
	for _, epsilon := range t.totals {
		kept[epsilon] = &mixtureScore{}
	}
	for _, c := range t.kinds {
		for _, epsilon := range t.totals {
			s, needed := &mixtureScore{}, "–"
			for set := range t.sets {
				if v := o[c.id(set)]; v != nil {
					s.add(v, epsilon)
					kept[epsilon].add(v, epsilon)
					if n := v[of(needs, epsilon)]; len(n) > 0 {
						needed = mixture.RowsText(n[0])
					}
				}
			}
			if len(s.runs) == 0 {
				continue
			}
			line := s.tally()
			total.join(line)
			found, scores := 0, []any{"–", "–", "–", "–"}
			for _, r := range s.runs {
				if !r.lost {
					found++
				}
			}
			if len(s.own.Errors) > 0 {
				scores = []any{fmt.Sprintf("%.4f", s.own.RMSE()), fmt.Sprintf("%.4f", s.all.RMSE()),
					fmt.Sprintf("%.3f", s.own.Coverage(toy.Level)), fmt.Sprintf("%.3f", s.all.Coverage(toy.Level))}
			}
			of := func(x, n int) string { return fmt.Sprintf("%d of %d", x, n) }
			row := append([]any{fmt.Sprint(c.dim), fmt.Sprint(c.components), fmt.Sprint(c.apart), fmt.Sprint(c.width),
				privacyName(epsilon), needed, of(found, len(s.runs))}, scores...)
			out.Add(append(row, map[bool]string{true: "yes", false: "no"}[s.holds()], of(line.flagged, line.failing),
				of(line.alarms, line.good))...)
		}
	}
	out.Caption = fmt.Sprintf("%d data sets in each line. Of failing runs %s were flagged, of good ones %s. "+
		"All lines together:",
		t.sets, share(total.flagged, total.failing), share(total.alarms, total.good))
	for i, epsilon := range t.totals {
		if s := kept[epsilon]; len(s.own.Errors) > 0 {
			n := len(s.own.Ranks)
			out.Caption += fmt.Sprintf("%s %s RMSE %.2f times the sampler's and intervals that hold %s",
				map[bool]string{true: ";"}[i > 0], privacyName(epsilon), s.own.RMSE()/s.all.RMSE(),
				share(int(math.Round(s.own.Coverage(toy.Level)*float64(n))), n))
		}
	}
	out.Caption += "."
	return out, total, kept
}

// mixtureRun is what came of one data set.
type mixtureRun struct{ lost, flagged bool }

// mixtureScore is what came of a line.
type mixtureScore struct {
	runs     []mixtureRun
	own, all toy.Tally // means of runs that neither lost: of the study, and of the Gibbs sampler
}

// add adds a run's values.
func (s *mixtureScore) add(v experiment.Values, epsilon float64) {
	s.runs = append(s.runs, mixtureRun{v[of(lost, epsilon)][0] > 0, v[of(flagged, epsilon)][0] > 0})
	s.own.Errors, s.own.Ranks = append(s.own.Errors, v[of(ownErrors, epsilon)]...),
		append(s.own.Ranks, v[of(ownRanks, epsilon)]...)
	s.all.Errors, s.all.Ranks = append(s.all.Errors, v[of(allErrors, epsilon)]...),
		append(s.all.Ranks, v[of(allRanks, epsilon)]...)
}

const (
	leastCoverage, mostCoverage = 0.85, 0.95
	beyondChance                = 0.01
)

// holds says whether intervals of runs that are not lost hold means as often as is promised, as far as
// chance lets tell.
func (s *mixtureScore) holds() bool {
	n := len(s.own.Errors)
	if n == 0 {
		return true
	}
	hold := int(math.Round(s.own.Coverage(toy.Level) * float64(n)))
	return atMost(hold, n, leastCoverage) >= beyondChance && 1-atMost(hold-1, n, mostCoverage) >= beyondChance
}

// mixtureTally counts runs over lines.
type mixtureTally struct{ failing, flagged, good, alarms int }

// tally counts the runs of a line.
func (s *mixtureScore) tally() (line mixtureTally) {
	holds := s.holds()
	for _, r := range s.runs {
		all, flagged := &line.good, &line.alarms
		if r.lost || !holds {
			all, flagged = &line.failing, &line.flagged
		}
		*all++
		if r.flagged {
			*flagged++
		}
	}
	return line
}

func (t *mixtureTally) join(o mixtureTally) {
	t.failing, t.flagged, t.good, t.alarms = t.failing+o.failing, t.flagged+o.flagged, t.good+o.good, t.alarms+o.alarms
}

// What is promised of flags: of failing runs so many at least, of good ones so many at most.
const leastFlagged, mostAlarms = 0.95, 0.05

// broken says which promises are broken by more than chance.
func (t mixtureTally) broken() (all []string) {
	if atMost(t.flagged, t.failing, leastFlagged) < beyondChance {
		all = append(all, "of failing runs "+share(t.flagged, t.failing)+" are flagged")
	}
	if 1-atMost(t.alarms-1, t.good, mostAlarms) < beyondChance {
		all = append(all, "of good runs "+share(t.alarms, t.good)+" are flagged")
	}
	return all
}

// atMost is the chance that of n events of one probability at most x come about.
func atMost(x, n int, probability float64) float64 {
	return distuv.Binomial{N: float64(n), P: probability}.CDF(float64(x))
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
	return fmt.Sprintf("%d of %d (%.0f %%, 95 %% interval %.0f to %.0f %%)", x, n, 100*float64(x)/float64(n),
		100*lo, 100*hi)
}

// run runs the studies and the Gibbs sampler on one data set.
func (c mixtureKind) run(ctx context.Context, seed uint64, totals []float64) (experiment.Values, error) {
	r := rand.New(rand.NewPCG(seed, 21))
	if c.rows == 0 {
		n, err := c.needed(seed, totals[0])
		if err != nil {
			return nil, err
		}
		c.rows = int(math.Ceil(n))
	}
	truth := c.truth(r)
	rows := c.simulate(truth, r)
	lo, hi := slices.Repeat([]float64{-mixtureBox}, c.dim), slices.Repeat([]float64{mixtureBox}, c.dim)
	prior, err := gmm.BoxPrior(lo, hi, c.components)
	if err != nil {
		return nil, err
	}
	all := gibbs(prior, truth, rows, r)
	var whole toy.Scores
	whole.Add(all, truth)
	v := experiment.Values{}
	for _, epsilon := range totals {
		config, err := c.config(seed, rows, epsilon)
		if err != nil {
			return nil, err
		}
		out, err := local.Run(ctx, *config)
		if err != nil {
			return nil, err
		}
		post, err := toy.Sample(out.Result.Files, c.components, c.dim)
		if err != nil {
			return nil, err
		}
		if seed == firstSet && c.dim > 2 {
			n, err := c.needed(seed, epsilon)
			if err != nil {
				return nil, err
			}
			v[of(needs, epsilon)] = []float64{min(n, math.MaxFloat64)}
		}
		v[of(lost, epsilon)], v[of(flagged, epsilon)] = []float64{0}, []float64{min(out.Result.Metrics["doubts"], 1)}
		switch {
		case farthest(post, truth) > lostAt*c.apart*c.width:
			v[of(lost, epsilon)][0] = 1
		case farthest(all, truth) <= lostAt*c.apart*c.width:
			var own toy.Scores
			own.Add(post, truth)
			v[of(ownErrors, epsilon)], v[of(ownRanks, epsilon)] = own.Means.Errors, own.Means.Ranks
			v[of(allErrors, epsilon)], v[of(allRanks, epsilon)] = whole.Means.Errors, whole.Means.Ranks
		}
	}
	return v, nil
}

// needed is how many rows plan check asks for.
func (c mixtureKind) needed(seed uint64, epsilon float64) (float64, error) {
	p, err := c.plan(seed, epsilon)
	if err != nil {
		return 0, err
	}
	return p.Method.Options.(*mixture.Options).RowsNeeded(p)
}

// truth draws a mixture whose nearest means are as far apart as the kind says, with
// variances from 0.5 to 1.6, in units of its width.
func (c mixtureKind) truth(r *rand.Rand) gmm.Mixture {
	m := gmm.NewMixture(c.components, c.dim)
	for far := math.Inf(1); far > mixtureBox-c.width; {
		least := math.Inf(1)
		for i := range m.Means {
			m.Means[i] = r.NormFloat64()
		}
		for a := range c.components {
			for b := range a {
				least = min(least, math.Sqrt(gmm.SquaredDistance(m.Mean(a), m.Mean(b))))
			}
		}
		far = 0
		for i := range m.Means {
			m.Means[i] *= c.apart * c.width / least
			far = max(far, math.Abs(m.Means[i]))
		}
	}
	sum := 0.0
	for k := range c.components {
		if m.Weights[k] = 2 - float64(k)/float64(c.components-1); c.weights != nil {
			m.Weights[k] = c.weights[k]
		}
		sum += m.Weights[k]
		for i := range c.dim {
			m.Cov(k)[i*c.dim+i] = c.width * c.width * (0.5 + 1.1*r.Float64())
		}
	}
	for k := range m.Weights {
		m.Weights[k] /= sum
	}
	return m
}

// simulate draws the rows of all sites.
func (c mixtureKind) simulate(truth gmm.Mixture, r *rand.Rand) []float64 {
	of := make([]int, c.rows)
	for i := range of {
		of[i] = gmm.Pick(r, truth.Weights)
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
func farthest(p *gmm.Posterior, truth gmm.Mixture) (far float64) {
	mean := p.Mean()
	mean = mean.Reorder(gmm.Match(truth, mean, nil))
	for k := range mean.Weights {
		far = max(far, math.Sqrt(gmm.SquaredDistance(mean.Mean(k), truth.Mean(k))))
	}
	return far
}

func (c mixtureKind) plan(seed uint64, epsilon float64) (*study.Plan, error) {
	schema := melba.Schema([]int{c.dim})
	return deal.Plan(method.Registry{mixture.Method{}}, deal.Keys{"name": "mixtures", "seed": seed, "sites": toy.Sites,
		"method":  deal.Keys{"name": mixture.Method{}.Name(), "components": c.components},
		"views":   deal.Views(schema, deal.Within(mixtureBox)),
		"privacy": deal.Protected(epsilon, toy.Delta)})
}

func (c mixtureKind) config(seed uint64, rows []float64, epsilon float64) (*local.Config, error) {
	p, err := c.plan(seed, epsilon)
	if err != nil {
		return nil, err
	}
	config := &local.Config{Plan: p, Methods: method.Registry{mixture.Method{}}, Data: map[string]dataset.Source{}}
	each := (len(rows)/c.dim + len(toy.Sites) - 1) / len(toy.Sites) * c.dim
	for j, name := range toy.Sites {
		if config.Data[name], err = toy.Table(p.Schema(), rows[j*each:min((j+1)*each, len(rows))]); err != nil {
			return nil, err
		}
	}
	return config, nil
}

// gibbs samples the posterior given all rows (Diebolt and Robert 1994): every row's
// component, then all parameters given these. It begins at the truth, so that what it finds
// is as good as a sampler can be.
func gibbs(prior gmm.Prior, truth gmm.Mixture, rows []float64, r *rand.Rand) *gmm.Posterior {
	d, now := truth.Dim, truth
	out := &gmm.Posterior{}
	for sweep := range gibbsDiscards + gibbsSweeps {
		parts := make([][]float64, now.Components())
		logs := make([]float64, len(parts))
		l, logDet := slices.Clone(now.Covs), make([]float64, len(parts))
		for k := range parts {
			logDet[k], _ = gmm.Cholesky(l[k*d*d:][:d*d], d)
		}
		off := make([]float64, d)
		for x := range slices.Chunk(rows, d) {
			for k, w := range now.Weights {
				for i, v := range now.Mean(k) {
					off[i] = x[i] - v
				}
				gmm.Forward(l[k*d*d:][:d*d], d, off)
				logs[k] = math.Log(w) - (logDet[k]+gmm.Squares(off))/2
			}
			top, sum := slices.Max(logs), 0.0
			for k, v := range logs {
				logs[k] = math.Exp(v - top)
				sum += logs[k]
			}
			for k := range logs {
				logs[k] /= sum
			}
			k := gmm.Pick(r, logs)
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
