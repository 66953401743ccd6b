package regression

import (
	"compress/gzip"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"parley/dataset"
	"parley/engine/local"
	"parley/figure"
	"parley/method"
	"parley/methods/regression"
	"parley/methods/regression/exact"
	"parley/methods/regression/glm"
	"parley/papers/deal"
	"parley/papers/experiment"
	"parley/study"
)

// What a fit to all rows may be off by from a second implementation: an estimate in standard
// errors, and a covariance in products of standard errors; and the estimates of a study that
// says it has converged.
const (
	estimateOff   = 1e-4
	covarianceOff = 1e-2
	studyOff      = 1e-2
)

// regression is one that papers/reference/regression.py has calculated: see there.
type reference struct {
	Name, Data, Site, Outcome string
	Levels                    []string
	Count                     bool
	Event                     string
	Cuts                      []float64
	Least                     *float64
	Features                  []string
	Categories                map[string][]string
}

// agreement is how far a fit to all rows, and a study at the sites, are from the second
// implementation.
type agreement struct {
	subjects, sites, weights, exchanges int
	fit, study                          distance
	converged                           bool
}

// distance is the largest of an estimate, and of a covariance.
type distance struct{ estimate, covariance float64 }

// The names of a cell's values.
const (
	subjectsOf                     = "subjects"
	sitesOf                        = "sites"
	weightsOf                      = "weights"
	exchangesOf                    = "exchanges"
	hasSettled                     = "converged" // 1 or 0
	fitEstimate, fitCovariance     = "all rows, estimates", "all rows, covariances"
	studyEstimate, studyCovariance = "study, estimates", "study, covariances"
)

func (a *agreement) values() experiment.Values {
	settled := 0.0
	if a.converged {
		settled = 1
	}
	return experiment.Values{subjectsOf: {float64(a.subjects)}, sitesOf: {float64(a.sites)},
		weightsOf: {float64(a.weights)}, exchangesOf: {float64(a.exchanges)}, hasSettled: {settled},
		fitEstimate: {a.fit.estimate}, fitCovariance: {a.fit.covariance}, studyEstimate: {a.study.estimate},
		studyCovariance: {a.study.covariance}}
}

// described are the names of the regressions that regressions.json describes, by data and kind.
var described = func() (names []string) {
	for _, data := range []string{"adult", "heart-sites", "physionet2012"} {
		for _, kind := range []string{"logistic", "linear", "softmax", "poisson", "hazard"} {
			names = append(names, data+"-"+kind)
		}
	}
	return names
}()

// references tells how far fits to recorded data are from a second implementation.
func references() experiment.Experiment {
	return experiment.Experiment{Name: "parley-reference", Data: []string{dataName, "adult"},
		Cells: func(quick bool) (cells experiment.Cells) {
			for _, name := range described {
				if quick && name != "heart-sites-linear" {
					continue
				}
				cells.Add(name, func(ctx context.Context, at experiment.Data) (experiment.Values, error) {
					a, err := agree(ctx, at.Clone, name)
					if err != nil {
						return nil, err
					}
					return a.values(), nil
				})
			}
			return cells
		},
		Conclude: func(o experiment.Outcomes) (c experiment.Conclusion) {
			t := figure.Table{ID: "distances", Title: "The largest distances",
				Caption: "A study that has not converged says so first.",
				Columns: figure.TextColumns("regression", subjectsOf, sitesOf, weightsOf, "all rows: estimates",
					"covariances", "study: exchanges", "estimates", "covariances")}
			for _, name := range described {
				v := o[name]
				if v == nil {
					continue
				}
				row := []any{name}
				for _, of := range []string{subjectsOf, sitesOf, weightsOf} {
					row = append(row, fmt.Sprint(v[of][0]))
				}
				says := ""
				if v[hasSettled][0] == 0 {
					says = ", not converged"
				}
				t.Add(append(row, small(v[fitEstimate][0]), small(v[fitCovariance][0]),
					fmt.Sprint(v[exchangesOf][0])+says, small(v[studyEstimate][0]), small(v[studyCovariance][0]))...)
				if !(v[fitEstimate][0] <= estimateOff && v[fitCovariance][0] <= covarianceOff &&
					(v[studyEstimate][0] <= studyOff || says != "")) {
					c.Broken = append(c.Broken, name+" is too far from the second implementation")
				}
			}
			c.Tables = []figure.Table{t}
			return c
		},
	}
}

