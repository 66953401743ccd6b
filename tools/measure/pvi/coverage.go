package pvi

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"parley/dataset"
	"parley/experiment"
	"parley/experiment/dppvi"
	"parley/methods/pvi/options"
	"parley/methods/pvi/use"
)

const z90 = 1.6448536269514722

// runCoverage prints what 90 % intervals hold over simulated data sets: of each outcome without
// privacy, and of the private default.
func runCoverage(ctx context.Context, c *config) error {
	if err := c.openCoverage(ctx); err != nil {
		return err
	}
	return c.privateCoverage(ctx)
}

// privateCoverage prints also how much wider intervals are than those of the exact posterior.
func (c *config) privateCoverage(ctx context.Context) error {
	s := simulation{8, 0.5, 0.7, -0.7, equal(10, 400)}
	fmt.Printf("\n%d data sets of 10 × 400 rows with 8 numbers.\n\n| ε | 90 %% intervals that hold the truth | median sd over the exact one |\n|---|---|---|\n", c.seeds)
	for _, total := range c.totals {
		held, cases := 0, 0
		var wider []float64
		for seed := range uint64(c.seeds) {
			p, err := s.draw(1000 + seed)
			if err != nil {
				return err
			}
			m, _, err := fitOf(ctx, p, jointVariant, &total, false)
			if err != nil {
				return err
			}
			exact, _, err := fitOf(ctx, p, options.VariantPartitioned, nil, true)
			if err != nil {
				return err
			}
			_, plain := exact.Posterior.Moments()
			mean, variance := m.Posterior.Moments()
			for j, name := range m.Encoding.Features() {
				cases++
				if math.Abs(mean[j]-p.truth[name]) <= z90*math.Sqrt(variance[j]) {
					held++
				}
				wider = append(wider, math.Sqrt(variance[j]/plain[j]))
			}
		}
		fmt.Printf("| %v | %.3f | %.1f |\n", total.Epsilon, float64(held)/float64(cases), experiment.Median(wider))
	}
	return nil
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
	{"two classes", []string{"y"}, map[string]any{"outcome": map[string]any{"column": "y", "levels": noYes}}, map[string]float64{"intercept": level},
		func(r *rand.Rand, a float64) []string { return []string{yes(chance(r, level+a))} }, 60},
	{"number", []string{"y"}, map[string]any{"outcome": map[string]any{"column": "y"}}, map[string]float64{"intercept": level},
		func(r *rand.Rand, a float64) []string {
			return []string{strconv.FormatFloat(level+a+r.NormFloat64(), 'g', -1, 64)}
		}, 60},
	{"count", []string{"y"}, map[string]any{"outcome": map[string]any{"column": "y"}, "likelihood": "poisson"}, map[string]float64{"intercept": level},
		func(r *rand.Rand, a float64) []string {
			k := 0
			for left := math.Exp(level+a) - r.ExpFloat64(); left > 0; left -= r.ExpFloat64() {
				k++
			}
			return []string{strconv.Itoa(k)}
		}, 60},
	{"time until an event", []string{"days", "died"}, map[string]any{"outcome": map[string]any{"column": "days", "event": "died", "levels": noYes, "cuts": []int{30, 60, 90}}}, map[string]float64{},
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

// openCoverage runs each outcome without privacy over five sites with four correlated
// features, whose weights are drawn with the rows.
func (c *config) openCoverage(ctx context.Context) error {
	fmt.Printf("%d data sets of 5 × 60 rows with 4 numbers.\n\n| outcome | 90 %% intervals that hold the truth | of weights |\n|---|---|---|\n", c.seeds)
	for _, o := range outcomes {
		held, cases := 0, 0
		for seed := range uint64(c.seeds) {
			m, truth, err := o.fit(ctx, rand.New(rand.NewPCG(seed, 29)))
			if err != nil {
				return fmt.Errorf("%s, set %d: %w", o.name, seed, err)
			}
			names := m.Encoding.Features()
			mean, variance := m.Posterior.Moments()
			for name, w := range truth {
				i := slices.Index(names, name)
				if i < 0 {
					return fmt.Errorf("%s: there is no weight of %s among %v", o.name, name, names)
				}
				cases++
				if math.Abs(mean[i]-w) <= z90*math.Sqrt(variance[i]) {
					held++
				}
			}
		}
		fmt.Printf("| %s | %.3f | %d |\n", o.name, float64(held)/float64(cases), cases)
	}
	return nil
}

// fit draws a data set and fits it as a study.
func (o *observed) fit(ctx context.Context, r *rand.Rand) (*use.Model, map[string]float64, error) {
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
		names, view.Columns = append(names, name), append(view.Columns, dataset.Column{Name: name, Kind: dataset.Number})
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
			rows = append(rows, dataset.Row{ID: fmt.Sprintf("%04d", i), Views: [][]float64{x}, Subject: o.observe(r, a)})
		}
		table, err := dataset.NewTable(schema, rows)
		if err != nil {
			return nil, nil, err
		}
		data[fmt.Sprintf("s%d", site)] = table
	}
	m, _, err := p.study(ctx, o.options, data, nil)
	return m, truth, err
}
