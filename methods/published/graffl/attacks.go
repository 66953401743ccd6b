package graffl

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"

	"parley/dataset"
	"parley/method"
	"parley/methods/mixture/fitted"
	"parley/methods/mixture/gmm"
	"parley/problem"
	"parley/study"
)

// mostVictims rows of each site take part in the study that is attacked: enough
// to see what is found, few enough to be soon done.
const mostVictims = 200

// victims are the rows that the attack is scored against, with a study of them by Algorithm 2.
type victims struct {
	setup
	rows  [][]float64 // of each site, which have all features
	means [][]float64 // of each site
	scale []float64   // standard deviation of each feature within sites
}

// Attack implements [method.Attackable] by trilateration, passive: the coordinator of an honest study
// reads the answers, and knows the points.
func (Method) Attack(ctx context.Context, lab method.Laboratory, t method.Target) ([]method.Attack, error) {
	v, err := victimsOf(ctx, t)
	if err != nil {
		return nil, err
	}
	if t.Tell != nil {
		t.Tell("rows: trilateration")
	}
	data, err := v.data()
	if err != nil {
		return nil, err
	}
	seen, err := lab.Study(ctx, v.Plan, data)
	if err != nil {
		return nil, err
	}
	answers, err := v.own.distances(seen)
	if err != nil {
		return nil, err
	}
	d, rounds := len(v.Names), v.own.Rounds
	var found []float64
	points, squared := make([]float64, rounds*d), make([]float64, rounds)
	for j, site := range v.Plan.Sites {
		proposer, n := newProposer(v.Setup, site), len(v.rows[j])/d
		for k := range n {
			for i, at := range answers[site] {
				proposer.Row(i*n+k, points[i*d:][:d])
				squared[i] = at[k]
			}
			x, err := trilaterate(points, squared, d)
			if err != nil {
				return nil, fmt.Errorf("row %d of site %s: %w", k+1, site, err)
			}
			found = append(found, x...)
		}
	}
	r := v.score(found, 0.001)
	r.Expected = r.Rows
	return []method.Attack{{Name: "trilateration", Answers: rounds, Of: "distances of each row",
		Needs: "nothing but to read the answers of an honest study, " +
			"whose simulated rows follow from the plan's seed",
		Recovered: r}}, nil
}

// trilaterate recovers a row from its exact squared distances r_i to known points g_i, at least dim + 1 of them: 2 (g_i
// − g_0)·x = r_0 − r_i + |g_i|² − |g_0|², by least squares if there are more. It is what Algorithm 2's server can do
// with the answers of dim + 1 honest rounds, because rows keep their index. Points are by rows; too few, or all in one
// hyperplane, are an error.
func trilaterate(points, squared []float64, dim int) ([]float64, error) {
	n := len(squared)
	if dim < 1 || len(points) != n*dim || n < dim+1 {
		return nil, fmt.Errorf("%d squared distances to %d numbers of points in %d dimensions: want at least %d of "+
			"each", n, len(points), dim, dim+1)
	}
	if gmm.NotFinite(points) >= 0 || gmm.NotFinite(squared) >= 0 {
		return nil, fmt.Errorf("a point or a distance is not finite")
	}
	a, b := mat.NewDense(n-1, dim, nil), mat.NewVecDense(n-1, nil)
	first := points[:dim]
	for i := range n - 1 {
		g, rhs := points[(i+1)*dim:][:dim], squared[0]-squared[i+1]
		for c, v := range g {
			a.Set(i, c, 2*(v-first[c]))
			rhs += (v - first[c]) * (v + first[c])
		}
		b.SetVec(i, rhs)
	}
	var x mat.VecDense
	if err := x.SolveVec(a, b); err != nil {
		return nil, fmt.Errorf("the points do not determine a row: %w", err)
	}
	return x.RawVector().Data, nil
}

// examplePlan is the toy of the paper's section 4.2: each site has one mode.
const examplePlan = `{parley: 1, name: example, sites: [north, south, east],
views: [{name: point, features: [{name: x, range: [-12, 12]}, {name: y, range: [-12, 12]}]}],
method: {name: graffl-abc, components: 3}, privacy: {protection: none}}`

