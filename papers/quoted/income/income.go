// Package income runs the income example as it is, without its privacy and at other totals,
// and tells how it predicts and what its intervals hold.
package income

import (
	"context"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"parley/dataset"
	"parley/engine/local"
	"parley/figure"
	"parley/judge/evaluate"
	"parley/method"
	"parley/methods/published/dppvi"
	"parley/methods/regression"
	"parley/methods/regression/fitted"
	"parley/papers/experiment"
	"parley/study"
)

// exampleStudy is the example's plan with other lines.
type exampleStudy struct {
	name    string
	private bool     // otherwise one run tells all
	lines   []string // old and new ones in turn
}

const (
	plan           = "examples/income/plan.yaml"
	publishedTotal = "total: {epsilon: 1, delta: 1e-5}"
	protection     = "protection: differential"
	open           = "without privacy"
	independent    = "partitioned, no privacy"
)

var exampleStudies = []exampleStudy{
	{open, false, unprotected()},
	{independent, false, slices.Concat(unprotected(),
		[]string{"  name: regression", "  name: dp-pvi\n  algorithm: exact\n  intercept: false", references, ""})},
	{"ε 1, δ 1e-5", true, nil},
	{"ε 1, δ 1e-6", true, []string{publishedTotal, "total: {epsilon: 1, delta: 1e-6}"}},
	{"ε 1000, δ 1e-5", true, []string{publishedTotal, "total: {epsilon: 1000, delta: 1e-5}"}},
}

// references is what a plan has none of where every level has a weight.
const references = `  references: [{feature: workclass, level: Private}, {feature: education, level: HS-grad}, {feature: marital-status,
    level: Never-married}, {feature: occupation, level: Adm-clerical}, {feature: relationship, level: Not-in-family},
    {feature: race, level: White}, {feature: sex, level: Female}, {feature: native-country, level: United-States}]
`

// unprotected are the changes that take a plan's privacy away.
func unprotected() []string {
	return []string{protection, "protection: none", "\n  unit: subject", "", "\n  adjacency: add-remove", "",
		"\n  " + publishedTotal, "", "\n  diagnostics: 0.05", ""}
}

// with replaces lines of a plan, each of which must be there.
func with(plan string, lines []string) (string, error) {
	for i := 0; i < len(lines); i += 2 {
		if strings.Count(plan, lines[i]) != 1 {
			return "", fmt.Errorf("the plan has %q %d times, want once", strings.TrimSpace(lines[i]),
				strings.Count(plan, lines[i]))
		}
		plan = strings.Replace(plan, lines[i], lines[i+1], 1)
	}
	return plan, nil
}

// fit is what one run of the example found.
type fit struct {
	marks     map[string]float64 // on the rows kept for testing
	commonest float64            // share of the commonest outcome there
	names     []string           // of the weights
	mean, sd  []float64          // of every weight
}

// Experiments are those of this package.
func Experiments() experiment.List { return experiment.List{example()} }

const runs = 5 // of a private study

func (s exampleStudy) id(run int) string { return experiment.Slug(fmt.Sprintf("%s %d", s.name, run+1)) }

// The names of a run's values, and what those of a weight, its mean and standard deviation,
// begin with.
const (
	commonest = "commonest"
	weights   = "weight "
)

var measures = []string{evaluate.MeasureAccuracy, evaluate.MeasureLogLik, evaluate.MeasureCalibration}

func example() experiment.Experiment {
	return experiment.Experiment{Name: "parley-income",
		Cells: func(quick bool) (cells experiment.Cells) {
			for _, s := range exampleStudies {
				for run := range runs {
					if run > 0 && (quick || !s.private) || quick && s.name == independent {
						continue
					}
					cells.Add(s.id(run), func(ctx context.Context, at experiment.Data) (experiment.Values, error) {
						return s.run(ctx, filepath.Join(at.Clone, plan))
					})
				}
			}
			return cells
		},
		Conclude: func(o experiment.Outcomes) experiment.Conclusion {
			fits := map[string][]fit{}
			for _, s := range exampleStudies {
				for run := range runs {
					if v := o[s.id(run)]; v != nil {
						fits[s.name] = append(fits[s.name], fitOf(v))
					}
				}
			}
			tables := []figure.Table{predictions(fits)}
			if len(fits[independent]) > 0 { // which a quick run leaves out
				tables = append(tables, intervals(fits), watchedWeights(fits))
			}
			return experiment.Conclusion{Tables: tables}
		},
	}
}

