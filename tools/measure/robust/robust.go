// Package robust measures what becomes of the factor model where data are not what it
// thinks: [Run] damages drawn data in many ways, runs whole studies on them, and prints
// how far their factors are from the true ones, how well they predict, and what they say.
package robust

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"parley/dataset"
	"parley/engine/local"
	"parley/judge/evaluate"
	"parley/method"
	"parley/method/fitted"
	"parley/methods/mvppca"
	"parley/study"
	"parley/tools/measure/flags"
)

// Run is the measurement's command line.
func Run(ctx context.Context, args []string) error {
	set := flag.NewFlagSet("robust", flag.ContinueOnError)
	noise := set.String("noise", "view,feature", "view, feature, or both")
	outliers := set.String("outliers", "exclude", "exclude, keep, or both")
	seeds := set.Int("seeds", 10, "draws of each case")
	only := set.String("case", "", "only cases whose names contain this")
	data := set.String("data", "", "folder of stored data sets, to fit with and without their outliers instead of drawn data")
	names := set.String("sets", "adcsf,brca,pseudo-adni,mfeat", "data sets there")
	count := set.Int("sites", 5, "sites that stored data are dealt out to")
	latent := set.Int("latent", 5, "factors of stored data")
	err := flags.Parse(set, args, func() error {
		if *seeds < 1 || *count < 1 || *latent < 1 {
			return fmt.Errorf("-seeds, -sites and -latent are at least 1")
		}
		return nil
	})
	if err != nil {
		return err
	}
	if *data != "" {
		return stored(ctx, *data, *names, *noise, *count, *latent, *seeds)
	}
	missed := 0
	for kind := range strings.SplitSeq(*noise, ",") {
		for rule := range strings.SplitSeq(*outliers, ",") {
			fmt.Printf("\nNoise per %s, outliers: %s, %d draws: medians, and how often the verdict was said\n\n", kind, rule, *seeds)
			fmt.Println("| damage | largest angle to the true factors | held-out nats a row | error of hidden views | coverage of 90 % | said | other verdicts | ended in an error |")
			fmt.Println("|---|---:|---:|---:|---:|---:|---:|---:|")
			for _, m := range damages {
				if !strings.Contains(m.name, *only) {
					continue
				}
				ok, err := m.report(ctx, kind, rule, *seeds)
				if err != nil {
					return err
				}
				if !ok && rule == "exclude" {
					missed++
				}
			}
		}
	}
	if missed > 0 {
		return fmt.Errorf("%d cases are neither harmless nor named", missed)
	}
	return nil
}

// report prints a line, and says whether the case is named or harmless in nine draws of ten.
func (m *damage) report(ctx context.Context, noise, outliers string, seeds int) (ok bool, err error) {
	var all []outcome
	said, others, failed := 0, 0, 0
	for seed := range seeds {
		o, err := m.run(ctx, uint64(seed), noise, outliers)
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		if err != nil {
			log.Printf("%s, seed %d: the study ended: %v", m.name, seed, err)
			failed++
			continue
		}
		all = append(all, *o)
		here := 0
		for _, v := range o.verdicts {
			if m.want != "" && strings.Contains(v, m.want) {
				here = 1
			} else {
				others++
			}
		}
		said += here
		for _, v := range o.verdicts {
			log.Printf("%s, seed %d: %s", m.name, seed, v)
		}
	}
	middle := func(of func(outcome) float64) float64 {
		var x []float64
		for _, o := range all {
			x = append(x, of(o))
		}
		return median(x)
	}
	if len(all) == 0 {
		fmt.Printf("| %s | | | | | | | %d |\n", m.name, failed)
		return false, nil
	}
	fmt.Printf("| %s | %.1f° | %.2f | %.3f | %.3f | %d | %d | %d |\n", m.name,
		middle(func(o outcome) float64 { return o.angle }), middle(func(o outcome) float64 { return stat.Mean(o.nats, nil) }),
		middle(func(o outcome) float64 { return o.rmse }), middle(func(o outcome) float64 { return o.cover }), said, others, failed)
	return failed == 0 && (m.want == "" || 10*said >= 9*seeds), nil
}

// outcome is what came of one study.
type outcome struct {
	angle       float64   // largest principal angle between fitted and true factors, degrees
	nats        []float64 // of each test row, in units of the features
	rmse, cover float64   // of views that are hidden in test rows
	ratio       []float64 // by view: squared error of what is hidden over that of its mean
	verdicts    []string
}

var methods = method.Registry{mvppca.Method{}}

