package regression

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"parley/dataset"
	"parley/figure"
	"parley/methods/regression/fitted"
	"parley/papers/dppvi"
	"parley/papers/experiment"
	"parley/privacy/account"
)

// The names of a cell's values.
const (
	asked = "asked" // intervals
	holds = "hold"  // of them, the truth
	wider = "wider" // standard deviations over those of the exact posterior
)

const (
	intervalSets  = 200  // of each line
	setsOfCell    = 25   // of these
	intervalDelta = 1e-5 // of private studies
)

// totals are ε of private studies.
var totals = []float64{1, 3, 8}

// few are the rows of a private study.
var few = simulation{8, 0.5, 0.7, -0.7, equal(10, 400)}

func intervalID(line string, first int) string {
	return experiment.Slug(fmt.Sprintf("%s %d", line, first))
}

func privateLine(epsilon float64) string { return fmt.Sprintf("ε %v", epsilon) }

// intervals tells what 90 % intervals hold over simulated data sets: of each outcome without
// privacy, and of the private default.
func intervals() experiment.Experiment {
	return experiment.Experiment{Name: "parley-intervals",
		Cells: func(quick bool) (cells experiment.Cells) {
			add := func(line string, fit func(ctx context.Context, set uint64, to experiment.Values) error) {
				sets, of := intervalSets, setsOfCell
				if quick {
					sets, of = 1, 1
				}
				for first := 0; first < sets; first += of {
					cells.Add(intervalID(line, first), func(ctx context.Context,
						_ experiment.Data) (experiment.Values, error) {
						v := experiment.Values{asked: {0}, holds: {0}}
						for set := first; set < first+of; set++ {
							if err := fit(ctx, uint64(set), v); err != nil {
								return nil, fmt.Errorf("%s, set %d: %w", line, set, err)
							}
						}
						return v, nil
					})
				}
			}
			for _, o := range outcomes {
				add(o.name, o.cover)
			}
			for _, epsilon := range totals {
				add(privateLine(epsilon), func(ctx context.Context, set uint64, to experiment.Values) error {
					return coverPrivate(ctx, set, account.Budget{Epsilon: epsilon, Delta: intervalDelta}, to)
				})
			}
			return cells
		},
		Conclude: concludeIntervals,
	}
}

// count says whether an interval of 90 % holds the truth.
func count(to experiment.Values, mean, variance, truth float64) {
	to[asked][0]++
	if math.Abs(mean-truth) <= fitted.Z90*math.Sqrt(variance) {
		to[holds][0]++
	}
}

// coverPrivate fits one data set by the private default, and by the exact posterior.
func coverPrivate(ctx context.Context, set uint64, total account.Budget, to experiment.Values) error {
	p, err := few.draw(ctx, experiment.Data{}, 1000+set)
	if err != nil {
		return err
	}
	m, _, err := fitOf(ctx, p, total, false)
	if err != nil {
		return err
	}
	exact, _, err := fitOf(ctx, p, account.Budget{}, true)
	if err != nil {
		return err
	}
	_, plain := exact.Posterior.Moments()
	mean, variance := m.Posterior.Moments()
	for j, name := range m.Encoding.Features() {
		count(to, mean[j], variance[j], p.truth[name])
		to[wider] = append(to[wider], math.Sqrt(variance[j]/plain[j]))
	}
	return nil
}

// cover fits one data set of an outcome.
func (o *observed) cover(ctx context.Context, set uint64, to experiment.Values) error {
	m, truth, err := o.fit(ctx, rand.New(rand.NewPCG(set, 29)))
	if err != nil {
		return err
	}
	names := m.Encoding.Features()
	mean, variance := m.Posterior.Moments()
	for name, w := range truth {
		i := slices.Index(names, name)
		if i < 0 {
			return fmt.Errorf("there is no weight of %s among %v", name, names)
		}
		count(to, mean[i], variance[i], w)
	}
	return nil
}

// shareHeld gathers the cells of a line: how many intervals, and the share that hold the truth.
func shareHeld(o experiment.Outcomes, line string) (share, all float64, wide []float64) {
	held := 0.0
	for first := range intervalSets {
		v := o[intervalID(line, first)]
		if v != nil {
			held, all, wide = held+v[holds][0], all+v[asked][0], append(wide, v[wider]...)
		}
	}
	return held / all, all, wide
}