// fitOf reads what a run has left.
func fitOf(v experiment.Values) (f fit) {
	f.commonest, f.marks = v[commonest][0], map[string]float64{}
	for _, name := range measures {
		f.marks[name] = v[name][0]
	}
	for _, key := range slices.Sorted(maps.Keys(v)) {
		if name, ok := strings.CutPrefix(key, weights); ok {
			f.names, f.mean, f.sd = append(f.names, name), append(f.mean, v[key][0]), append(f.sd, v[key][1])
		}
	}
	return f
}

func predictions(fits map[string][]fit) figure.Table {
	t := figure.Table{ID: "predictions", Title: "Predictions", Caption: fmt.Sprintf("On the rows kept for testing: "+
		"mean ± standard deviation of %d runs with different noise.", runs),
		Columns: figure.TextColumns("study", "correct", "log-likelihood", "calibration error")}
	for i, s := range exampleStudies {
		all := fits[s.name]
		if len(all) == 0 {
			continue
		}
		if i == 0 {
			t.Add("the same answer for everybody", fmt.Sprintf("%.2f %%", 100*all[0].commonest), "", "")
		}
		of := func(name string, scale float64, format string) string {
			var x []float64
			for _, f := range all {
				x = append(x, scale*f.marks[name])
			}
			return plusMinus(x, format)
		}
		t.Add(s.name, of(evaluate.MeasureAccuracy, 100, "%.2f")+" %", of(evaluate.MeasureLogLik, 1, "%.4f"),
			of(evaluate.MeasureCalibration, 1, "%.4f"))
	}
	return t
}

// run runs the example's plan with the study's lines.
func (s exampleStudy) run(ctx context.Context, plan string) (experiment.Values, error) {
	original, err := os.ReadFile(plan)
	if err != nil {
		return nil, err
	}
	text, err := with(string(original), s.lines)
	if err != nil {
		return nil, err
	}
	methods := method.Registry{regression.Method{}, dppvi.Method{}}
	p, err := study.Parse(plan, []byte(text), methods)
	if err != nil {
		return nil, err
	}
	p.Local.Data = filepath.Join(filepath.Dir(plan), p.Local.Data)
	b, err := local.Bind(ctx, p, nil)
	if err != nil {
		return nil, err
	}
	out, err := local.Run(ctx, local.Config{Plan: p, Methods: methods, Data: b.Data, Policy: b.Policy})
	if err != nil {
		return nil, err
	}
	held, err := keptForTesting(ctx, p)
	if err != nil {
		return nil, err
	}
	of, _ := methods.Lookup(p.Method.Name)
	outcome, err := of.(method.Supervised).Outcome(p)
	if err != nil {
		return nil, err
	}
	predictor, err := regression.Method{}.Evaluator(p, out.Result.Files, false)
	if err != nil {
		return nil, err
	}
	j, err := outcome.Judge(ctx, predictor, held, 0.9)
	if err != nil {
		return nil, err
	}
	model, err := method.ModelJSON(out.Result.Files)
	if err != nil {
		return nil, err
	}
	m, err := fitted.LoadModel(model)
	if err != nil {
		return nil, err
	}
	v := experiment.Values{}
	for _, name := range measures {
		v[name] = []float64{j.Marks.Get(name)}
	}
	mean, variance := m.Posterior.Moments()
	for i, name := range m.Encoding.Features() {
		v[weights+name] = []float64{mean[i], math.Sqrt(variance[i])}
	}
	share, err := largestShare(ctx, held)
	v[commonest] = []float64{share}
	return v, err
}

// keptForTesting are the rows that no site has.
func keptForTesting(ctx context.Context, p *study.Plan) (*dataset.Table, error) {
	schema := p.Schema()
	dir, err := dataset.Open(ctx, p.Local.Data, dataset.Options{Schema: &schema})
	if err != nil {
		return nil, err
	}
	table, err := dataset.Collect(ctx, dir)
	if err != nil {
		return nil, err
	}
	at := slices.Index(p.Subjects, p.Local.Split.By)
	var rows []int
	for i := range table.Len() {
		if table.Row(i).Subject[at] == "test" {
			rows = append(rows, i)
		}
	}
	return table.Select(rows...), nil
}

// largestShare is that of the commonest outcome, which is the first subject column.
func largestShare(ctx context.Context, rows *dataset.Table) (float64, error) {
	count := map[string]int{}
	most := 0
	for row, err := range rows.Rows(ctx) {
		if err != nil {
			return 0, err
		}
		count[row.Subject[0]]++
		most = max(most, count[row.Subject[0]])
	}
	return float64(most) / float64(rows.Len()), nil
}