// small prints a distance.
func small(x float64) string { return fmt.Sprintf("%.1e", x) }

// secondDir has the second implementation, below the root of a clone.
const secondDir = "papers/reference"

// agree compares the regression of this name.
func agree(ctx context.Context, clone, name string) (*agreement, error) {
	dir := filepath.Join(clone, secondDir)
	text, err := os.ReadFile(filepath.Join(dir, "regressions.json"))
	if err != nil {
		return nil, err
	}
	var all []reference
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(r reference) bool { return r.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("%s does not describe %s", dir, name)
	}
	r := &all[i]
	r.Data = filepath.Join(clone, r.Data)
	return r.agreement(ctx, dir)
}

// agreement makes the fit and runs the study.
func (r *reference) agreement(ctx context.Context, dir string) (*agreement, error) {
	rows, err := joined(r.Data)
	if err != nil {
		return nil, err
	}
	plan, tables, err := r.study(rows)
	if err != nil {
		return nil, err
	}
	data := map[string]dataset.Source{}
	a := &agreement{sites: len(tables)}
	var all []dataset.Row
	for _, site := range plan.Sites {
		data[site] = tables[site]
		for i := range tables[site].Len() {
			row := tables[site].Row(i)
			row.ID = fmt.Sprintf("%06d", len(all))
			all = append(all, row)
		}
	}
	a.subjects = len(all)
	pooled, err := dataset.NewTable(plan.Schema(), all)
	if err != nil {
		return nil, err
	}
	central, err := exact.Central(ctx, plan, pooled)
	if err != nil {
		return nil, err
	}
	out, err := local.Run(ctx, local.Config{Plan: plan, Methods: method.Registry{regression.Method{}}, Data: data})
	if err != nil {
		return nil, err
	}
	m, err := modelOf(out.Result)
	if err != nil {
		return nil, err
	}
	want, err := compressed(filepath.Join(dir, "vectors", r.Name+".csv.gz"), -1)
	if err != nil {
		return nil, err
	}
	a.weights, a.converged = len(want), *m.Converged
	a.exchanges = int(max(out.Result.Metrics["exchanges"], out.Result.Metrics["updates"]))
	if a.fit, err = distanceFrom(want, central.Weights()); err != nil {
		return nil, err
	}
	a.study, err = distanceFrom(want, m.Weights())
	return a, err
}

// distanceFrom is that of a density from the second implementation's numbers.
func distanceFrom(want [][]string, q glm.Normal) (far distance, err error) {
	if len(q.Mean) != len(want) {
		return far, fmt.Errorf("%d weights, of the second implementation %d", len(q.Mean), len(want))
	}
	sd := make([]float64, len(want))
	for i, record := range want {
		numbers := make([]float64, len(record)-1)
		for j, cell := range record[1:] {
			if numbers[j], err = strconv.ParseFloat(cell, 64); err != nil {
				return far, fmt.Errorf("weight %s: %w", record[0], err)
			}
		}
		row := numbers[1:]
		sd[i] = math.Sqrt(row[len(row)-1])
		far.estimate = max(far.estimate, math.Abs(q.Mean[i]-numbers[0])/sd[i])
		for j, v := range row {
			far.covariance = max(far.covariance, math.Abs(q.Covariance[glm.Packed(i, j)]-v)/(sd[i]*sd[j]))
		}
	}
	return far, nil
}

