package regression

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"parley/dataset"
	"parley/engine/local"
	"parley/figure"
	"parley/methods/published/dppvi"
	"parley/methods/regression/fitted"
	"parley/methods/regression/glm"
	"parley/papers/deal"
	"parley/papers/experiment"
	"parley/privacy/account"
)

// The arms of the table. Those of the product run through the engine; noise once is the
// same with all rows at one site, as if sites added their sums up in secret.
const (
	armDefault   = "default"
	armFedAvg    = "FedAvg"
	armOnce      = "default, noise once"
	armDescent   = "descent"
	armPerturbed = "objective perturbation"
)

// beside says which form of the default a rival is compared with: pooled ones with that whose noise is added once.
var beside = []struct{ arm, with string }{{armOnce, armDefault}, {armFedAvg, armDefault}, {armDescent, armOnce},
	{armPerturbed, armOnce}}

// fitOf fits a problem's two classes: by default, or without a total, which is without privacy, with independent
// weights, which are those of partitioned inference.
func fitOf(ctx context.Context, p *problem, total account.Budget, once bool) (*fitted.Model, *local.Outcome, error) {
	data, err := p.data(once)
	if err != nil {
		return nil, nil, err
	}
	with := map[string]any{"outcome": p.Outcome}
	if total.Epsilon == 0 {
		with["name"], with["algorithm"] = dppvi.Name, "exact"
	}
	return p.study(ctx, with, data, total)
}

// data are the rows of every site, or of one that has them all.
func (p *problem) data(once bool) (map[string]dataset.Source, error) {
	data := map[string]dataset.Source{}
	for name, t := range p.Sites {
		data[name] = t
	}
	if !once {
		return data, nil
	}
	var rows []dataset.Row
	n := 0
	var schema dataset.Schema
	for _, name := range slices.Sorted(maps.Keys(p.Sites)) {
		t := p.Sites[name]
		schema = t.Schema()
		for i := range t.Len() {
			row := t.Row(i)
			row.ID = fmt.Sprintf("%07d", n)
			n++
			rows = append(rows, row)
		}
	}
	all, err := dataset.NewTable(schema, rows)
	return map[string]dataset.Source{"all": all}, err
}

// held is the mean log-likelihood of the rows held out under a model.
func heldLogLik(ctx context.Context, p *problem, m *fitted.Model) (float64, error) {
	d, err := deal.Design(ctx, &m.Encoding, &p.Outcome, p.Held)
	if err != nil {
		return 0, err
	}
	q, sum := m.Weights(), 0.0
	for i := range d.Rows() {
		a, c := q.Activation(d.Row(i), 0)
		sum += glm.LogExpectSigmoid(d.Outcome(i)*a, c)
	}
	return sum / float64(d.Rows()), nil
}

// rival is a fit by steps along gradients of rows in memory, with noise of the machine's own
// arithmetic: a yardstick, which protects nobody.
type rival struct {
	sites []*glm.Design
	rows  int
	norms []float64 // of rows, ascending
	r     *rand.Rand
}

func newRival(ctx context.Context, p *problem, e *glm.Encoding, seed uint64) (*rival, error) {
	v := &rival{r: rand.New(rand.NewPCG(seed, 23))}
	for _, name := range slices.Sorted(maps.Keys(p.Sites)) {
		d, err := deal.Design(ctx, e, &p.Outcome, p.Sites[name])
		if err != nil {
			return nil, err
		}
		v.sites, v.rows = append(v.sites, d), v.rows+d.Rows()
		for i := range d.Rows() {
			v.norms = append(v.norms, d.Row(i).Norm())
		}
	}
	slices.Sort(v.norms)
	return v, nil
}

// sum adds a site's gradients at w, each clipped, of rows cut to a length, with a row's chance to take part.
func (v *rival) sum(d *glm.Design, w []float64, clip, length, rate float64) []float64 {
	g := make([]float64, len(w))
	for i := range d.Rows() {
		if rate < 1 && v.r.Float64() >= rate {
			continue
		}
		x, y := d.Row(i), d.Outcome(i)
		cut := min(1, length/x.Norm())
		a := 0.0
		for k, j := range x.Index {
			a += cut * x.Value[k] * w[j]
		}
		residual := y / (1 + math.Exp(y*a))
		residual /= max(1, math.Abs(residual)*cut*x.Norm()/clip)
		for k, j := range x.Index {
			g[j] += residual * cut * x.Value[k]
		}
	}
	return g
}

