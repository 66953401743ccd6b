package graffl

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"parley/method"
	"parley/methods/mixture"
	"parley/methods/mixture/gmm"
)

// attacker mounts attacks one after the other.
type attacker struct {
	*victims
	lab    method.Laboratory
	target method.Target
	came   []method.Attack
}

// Attack implements [method.Attackable].
func (m Method) Attack(ctx context.Context, lab method.Laboratory, t method.Target) ([]method.Attack, error) {
	v, err := victimsOf(ctx, t)
	if err != nil {
		return nil, err
	}
	a := &attacker{victims: v, lab: lab, target: t}
	for _, mount := range []func(context.Context) error{a.trilaterated, a.differenced} {
		if err := mount(ctx); err != nil {
			return nil, err
		}
	}
	return a.came, nil
}

// tell says what comes next.
func (a *attacker) tell(what string) {
	if a.target.Tell != nil {
		a.target.Tell(what)
	}
}

// found adds what an attack has recovered. expected is the share that the
// documentation says is found; of anybody's data if always, else of the example.
func (a *attacker) found(attack method.Attack, r *method.Recovered, expected float64, always bool) {
	if always || a.target.Plan == nil {
		r.Expected = int(expected * float64(r.Rows))
	}
	attack.Recovered = r
	a.came = append(a.came, attack)
}

// trilaterated is trilateration, passive: the coordinator of an honest study reads the
// answers, and knows the points.
func (a *attacker) trilaterated(ctx context.Context) error {
	a.tell("rows: trilateration")
	d := a.Dim
	rounds := d + 1
	s, err := a.study(Rows, func(o *Options) { o.Rounds, o.Accepted = rounds, 16 })
	if err != nil {
		return err
	}
	data, err := a.data()
	if err != nil {
		return err
	}
	seen, err := a.lab.Study(ctx, s.Plan, data)
	if err != nil {
		return err
	}
	answers, err := s.own.distances(seen)
	if err != nil {
		return err
	}
	var found []float64
	points, squared := make([]float64, rounds*d), make([]float64, rounds)
	for j, site := range s.Plan.Sites {
		proposer, n := newProposer(s.Setup, site), len(a.Sites[j])/d
		for k := range n {
			for i, at := range answers[site] {
				proposer.Row(i*n+k, points[i*d:][:d])
				squared[i] = at[k]
			}
			x, err := trilaterate(points, squared, d)
			if err != nil {
				return fmt.Errorf("row %d of site %s: %w", k+1, site, err)
			}
			found = append(found, x...)
		}
	}
	a.found(method.Attack{Variant: Rows, Name: "A: trilateration", Answers: rounds, Of: "distances of each row",
		Needs: "nothing but to read the answers of an honest study, whose simulated rows follow from the plan's seed"},
		a.score(slices.Concat(a.Sites...), found, 0.001), 1, true)
	return nil
}

// differenced is differencing of two studies of one plan, between which one person has left:
// the answers about one and the same simulated set differ by that person's part, so
// that each says how far a known set lies from one row.
func (a *attacker) differenced(ctx context.Context) error {
	for _, d := range []discrepancy{{Kind: byEnergy},
		{Kind: byMMD, Bandwidth: width(a.victims) / 12 * math.Sqrt(float64(a.Dim))}} {
		a.tell(fmt.Sprintf("sets: differencing, %s", d.Kind))
		s, err := a.study(Sets, func(o *Options) {
			o.Set.Discrepancy, o.Set.Bandwidth = string(d.Kind), d.Bandwidth
			o.Set.Particles, o.Set.Proposals, o.Set.Rows = setBatch, setBatch, 20
		})
		if err != nil {
			return err
		}
		r, err := a.difference(ctx, s, 0.001, func(means []float64) []float64 {
			return locateBySets(a.victims, s, d, means)
		})
		if err != nil {
			return err
		}
		a.found(method.Attack{Variant: Sets, Name: fmt.Sprintf("B: differencing two studies, %s", d.Kind),
			Answers: 2 * setBatch, Of: "means of the person's site", Active: true,
			Needs: "two studies of one plan, between which one person has left or joined"}, r, 1, false)
	}
	return nil
}

// persons leave the study, one at a time.
const persons = 20

// difference runs a study, then asks for the same again at the site of one who has
// left, for some persons. locate finds the row whose part of them the two answers differ by.
func (a *attacker) difference(ctx context.Context, s setup, within float64,
	locate func([]float64) []float64) (*method.Recovered, error) {
	data, err := a.data()
	if err != nil {
		return nil, err
	}
	seen, err := a.lab.Study(ctx, s.Plan, data)
	if err != nil {
		return nil, err
	}
	before, tasks := map[string][]float64{}, map[string][]method.Task{}
	for _, e := range seen {
		sums, err := sumsOf(e.Answer)
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
		left, err := a.source(slices.Concat(rows[:row], rows[row+a.Dim:]))
		if err != nil {
			return nil, err
		}
		answers, err := a.lab.Ask(ctx, s.Plan, site, left, tasks[site]...)
		if err != nil {
			return nil, err
		}
		var after []float64
		for _, answer := range answers {
			sums, err := sumsOf(answer)
			if err != nil {
				return nil, err
			}
			after = append(after, sums...)
		}
		part, err := between(before[site], after)
		if err != nil {
			return nil, err
		}
		truth, guesses = append(truth, rows[row:row+a.Dim]...), append(guesses, locate(part)...)
	}
	return a.score(truth, guesses, within), nil
}

