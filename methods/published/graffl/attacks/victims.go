package attacks

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"parley/dataset"
	"parley/method"
	"parley/methods/mixture/gmm"
	"parley/methods/mixture/options"
	"parley/problem"
	"parley/study"
)

// mostVictims rows of each site take part in the studies that are attacked: enough
// to see what is found, few enough to be soon done.
const mostVictims = 200

// victims are the rows that attacks are scored against.
type victims struct {
	plan  *study.Plan      // of the features themselves
	given *options.Options // of the plan that was asked for
	dim   int
	sites [][]float64 // rows of each site of the plan that have all features
	means [][]float64 // of each site
	scale []float64   // standard deviation of each feature within sites
	seed  uint64
}

// newVictims checks that the features of a plan can be attacked. What the plan says of
// codes, classes and variants does not matter: it is rows as they are that are looked for.
func newVictims(p *study.Plan, seed uint64) (*victims, error) {
	given, ok := p.Method.Options.(*options.Options)
	if !ok {
		return nil, fmt.Errorf("the options are of method %s, not of graffl", p.Method.Name)
	}
	v := &victims{plan: p, given: given, dim: options.Features(p), seed: seed}
	var err error
	v.plan, err = v.study(options.VariantLandmark, noProtection, func(*options.Options) {})
	if err != nil && given.Encoder != nil {
		return nil, fmt.Errorf("it is features that are attacked, not the codes of this plan:\n%w", err)
	}
	return v, err
}

// examplePlan is the toy of the paper's section 4.2: each site has one mode.
const examplePlan = `{parley: 1, name: example, sites: [north, south, east],
views: [{name: point, features: [{name: x, range: [-12, 12]}, {name: y, range: [-12, 12]}]}],
method: {name: graffl, components: 3}, privacy: {protection: none}}`

// example draws a hundred rows for each site of the toy.
func example(m method.Method, seed uint64) (*victims, error) {
	p, err := study.Parse("the example", []byte(examplePlan), method.Registry{m})
	if err != nil {
		return nil, err
	}
	v, err := newVictims(p, seed)
	if err != nil {
		return nil, err
	}
	r := rand.New(rand.NewPCG(seed, 42))
	for _, mode := range [][2]float64{{-9, 3}, {0, -9}, {8, 3}} {
		var rows []float64
		for range 100 {
			rows = append(rows, mode[0]+r.NormFloat64(), mode[1]+r.NormFloat64())
		}
		v.sites = append(v.sites, rows)
	}
	v.measure()
	return v, nil
}

// readVictims takes the first rows of every site of a plan.
func readVictims(ctx context.Context, t method.Target) (*victims, error) {
	v, err := newVictims(t.Plan, t.Seed)
	if err != nil {
		return nil, err
	}
	x := make([]float64, v.dim)
	for _, site := range t.Plan.Sites {
		data := t.Data[site]
		if data == nil {
			return nil, fmt.Errorf("site %s has no data", site)
		}
		var rows []float64
		for row, err := range data.Rows(ctx) {
			if err != nil {
				return nil, fmt.Errorf("site %s: %w", site, err)
			}
			if len(rows) >= mostVictims*v.dim {
				break
			}
			if options.Complete(row, x) {
				rows = append(rows, x...)
			}
		}
		if len(rows) < 2*v.dim {
			return nil, problem.Problem{Where: "site " + site, What: "fewer than two rows have all features: there is nothing to attack", Hint: "a plan whose views are complete at every site"}
		}
		v.sites = append(v.sites, rows)
	}
	v.measure()
	return v, nil
}

// measure finds out where rows lie in their sites, and how far apart.
func (v *victims) measure() {
	v.scale = make([]float64, v.dim)
	_, lo, hi := options.Box(v.plan)
	total := 0
	for _, rows := range v.sites {
		mean, n := make([]float64, v.dim), len(rows)/v.dim
		for i, x := range rows {
			mean[i%v.dim] += x / float64(n)
		}
		for i, x := range rows {
			e := x - mean[i%v.dim]
			v.scale[i%v.dim] += e * e
		}
		v.means = append(v.means, mean)
		total += n
	}
	for i, s := range v.scale {
		if v.scale[i] = math.Sqrt(s / float64(total)); !(v.scale[i] > 0) {
			v.scale[i] = hi[i] - lo[i] // a feature that does not vary
		}
	}
}

