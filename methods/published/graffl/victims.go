package graffl

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"parley/dataset"
	"parley/method"
	"parley/methods/mixture"
	"parley/methods/mixture/gmm"
	"parley/problem"
	"parley/study"
)

// mostVictims rows of each site take part in the studies that are attacked: enough
// to see what is found, few enough to be soon done.
const mostVictims = 200

// victims are the rows that attacks are scored against.
type victims struct {
	Plan  *study.Plan // of the features themselves
	Given *Options    // of the plan that was asked for
	Dim   int
	Sites [][]float64 // rows of each site of the plan that have all features
	Means [][]float64 // of each site
	Scale []float64   // standard deviation of each feature within sites
	Seed  uint64
}

// examplePlan is the toy of the paper's section 4.2: each site has one mode.
const examplePlan = `{parley: 1, name: example, sites: [north, south, east],
views: [{name: point, features: [{name: x, range: [-12, 12]}, {name: y, range: [-12, 12]}]}],
method: {name: graffl-abc, components: 3}, privacy: {protection: none}}`

// example draws a hundred rows for each site of the toy.
func (v *victims) example() {
	r := rand.New(rand.NewPCG(v.Seed, 42))
	for _, mode := range [][2]float64{{-9, 3}, {0, -9}, {8, 3}} {
		var rows []float64
		for range 100 {
			rows = append(rows, mode[0]+r.NormFloat64(), mode[1]+r.NormFloat64())
		}
		v.Sites = append(v.Sites, rows)
	}
}

// victimsOf reads the rows of a target: the first of every site of its plan or, without one, of the toy of the
// paper's section 4.2. What the plan says of classes does not matter: it is rows as they are that are looked for.
func victimsOf(ctx context.Context, t method.Target) (*victims, error) {
	p := t.Plan
	if p == nil {
		var err error
		if p, err = study.Parse("the example", []byte(examplePlan), method.Registry{Method{}}); err != nil {
			return nil, err
		}
	}
	s, err := setUp(p)
	if err != nil {
		return nil, err
	}
	v := &victims{Plan: p, Given: s.own, Dim: len(s.Names), Seed: t.Seed}
	if _, err := v.study(Rows, func(*Options) {}); err != nil {
		return nil, err
	}
	if t.Plan == nil {
		v.example()
	} else if err := v.read(ctx, t.Data); err != nil {
		return nil, err
	}
	v.measure()
	return v, nil
}

// read takes the first rows of every site of a plan.
func (v *victims) read(ctx context.Context, of map[string]dataset.Source) error {
	x := make([]float64, v.Dim)
	for _, site := range v.Plan.Sites {
		data := of[site]
		if data == nil {
			return fmt.Errorf("site %s has no data", site)
		}
		var rows []float64
		for row, err := range data.Rows(ctx) {
			if err != nil {
				return fmt.Errorf("site %s: %w", site, err)
			}
			if len(rows) >= mostVictims*v.Dim {
				break
			}
			if mixture.Complete(row, x) {
				rows = append(rows, x...)
			}
		}
		if len(rows) < 2*v.Dim {
			return problem.Problem{Where: "site " + site, What: "fewer than two rows have all features: there is " +
				"nothing to attack", Hint: "a plan whose views are complete at every site"}
		}
		v.Sites = append(v.Sites, rows)
	}
	return nil
}

// measure finds out where rows lie in their sites, and how far apart.
func (v *victims) measure() {
	v.Scale = make([]float64, v.Dim)
	_, lo, hi := mixture.Box(v.Plan)
	total := 0
	for _, rows := range v.Sites {
		mean, n := make([]float64, v.Dim), len(rows)/v.Dim
		for i, x := range rows {
			mean[i%v.Dim] += x / float64(n)
		}
		for i, x := range rows {
			e := x - mean[i%v.Dim]
			v.Scale[i%v.Dim] += e * e
		}
		v.Means = append(v.Means, mean)
		total += n
	}
	for i, s := range v.Scale {
		if v.Scale[i] = math.Sqrt(s / float64(total)); !(v.Scale[i] > 0) {
			v.Scale[i] = hi[i] - lo[i] // a feature that does not vary
		}
	}
}

// study makes a study of the victims' rows by an algorithm: its options are filled in, then tailored and checked.
func (v *victims) study(algorithm string, tailor func(*Options)) (setup, error) {
	o := &Options{Algorithm: algorithm, Components: v.Given.Components, Prior: v.Given.Prior}
	p := *v.Plan
	p.Local, p.Subjects, p.Privacy, p.Seed = nil, nil, study.Privacy{Protection: study.ProtectionNone}, v.Seed
	o.Fill(&p, func(key string) bool { return key != "prior.freedom" })
	tailor(o)
	p.Method.Options = o
	var wrong problem.List
	o.Check(&p, func(key, what, hint string) {
		wrong = append(wrong, problem.Problem{Where: strings.TrimSuffix("method."+key, "."), What: what, Hint: hint})
	})
	if err := wrong.Err(); err != nil {
		return setup{}, err
	}
	return setUp(&p)
}

// source makes rows a site's data.
func (v *victims) source(rows []float64) (dataset.Source, error) {
	var table []dataset.Row
	for x := range slices.Chunk(rows, v.Dim) {
		row := dataset.Row{ID: fmt.Sprintf("%06d", len(table))}
		for _, view := range v.Plan.Views {
			row.Views = append(row.Views, x[:len(view.Features):len(view.Features)])
			x = x[len(view.Features):]
		}
		table = append(table, row)
	}
	return dataset.NewTable(v.Plan.Schema(), table)
}

// data is that of every site.
func (v *victims) data() (map[string]dataset.Source, error) {
	out := map[string]dataset.Source{}
	for j, rows := range v.Sites {
		s, err := v.source(rows)
		if err != nil {
			return nil, err
		}
		out[v.Plan.Sites[j]] = s
	}
	return out, nil
}

// apart is the root mean square, over features, of the differences of two rows in
// standard deviations.
func (v *victims) apart(x, y []float64) float64 {
	s := 0.0
	for i, sd := range v.Scale {
		e := (x[i] - y[i]) / sd
		s += e * e
	}
	return math.Sqrt(s / float64(v.Dim))
}

// score compares guesses with the rows of the same index.
func (v *victims) score(rows, guesses []float64, within float64) *method.Recovered {
	r := &method.Recovered{Rows: len(rows) / v.Dim, Within: within,
		SD: math.Sqrt(gmm.Squares(v.Scale) / float64(v.Dim))}
	for k := 0; k < len(rows); k += v.Dim {
		e := v.apart(rows[k:k+v.Dim], guesses[k:k+v.Dim])
		r.RMSE += e * e / float64(r.Rows)
		if e <= within {
			r.Found++
		}
	}
	r.RMSE = math.Sqrt(r.RMSE)
	r.Blind = v.blind(within) * float64(r.Rows)
	return r
}

// blind is the share of rows that are within some standard deviations of their
// site's mean.
func (v *victims) blind(within float64) float64 {
	found, total := 0, 0
	for j, rows := range v.Sites {
		for x := range slices.Chunk(rows, v.Dim) {
			if v.apart(x, v.Means[j]) <= within {
				found++
			}
			total++
		}
	}
	return float64(found) / float64(total)
}