// pooled adds the gradients of all sites' rows.
func (v *rival) pooled(w []float64, clip, length float64) []float64 {
	all := make([]float64, len(w))
	for _, site := range v.sites {
		floats.Add(all, v.sum(site, w, clip, length, 1))
	}
	return all
}

func (v *rival) noise(x []float64, sd float64) {
	for j := range x {
		x[j] += sd * v.r.NormFloat64()
	}
}

// curvature is Böhning's bound of the Hessian of rows cut to a length, a quarter of their second moments, with noise of
// so many sensitivities: factored.
func (v *rival) curvature(length, noise float64) *mat.EigenSym {
	d := v.sites[0].Columns()
	a := mat.NewSymDense(d, nil)
	for _, site := range v.sites {
		for i := range site.Rows() {
			x := site.Row(i)
			cut := min(1, length/x.Norm())
			for k, j := range x.Index {
				for l, m := range x.Index[:k+1] {
					a.SetSym(int(j), int(m), a.At(int(j), int(m))+cut*cut*x.Value[k]*x.Value[l]/4)
				}
			}
		}
	}
	sd := noise * length * length / 4
	for j := range d {
		for m := range j + 1 {
			z := sd * v.r.NormFloat64()
			if j != m {
				z /= math.Sqrt2
			}
			a.SetSym(j, m, a.At(j, m)+z)
		}
	}
	var e mat.EigenSym
	e.Factorize(a, true)
	return &e
}

// solve divides g by a matrix of which the eigenvalues are raised to a least one, with a ridge.
func solve(e *mat.EigenSym, g []float64, least, ridge float64) []float64 {
	var q mat.Dense
	e.VectorsTo(&q)
	var along, out mat.VecDense
	along.MulVec(q.T(), mat.NewVecDense(len(g), g))
	for i, value := range e.Values(nil) {
		along.SetVec(i, along.AtVec(i)/(max(value, least)+ridge))
	}
	out.MulVec(&q, &along)
	return out.RawVector().Data
}

// descent is full-batch gradient descent on all rows with momentum .9 and steps of .3, and the mean of the second half
// of its iterates. With a share of the total the steps are divided by noised second moments instead.
func (v *rival) descent(clip float64, rounds int, share float64, total account.Budget) ([]float64, error) {
	noise, err := deal.Noise(1, 2, 1, total)
	if err != nil {
		return nil, err
	}
	length := stat.Quantile(0.9, stat.Empirical, v.norms, nil)
	d := v.sites[0].Columns()
	w, speed, mean := make([]float64, d), make([]float64, d), make([]float64, d)
	var e *mat.EigenSym
	moments := 0.0
	if share > 0 {
		moments = noise / math.Sqrt(share)
		e = v.curvature(length, moments)
	}
	for t := range rounds {
		g := v.pooled(w, clip, math.Inf(1))
		v.noise(g, clip*noise*math.Sqrt(float64(rounds)/(1-share)))
		floats.Sub(g, w)
		if share > 0 {
			floats.Add(w, solve(e, g, moments*length*length/4*math.Sqrt(float64(d)), 1))
		} else {
			for j := range w {
				speed[j] = 0.9*speed[j] + g[j]/float64(v.rows)
				w[j] += 0.3 * speed[j]
			}
		}
		if t >= rounds/2 {
			floats.AddScaled(mean, 1/float64(rounds-rounds/2), w)
		}
	}
	return mean, nil
}

// perturbed is objective perturbation (Kifer, Smith and Thakurta 2012) of all rows, cut to the quantile of their
// lengths: a share of ε pays for the ridge that it needs, and the rest for its random slope, by the exact loss of a
// Gaussian release, which flatters it (Redberg, Koskela and Wang 2023 have one more term).
func (v *rival) perturbed(quantile, share float64, total account.Budget) ([]float64, error) {
	noise, err := deal.Noise(1, 2, 1, account.Budget{Epsilon: (1 - share) * total.Epsilon, Delta: total.Delta})
	if err != nil {
		return nil, err
	}
	length := stat.Quantile(quantile, stat.Empirical, v.norms, nil)
	ridge := max(1, length*length/4/math.Expm1(share*total.Epsilon))
	d := v.sites[0].Columns()
	w, slope := make([]float64, d), make([]float64, d)
	v.noise(slope, length*noise)
	e := v.curvature(length, 0)
	for range 200 {
		g := v.pooled(w, math.Inf(1), length)
		floats.Add(g, slope)
		floats.AddScaled(g, -ridge, w)
		step := solve(e, g, 0, ridge)
		floats.Add(w, step)
		if floats.Norm(step, 2) < 1e-6 {
			break
		}
	}
	return w, nil
}