func concludeIntervals(o experiment.Outcomes) (c experiment.Conclusion) {
	open := figure.Table{ID: "open", Title: "Without privacy",
		Caption: fmt.Sprintf("%d data sets for each outcome.", intervalSets),
		Columns: figure.TextColumns("outcome", "90 % intervals that hold the truth", "of weights")}
	private := figure.Table{ID: "private", Title: "The private default",
		Caption: fmt.Sprintf("%d data sets for each ε, δ = %v. "+
			"Widths are compared with those of a partitioned posterior without privacy.", intervalSets, intervalDelta),
		Columns: figure.TextColumns("ε", "90 % intervals that hold the truth", "median sd over the exact one")}
	promise := func(line string, share, all, low, high float64) {
		if doubt := 3 * math.Sqrt(0.09/all); share < low-doubt || share > high+doubt {
			c.Broken = append(c.Broken,
				fmt.Sprintf("%s: %.3f of the intervals hold the truth, which is not %v to %v", line, share, low, high))
		}
	}
	for _, x := range outcomes {
		share, all, _ := shareHeld(o, x.name)
		open.Add(x.name, fmt.Sprintf("%.3f", share), fmt.Sprint(all))
		promise(x.name, share, all, 0.87, 0.93)
	}
	for _, epsilon := range totals {
		share, all, wide := shareHeld(o, privateLine(epsilon))
		private.Add(fmt.Sprint(epsilon), fmt.Sprintf("%.3f", share), fmt.Sprintf("%.1f", experiment.Median(wide)))
		promise(privateLine(epsilon), share, all, 0.87, 0.97)
	}
	c.Tables = []figure.Table{open, private}
	return c
}

// observed is an outcome as plans name it, and how a subject with an activation shows it.
type observed struct {
	name     string
	columns  []string // of subjects
	options  map[string]any
	truth    map[string]float64 // beside the features' weights
	observe  func(r *rand.Rand, a float64) []string
	subjects int // at each of five sites
}

// The intercept, and the log-odds of the event in a period, of simulated subjects.
const level = -0.7

func chance(r *rand.Rand, a float64) bool { return r.Float64() < 1/(1+math.Exp(-a)) }

func yes(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

var noYes = []string{"no", "yes"}

var outcomes = []observed{
	{"two classes", []string{"y"}, map[string]any{"outcome": map[string]any{"column": "y", "levels": noYes}},
		map[string]float64{"intercept": level},
		func(r *rand.Rand, a float64) []string { return []string{yes(chance(r, level+a))} }, 60},
	{"number", []string{"y"}, map[string]any{"outcome": map[string]any{"column": "y"}},
		map[string]float64{"intercept": level},
		func(r *rand.Rand, a float64) []string {
			return []string{strconv.FormatFloat(level+a+r.NormFloat64(), 'g', -1, 64)}
		}, 60},
	{"count", []string{"y"}, map[string]any{"outcome": map[string]any{"column": "y"}, "likelihood": "poisson"},
		map[string]float64{"intercept": level},
		func(r *rand.Rand, a float64) []string {
			k := 0
			for left := math.Exp(level+a) - r.ExpFloat64(); left > 0; left -= r.ExpFloat64() {
				k++
			}
			return []string{strconv.Itoa(k)}
		}, 60},
	{"time until an event", []string{"days", "died"}, map[string]any{"outcome": map[string]any{"column": "days",
		"event": "died", "levels": noYes, "cuts": []int{30, 60, 90}}}, map[string]float64{},
		func(r *rand.Rand, a float64) []string {
			censored := 120 * r.Float64()
			for k := range 3 {
				switch end := 30 * float64(k+1); {
				case censored < end:
					return []string{strconv.FormatFloat(censored, 'g', -1, 64), "no"}
				case chance(r, 2*level+a):
					return []string{strconv.FormatFloat(end-30*r.Float64(), 'g', -1, 64), "yes"}
				}
			}
			return []string{strconv.FormatFloat(censored, 'g', -1, 64), "no"}
		}, 60},
}

// fit draws a data set of five sites, with four correlated features whose weights are drawn with
// the rows, and fits it as a study.
func (o *observed) fit(ctx context.Context, r *rand.Rand) (*fitted.Model, map[string]float64, error) {
	const d, correlation, spread = 4, 0.5, 0.5
	truth := maps.Clone(o.truth)
	p := &problem{Division: dppvi.Division{Subjects: o.columns}}
	var names []string
	var w [d]float64
	view := dataset.View{Name: "v"}
	for j := range w {
		name := fmt.Sprintf("x%d", j)
		w[j] = spread * r.NormFloat64()
		truth[name] = w[j]
		names, view.Columns = append(names, name),
			append(view.Columns, dataset.Column{Name: name, Kind: dataset.Number})
	}
	p.numbers(names...)
	schema := dataset.Schema{Views: []dataset.View{view}}
	for _, name := range o.columns {
		schema.Subject = append(schema.Subject, dataset.Column{Name: name})
	}
	data := map[string]dataset.Source{}
	for site := range 5 {
		var rows []dataset.Row
		for i := range o.subjects {
			x, a := make([]float64, d), 0.0
			for j := range x {
				x[j] = r.NormFloat64()
				if j > 0 {
					x[j] = correlation*x[j-1] + math.Sqrt(1-correlation*correlation)*x[j]
				}
				a += w[j] * x[j]
			}
			rows = append(rows,
				dataset.Row{ID: fmt.Sprintf("%04d", i), Views: [][]float64{x}, Subject: o.observe(r, a)})
		}
		table, err := dataset.NewTable(schema, rows)
		if err != nil {
			return nil, nil, err
		}
		data[fmt.Sprintf("s%d", site)] = table
	}
	m, _, err := p.study(ctx, o.options, data, account.Budget{})
	return m, truth, err
}
