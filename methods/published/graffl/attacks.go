package graffl

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/mat"

	"parley/method"
	"parley/methods/mixture"
	"parley/methods/mixture/gmm"
)

// attacker mounts the attacks on both algorithms.
type attacker struct{ *mixture.Attacker }

// studyOf makes a study of the victims' rows by an algorithm.
func studyOf(v *mixture.Victims, algorithm string, tailor func(*Options)) (setup, error) {
	o := &Options{Algorithm: algorithm, Components: v.Given.Components}
	o.Prior = v.Prior()
	p, err := v.Study(mixture.NoProtection, o, func(key string) bool { return strings.HasPrefix(key, "algorithm") }, func() { tailor(o) })
	if err != nil {
		return setup{}, err
	}
	return setUp(p)
}

// trilaterated is trilateration, passive: the coordinator of an honest study reads the
// answers, and knows the points.
func (a attacker) trilaterated(ctx context.Context) error {
	a.Tell("rows: trilateration")
	d := a.Dim
	rounds := d + 1
	s, err := studyOf(a.Victims, Rows, func(o *Options) { o.Rounds, o.Accepted = rounds, 16 })
	if err != nil {
		return err
	}
	data, err := a.Data()
	if err != nil {
		return err
	}
	seen, err := a.Lab.Study(ctx, s.Plan, data)
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
	a.Found(method.Attack{Variant: Rows, Name: "A: trilateration", Answers: rounds, Of: "distances of each row",
		Needs: "nothing but to read the answers of an honest study, whose simulated rows follow from the plan's seed"}, a.Score(a.All(), found, 0.001), 1, true)
	return nil
}

// differenced is differencing of two studies of one plan, between which one person has left:
// the answers about one and the same simulated set differ by that person's part, so
// that each says how far a known set lies from one row.
func (a attacker) differenced(ctx context.Context) error {
	for _, d := range []gmm.Discrepancy{{Kind: gmm.Energy}, {Kind: gmm.MMD, Bandwidth: width(a.Victims) / 12 * math.Sqrt(float64(a.Dim))}} {
		a.Tell(fmt.Sprintf("sets: differencing, %s", d.Kind))
		s, err := studyOf(a.Victims, Sets, func(o *Options) {
			o.Set.Discrepancy, o.Set.Bandwidth = string(d.Kind), d.Bandwidth
			o.Set.Particles, o.Set.Proposals, o.Set.Rows = setBatch, setBatch, 20
		})
		if err != nil {
			return err
		}
		r, err := a.Difference(ctx, s.Setup, 0.001, sumsOf,
			func(own []float64) ([]float64, error) { return locateBySets(a.Victims, s, d, own), nil })
		if err != nil {
			return err
		}
		a.Found(method.Attack{Variant: Sets, Name: fmt.Sprintf("B: differencing two studies, %s", d.Kind), Answers: 2 * setBatch, Of: "means of the person's site", Active: true,
			Needs: "two studies of one plan, between which one person has left or joined"}, r, 1, false)
	}
	return nil
}

// width is the mean width of the features' public ranges.
func width(v *mixture.Victims) (w float64) {
	_, lo, hi := mixture.Box(v.Plan)
	for i := range lo {
		w += (hi[i] - lo[i]) / float64(v.Dim)
	}
	return w
}

// locateBySets finds the row whose mean distance, or kernel value, to each simulated
// set of the first batch is as given.
func locateBySets(v *mixture.Victims, s setup, d gmm.Discrepancy, means []float64) []float64 {
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
		if loss := mixture.LeastSquares(x, len(sets), residuals); loss < least {
			best, least = x, loss
		}
	}
	return best
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
		return nil, fmt.Errorf("%d squared distances to %d numbers of points in %d dimensions: want at least %d of each", n, len(points), dim, dim+1)
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
func slope(d gmm.Discrepancy, dst, x, set []float64) (mean float64) {
	clear(dst)
	dim, n := len(x), float64(len(set)/len(x))
	for g := range slices.Chunk(set, dim) {
		q := gmm.SquaredDistance(x, g)
		value, by := math.Sqrt(q), 0.0 // by × (x − g) is the derivative
		if d.Kind == gmm.Energy {
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