// fedAvg is federated averaging of ten local steps of DP-SGD with a tenth of the rows, and
// the mean of the second half of its rounds; clip and rate of learning are settings.
func (v *rival) fedAvg(clip, learn float64, total account.Budget) ([]float64, error) {
	const rounds, steps, rate = 20, 10, 0.1
	noise, err := deal.Noise(rate, 2, rounds*steps, total)
	if err != nil {
		return nil, err
	}
	d := v.sites[0].Columns()
	w, mean := make([]float64, d), make([]float64, d)
	for t := range rounds {
		next := make([]float64, d)
		for _, site := range v.sites {
			n := float64(site.Rows())
			local := slices.Clone(w)
			for range steps {
				sum := v.sum(site, local, clip, math.Inf(1), rate)
				v.noise(sum, noise*clip)
				for j, g := range sum {
					local[j] += learn * (g/rate - local[j]*n/float64(v.rows)) / n
				}
			}
			floats.AddScaled(next, n/float64(v.rows), local)
		}
		w = next
		if t >= rounds/2 {
			floats.AddScaled(mean, 1/float64(rounds-rounds/2), w)
		}
	}
	return mean, nil
}

// setting is one of a rival's, which the table picks from by the rows held out: rivals are
// flattered.
type setting struct {
	arm string
	run func(*rival, account.Budget) ([]float64, error)
}

var settings = func() (all []setting) {
	for _, clip := range []float64{1, 3} {
		for _, rounds := range []int{10, 30, 100} {
			for _, share := range []float64{0, 0.2} {
				all = append(all, setting{armDescent,
					func(v *rival, b account.Budget) ([]float64, error) { return v.descent(clip, rounds, share, b) }})
			}
		}
		for _, learn := range []float64{0.5, 2} {
			all = append(all, setting{armFedAvg,
				func(v *rival, b account.Budget) ([]float64, error) { return v.fedAvg(clip, learn, b) }})
		}
	}
	for _, quantile := range []float64{0.5, 0.9} {
		for _, share := range []float64{0.25, 0.5} {
			all = append(all, setting{armPerturbed,
				func(v *rival, b account.Budget) ([]float64, error) { return v.perturbed(quantile, share, b) }})
		}
	}
	return all
}()

// sent is how many bytes a site sent, on average.
func sent(out *local.Outcome, sites int) (bytes float64) {
	for _, r := range out.Rounds {
		for _, x := range r.Sites {
			bytes += float64(x.Up)
		}
	}
	return bytes / float64(sites)
}

var (
	epsilons = []float64{0.25, 0.5, 1, 3, 8}
	quickly  = []string{"10 × 200", "heart-sites"} // cases of a quick run
)

const (
	rivalDelta = 1e-5
	rivalRuns  = 10 // of each comparison, with noise, divisions or draws of their own
)

func rivalID(c problemCase, epsilon float64) string {
	return experiment.Slug(fmt.Sprintf("%s %v", strings.ReplaceAll(c.name, "×", "x"), epsilon))
}

// sentBy names the bytes that a site sends for an arm.
func sentBy(arm string) string { return arm + ", kB" }

// rivals sets the private default for two classes beside other ways to spend the budget.
func rivals() experiment.Experiment {
	return experiment.Experiment{Name: "parley-rivals", Data: []string{dataName, "adult"},
		Cells: func(quick bool) (cells experiment.Cells) {
			for _, c := range cases {
				for _, epsilon := range epsilons {
					runs := rivalRuns
					if quick {
						if runs = 2; epsilon != 1 || !slices.Contains(quickly, c.name) {
							continue
						}
					}
					cells.Add(rivalID(c, epsilon), func(ctx context.Context,
						at experiment.Data) (experiment.Values, error) {
						return c.marks(ctx, at, account.Budget{Epsilon: epsilon, Delta: rivalDelta}, runs)
					})
				}
			}
			return cells
		},
		Conclude: concludeRivals,
	}
}

