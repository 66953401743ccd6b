package regression

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"

	"parley/dataset"
	"parley/methods/regression/glm"
	"parley/papers/dppvi"
	"parley/papers/experiment"
)

// problemCase is a regression with rows for sites, and rows held out; draw makes it anew
// for a seed.
type problemCase struct {
	name string
	draw func(ctx context.Context, at experiment.Data, seed uint64) (*problem, error)
}

// problem is what a case has drawn.
type problem struct {
	dppvi.Division
	truth map[string]float64 // weights of columns, where they are known
}

const outcomeColumn = "y"

// classes are the levels of a case's outcome.
var classes = glm.Outcome{Column: outcomeColumn, Levels: []string{"no", "yes"}}

// numbers describes so many standard normal columns.
func (p *problem) numbers(names ...string) {
	var features []map[string]any
	for _, n := range names {
		features = append(features, map[string]any{"name": n})
		p.Constants = append(p.Constants, glm.Constant{Feature: n, Centre: 0, Scale: 1})
	}
	p.Views = []map[string]any{{"name": "v", "features": features}}
}

// divide gives rows to sites of these sizes, and the rest to nobody.
func (p *problem) divide(schema dataset.Schema, rows []dataset.Row, sizes []int) error {
	p.Sites = map[string]*dataset.Table{}
	for i, n := range sizes {
		t, err := dataset.NewTable(schema, rows[:n])
		if err != nil {
			return err
		}
		p.Sites[fmt.Sprintf("s%03d", i)] = t
		rows = rows[n:]
	}
	var err error
	p.Held, err = dataset.NewTable(schema, rows)
	return err
}

// simulation draws d correlated normal numbers; neighbours have correlation r. Weights
// are normal with standard deviation spread, drawn with the rows.
type simulation struct {
	d         int
	r         float64
	spread    float64
	intercept float64
	sizes     []int
}

func equal(sites, rows int) []int { return slices.Repeat([]int{rows}, sites) }

const heldOut = 4000

func (s simulation) draw(_ context.Context, _ experiment.Data, seed uint64) (*problem, error) {
	r := rand.New(rand.NewPCG(seed, 17))
	p := &problem{Division: dppvi.Division{Outcome: classes, Subjects: []string{outcomeColumn}},
		truth: map[string]float64{"intercept": s.intercept}}
	var names []string
	var columns []dataset.Column
	w := make([]float64, s.d)
	for j := range w {
		name := fmt.Sprintf("x%02d", j)
		names, columns = append(names, name), append(columns, dataset.Column{Name: name, Kind: dataset.Number})
		w[j] = s.spread * r.NormFloat64()
		p.truth[name] = w[j]
	}
	p.numbers(names...)
	schema := dataset.Schema{Views: []dataset.View{{Name: "v", Columns: columns}},
		Subject: []dataset.Column{{Name: outcomeColumn}}}
	n := heldOut
	for _, size := range s.sizes {
		n += size
	}
	var rows []dataset.Row
	for i := range n {
		x := make([]float64, s.d)
		a := s.intercept
		for j := range x {
			x[j] = r.NormFloat64()
			if j > 0 {
				x[j] = s.r*x[j-1] + math.Sqrt(1-s.r*s.r)*x[j]
			}
			a += w[j] * min(max(x[j], -4), 4)
		}
		y := classes.Levels[0]
		if r.Float64() < 1/(1+math.Exp(-a)) {
			y = classes.Levels[1]
		}
		rows = append(rows, dataset.Row{ID: fmt.Sprintf("%07d", i), Views: [][]float64{x}, Subject: []string{y}})
	}
	return p, p.divide(schema, rows, s.sizes)
}

var cases = []problemCase{
	{"sim20", simulation{20, 0.5, 0.5, -0.7, equal(10, 1000)}.draw},
	{"sim20, unequal", simulation{20, 0.5, 0.5, -0.7, []int{5000, 2000, 1000, 500, 500, 400, 300, 200, 50, 50}}.draw},
	{"separable", simulation{10, 0.3, 6, 0, equal(10, 1000)}.draw},
	{"collinear", simulation{20, 0.97, 0.5, -0.7, equal(10, 1000)}.draw},
	{"imbalanced", simulation{10, 0.3, 0.5, -4, equal(10, 1000)}.draw},
	{"10 × 200", simulation{20, 0.5, 0.5, -0.7, equal(10, 200)}.draw},
	{"100 × 100", simulation{20, 0.5, 0.5, -0.7, equal(100, 100)}.draw},
	{"heart-sites", heart.draw},
	{"physionet2012", stays.draw},
	adult("A"), adult("B"), adult("C"), adult("D"),
}