// between is what two answers to one question tell about the record by which two
// sets differ: with sums (means times numbers of rows) of the larger and the smaller
// set, its own contribution. Where answers are exact, so is it; where they carry
// noise, it carries that of both.
func between(larger, smaller []float64) ([]float64, error) {
	if len(larger) != len(smaller) {
		return nil, fmt.Errorf("sums of %d and of %d numbers", len(larger), len(smaller))
	}
	d := make([]float64, len(larger))
	for i := range d {
		d[i] = larger[i] - smaller[i]
	}
	return d, nil
}

// width is the mean width of the features' public ranges.
func width(v *victims) (w float64) {
	_, lo, hi := mixture.Box(v.Plan)
	for i := range lo {
		w += (hi[i] - lo[i]) / float64(v.Dim)
	}
	return w
}

// locateBySets finds the row whose mean distance, or kernel value, to each simulated
// set of the first batch is as given.
func locateBySets(v *victims, s setup, d discrepancy, means []float64) []float64 {
	smc := &SMC{Prior: s.Prior, Choices: s.own.choices(s.Seed("sets"))}
	var sets [][]float64
	var want, starts []float64
	each(s, 0, smc.Propose(len(means)), func(i int, set []float64) {
		if set == nil {
			return
		}
		sets, want = append(sets, slices.Clone(set)), append(want, means[i])
		starts = append(starts, set[:2*v.Dim]...)
	})
	residuals := func(r, jac, x []float64) {
		for i, set := range sets {
			if jac == nil {
				r[i] = d.Cross(x, set, v.Dim) - want[i]
				continue
			}
			row := jac[i*v.Dim:][:v.Dim]
			r[i] = slope(d, row, x, set) - want[i]
		}
	}
	// From the points that fit best so far, and the middle of the box.
	type start struct {
		x    []float64
		loss float64
	}
	r := make([]float64, len(sets))
	var all []start
	for x := range slices.Chunk(append(starts, s.Prior.Mean...), v.Dim) {
		residuals(r, nil, x)
		all = append(all, start{x, gmm.Squares(r)})
	}
	slices.SortStableFunc(all, func(a, b start) int { return cmp.Compare(a.loss, b.loss) })
	var best []float64
	least := math.Inf(1)
	for _, b := range all[:min(len(all), 8)] {
		x := slices.Clone(b.x)
		if loss := leastSquares(x, len(sets), residuals); loss < least {
			best, least = x, loss
		}
	}
	return best
}

// leastSquares moves x to a minimum of |r(x)|² by the steps of Levenberg and
// Marquardt, and returns it. residuals writes m residuals and, unless jac is nil, their
// derivatives, m × len(x) by rows.
func leastSquares(x []float64, m int, residuals func(r, jac, x []float64)) (loss float64) {
	n := len(x)
	r, jac := make([]float64, m), make([]float64, m*n)
	gram, l, slope, step, to := make([]float64, n*n), make([]float64, n*n), make([]float64, n), make([]float64, n),
		make([]float64, n)
	residuals(r, jac, x)
	loss = gmm.Squares(r)
	damping := 1e-3
	for range 200 {
		clear(gram)
		clear(slope)
		for i, v := range r {
			row := jac[i*n:][:n]
			for a, g := range row {
				if g == 0 {
					continue
				}
				slope[a] += g * v
				for b, h := range row[:a+1] {
					gram[a*n+b] += g * h
				}
			}
		}
		before, better := loss, false
		for range 16 {
			copy(l, gram)
			for a := range n {
				l[a*n+a] += damping*gram[a*n+a] + 1e-300
			}
			if _, ok := gmm.Cholesky(l, n); ok {
				copy(step, slope)
				gmm.Forward(l, n, step)
				gmm.BackwardSolve(l, n, step)
				for a := range to {
					to[a] = x[a] - step[a]
				}
				residuals(r, nil, to)
				if v := gmm.Squares(r); v < loss {
					copy(x, to)
					loss, better = v, true
					damping = max(damping/10, 1e-15)
					break
				}
			}
			damping = 10 * max(damping, 1e-12)
		}
		if !better || before-loss <= 1e-12*loss {
			break
		}
		residuals(r, jac, x)
	}
	return loss
}

// trilaterate recovers a row from its exact squared distances r_i to known points
// g_i, at least dim + 1 of them: 2 (g_i − g_0)·x = r_0 − r_i + |g_i|² − |g_0|², by least
// squares if there are more. It is what Algorithm 2's server can do with the answers
// of dim + 1 honest rounds, because rows keep their index: every row of every site.
// Points are by rows.
//
// An error means too few points, or points that lie in one hyperplane.
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

// slope returns what Cross does of the row x and a set, and writes its derivatives.
func slope(d discrepancy, dst, x, set []float64) (mean float64) {
	clear(dst)
	dim, n := len(x), float64(len(set)/len(x))
	for g := range slices.Chunk(set, dim) {
		q := gmm.SquaredDistance(x, g)
		value, by := math.Sqrt(q), 0.0 // by × (x − g) is the derivative
		if d.Kind == byEnergy {
			by = 1 / max(value, 1e-300)
		} else {
			value = math.Exp(-q / (2 * d.Bandwidth * d.Bandwidth))
			by = -value / (d.Bandwidth * d.Bandwidth)
		}
		mean += value / n
		for i, v := range x {
			dst[i] += by * (v - g[i]) / n
		}
	}
	return mean
}