// run runs a study.
func (m *damage) run(ctx context.Context, seed uint64, noise, outliers string) (*outcome, error) {
	t, x, test := m.draw(seed)
	names := evaluate.SiteNames(len(x))
	data := map[string]dataset.Source{}
	var schema dataset.Schema
	for s, rows := range x {
		at, err := table(names[s], rows)
		if err != nil {
			return nil, err
		}
		data[names[s]], schema = at, at.Schema()
	}
	plan, err := planOf(schema, names, factors+m.spare, seed, noise, outliers)
	if err != nil {
		return nil, err
	}
	result, err := local.Run(ctx, local.Config{Plan: plan, Methods: methods, Data: data})
	if err != nil {
		return nil, err
	}
	o := &outcome{verdicts: result.Result.Verdicts()}
	if o.angle, err = t.angle(result.Result.Files); err != nil {
		return nil, err
	}
	model, err := mvppca.Method{}.Evaluator(plan, result.Result.Files, false)
	if err != nil {
		return nil, err
	}
	rows, err := table("test", test)
	if err != nil {
		return nil, err
	}
	return o, o.predict(model.(evaluate.Predictive), rows)
}

func planOf(schema dataset.Schema, sites []string, latent int, seed uint64, noise, outliers string) (*study.Plan, error) {
	var views []map[string]any
	for _, v := range schema.Views {
		var features []string
		for _, c := range v.Columns {
			features = append(features, c.Name)
		}
		views = append(views, map[string]any{"name": v.Name, "features": features})
	}
	// JSON is YAML.
	text, err := json.Marshal(map[string]any{
		"parley": study.Version, "name": "robust", "seed": seed, "sites": sites, "views": views, "privacy": map[string]any{"protection": "none"},
		"method": map[string]any{"name": mvppca.Method{}.Name(), "latent": latent, "noise": noise, "outliers": outliers},
	})
	if err != nil {
		return nil, fmt.Errorf("writing the plan: %w", err)
	}
	return study.Parse("plan", text, methods)
}

// angle is the largest principal angle between the spans of fitted and true loadings.
func (t *truth) angle(files []method.File) (float64, error) {
	data, err := fitted.JSON(files)
	if err != nil {
		return 0, err
	}
	var m struct {
		Views []struct {
			Features []struct {
				Factor   float64
				Loadings []float64
			}
		}
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return 0, err
	}
	var found, truth []float64
	j := 0
	for _, v := range m.Views {
		for _, f := range v.Features {
			for _, w := range f.Loadings {
				found = append(found, w/f.Factor)
			}
			truth = append(truth, t.w[j]...)
			j++
		}
	}
	a, b := basis(found, j), basis(truth, j)
	var product mat.Dense
	product.Mul(a.T(), b)
	var svd mat.SVD
	if !svd.Factorize(&product, mat.SVDNone) {
		return 0, fmt.Errorf("the angles did not converge")
	}
	values := svd.Values(nil)
	return 180 / math.Pi * math.Acos(min(1, values[len(values)-1])), nil
}

// basis is an orthonormal basis of the span of loadings.
func basis(w []float64, d int) *mat.Dense {
	var svd mat.SVD
	svd.Factorize(mat.NewDense(d, len(w)/d, w), mat.SVDThin)
	var u mat.Dense
	svd.UTo(&u)
	return &u
}

// predict scores a model on test rows, whose views are hidden one at a time.
func (o *outcome) predict(model evaluate.Predictive, data *dataset.Table) error {
	var post, nothing evaluate.Posterior
	views := data.Schema().Views
	sd := make([][]float64, len(views))
	for k, v := range views {
		sd[k] = make([]float64, len(v.Columns))
	}
	if err := model.Predict(&dataset.Row{Views: make([][]float64, len(views))}, &nothing, sd); err != nil {
		return err
	}
	squares, within, cells := 0.0, 0.0, 0.0
	errors, spread := make([]float64, len(views)), make([]float64, len(views))
	for i := range data.Len() {
		row := data.Row(i)
		if err := model.Infer(&row, &post); err != nil {
			return err
		}
		o.nats = append(o.nats, post.LogLik)
		for k, hidden := range row.Views {
			if hidden == nil {
				continue
			}
			rest := row
			rest.Views = slices.Clone(row.Views)
			rest.Views[k] = nil
			if err := model.Predict(&rest, &post, sd); err != nil {
				return err
			}
			for j, v := range hidden {
				if math.IsNaN(v) {
					continue
				}
				off, plain := v-post.Mean[k][j], v-nothing.Mean[k][j]
				squares, cells = squares+off*off, cells+1
				scale := sd[k][j] * sd[k][j] // features of any units count alike
				errors[k], spread[k] = errors[k]+off*off/scale, spread[k]+plain*plain/scale
				if math.Abs(off) < 1.6448536269514722*sd[k][j] {
					within++
				}
			}
		}
	}
	o.rmse, o.cover = math.Sqrt(squares/cells), within/cells
	for k := range views {
		o.ratio = append(o.ratio, errors[k]/spread[k])
	}
	return nil
}

func median(x []float64) float64 {
	slices.Sort(x)
	return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
}
