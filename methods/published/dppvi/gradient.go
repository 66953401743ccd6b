package dppvi

import (
	"fmt"
	"math"
	"math/rand/v2"

	"parley/internal/wire"
	"parley/methods/regression/glm"
	"parley/privacy/account"
)

// rowGradient is the per-example gradient of the local free energy that DP-PVI clips
// and sums (equation 4), over P means and then P logarithms of variances:
//
//	gᵢ = (N/L) ∇ E_q ln p(yᵢ | xᵢ, w) − (1/L) ∇ KL(q ‖ cavity)
//
// for N rows and L rows expected in a minibatch: gradients of L rows add up to one
// of F. The paper's 1/L is inside, so nothing is divided after summing and the
// clipping bound belongs to this scale. It clips, samples and protects nothing.
type rowGradient struct {
	likelihood   slopes
	cavity       glm.Gaussian
	p            int
	rows, batch  float64
	mean, logVar []float64
	variance     []float64
	shared       []float64 // −(1/L) ∇KL
}

// newGradient returns the gradient for rows with the given number of columns, at a point that rowGradient.At sets. Rows
// and batch are N and L, both positive; N is public or has been released.
func newGradient(l slopes, cavity glm.Gaussian, columns int, rows, batch float64) (*rowGradient, error) {
	if err := cavity.CheckProper(columns); err != nil {
		return nil, fmt.Errorf("cavity: %w", err)
	}
	if !(rows > 0 && batch > 0) || !glm.Finite(rows/batch) || !glm.Finite(1/batch) {
		return nil, fmt.Errorf("minibatches of %v out of %v rows: want both positive", batch, rows)
	}
	return &rowGradient{likelihood: l, cavity: cavity, p: columns, rows: rows, batch: batch,
		variance: make([]float64, columns), shared: make([]float64, 2*columns)}, nil
}

// At sets the point: P means, then P logarithms of variances. It reads x until the next call.
func (g *rowGradient) At(x []float64) {
	g.mean, g.logVar = x[:g.p], x[g.p:2*g.p]
	for j, r := range g.logVar {
		v, l := math.Exp(r), g.cavity.Lambda[j]
		g.variance[j] = v
		g.shared[j] = -(l*g.mean[j] - g.cavity.Eta[j]) / g.batch
		g.shared[g.p+j] = -(l*v - 1) / (2 * g.batch)
	}
}

// Example sets dst, of length 2P, to the gradient of one row. It allocates nothing.
func (g *rowGradient) Example(r glm.Row, y float64, dst []float64) {
	copy(dst, g.shared)
	a, c := r.Activation(g.mean, g.variance)
	da, dc := g.likelihood.Slopes(y, a, c)
	scale := g.rows / g.batch
	da, dc = scale*da, scale*dc
	mean, logVar := dst[:g.p], dst[g.p:]
	for i, j := range r.Index {
		x := r.Value[i]
		mean[j] += da * x
		logVar[j] += dc * x * x * g.variance[j]
	}
}

// adagrad moves each coordinate by Rate·g/(√Σg² + 1e-10), uphill. Sum is all that has to be carried; the published
// method keeps it at each site from one update to the next, and starting anew each time costs eight points of accuracy
// on its distribution C.
type adagrad struct {
	Rate float64     `cbor:"-" json:"rate"`
	Sum  wire.Vector `cbor:"sum" json:"sum"` // of squared gradients
}

// adagradOf is a state of n coordinates that a site carried, zeros at first.
func adagradOf(carried []byte, n int, rate float64) (*adagrad, error) {
	s := &adagrad{rate, make(wire.Vector, n)}
	if carried != nil {
		if err := wire.Unmarshal(carried, s); err != nil {
			return nil, fmt.Errorf("the site's own state: %w", err)
		}
	}
	return s, s.Check(n)
}

// Check reports a state that is not one of n coordinates.
func (s *adagrad) Check(n int) error {
	if !(s.Rate > 0) || !glm.Finite(s.Rate) {
		return fmt.Errorf("learning rate %v is not positive and finite", s.Rate)
	}
	if len(s.Sum) != n {
		return fmt.Errorf("%d accumulators for %d coordinates", len(s.Sum), n)
	}
	for i, v := range s.Sum {
		if !glm.Inside(v, 0, math.MaxFloat64) {
			return fmt.Errorf("accumulator %d is %v: want a finite number that is not negative", i, v)
		}
	}
	return nil
}

// Step moves x along a gradient of the same length.
func (s *adagrad) Step(x, gradient []float64) {
	for i, g := range gradient {
		s.Sum[i] += g * g
		x[i] += s.Rate * g / (math.Sqrt(s.Sum[i]) + 1e-10)
	}
}

// pointOf returns a density as the optimiser's coordinates: means, then logarithms of variances.
func pointOf(q glm.Gaussian) []float64 {
	mean, variance := q.Moments()
	for j, v := range variance {
		variance[j] = math.Log(v)
	}
	return append(mean, variance...)
}

// fromPoint returns the density at the optimiser's coordinates. Noise may have led
// where there is none: a variance that overflows or vanishes is an error.
func fromPoint(x []float64) (glm.Gaussian, error) {
	p := len(x) / 2
	variance := make([]float64, p)
	for j := range variance {
		variance[j] = math.Exp(x[p+j])
	}
	return glm.FromMoments(x[:p], variance)
}

