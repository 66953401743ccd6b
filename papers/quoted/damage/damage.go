// Package damage measures what becomes of the factor model where data are not what it
// thinks: drawn data are damaged in many ways, and whole studies run on them, to see how far
// their factors are from the true ones, how well they predict, and what they say.
package damage

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"parley/dataset"
	"parley/engine/local"
	"parley/figure"
	"parley/judge/evaluate"
	"parley/method"
	"parley/methods/factors"
	"parley/papers/deal"
	"parley/papers/experiment"
)

// Experiments are those of this package.
func Experiments() experiment.List { return experiment.List{damaged()} }

// rules are what a plan says of outliers.
var rules = []string{"exclude", "keep"}

const draws = 10 // of each kind of damage

// The names of a cell's values, a number for each draw that did not end in an error, but
// for the last.
const (
	angle  = "angle"  // largest principal angle between fitted and true factors, degrees
	nats   = "nats"   // mean of the test rows
	rmse   = "rmse"   // of hidden views
	cover  = "cover"  // share of hidden values in intervals of 90 %
	said   = "said"   // 1 if a verdict names the damage
	others = "others" // how many verdicts do not
	failed = "failed" // how many draws ended in an error: one number
)

func (m *damage) id(rule string) string { return experiment.Slug(rule + " " + m.name) }

func damaged() experiment.Experiment {
	return experiment.Experiment{Name: "parley-damage",
		Cells: func(quick bool) (cells experiment.Cells) {
			kinds, n := damages, draws
			if quick {
				kinds, n = damages[:2], 1
			}
			for _, rule := range rules {
				for _, m := range kinds {
					cells.Add(m.id(rule), func(ctx context.Context, _ experiment.Data) (experiment.Values, error) {
						return m.measure(ctx, rule, n)
					})
				}
			}
			return cells
		},
		Conclude: func(o experiment.Outcomes) (out experiment.Conclusion) {
			for _, rule := range rules {
				t := figure.Table{ID: rule, Title: "Outliers: " + rule,
					Caption: fmt.Sprintf("Medians over %d draws, "+
						"and how many draws had the verdict that names the damage.", draws),
					Columns: figure.TextColumns("damage", "largest angle to the true factors", "nats of a held-out row",
						"error of hidden views", "held by 90 % intervals", "named", "other verdicts",
						"ended in an error")}
				for _, m := range damages {
					v := o[m.id(rule)]
					if len(v[angle]) == 0 {
						continue
					}
					t.Add(m.name, fmt.Sprintf("%.1f°", experiment.Median(v[angle])),
						experiment.Minus(fmt.Sprintf("%.2f", experiment.Median(v[nats]))),
						fmt.Sprintf("%.3g", experiment.Median(v[rmse])),
						fmt.Sprintf("%.3f", experiment.Median(v[cover])),
						fmt.Sprint(floats.Sum(v[said])), fmt.Sprint(floats.Sum(v[others])),
						fmt.Sprint(floats.Sum(v[failed])))
					if floats.Sum(v[failed]) > 0 ||
						rule == rules[0] && m.want != "" && !m.often && floats.Sum(v[said]) < 0.9*draws {
						out.Broken = append(out.Broken, m.name+" is neither harmless nor named")
					}
				}
				out.Tables = append(out.Tables, t)
			}
			return out
		},
	}
}

// measure runs studies of so many draws.
func (m *damage) measure(ctx context.Context, rule string, draws int) (experiment.Values, error) {
	v := experiment.Values{failed: {0}}
	for seed := range uint64(draws) {
		o, err := m.run(ctx, seed, "view", rule)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			v[failed][0]++
			continue
		}
		named, more := 0.0, 0.0
		for _, text := range o.verdicts {
			if m.want != "" && strings.Contains(strings.ToLower(text), strings.ToLower(m.want)) {
				named = 1
			} else {
				more++
			}
		}
		for name, x := range map[string]float64{angle: o.angle, nats: stat.Mean(o.nats, nil), rmse: o.rmse,
			cover: o.cover, said: named, others: more} {
			v[name] = append(v[name], x)
		}
	}
	return v, nil
}

// outcome is what came of one study.
type outcome struct {
	angle       float64   // largest principal angle between fitted and true factors, degrees
	nats        []float64 // of each test row, in units of the features
	rmse, cover float64   // of views that are hidden in test rows
	verdicts    []string
}

var methods = method.Registry{factors.Method{}}

// run runs a study.
func (m *damage) run(ctx context.Context, seed uint64, noise, outliers string) (*outcome, error) {
	t, x, test := m.draw(seed)
	names := evaluate.SiteNames(len(x))
	var data []dataset.Source
	for s, rows := range x {
		at, err := table(names[s], rows)
		if err != nil {
			return nil, err
		}
		data = append(data, at)
	}
	plan, err := deal.Plan(methods, deal.Keys{"name": "robust", "seed": seed, "sites": names,
		"views": deal.Views(data[0].Schema(), nil),
		"method": deal.Keys{"name": factors.Method{}.Name(), "latent": trueFactors + m.spare, "noise": noise,
			"outliers": outliers}})
	if err != nil {
		return nil, err
	}
	result, err := local.Run(ctx, local.Config{Plan: plan, Methods: methods, Data: deal.BySite(data)})
	if err != nil {
		return nil, err
	}
	o := &outcome{verdicts: result.Result.Verdicts()}
	if o.angle, err = t.angle(result.Result.Files); err != nil {
		return nil, err
	}
	model, err := factors.Method{}.Evaluator(plan, result.Result.Files, false)
	if err != nil {
		return nil, err
	}
	rows, err := table("test", test)
	if err != nil {
		return nil, err
	}
	return o, o.predict(model.(evaluate.Predictive), rows)
}

// angle is the largest principal angle between the spans of fitted and true loadings.
func (t *truth) angle(files []method.File) (float64, error) {
	data, err := method.ModelJSON(files)
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
	var post evaluate.Posterior
	views := data.Schema().Views
	sd := make([][]float64, len(views))
	for k, v := range views {
		sd[k] = make([]float64, len(v.Columns))
	}
	squares, within, cells := 0.0, 0.0, 0.0
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
				off := v - post.Mean[k][j]
				squares, cells = squares+off*off, cells+1
				if math.Abs(off) < 1.6448536269514722*sd[k][j] {
					within++
				}
			}
		}
	}
	o.rmse, o.cover = math.Sqrt(squares/cells), within/cells
	return nil
}