// recorded is a data set of package files: a column of numbers or levels for each feature.
type recorded struct {
	file, site, outcome, yes string
	numbers                  []glm.Constant // round ones, from common knowledge
	categories               map[string][]string
}

var (
	heart = recorded{"heart_sites.csv.gz", "site", "disease", "1", []glm.Constant{
		{Feature: "age", Centre: 55, Scale: 10}, {Feature: "trestbps", Centre: 130, Scale: 20},
		{Feature: "thalach", Centre: 140, Scale: 25}, {Feature: "oldpeak", Centre: 1, Scale: 1}},
		map[string][]string{"sex": {"0", "1"}, "cp": {"1", "2", "3", "4"}, "restecg": {"0", "1", "2"},
			"exang": {"0", "1"}}}
	stays = recorded{"stays.csv.gz", "ICUType", "In_hospital_death", "1", []glm.Constant{
		{Feature: "Age", Centre: 65, Scale: 17}, {Feature: "HR_mean", Centre: 85, Scale: 15},
		{Feature: "GCS_mean", Centre: 12, Scale: 3.5}, {Feature: "BUN_mean", Centre: 25, Scale: 20},
		{Feature: "Creatinine_mean", Centre: 1.3, Scale: 1.2}, {Feature: "WBC_mean", Centre: 12, Scale: 6},
		{Feature: "HCO3_mean", Centre: 23, Scale: 5}, {Feature: "Temp_mean", Centre: 37, Scale: 0.8},
		{Feature: "Urine_mean", Centre: 120, Scale: 100}, {Feature: "Na_mean", Centre: 139, Scale: 5}},
		map[string][]string{"Gender": {"0", "1"}}}
)

// draw holds out every fourth row in an order of the seed.
func (d recorded) draw(_ context.Context, at experiment.Data, seed uint64) (*problem, error) {
	dir, err := at.Folder(dataName)
	if err != nil {
		return nil, err
	}
	records, err := compressed(filepath.Join(dir, d.file), 0)
	if err != nil {
		return nil, err
	}
	column := map[string]int{}
	for i, name := range records[0] {
		column[name] = i
	}
	records = records[1:]
	p := &problem{Division: dppvi.Division{Outcome: classes, Subjects: []string{outcomeColumn}, Constants: d.numbers,
		Sites: map[string]*dataset.Table{}}}
	var features []map[string]any
	view := dataset.View{Name: "v"}
	for _, k := range d.numbers {
		features = append(features, map[string]any{"name": k.Feature})
		view.Columns = append(view.Columns, dataset.Column{Name: k.Feature, Kind: dataset.Number})
	}
	for _, name := range slices.Sorted(maps.Keys(d.categories)) {
		features = append(features, map[string]any{"name": name, "kind": "category", "levels": d.categories[name]})
		view.Columns = append(view.Columns,
			dataset.Column{Name: name, Kind: dataset.Category, Levels: d.categories[name]})
	}
	p.Views = []map[string]any{{"name": "v", "features": features}}
	schema := dataset.Schema{Views: []dataset.View{view}, Subject: []dataset.Column{{Name: outcomeColumn}}}
	rand.New(rand.NewPCG(seed, 19)).Shuffle(len(records),
		func(i, j int) { records[i], records[j] = records[j], records[i] })
	sites := map[string][]dataset.Row{}
	var held []dataset.Row
	for i, r := range records {
		row := dataset.Row{ID: fmt.Sprintf("%07d", i), Views: [][]float64{make([]float64, len(view.Columns))},
			Subject: []string{classes.Levels[0]}}
		if r[column[d.outcome]] == d.yes {
			row.Subject[0] = classes.Levels[1]
		}
		for j, c := range view.Columns {
			x := math.NaN()
			if cell := r[column[c.Name]]; c.Kind == dataset.Category {
				if l := slices.Index(c.Levels, cell); l >= 0 {
					x = float64(l)
				}
			} else if v, err := strconv.ParseFloat(cell, 64); err == nil {
				x = v
			}
			row.Views[0][j] = x
		}
		if i%4 == 0 {
			held = append(held, row)
		} else {
			site := "s" + r[column[d.site]]
			sites[site] = append(sites[site], row)
		}
	}
	for site, rows := range sites {
		if p.Sites[site], err = dataset.NewTable(schema, rows); err != nil {
			return nil, err
		}
	}
	p.Held, err = dataset.NewTable(schema, held)
	return p, err
}

// adult is the example's data by one of its distributions.
func adult(scheme string) problemCase {
	return problemCase{"adult " + scheme, func(ctx context.Context, at experiment.Data, _ uint64) (*problem, error) {
		x, err := dppvi.Divide(ctx, at, scheme)
		if err != nil {
			return nil, err
		}
		return &problem{Division: *x}, nil
	}}
}