// rowSum is one use of the noised sum that a site's update was granted: what every row contributes, which is written to
// v, zero and as long as the declared block. Clipping, sampling and noise are those of whoever gave the function, such
// as a session of package privacy, and what comes back may be shown to everybody.
type rowSum func(contribution func(x glm.Row, y float64, v []float64)) ([]float64, error)

// gradients is the update of the paper: steps of Adagrad on the local free energy, from sums over samples of the site's
// rows of their gradients (equation 4; see rowGradient). Under privacy they are steps of DP-Adagrad (Abadi and others,
// 2016, with Adagrad's step): samples are Poisson, and gradients are clipped.
type gradients struct {
	Likelihood likelihood // of a logistic one expectations are sampled; others have their own
	Columns    int        // of the design matrix
	Rows       int        // of the site, under privacy as declared; of Global VI all sites'
	updateSettings
}

// batch returns how many rows a minibatch has on average.
func (u *gradients) batch() int { return u.of(u.Rows) }

// Mechanism returns the charge of one update under add-remove, whose steps are Poisson samples at the rate batch/rows.
func (u *gradients) Mechanism() account.Mechanism {
	return account.Mechanism{Kind: account.Gaussian, Noise: u.Noise, Rate: float64(u.batch()) / float64(u.Rows),
		Diameter: 2, Count: u.Steps}
}

// Refine takes one update from q with the site's own factor, and returns where it leads, and what the site carries to
// its next update: Adagrad's accumulators, which under privacy are made of noised gradients alone. Carried is what the
// update before returned, nil at first. If noise leads where there is no density, it stays at q. An error of sum is
// returned as it is.
func (u *gradients) Refine(q, factor glm.Gaussian, carried []byte, r *rand.Rand,
	sum rowSum) (target glm.Gaussian, carry []byte, err error) {
	x, carry, err := u.run(q, over(q, factor), carried, r, sum)
	if err != nil {
		return target, nil, err
	}
	if target, err = fromPoint(x); err != nil { // noise has led out of all bounds: stay where we are
		target = q
	}
	return target, carry, nil
}

// run takes the steps of one update from q, and returns the point where they end, and the accumulators to be carried
// on, of 2P gradients. Draws come from r; they decide nothing about privacy. Each step asks for one sum.
func (u *gradients) run(q, cavity glm.Gaussian, carried []byte, r *rand.Rand,
	sum rowSum) (x []float64, carry []byte, err error) {
	g, err := newGradient(u.Likelihood, cavity, u.Columns, float64(u.Rows), float64(u.batch()))
	if err != nil {
		return nil, nil, err
	}
	optimiser, err := adagradOf(carried, 2*g.p, u.LearningRate)
	if err == nil {
		err = q.CheckProper(g.p)
	}
	if err != nil {
		return nil, nil, err
	}
	draws := make([]float64, u.Draws)
	x = pointOf(q)
	for range u.Steps {
		if _, two := u.Likelihood.(logistic); two {
			for i := range draws {
				draws[i] = r.NormFloat64()
			}
			g.likelihood = sampled{draws: draws} // of this step
		}
		g.At(x)
		gradient, err := sum(g.Example)
		if err != nil {
			return nil, nil, err
		}
		if len(gradient) != 2*g.p {
			return nil, nil, fmt.Errorf("a sum of %d numbers, want %d", len(gradient), 2*g.p)
		}
		optimiser.Step(x, gradient)
	}
	carry, err = wire.Marshal(optimiser)
	return x, carry, err
}

// minibatches are sums without privacy: each over so many rows that r draws without replacement.
func minibatches(d *glm.Design, batch, length int, r *rand.Rand) rowSum {
	return func(contribution func(glm.Row, float64, []float64)) ([]float64, error) {
		sum, v := make([]float64, length), make([]float64, length)
		for _, i := range r.Perm(d.Rows())[:batch] {
			contribution(d.Row(i), d.Outcome(i), v)
			for j, x := range v {
				sum[j] += x
			}
		}
		return sum, nil
	}
}

// allowed returns how often a mechanism can be charged before the published accountant says more than the total:
// moments of whole orders up to 33 and the classic conversion. Checked before each update, where the authors' code
// checks after. It is a valid bound, and about half of what a tight one allows.
func allowed(m account.Mechanism, total account.Budget) (int, error) {
	orders := make([]float64, 32)
	for i := range orders {
		orders[i] = float64(i + 2)
	}
	rdp, err := account.RDP([]account.Mechanism{m}, account.AddRemove, orders)
	if err != nil {
		return 0, err
	}
	n := 0.0
	for i, alpha := range orders {
		n = max(n, math.Floor((total.Epsilon+math.Log(total.Delta)/(alpha-1))/rdp[i]))
	}
	return int(min(n, math.MaxInt32)), nil
}

// paperDelta is the δ of the paper's Table 1 for a client with n ≥ 1 rows, 10^⌊log₁₀(1/n)⌋: at most 1/n, but by less
// than the factor ten that the paper speaks of.
func paperDelta(n int) float64 {
	p := 1.0
	for p < float64(n) {
		p *= 10
	}
	return 1 / p
}

// of is the number of rows that the paper's minibatches are to have, under privacy on average, of n ≥ 1: L, or max(20,
// ⌈share·n⌉), but never more than there are. Over n it is the rate of Poisson sampling.
func (s *updateSettings) of(n int) int {
	if s.Batch > 0 {
		return min(n, s.Batch)
	}
	return min(n, max(20, int(math.Ceil(s.BatchShare*float64(n)))))
}
