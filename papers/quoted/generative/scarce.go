package generative

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"gonum.org/v1/gonum/stat"

	"parley/engine/local"
	"parley/figure"
	"parley/method"
	"parley/methods/mixture"
	"parley/methods/mixture/scarce"
	"parley/papers/experiment"
	"parley/study"
)

// scarceArms are the arms of a study with a scarce class, in the order of the tables.
var scarceArms = []scarce.Arm{scarce.Raw, scarce.Oversampled, scarce.Generated}

// scarcePlan is a plan of the example of intensive care, by the name of its file.
type scarcePlan struct{ file, title string }

var (
	scarcePlans = []scarcePlan{{"plan", "Without privacy"}, {"private", "With privacy"}}
	units       = []string{"medical", "surgical", "coronary", "cardiac-surgery"} // its sites
)

const scarceSeeds = 30 // of each plan: other rows are held, other encoders trained, other noise drawn

func (p scarcePlan) id(seed int) string { return fmt.Sprintf("%s-%d", p.file, seed+1) }

// The values of a study are what the sites' own reports say, named by site and metric, and
// the AUC of controls under auc/ and their name.
const (
	auc  = "auc/"
	f1   = "f1/"
	kept = "kept"
)

func named(site, metric string) string { return site + " " + metric }

func scarceClass() experiment.Experiment {
	return experiment.Experiment{Name: "parley-scarce", Paper: "parley", Item: "Synthetic deaths in intensive care",
		About: fmt.Sprintf("The plans of `examples/icu` with %d seeds each. AUC and F1 are of rows that nothing was learned from.", scarceSeeds),
		Cells: func(quick bool) (cells []experiment.Cell) {
			for _, p := range scarcePlans {
				for seed := range scarceSeeds {
					if quick && (seed > 0 || p.file != "private") {
						continue
					}
					cells = append(cells, experiment.Cell{ID: p.id(seed), Run: func(ctx context.Context, at experiment.Data) (experiment.Values, error) {
						return p.run(ctx, at, uint64(seed+1))
					}})
				}
			}
			return cells
		},
		Conclude: func(o experiment.Outcomes) (out experiment.Conclusion) {
			for _, p := range scarcePlans {
				if all := p.outcomes(o); len(all) > 0 {
					out.Tables = append(out.Tables, p.aucs(all), p.f1s(all))
				}
			}
			return out
		},
	}
}

// outcomes are those of the seeds that were run.
func (p scarcePlan) outcomes(o experiment.Outcomes) (all []experiment.Values) {
	for seed := range scarceSeeds {
		if v := o[p.id(seed)]; v != nil {
			all = append(all, v)
		}
	}
	return all
}

// column is a number of every study; empty if one has none.
func column(all []experiment.Values, site, metric string) (x []float64) {
	for _, v := range all {
		if len(v[named(site, metric)]) == 0 {
			return nil
		}
		x = append(x, v[named(site, metric)][0])
	}
	return x
}

// present are the arms with numbers of that kind at every site.
func present(all []experiment.Values, kind string, arms []scarce.Arm) (some []scarce.Arm) {
	for _, a := range arms {
		if len(column(all, units[0], kind+string(a))) > 0 {
			some = append(some, a)
		}
	}
	return some
}

// aucs has what needs nothing made up first, and the difference that synthetic rows make.
func (p scarcePlan) aucs(all []experiment.Values) figure.Table {
	arms := present(all, auc, append(append([]scarce.Arm{}, scarceControls...), scarceArms...))
	t := figure.Table{ID: p.file + "-auc", Title: p.title + ": AUC on held rows", Columns: []figure.Column{{Name: "unit"}},
		Caption: fmt.Sprintf("Means over %d seeds. The difference of synthetic rows and raw is given ± its standard error.", len(all))}
	for _, a := range arms {
		t.Columns = append(t.Columns, figure.Column{Name: string(a)})
	}
	t.Columns = append(t.Columns, figure.TextColumns("difference", "kept")...)
	for _, site := range units {
		row := []any{site}
		for _, a := range arms {
			row = append(row, fmt.Sprintf("%.3f", stat.Mean(column(all, site, auc+string(a)), nil)))
		}
		var difference []float64
		raw := column(all, site, auc+string(scarce.Raw))
		for i, x := range column(all, site, auc+string(scarce.Generated)) {
			difference = append(difference, x-raw[i])
		}
		mean, variance := stat.MeanVariance(difference, nil)
		text := fmt.Sprintf("%+.3f", mean)
		if n := float64(len(difference)); n > 1 {
			text += fmt.Sprintf(" ± %.3f", math.Sqrt(variance/n))
		}
		keeps := column(all, site, kept)
		t.Add(append(row, strings.ReplaceAll(text, "-", "−"), fmt.Sprintf("%.0f of %d", stat.Mean(keeps, nil)*float64(len(keeps)), len(keeps)))...)
	}
	return t
}

func (p scarcePlan) f1s(all []experiment.Values) figure.Table {
	arms := present(all, f1, scarceArms)
	t := figure.Table{ID: p.file + "-f1", Title: p.title + ": F1 on held rows", Caption: "At a probability of one half.", Columns: []figure.Column{{Name: "unit"}}}
	for _, a := range arms {
		t.Columns = append(t.Columns, figure.Column{Name: string(a)})
	}
	for _, site := range units {
		row := []any{site}
		for _, a := range arms {
			row = append(row, fmt.Sprintf("%.2f", stat.Mean(column(all, site, f1+string(a)), nil)))
		}
		t.Add(row...)
	}
	return t
}

var grafflOnly = method.Registry{mixture.Method{}}

// run runs one study through the engine, in memory.
func (p scarcePlan) run(ctx context.Context, at experiment.Data, seed uint64) (experiment.Values, error) {
	plan, err := study.Load(filepath.Join(at.Clone, "examples", "icu", p.file+".yaml"), grafflOnly)
	if err != nil {
		return nil, err
	}
	plan.Seed = seed
	b, err := local.Bind(ctx, plan, nil)
	if err != nil {
		return nil, err
	}
	out, err := local.Run(ctx, local.Config{Plan: plan, Methods: grafflOnly, Data: b.Data, Policy: b.Policy})
	if err != nil {
		return nil, err
	}
	reports, err := out.SiteReports(ctx)
	if err != nil {
		return nil, err
	}
	others, err := controls(ctx, plan, b.Data)
	if err != nil {
		return nil, err
	}
	v := experiment.Values{}
	for site, r := range reports {
		for name, x := range r.Result.Metrics {
			if !math.IsNaN(x) {
				v[named(site, name)] = []float64{x}
			}
		}
		for name, x := range others[site] {
			v[named(site, auc+string(name))] = []float64{x}
		}
	}
	return v, nil
}