// watched are weights, and differences of two, of which one has too much what the other
// has too little.
var watched = [][]string{
	{"age"}, {"education-num"}, {"sex=Male"}, {"marital-status=Married-civ-spouse"}, {"relationship=Husband"},
	{"relationship=Wife"},
}

// intervals tells how far private weights are from those without privacy.
func intervals(fits map[string][]fit) figure.Table {
	truth := fits[open][0]
	t := figure.Table{ID: "intervals", Title: "Intervals of weights",
		Caption: "Held: estimates without privacy that lie in the intervals. Spread: " +
			"standard deviation between runs, in stated ones.",
		Columns: figure.TextColumns("study", "held by 90 % intervals", "spread: root mean square", "median", "largest")}
	for _, s := range exampleStudies {
		all := fits[s.name]
		if !s.private || !slices.Equal(all[0].names, truth.names) { // every level has a weight in the mean field
			continue
		}
		var held []float64
		for _, f := range all {
			held = append(held, 100*holds(f, truth))
		}
		spread := between(all)
		most := slices.Index(spread, slices.Max(spread))
		t.Add(s.name, fmt.Sprintf("%.0f to %.0f %%", slices.Min(held), slices.Max(held)),
			fmt.Sprintf("%.2f", rootMeanSquare(spread)),
			fmt.Sprintf("%.2f", experiment.Median(spread)), fmt.Sprintf("%.2f (%s)", spread[most], truth.names[most]))
	}
	return t
}

// watchedWeights shows some weights in every study.
func watchedWeights(fits map[string][]fit) figure.Table {
	t := figure.Table{ID: "weights", Title: "Some weights", Caption: "Means, over several runs their range, " +
		"and stated standard deviations.", Columns: figure.TextColumns("weight")}
	for _, s := range exampleStudies {
		t.Columns = append(t.Columns, figure.Column{Name: s.name})
	}
	for _, w := range watched {
		row := []any{strings.Join(w, " − ")}
		for _, s := range exampleStudies {
			row = append(row, weight(fits[s.name], w))
		}
		t.Add(row...)
	}
	return t
}

// holds is the share of weights that a fit's 90 % intervals hold.
func holds(f, truth fit) float64 {
	const z90 = 1.6448536269514722
	n := 0
	for j, m := range f.mean {
		if math.Abs(m-truth.mean[j]) <= z90*f.sd[j] {
			n++
		}
	}
	return float64(n) / float64(len(f.mean))
}

// between returns for every weight its standard deviation between runs, in stated ones
// (root mean square).
func between(all []fit) (out []float64) {
	for j := range all[0].mean {
		var means, stated []float64
		for _, f := range all {
			means, stated = append(means, f.mean[j]), append(stated, f.sd[j])
		}
		out = append(out, stat.StdDev(means, nil)/rootMeanSquare(stated))
	}
	return out
}

func rootMeanSquare(x []float64) float64 {
	s := 0.0
	for _, v := range x {
		s += v * v
	}
	return math.Sqrt(s / float64(len(x)))
}

// weight tells a weight, or the difference of two, over runs: the mean of a single weight
// with its stated standard deviation, of several runs the range. It says so if there is none.
func weight(all []fit, which []string) string {
	var values, stated []float64
	for _, f := range all {
		v, sign := 0.0, 1.0
		for _, name := range which {
			j := slices.Index(f.names, name)
			if j < 0 {
				return "no weight " + name
			}
			v += sign * f.mean[j]
			sign = -1
			stated = append(stated, f.sd[j])
		}
		values = append(values, v)
	}
	text := fmt.Sprintf("%.2f", slices.Min(values))
	if len(all) > 1 {
		text += fmt.Sprintf(" to %.2f", slices.Max(values))
	}
	if len(which) == 1 {
		text += fmt.Sprintf(", sd %.3f", rootMeanSquare(stated))
	}
	return experiment.Minus(text)
}

// plusMinus gives mean ± standard deviation; of a single number the number.
func plusMinus(x []float64, format string) string {
	mean, sd := stat.MeanStdDev(x, nil)
	text := fmt.Sprintf(format, mean)
	if len(x) > 1 {
		text += " ± " + fmt.Sprintf(format, sd)
	}
	return experiment.Minus(text)
}
