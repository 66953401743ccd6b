package graffl

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distmv"

	"parley/methods/mixture/gmm"
	abc "parley/methods/published/graffl"
)

// regressed is approximate Bayesian computation with regression adjustment (Beaumont, Zhang and
// Balding 2002), in rounds of proposals as neural posterior estimation has them: each site sends
// once how far its rows lie from public landmarks, on average, and the coordinator alone proposes
// parameters, simulates rows, and regresses parameters on the same averages of these. The first
// round proposes from the prior, every other from a normal law about the last round's draws, and
// the last proposal is divided out of the result (Papamakarios and Murray 2016).
const (
	regressed = "regression ABC"
	oneRound  = regressed + ", one round"
)

const (
	alongSide = 4 // along each side of the box
	kernel    = 4.0
	perRound  = 1200 // in a round
	rounds    = 16
	closest   = 0.2 // the share of proposals that the first rounds keep
	wide      = 12  // rounds that keep only those
	starts    = 6   // at most, until what is proposed
	fits      = 0.1 // is that near to what was observed
)

// summary is of rows the mean distance to every landmark, and the mean of a kernel of it.
func summary(rows []float64) []float64 {
	const side = 12.0
	s := make([]float64, 0, 2*alongSide*alongSide)
	for i := range alongSide {
		for j := range alongSide {
			cx, cy := side*(2*float64(i)/(alongSide-1)-1), side*(2*float64(j)/(alongSide-1)-1)
			far, near := 0.0, 0.0
			for r := 0; r < len(rows); r += 2 {
				square := (rows[r]-cx)*(rows[r]-cx) + (rows[r+1]-cy)*(rows[r+1]-cy)
				far, near = far+math.Sqrt(square), near+math.Exp(-square/(2*kernel*kernel))
			}
			n := float64(len(rows) / 2)
			s = append(s, far/n, near/n)
		}
	}
	return s
}

// byRegression samples after so many rounds. What sites send are 8 bytes for each number of
// their summary, and their number of rows.
func byRegression(p gmm.Prior, sites [][]float64, rounds int, r *rand.Rand) (*gmm.Posterior, int, error) {
	c := gmm.Coordinates{K: p.Components(), Dim: p.Dim()}
	pooled := slices.Concat(sites...) // whose summary is the mean of the sites', by their rows
	observed, total := summary(pooled), len(pooled)/2
	var law *distmv.Normal
	var draws *mat.Dense
	for range starts { // a start may end where two components share a site's rows
		var off float64
		var err error
		if draws, law, off, err = propose(c, p, observed, total, rounds, r); err != nil {
			return nil, 0, err
		}
		if rounds == 1 || off < fits {
			break
		}
	}
	if law != nil {
		if err := divide(draws, law); err != nil {
			return nil, 0, err
		}
	}
	return posterior(c, p, draws, law != nil), len(sites) * 8 * (len(observed) + 1), nil
}

// propose runs the rounds. The law is that of the last proposals, nil of one round from the prior; off is
// how far what they simulate lies from what was observed, in standard deviations of the prior's.
func propose(c gmm.Coordinates, p gmm.Prior, observed []float64, total, rounds int,
	r *rand.Rand) (draws *mat.Dense, law *distmv.Normal, off float64, err error) {
	var scale []float64
	sampler, rows := abc.NewSampler(p), make([]float64, 2*total)
	for round := range rounds {
		us, ss := mat.NewDense(perRound, c.Len(), nil), mat.NewDense(perRound, len(observed), nil)
		for i := range perRound {
			u, m := us.RawRowView(i), gmm.NewMixture(c.K, c.Dim)
			for done := false; !done; {
				if law == nil {
					sampler.Draw(r, m)
				} else {
					c.From(m, law.Rand(nil))
				}
				order := []int{0, 1, 2}
				slices.SortFunc(order, func(a, b int) int { // one number for each component
					return int(math.Copysign(1, m.Mean(a)[0]-m.Mean(b)[0]))
				})
				m = m.Reorder(order)
				done = c.To(u, m) == nil && m.Simulate(r, rows) == nil
			}
			copy(ss.RawRowView(i), summary(rows))
		}
		if scale == nil {
			for j := range observed {
				scale = append(scale, stat.StdDev(mat.Col(nil, j, ss), nil))
			}
		}
		off = 0
		for j, x := range observed {
			off += math.Pow((stat.Mean(mat.Col(nil, j, ss), nil)-x)/scale[j], 2)
		}
		off = math.Sqrt(off / float64(len(observed)))
		share := 1.0
		if round < wide {
			share = closest
		}
		if draws, err = adjusted(us, ss, observed, share); err != nil {
			return nil, nil, 0, err
		}
		if round == rounds-1 {
			break
		}
		if law, err = next(us, draws, round < wide, r); err != nil {
			return nil, nil, 0, err
		}
	}
	return draws, law, off, nil
}