// blind is the share of rows that are within some standard deviations of their
// site's mean.
func (v *victims) blind(within float64) float64 {
	found, total := 0, 0
	for j, rows := range v.sites {
		for x := range slices.Chunk(rows, v.dim) {
			if v.apart(x, v.means[j]) <= within {
				found++
			}
			total++
		}
	}
	return float64(found) / float64(total)
}

// source makes rows a site's data.
func (v *victims) source(rows []float64) (dataset.Source, error) {
	var table []dataset.Row
	for x := range slices.Chunk(rows, v.dim) {
		row := dataset.Row{ID: fmt.Sprintf("%06d", len(table))}
		for _, view := range v.plan.Views {
			row.Views = append(row.Views, x[:len(view.Features):len(view.Features)])
			x = x[len(view.Features):]
		}
		table = append(table, row)
	}
	return dataset.NewTable(v.plan.Schema(), table)
}

// data is that of every site.
func (v *victims) data() (map[string]dataset.Source, error) {
	out := map[string]dataset.Source{}
	for j, rows := range v.sites {
		s, err := v.source(rows)
		if err != nil {
			return nil, err
		}
		out[v.plan.Sites[j]] = s
	}
	return out, nil
}

// all returns the rows of all sites.
func (v *victims) all() []float64 { return slices.Concat(v.sites...) }

// apart is the root mean square, over features, of the differences of two rows in
// standard deviations.
func (v *victims) apart(x, y []float64) float64 {
	s := 0.0
	for i, sd := range v.scale {
		e := (x[i] - y[i]) / sd
		s += e * e
	}
	return math.Sqrt(s / float64(v.dim))
}

// score compares guesses with the rows of the same index.
func (v *victims) score(rows, guesses []float64, within float64) *method.Recovered {
	r := &method.Recovered{Rows: len(rows) / v.dim, Within: within, SD: math.Sqrt(gmm.Squares(v.scale) / float64(v.dim))}
	for k := 0; k < len(rows); k += v.dim {
		e := v.apart(rows[k:k+v.dim], guesses[k:k+v.dim])
		r.RMSE += e * e / float64(r.Rows)
		if e <= within {
			r.Found++
		}
	}
	r.RMSE = math.Sqrt(r.RMSE)
	r.Blind = v.blind(within) * float64(r.Rows)
	return r
}

// closest compares each row with the guess that is closest to it: for attacks that
// find rows in no order.
func (v *victims) closest(rows, guesses []float64, within float64) *method.Recovered {
	var nearest []float64
	for row := range slices.Chunk(rows, v.dim) {
		nearest = append(nearest, v.nearest(row, guesses)...)
	}
	return v.score(rows, nearest, within)
}

// nearest is the one of some guesses that is closest to a row.
func (v *victims) nearest(row, guesses []float64) (best []float64) {
	least := math.Inf(1)
	for g := range slices.Chunk(guesses, v.dim) {
		if e := v.apart(row, g); e < least {
			best, least = g, e
		}
	}
	return best
}

// study makes a plan of a variant for the victims. tailor changes its options.
func (v *victims) study(variant string, privacy study.Privacy, tailor func(*options.Options)) (*study.Plan, error) {
	p := *v.plan
	p.Local, p.Subjects, p.Privacy, p.Seed = nil, nil, privacy, v.seed
	o := options.Default()
	o.Variant, o.Components = variant, v.given.Components
	// Of codes, prior and landmarks are of no use to features.
	given := v.given.Encoder == nil
	if given {
		o.Prior = v.given.Prior
	}
	marked := given && variant == options.VariantLandmark && v.given.Landmarks != nil
	if marked {
		l := *v.given.Landmarks
		o.Landmarks = &l
	}
	o.Fill(&p, func(key string) bool {
		return key != "variant" && !(given && key == "prior.freedom") && !(marked && strings.HasPrefix(key, "landmarks."))
	})
	tailor(o)
	p.Method = study.Method{Name: options.Name, Options: o}
	var wrong problem.List
	o.Check(&p, func(key, what, hint string) {
		wrong = append(wrong, problem.Problem{Where: strings.TrimSuffix("method."+key, "."), What: what, Hint: hint})
	})
	return &p, wrong.Err()
}

// noProtection lets everything through.
var noProtection = study.Privacy{Protection: study.ProtectionNone}
