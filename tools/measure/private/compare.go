package private

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"parley/dataset"
	"parley/engine/local"
	"parley/experiment/deal"
	"parley/experiment/melba"
	"parley/judge/evaluate"
	"parley/methods/mvppca"
	"parley/tools/measure/flags"
)

// The fits that are compared, in the order of the columns.
var compared = []string{"study", "trusted curator", "noise per site", "no privacy", "the mean"}

// compare prints, for each number of subjects, sites and ε, the error of filling in views
// that are hidden and, in brackets, how many of them 90 % intervals hold; and in how many
// draws the study was worse than the mean by more than a fiftieth, and in how many it
// warned.
func compare(ctx context.Context, w io.Writer, many, folder, subjects string, draws int) error {
	counts, err := flags.Numbers(many)
	if err != nil {
		return err
	}
	kinds := []struct {
		name string
		draw func(*rand.Rand) (*data, error)
	}{}
	if folder != "" {
		rows, err := deal.Open(ctx, folder)
		if err != nil {
			return err
		}
		kinds = append(kinds, struct {
			name string
			draw func(*rand.Rand) (*data, error)
		}{fmt.Sprintf("%d rows", rows.Len()), func(r *rand.Rand) (*data, error) { return complete(ctx, r, rows) }})
	} else {
		sizes, err := flags.Numbers(subjects)
		if err != nil {
			return err
		}
		for _, n := range sizes {
			kinds = append(kinds, struct {
				name string
				draw func(*rand.Rand) (*data, error)
			}{fmt.Sprintf("%v drawn", n), func(r *rand.Rand) (*data, error) { return middling(r, int(n)) }})
		}
	}
	fmt.Fprintf(w, "| subjects | sites | ε | %s | worse, warned |\n|---|---:|---:|%s---:|\n", strings.Join(compared, " | "), strings.Repeat("---:|", len(compared)))
	for _, kind := range kinds {
		for _, sites := range counts {
			for _, epsilon := range epsilons {
				line, err := compareAt(ctx, kind.draw, int(sites), epsilon, draws)
				if err != nil {
					return fmt.Errorf("%s, %v sites, ε %v: %w", kind.name, sites, epsilon, err)
				}
				fmt.Fprintf(w, "| %s | %v | %v | %s |\n", kind.name, sites, epsilon, line)
			}
		}
	}
	return nil
}

// compareAt is one line of the table.
func compareAt(ctx context.Context, draw func(*rand.Rand) (*data, error), sites int, epsilon float64, draws int) (string, error) {
	errors, coverage := map[string][]float64{}, map[string][]float64{}
	worse, warnings := 0, 0
	for seed := range uint64(draws) {
		x, err := draw(rand.New(rand.NewPCG(seed, 1)))
		if err != nil {
			return "", err
		}
		fits, warned, err := x.fits(ctx, sites, epsilon, seed)
		if err != nil {
			return "", fmt.Errorf("draw %d: %w", seed, err)
		}
		unit, err := evaluate.FitMinMax(ctx, x.train)
		if err != nil {
			return "", err
		}
		for _, name := range compared {
			hidden, err := evaluate.Impute(ctx, unit, fits[name], x.test, level)
			if err != nil {
				return "", err
			}
			errors[name], coverage[name] = append(errors[name], hidden.MAE), append(coverage[name], hidden.Coverage)
		}
		if errors["study"][seed] > 1.02*errors["the mean"][seed] {
			worse++
		}
		if warned {
			warnings++
		}
	}
	var cells []string
	for _, name := range compared {
		cell := fmt.Sprintf("%.4f", stat.Mean(errors[name], nil))
		if c := stat.Mean(coverage[name], nil); !math.IsNaN(c) {
			cell += fmt.Sprintf(" (%.0f)", 100*c)
		}
		cells = append(cells, cell)
	}
	return strings.Join(append(cells, fmt.Sprintf("%d, %d of %d", worse, warnings, draws)), " | "), nil
}

// fits makes all of them for one draw, and tells whether the study warned of itself.
func (x *data) fits(ctx context.Context, sites int, epsilon float64, seed uint64) (map[string]evaluate.Model, bool, error) {
	fits := map[string]evaluate.Model{}
	warned := false
	for _, of := range []struct {
		name  string
		sites int
	}{{"trusted curator", 1}, {"study", sites}} {
		p, err := x.plan(epsilon, make([][]int, of.sites), seed)
		if err != nil {
			return nil, false, err
		}
		spread, err := deal.Spread(ctx, x.train, "", evaluate.IID, of.sites, seed)
		if err != nil {
			return nil, false, err
		}
		if of.sites == sites {
			if fits["noise per site"], err = x.plain(ctx, spread, epsilon, seed); err != nil {
				return nil, false, err
			}
			if fits["no privacy"], err = (mvppca.Method{}).Central(ctx, p, x.train); err != nil {
				return nil, false, err
			}
		}
		out, err := local.Run(ctx, local.Config{Plan: p, Methods: methods, Data: deal.BySite(spread)})
		if err != nil {
			return nil, false, err
		}
		if fits[of.name], err = (mvppca.Method{}).Evaluator(p, out.Result.Files, false); err != nil {
			return nil, false, err
		}
		warned = out.Result.Sections[0].ID == "verdicts" // of the study, which is the last
	}
	var err error
	fits["the mean"], err = evaluate.FitMean(ctx, x.train)
	return fits, warned, err
}

// middling draws n subjects for training, and half as many for testing, of views of
// 10, 10, 10 and 8 features and four factors, noise having a third of the variance.
func middling(r *rand.Rand, n int) (*data, error) {
	x := &data{q: 4}
	dims, d := []int{10, 10, 10, 8}, 38
	features := melba.Features{Mu: make([]float64, d), SD: slices.Repeat([]float64{math.Sqrt2}, d)}
	for range d {
		row := make([]float64, x.q)
		for a := range row {
			row[a] = r.NormFloat64()
		}
		features.W = append(features.W, row)
	}
	rows := make([]drawn, n+n/2)
	for i := range rows {
		rows[i].values = features.Subject(r, make([]float64, x.q))
	}
	return x, x.split(dims, rows, n)
}

// complete shuffles the complete rows of a data set, two thirds for training.
func complete(ctx context.Context, r *rand.Rand, src dataset.Source) (*data, error) {
	x := &data{q: 5}
	var dims []int
	for _, v := range src.Schema().Views {
		dims = append(dims, len(v.Columns))
	}
	var rows []drawn
	for row, err := range src.Rows(ctx) {
		if err != nil {
			return nil, err
		}
		values := slices.Concat(row.Views...)
		if !slices.ContainsFunc(values, math.IsNaN) && !slices.ContainsFunc(row.Views, func(v []float64) bool { return v == nil }) {
			rows = append(rows, drawn{values: values})
		}
	}
	r.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	return x, x.split(dims, rows, len(rows)-len(rows)/3)
}