// adjusted are the parameters of the closest proposals, each moved by a ridge regression on
// summaries from its own to the observed ones.
func adjusted(us, ss *mat.Dense, observed []float64, share float64) (*mat.Dense, error) {
	n, d := ss.Dims()
	_, q := us.Dims()
	sd, far := make([]float64, d), make([]float64, n)
	for j := range d {
		sd[j] = stat.StdDev(mat.Col(nil, j, ss), nil) + 1e-12
	}
	for i := range n {
		for j := range d {
			far[i] += math.Pow((ss.At(i, j)-observed[j])/sd[j], 2)
		}
	}
	order := make([]int, n)
	floats.Argsort(far, order)
	order = order[:int(share*float64(n))]
	x, y := mat.NewDense(len(order), d+1, nil), mat.NewDense(len(order), q, nil)
	for i, at := range order {
		x.Set(i, d, 1)
		for j := range d {
			x.Set(i, j, (ss.At(at, j)-observed[j])/sd[j])
		}
		y.SetRow(i, us.RawRowView(at))
	}
	var gram, right, b mat.Dense
	gram.Mul(x.T(), x)
	for j := range d {
		gram.Set(j, j, gram.At(j, j)+1e-3)
	}
	right.Mul(x.T(), y)
	if err := b.Solve(&gram, &right); err != nil && !errors.As(err, new(mat.Condition)) {
		return nil, fmt.Errorf("regressing %d parameters on %d summaries: %w", q, d, err)
	}
	var fit mat.Dense
	fit.Mul(x.Slice(0, len(order), 0, d), b.Slice(0, d, 0, q))
	y.Sub(y, &fit)
	return y, nil
}

// next is a normal law about the draws with twice their standard deviations; in the first rounds
// no more than four fifths of those of the proposals, and moved by at most two of these.
func next(us, draws *mat.Dense, early bool, r *rand.Rand) (*distmv.Normal, error) {
	_, q := draws.Dims()
	mean, scale := make([]float64, q), make([]float64, q)
	var cov mat.SymDense
	stat.CovarianceMatrix(&cov, draws, nil)
	for j := range q {
		center, sd := stat.MeanStdDev(mat.Col(nil, j, us), nil)
		mean[j] = min(max(stat.Mean(mat.Col(nil, j, draws), nil), center-2*sd), center+2*sd)
		if scale[j] = 2; early {
			scale[j] = min(2, 0.8*sd/math.Sqrt(cov.At(j, j)))
		}
	}
	for i := range q {
		for j := range i + 1 {
			cov.SetSym(i, j, cov.At(i, j)*scale[i]*scale[j])
		}
		cov.SetSym(i, i, cov.At(i, i)+1e-8)
	}
	law, ok := distmv.NewNormal(mean, &cov, r)
	if !ok {
		return nil, errors.New("the draws have no covariance")
	}
	return law, nil
}

// divide takes the proposal out of draws that have it as their prior, as if all were normal. Where
// nothing was learned beyond the proposal in some direction, the draws stand.
func divide(draws *mat.Dense, law *distmv.Normal) error {
	n, q := draws.Dims()
	var cov, proposed, with, before, left mat.SymDense
	stat.CovarianceMatrix(&cov, draws, nil)
	law.CovarianceMatrix(&proposed)
	var own, their, chol mat.Cholesky
	if !own.Factorize(&cov) || !their.Factorize(&proposed) {
		return errors.New("a law of proposals or draws has no covariance")
	}
	if err := errors.Join(own.InverseTo(&with), their.InverseTo(&before)); err != nil {
		return err
	}
	before.ScaleSym(-1, &before)
	left.AddSym(&with, &before)
	if !chol.Factorize(&left) {
		return nil
	}
	mean := mat.NewVecDense(q, nil)
	for j := range q {
		mean.SetVec(j, stat.Mean(mat.Col(nil, j, draws), nil))
	}
	var a, b, to mat.VecDense
	a.MulVec(&with, mean)
	b.MulVec(&before, mat.NewVecDense(q, law.Mean(nil)))
	a.AddVec(&a, &b)
	err := chol.SolveVecTo(&to, &a)
	// x = L(own)⁻¹ (u − mean) is white, and U(left)⁻¹ x has the precision that is left.
	var l, u mat.TriDense
	own.LTo(&l)
	chol.UTo(&u)
	for i := range n {
		x := mat.NewVecDense(q, draws.RawRowView(i))
		x.SubVec(x, mean)
		err = errors.Join(err, x.SolveVec(&l, x), x.SolveVec(&u, x))
		x.AddVec(x, &to)
	}
	return err
}

// posterior are mixtures of the draws, weighted by their prior unless it has proposed them.
func posterior(c gmm.Coordinates, p gmm.Prior, draws *mat.Dense, weigh bool) *gmm.Posterior {
	n, _ := draws.Dims()
	out, prior := &gmm.Posterior{}, gmm.NewUnconstrained(p)
	logs := make([]float64, n)
	for i := range n {
		m := gmm.NewMixture(c.K, c.Dim)
		c.From(m, draws.RawRowView(i))
		if out.Draws = append(out.Draws, m); weigh {
			logs[i] = prior.LogDensity(draws.RawRowView(i))
		}
	}
	total := floats.LogSumExp(logs)
	for _, l := range logs {
		out.Weights = append(out.Weights, math.Exp(l-total))
	}
	out.Size = gmm.EffectiveSize(out.Weights)
	return out
}