// victimsOf reads the rows of a target: the first of every site of its plan or, without one, of the
// toy. Whatever the plan says beside, its features are studied by as many rounds as give a row away.
func victimsOf(ctx context.Context, t method.Target) (*victims, error) {
	given := t.Plan
	if given == nil {
		var err error
		if given, err = study.Parse("the example", []byte(examplePlan), method.Registry{Method{}}); err != nil {
			return nil, err
		}
	}
	p := *given
	v := new(victims)
	var err error
	if v.setup, err = setUp(&p); err != nil {
		return nil, err
	}
	v.own = &Options{Algorithm: Rows, Components: v.own.Components, Prior: v.own.Prior, Rounds: len(v.Names) + 1,
		Accepted: 16}
	p.Local, p.Subjects, p.Privacy, p.Seed = nil, nil, study.Privacy{Protection: study.ProtectionNone}, t.Seed
	p.Method.Options = v.own
	if t.Plan == nil {
		v.example()
	} else if err := v.read(ctx, t.Data); err != nil {
		return nil, err
	}
	v.measure()
	return v, nil
}

// example draws a hundred rows for each site of the toy.
func (v *victims) example() {
	r := rand.New(rand.NewPCG(v.Plan.Seed, 42))
	for _, mode := range [][2]float64{{-9, 3}, {0, -9}, {8, 3}} {
		var rows []float64
		for range 100 {
			rows = append(rows, mode[0]+r.NormFloat64(), mode[1]+r.NormFloat64())
		}
		v.rows = append(v.rows, rows)
	}
}

// read takes the first rows of every site of a plan.
func (v *victims) read(ctx context.Context, of map[string]dataset.Source) error {
	x := make([]float64, len(v.Names))
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
			if len(rows) >= mostVictims*len(x) {
				break
			}
			if fitted.Complete(row, x) {
				rows = append(rows, x...)
			}
		}
		if len(rows) < 2*len(x) {
			return problem.Problem{Where: "site " + site, What: "fewer than two rows have all features: there is " +
				"nothing to attack", Hint: "a plan whose views are complete at every site"}
		}
		v.rows = append(v.rows, rows)
	}
	return nil
}

// measure finds out where rows lie in their sites, and how far apart.
func (v *victims) measure() {
	d, total := len(v.Names), 0
	v.scale = make([]float64, d)
	for _, rows := range v.rows {
		mean, n := make([]float64, d), len(rows)/d
		for i, x := range rows {
			mean[i%d] += x / float64(n)
		}
		for i, x := range rows {
			e := x - mean[i%d]
			v.scale[i%d] += e * e
		}
		v.means = append(v.means, mean)
		total += n
	}
	for i, s := range v.scale {
		if v.scale[i] = math.Sqrt(s / float64(total)); !(v.scale[i] > 0) {
			v.scale[i] = v.Hi[i] - v.Lo[i] // a feature that does not vary
		}
	}
}

// data are the rows of every site, as a study reads them.
func (v *victims) data() (map[string]dataset.Source, error) {
	out := map[string]dataset.Source{}
	for j, site := range v.Plan.Sites {
		var table []dataset.Row
		for x := range slices.Chunk(v.rows[j], len(v.Names)) {
			row := dataset.Row{ID: fmt.Sprintf("%06d", len(table))}
			for _, view := range v.Plan.Views {
				row.Views = append(row.Views, x[:len(view.Features):len(view.Features)])
				x = x[len(view.Features):]
			}
			table = append(table, row)
		}
		var err error
		if out[site], err = dataset.NewTable(v.Plan.Schema(), table); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// apart is the root mean square, over features, of the differences of two rows in standard deviations.
func (v *victims) apart(x, y []float64) float64 {
	s := 0.0
	for i, sd := range v.scale {
		e := (x[i] - y[i]) / sd
		s += e * e
	}
	return math.Sqrt(s / float64(len(v.scale)))
}

// score compares guesses with all rows, and says how many of these lie as near to their site's mean.
func (v *victims) score(guesses []float64, within float64) *method.Recovered {
	d := len(v.scale)
	r := &method.Recovered{Within: within, SD: math.Sqrt(gmm.Squares(v.scale) / float64(d))}
	for j, rows := range v.rows {
		for x := range slices.Chunk(rows, d) {
			e := v.apart(x, guesses[r.Rows*d:][:d])
			if r.RMSE += e * e; e <= within {
				r.Found++
			}
			if v.apart(x, v.means[j]) <= within {
				r.Blind++
			}
			r.Rows++
		}
	}
	r.RMSE = math.Sqrt(r.RMSE / float64(r.Rows))
	return r
}