// marks runs every arm of a case: mean log-likelihoods by arm and run, of rivals by the best
// setting.
func (k problemCase) marks(ctx context.Context, at experiment.Data, total account.Budget,
	runs int) (experiment.Values, error) {
	out := experiment.Values{}
	bySetting := map[string][]float64{}
	for seed := range uint64(runs) {
		p, err := k.draw(ctx, at, seed+1)
		if err != nil {
			return nil, err
		}
		var encoding *glm.Encoding
		for _, arm := range []string{armDefault, armOnce} {
			m, ran, err := fitOf(ctx, p, total, arm == armOnce)
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", k.name, arm, err)
			}
			ll, err := heldLogLik(ctx, p, m)
			if err != nil {
				return nil, err
			}
			out[arm] = append(out[arm], ll)
			out[sentBy(arm)] = append(out[sentBy(arm)], sent(ran, len(p.Sites))/1000)
			if arm == armDefault {
				encoding = &m.Encoding
			}
		}
		v, err := newRival(ctx, p, encoding, seed)
		if err != nil {
			return nil, err
		}
		test, err := deal.Design(ctx, encoding, &p.Outcome, p.Held)
		if err != nil {
			return nil, err
		}
		for i, s := range settings {
			w, err := s.run(v, total)
			if err != nil {
				return nil, err
			}
			sum := 0.0
			for i := range test.Rows() {
				a, _ := test.Row(i).Activation(w, w)
				sum += glm.LogExpectSigmoid(test.Outcome(i)*a, 0)
			}
			name := fmt.Sprintf("%s %d", s.arm, i)
			bySetting[name] = append(bySetting[name], sum/float64(test.Rows()))
		}
	}
	for _, s := range settings {
		for name, x := range bySetting {
			if strings.HasPrefix(name, s.arm+" ") && (out[s.arm] == nil ||
				stat.Mean(x, nil) > stat.Mean(out[s.arm], nil)) {
				out[s.arm] = x
			}
		}
	}
	return out, nil
}

// leastErrors is how many standard errors a difference of mean log-likelihoods counts from: of equals, one in 40
// comparisons is said to be behind.
const leastErrors = 2

// tally counts comparisons of the default with an arm.
type tally struct {
	ahead, level int
	behind       []string // case, total and difference of each
}

// add counts a comparison: the default's advantage with its standard error.
func (t *tally) add(where string, advantage, se float64) {
	switch {
	case math.Abs(advantage) <= leastErrors*se:
		t.level++
	case advantage > 0:
		t.ahead++
	default:
		t.behind = append(t.behind, fmt.Sprintf("%s by %.4f", where, -advantage))
	}
}

// concludeRivals makes the table of all arms, cases and totals, and one of where the default
// is ahead and behind.
func concludeRivals(o experiment.Outcomes) experiment.Conclusion {
	columns := []string{"case", "ε", armDefault}
	tallies := map[string]*tally{}
	for _, b := range beside {
		columns, tallies[b.arm] = append(columns, b.arm), &tally{}
	}
	all := figure.Table{ID: "marks", Title: "Mean log-likelihood of rows held out",
		Caption: fmt.Sprintf("Means of %d runs; in brackets the default's less the arm's, ± its standard error: for "+
			"%s and %s the default's with noise once. δ is %v. The last column has the kB that a site sends by "+
			"default.",
			rivalRuns, armDescent, armPerturbed, rivalDelta),
		Columns: figure.TextColumns(append(columns, "kB")...)}
	minus := experiment.Minus
	for _, k := range cases {
		for _, epsilon := range epsilons {
			v := o[rivalID(k, epsilon)]
			if v == nil {
				continue
			}
			row := []any{k.name, fmt.Sprint(epsilon), minus(fmt.Sprintf("%.4f", stat.Mean(v[armDefault], nil)))}
			for _, b := range beside {
				less := floats.SubTo(make([]float64, len(v[b.arm])), v[b.with], v[b.arm])
				mean, sd := stat.MeanStdDev(less, nil)
				se := sd / math.Sqrt(float64(len(less)))
				row = append(row, minus(fmt.Sprintf("%.4f (%+.4f ± %.4f)", stat.Mean(v[b.arm], nil), mean, se)))
				tallies[b.arm].add(fmt.Sprintf("%s at ε %v", k.name, epsilon), mean, se)
			}
			all.Add(append(row, fmt.Sprintf("%.0f", stat.Mean(v[sentBy(armDefault)], nil)))...)
		}
	}
	count := figure.Table{ID: "tally", Title: "Where the default is ahead and behind",
		Caption: fmt.Sprintf("By more than %d standard errors. Of two equal arms one in 40 comparisons says that the "+
			"default is behind.", leastErrors),
		Columns: figure.TextColumns("beside", "comparisons", "default ahead", "level", "default behind",
			"where it is behind")}
	for _, b := range beside[1:] {
		t := tallies[b.arm]
		count.Add(b.arm, fmt.Sprint(t.ahead+t.level+len(t.behind)), fmt.Sprint(t.ahead), fmt.Sprint(t.level),
			fmt.Sprint(len(t.behind)), strings.Join(t.behind, "; "))
	}
	return experiment.Conclusion{Tables: []figure.Table{count, all}}
}
