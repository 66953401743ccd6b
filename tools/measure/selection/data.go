package selection

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"parley/dataset"
	"parley/judge/evaluate"
	"parley/method"
	"parley/method/judged"
	"parley/methods/mvppca"
	"parley/methods/mvppca/options"
	"parley/study"
)

// The generator of Balelli, Silva and Lorenzi (MELBA 2022:012), section 4.1.
var (
	dims   = []int{15, 8, 10}
	reach  = []float64{10, 5, 15} // W and μ of each view are uniform on ± this
	noises = []float64{2, 1, 3}   // noise variance of each view
)

const (
	subjects = 400
	sites    = 3
)

// schema names the views and features.
func schema() dataset.Schema {
	var s dataset.Schema
	for k, d := range dims {
		v := dataset.View{Name: fmt.Sprintf("v%d", k+1)}
		for j := range d {
			v.Columns = append(v.Columns, dataset.Column{Name: fmt.Sprintf("v%d_%d", k+1, j+1), Kind: dataset.Number})
		}
		s.Views = append(s.Views, v)
	}
	return s
}

// generate draws one data set of n subjects with q factors. The noise variances are
// those of the paper times a factor. Five eighths of the subjects are shifted in latent
// space by one vector, uniform on ±10.
func generate(seed uint64, q, n int, noise float64) (*dataset.Table, error) {
	rng := rand.New(rand.NewPCG(seed, uint64(q)))
	uniform := func(a float64) float64 { return a * (2*rng.Float64() - 1) }
	var w [][][]float64
	var mu [][]float64
	for k, d := range dims {
		w, mu = append(w, make([][]float64, d)), append(mu, make([]float64, d))
		for j := range d {
			w[k][j] = make([]float64, q)
			for a := range q {
				w[k][j][a] = uniform(reach[k])
			}
			mu[k][j] = uniform(reach[k])
		}
	}
	shift := make([]float64, q)
	for a := range shift {
		shift[a] = uniform(10)
	}
	rows := make([]dataset.Row, n)
	x := make([]float64, q)
	for i := range rows {
		for a := range x {
			x[a] = rng.NormFloat64()
			if 8*i < 5*n {
				x[a] += shift[a]
			}
		}
		rows[i].ID = fmt.Sprintf("s%0*d", len(fmt.Sprint(n-1)), i)
		for k, d := range dims {
			t := make([]float64, d)
			for j := range t {
				t[j] = mu[k][j] + math.Sqrt(noise*noises[k])*rng.NormFloat64()
				for a, y := range x {
					t[j] += w[k][j][a] * y
				}
			}
			rows[i].Views = append(rows[i].Views, t)
		}
	}
	return dataset.NewTable(schema(), rows)
}

// spread gives the subjects to the sites as scenario IID does.
func spread(all *dataset.Table, sites int, seed uint64) (map[string]dataset.Source, error) {
	ids, _, err := dataset.Labels(context.Background(), all, "")
	if err != nil {
		return nil, err
	}
	some := make([]evaluate.Subject, len(ids))
	for i, id := range ids {
		some[i].ID = id
	}
	names := evaluate.SiteNames(sites)
	placed, err := evaluate.Assign(some, names, evaluate.IID, seed)
	if err != nil {
		return nil, err
	}
	at := make(map[string]int, len(placed))
	for _, p := range placed {
		at[p.ID] = p.Site
	}
	data := map[string]dataset.Source{}
	for i, name := range names {
		data[name] = evaluate.Select(all, func(id string) ([]int, bool) { return nil, at[id] == i })
	}
	return data, nil
}

// setting is one way to prepare and model the same data.
type setting struct {
	name, scaling, noise string
	variance             float64 // times the paper's noise variances
	kept                 bool    // whether the promise is made for it
}

var settings = []setting{
	{"one scale per view", options.ScaleView, "view", 1, true},
	{"one scale per view, noise × 10", options.ScaleView, "view", 10, true},
	{"noise per feature", options.ScaleStandard, "feature", 1, true},
	{"noise per feature, min-max", options.ScaleMinMax, "feature", 1, true},
	{"each feature scaled, noise per view", options.ScaleStandard, "view", 1, false},
	{"min-max, noise per view", options.ScaleMinMax, "view", 1, false},
}

// plan is the study of one data set.
func plan(s setting, seed uint64) (*study.Plan, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "parley: 1\nname: selection\nseed: %d\nsites: [%s]\nviews:\n", seed, strings.Join(evaluate.SiteNames(sites), ", "))
	for _, v := range schema().Views {
		fmt.Fprintf(&b, "  - name: %s\n    features: [", v.Name)
		for j, c := range v.Columns {
			if j > 0 {
				b.WriteString(", ")
			}
			b.WriteString(c.Name)
		}
		b.WriteString("]\n")
	}
	fmt.Fprintf(&b, "method: {name: mvppca, latent: 1, scaling: %s, noise: %s}\nprivacy: {protection: none}\n", s.scaling, s.noise)
	return study.Parse("selection", []byte(b.String()), method.Registry{mvppca.Method{}})
}

// choose runs one selection.
func choose(ctx context.Context, s setting, seed uint64, q int, c judged.SelectConfig) (*judged.Selection, error) {
	all, err := generate(seed, q, subjects, s.variance)
	if err != nil {
		return nil, err
	}
	data, err := spread(all, sites, seed)
	if err != nil {
		return nil, err
	}
	p, err := plan(s, seed)
	if err != nil {
		return nil, err
	}
	return mvppca.Method{}.Select(ctx, p, data, c)
}
