package mixture

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"parley/dataset"
	"parley/method"
	"parley/methods/mixture/gmm"
	"parley/problem"
	"parley/study"
)

// mostVictims rows of each site take part in the studies that are attacked: enough
// to see what is found, few enough to be soon done.
const mostVictims = 200

// Victims are the rows that attacks are scored against.
type Victims struct {
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
method: {name: %s, components: 3}, privacy: {protection: none}}`

// example draws a hundred rows for each site of the toy.
func (v *Victims) example() {
	r := rand.New(rand.NewPCG(v.Seed, 42))
	for _, mode := range [][2]float64{{-9, 3}, {0, -9}, {8, 3}} {
		var rows []float64
		for range 100 {
			rows = append(rows, mode[0]+r.NormFloat64(), mode[1]+r.NormFloat64())
		}
		v.Sites = append(v.Sites, rows)
	}
}

// read takes the first rows of every site of a plan.
func (v *Victims) read(ctx context.Context, of map[string]dataset.Source) error {
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
			if Complete(row, x) {
				rows = append(rows, x...)
			}
		}
		if len(rows) < 2*v.Dim {
			return problem.Problem{Where: "site " + site, What: "fewer than two rows have all features: there is nothing to attack", Hint: "a plan whose views are complete at every site"}
		}
		v.Sites = append(v.Sites, rows)
	}
	return nil
}

// measure finds out where rows lie in their sites, and how far apart.
func (v *Victims) measure() {
	v.Scale = make([]float64, v.Dim)
	_, lo, hi := Box(v.Plan)
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

// blind is the share of rows that are within some standard deviations of their
// site's mean.
func (v *Victims) blind(within float64) float64 {
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

// Source makes rows a site's data.
func (v *Victims) Source(rows []float64) (dataset.Source, error) {
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

// Data is that of every site.
func (v *Victims) Data() (map[string]dataset.Source, error) {
	out := map[string]dataset.Source{}
	for j, rows := range v.Sites {
		s, err := v.Source(rows)
		if err != nil {
			return nil, err
		}
		out[v.Plan.Sites[j]] = s
	}
	return out, nil
}

// All returns the rows of all sites.
func (v *Victims) All() []float64 { return slices.Concat(v.Sites...) }

// apart is the root mean square, over features, of the differences of two rows in
// standard deviations.
func (v *Victims) apart(x, y []float64) float64 {
	s := 0.0
	for i, sd := range v.Scale {
		e := (x[i] - y[i]) / sd
		s += e * e
	}
	return math.Sqrt(s / float64(v.Dim))
}

// Score compares guesses with the rows of the same index.
func (v *Victims) Score(rows, guesses []float64, within float64) *method.Recovered {
	r := &method.Recovered{Rows: len(rows) / v.Dim, Within: within, SD: math.Sqrt(gmm.Squares(v.Scale) / float64(v.Dim))}
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

// Nearest is the one of some guesses that is closest to a row.
func (v *Victims) Nearest(row, guesses []float64) (best []float64) {
	least := math.Inf(1)
	for g := range slices.Chunk(guesses, v.Dim) {
		if e := v.apart(row, g); e < least {
			best, least = g, e
		}
	}
	return best
}

// Prior is that of the plan that was asked for.
func (v *Victims) Prior() PriorOptions {
	prior := v.Given.Prior
	prior.Spread = cmp.Or(prior.Spread, wideSpread) // 0 is learned by this method alone
	return prior
}

// Study makes a plan for the victims with options of its method: they are filled in but for those
// that were given, then tailored and checked.
func (v *Victims) Study(privacy study.Privacy, o studied, given func(key string) bool, tailor func()) (*study.Plan, error) {
	p := *v.Plan
	p.Local, p.Subjects, p.Privacy, p.Seed = nil, nil, privacy, v.Seed
	o.Fill(&p, func(key string) bool { return !given(key) && key != "prior.freedom" })
	tailor()
	p.Method.Options = o
	var wrong problem.List
	o.Check(&p, func(key, what, hint string) {
		wrong = append(wrong, problem.Problem{Where: strings.TrimSuffix("method."+key, "."), What: what, Hint: hint})
	})
	return &p, wrong.Err()
}

// studied are what a plan says under method.
type studied interface {
	study.Filler
	study.Checker
}

// NoProtection lets everything through.
var NoProtection = study.Privacy{Protection: study.ProtectionNone}

// NewAttacker reads the rows of a target: the first of every site of its plan or, without one, of
// the toy of the paper's section 4.2. mixture finds what the plan says of the mixture, and ready
// whether studies of the victims' features can be run. What the plan says of classes does
// not matter: it is rows as they are that are looked for.
func NewAttacker(ctx context.Context, m method.Method, lab method.Laboratory, t method.Target, mixture func(*study.Plan) (*Options, error), ready func(*Victims) error) (*Attacker, error) {
	p := t.Plan
	if p == nil {
		var err error
		if p, err = study.Parse("the example", fmt.Appendf(nil, examplePlan, m.Name()), method.Registry{m}); err != nil {
			return nil, err
		}
	}
	given, err := mixture(p)
	if err != nil {
		return nil, err
	}
	v := &Victims{Plan: p, Given: given, Dim: Features(p), Seed: t.Seed}
	if err := ready(v); err != nil {
		return nil, err
	}
	if t.Plan == nil {
		v.example()
	} else if err := v.read(ctx, t.Data); err != nil {
		return nil, err
	}
	v.measure()
	return &Attacker{Victims: v, Lab: lab, Target: t}, nil
}

// Attacker mounts attacks one after the other.
type Attacker struct {
	*Victims
	Lab    method.Laboratory
	Target method.Target
	Came   []method.Attack
}

// Tell says what comes next.
func (a *Attacker) Tell(what string) {
	if a.Target.Tell != nil {
		a.Target.Tell(what)
	}
}

// Found adds what an attack has recovered. expected is the share that the
// documentation says is found; of anybody's data if always, else of the example.
func (a *Attacker) Found(attack method.Attack, r *method.Recovered, expected float64, always bool) {
	if always || a.Target.Plan == nil {
		r.Expected = int(expected * float64(r.Rows))
	}
	attack.Recovered = r
	a.Came = append(a.Came, attack)
}

// persons leave the study, one at a time.
const persons = 20

// Difference runs a study, then asks for the same again at the site of one who has
// left, for some persons. own reads sums over a site's rows from an answer, and
// locate finds the row whose part of them the two answers differ by.
func (a *Attacker) Difference(ctx context.Context, s *Setup, within float64, own func(method.Contribution) ([]float64, error), locate func([]float64) ([]float64, error)) (*method.Recovered, error) {
	data, err := a.Data()
	if err != nil {
		return nil, err
	}
	seen, err := a.Lab.Study(ctx, s.Plan, data)
	if err != nil {
		return nil, err
	}
	before, tasks := map[string][]float64{}, map[string][]method.Task{}
	for _, e := range seen {
		sums, err := own(e.Answer)
		if err != nil {
			return nil, err
		}
		site := e.Task.Site
		before[site], tasks[site] = append(before[site], sums...), append(tasks[site], e.Task)
	}
	var truth, guesses []float64
	for k := range persons {
		j := k % len(a.Sites)
		site, rows := s.Plan.Sites[j], a.Sites[j]
		row := k % (len(rows) / a.Dim) * a.Dim
		left, err := a.Source(slices.Concat(rows[:row], rows[row+a.Dim:]))
		if err != nil {
			return nil, err
		}
		answers, err := a.Lab.Ask(ctx, s.Plan, site, left, tasks[site]...)
		if err != nil {
			return nil, err
		}
		var after []float64
		for _, answer := range answers {
			sums, err := own(answer)
			if err != nil {
				return nil, err
			}
			after = append(after, sums...)
		}
		part, err := difference(before[site], after)
		if err != nil {
			return nil, err
		}
		x, err := locate(part)
		if err != nil {
			return nil, err
		}
		truth, guesses = append(truth, rows[row:row+a.Dim]...), append(guesses, x...)
	}
	return a.Score(truth, guesses, within), nil
}