// study is the plan without any option that is not needed, and the rows of each site.
func (r *reference) study(rows []map[string]string) (*study.Plan, map[string]*dataset.Table, error) {
	var features []map[string]any
	for _, name := range r.Features {
		f := map[string]any{"name": name}
		if levels := r.Categories[name]; levels != nil {
			f["kind"], f["levels"] = "category", levels
		}
		features = append(features, f)
	}
	outcome, subjects := map[string]any{"column": r.Outcome}, []string{r.Outcome}
	if r.Levels != nil {
		outcome["levels"] = r.Levels
	}
	with := map[string]any{"name": regression.Method{}.Name(), "outcome": outcome}
	switch {
	case r.Count:
		with["likelihood"] = glm.LikelihoodPoisson
	case r.Event != "":
		outcome["event"], outcome["cuts"] = r.Event, r.Cuts
		subjects = append(subjects, r.Event)
	}
	sites := map[string][]map[string]string{}
	for _, row := range rows {
		if r.known(row) {
			sites[row[r.Site]] = append(sites[row[r.Site]], row)
		}
	}
	names := slices.Sorted(maps.Keys(sites))
	called := make([]string, len(names))
	for i := range names {
		called[i] = fmt.Sprintf("s%d", i+1)
	}
	plan, err := deal.Plan(method.Registry{regression.Method{}}, deal.Keys{"name": r.Name, "sites": called,
		"subjects": subjects, "method": with, "views": []deal.Keys{{"name": "v", "features": features}}})
	if err != nil {
		return nil, nil, err
	}
	tables := map[string]*dataset.Table{}
	for i, name := range names {
		if tables[called[i]], err = r.table(plan, sites[name]); err != nil {
			return nil, nil, err
		}
	}
	return plan, tables, nil
}

// known says whether a row's site and outcome are.
func (r *reference) known(row map[string]string) bool {
	y := row[r.Outcome]
	switch {
	case row[r.Site] == "", r.Event != "" && !slices.Contains(r.Levels, row[r.Event]):
		return false
	case r.Levels != nil && r.Event == "":
		return slices.Contains(r.Levels, y)
	}
	v, err := strconv.ParseFloat(y, 64)
	return err == nil && (r.Least == nil || v >= *r.Least)
}

func (r *reference) table(plan *study.Plan, rows []map[string]string) (*dataset.Table, error) {
	var out []dataset.Row
	for i, row := range rows {
		one := dataset.Row{ID: fmt.Sprintf("%06d", i), Views: [][]float64{nil}}
		for _, name := range plan.Subjects {
			one.Subject = append(one.Subject, row[name])
		}
		for _, name := range r.Features {
			x := math.NaN()
			if levels := r.Categories[name]; levels != nil {
				if l := slices.Index(levels, row[name]); l >= 0 {
					x = float64(l)
				}
			} else if v, err := strconv.ParseFloat(row[name], 64); err == nil {
				x = v
			}
			one.Views[0] = append(one.Views[0], x)
		}
		out = append(out, one)
	}
	return dataset.NewTable(plan.Schema(), out)
}

// joined reads a table, or the tables of a directory, joined by their column id.
func joined(path string) ([]map[string]string, error) {
	names, err := filepath.Glob(filepath.Join(path, "*.csv.gz"))
	if err != nil {
		return nil, err
	}
	if names == nil {
		names = []string{path}
	}
	byID := map[string]map[string]string{}
	for _, name := range names {
		records, err := compressed(name, 0)
		if err != nil {
			return nil, err
		}
		for i, cells := range records[1:] {
			id := fmt.Sprintf("%09d", i)
			if at := slices.Index(records[0], "id"); at >= 0 {
				id = cells[at]
			}
			if byID[id] == nil {
				byID[id] = map[string]string{}
			}
			for j, cell := range cells {
				byID[id][records[0][j]] = cell
			}
		}
	}
	var rows []map[string]string
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		rows = append(rows, byID[id])
	}
	return rows, nil
}

// compressed reads a file of CSV; fields is as of a [csv.Reader].
func compressed(name string, fields int) ([][]string, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	r := csv.NewReader(z)
	r.FieldsPerRecord = fields
	return r.ReadAll()
}
