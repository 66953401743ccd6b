package pvi

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"parley/dataset"
	"parley/engine/local"
	"parley/internal/cputime"
	"parley/judge/evaluate"
	"parley/method"
	"parley/methods/pvi"
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
	settled        = "partitioned, no privacy, 200 rounds" // where nothing moves any more
)

var exampleStudies = []exampleStudy{
	{"without privacy", false, unprotected()},
	{"partitioned, no privacy", false, append(unprotected(), "  name: pvi", "  name: pvi\n  variant: partitioned")},
	{settled, false, append(unprotected(), "  name: pvi", "  name: pvi\n  variant: partitioned\n  rounds: 200")},
	{"ε 1, δ 1e-5", true, nil},
	{"ε 1, δ 1e-6", true, []string{publishedTotal, "total: {epsilon: 1, delta: 1e-6}"}},
	{"ε 1000, δ 1e-5", true, []string{publishedTotal, "total: {epsilon: 1000, delta: 1e-5}"}},
}

// unprotected are the changes that take a plan's privacy away.
func unprotected() []string {
	return []string{protection, "protection: none", "\n  unit: subject", "", "\n  adjacency: add-remove", "", "\n  " + publishedTotal, "", "\n  diagnostics: 0.05", ""}
}

// with replaces lines of a plan, each of which must be there.
func with(plan string, lines []string) (string, error) {
	for i := 0; i < len(lines); i += 2 {
		if strings.Count(plan, lines[i]) != 1 {
			return "", fmt.Errorf("the plan has %q %d times, want once", strings.TrimSpace(lines[i]), strings.Count(plan, lines[i]))
		}
		plan = strings.Replace(plan, lines[i], lines[i+1], 1)
	}
	return plan, nil
}

// fit is what one run of the example found.
type fit struct {
	marks     evaluate.Marks // on the rows kept for testing
	commonest float64        // share of the commonest outcome there
	names     []string       // of the weights
	mean, sd  []float64      // of every weight
}

// runExample runs the example as it is, without its privacy, and at other totals, and prints
// how it predicts and what its intervals hold.
func runExample(ctx context.Context, c *config) error {
	text, err := os.ReadFile(plan)
	if err != nil {
		return err
	}
	fits := map[string][]fit{}
	fmt.Printf("Rows kept for testing, mean ± standard deviation of %d runs with different noise.\n\n| study | correct | log-likelihood | calibration error | CPU s |\n|---|---:|---:|---:|---:|\n", c.seeds)
	for i, s := range exampleStudies {
		runs := c.seeds
		if !s.private {
			runs = 1
		}
		start := cputime.Used()
		for range runs {
			f, err := fitExample(ctx, string(text), s.lines)
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			if i == 0 {
				fmt.Printf("| the same answer for everybody | %.2f %% | | | |\n", 100*f.commonest)
			}
			fits[s.name] = append(fits[s.name], *f)
		}
		all := fits[s.name]
		of := func(name string, scale float64, format string) string {
			var x []float64
			for _, f := range all {
				x = append(x, scale*f.marks.Get(name))
			}
			return plusMinus(x, format)
		}
		fmt.Printf("| %s | %s %% | %s | %s | %.1f |\n", s.name, of(evaluate.MeasureAccuracy, 100, "%.2f"), of(evaluate.MeasureLogLik, 1, "%.4f"), of(evaluate.MeasureCalibration, 1, "%.4f"),
			(cputime.Used()-start).Seconds()/float64(runs))
	}
	return intervals(fits)
}

// fitExample runs the example's plan with other lines.
func fitExample(ctx context.Context, text string, lines []string) (*fit, error) {
	text, err := with(text, lines)
	if err != nil {
		return nil, err
	}
	methods := method.Registry{pvi.Method{}}
	p, err := study.Parse(plan, []byte(text), methods)
	if err != nil {
		return nil, err
	}
	p.Local.Data = filepath.Join(filepath.Dir(plan), p.Local.Data)
	b, err := local.Bind(ctx, p)
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
	outcome, err := pvi.Method{}.Outcome(p)
	if err != nil {
		return nil, err
	}
	predictor, err := pvi.Method{}.Evaluator(p, out.Result.Files, false)
	if err != nil {
		return nil, err
	}
	j, err := outcome.Judge(ctx, predictor, held, 0.9)
	if err != nil {
		return nil, err
	}
	m, err := modelOf(out.Result)
	if err != nil {
		return nil, err
	}
	f := &fit{marks: j.Marks, names: m.Encoding.Features()}
	f.mean, f.sd = m.Posterior.Moments()
	for j, v := range f.sd {
		f.sd[j] = math.Sqrt(v)
	}
	f.commonest, err = commonest(ctx, held)
	return f, err
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

// commonest is the share of the commonest outcome, which is the first subject column.
func commonest(ctx context.Context, rows *dataset.Table) (float64, error) {
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
	{"sex=Male"}, {"sex=Male", "sex=Female"}, {"marital-status=Married-civ-spouse"}, {"relationship=Husband"}, {"relationship=Husband", "relationship=Not-in-family"},
}

// intervals prints how far private weights are from those where nothing moves any more.
func intervals(fits map[string][]fit) error {
	truth := fits[settled][0]
	fmt.Print("\nWeights, beside those of partitioned without privacy after 200 rounds. Spread: standard deviation between runs, in stated ones.\n\n" +
		"| study | 90 % intervals that hold | spread: root mean square | median | largest |\n|---|---:|---:|---:|---:|\n")
	for _, s := range exampleStudies {
		if !s.private {
			continue
		}
		all := fits[s.name]
		var held []float64
		for _, f := range all {
			held = append(held, 100*holds(f, truth))
		}
		spread := between(all)
		most := slices.Index(spread, slices.Max(spread))
		fmt.Printf("| %s | %.0f to %.0f %% | %.2f | %.2f | %.2f (%s) |\n", s.name, slices.Min(held), slices.Max(held), rootMeanSquare(spread), median(spread), spread[most], truth.names[most])
	}
	fmt.Print("\n| weight |")
	for _, s := range exampleStudies {
		fmt.Printf(" %s |", s.name)
	}
	fmt.Printf("\n|---|%s\n", strings.Repeat("---:|", len(exampleStudies)))
	for _, w := range watched {
		fmt.Printf("| %s |", strings.Join(w, " − "))
		for _, s := range exampleStudies {
			text, err := weight(fits[s.name], w)
			if err != nil {
				return err
			}
			fmt.Printf(" %s |", text)
		}
		fmt.Println()
	}
	return nil
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

func median(x []float64) float64 {
	x = slices.Sorted(slices.Values(x))
	return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
}

// weight tells a weight, or the difference of two, over runs: the mean of a single weight
// with its stated standard deviation, of several runs the range.
func weight(all []fit, which []string) (string, error) {
	var values, stated []float64
	for _, f := range all {
		v, sign := 0.0, 1.0
		for _, name := range which {
			j := slices.Index(f.names, name)
			if j < 0 {
				return "", fmt.Errorf("no weight is called %s", name)
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
	return strings.ReplaceAll(text, "-", "−"), nil
}

// plusMinus gives mean ± standard deviation; of a single number the number.
func plusMinus(x []float64, format string) string {
	mean, sd := stat.MeanStdDev(x, nil)
	text := fmt.Sprintf(format, mean)
	if len(x) > 1 {
		text += " ± " + fmt.Sprintf(format, sd)
	}
	return strings.ReplaceAll(text, "-", "−")
}
