package pvi

import (
	"fmt"
	"math"
	"math/rand/v2"

	"parley/privacy/account"
)

// published is the private update of the paper: steps of DP-Adagrad (Abadi and
// others, 2016, with Adagrad's step) on the local free energy, from sums over
// Poisson samples of the site's rows of their gradients (equation 4; see [Gradient]),
// each clipped.
type published struct {
	likelihood Likelihood // Logistic: expectations are sampled; others have their own
	columns    int
	rows       int // of the site: public
	options    publishedOptions
}

// publishedOptions are the paper's settings.
type publishedOptions struct {
	Noise        float64 // standard deviation of the noise in units of the bound
	Bound        float64 // on a row's gradient, scaled as in [Gradient]
	Steps        int     // of one update
	BatchShare   float64 // of the site's rows in a minibatch; at least 20 rows
	Draws        int     // of the activation, shared by a minibatch
	LearningRate float64
	Damping      float64
}

// paper is Table 2 of the paper and what its code decides.
func paper() publishedOptions {
	return publishedOptions{Noise: 5, Bound: 75, Steps: 25, BatchShare: 0.02, Draws: 50, LearningRate: 0.5, Damping: 0.1}
}

// batch returns how many rows a minibatch has on average.
func (u *published) batch() int { return PaperBatch(u.rows, u.options.BatchShare) }

// mechanism returns the charge of one update under add-remove, whose steps are
// Poisson samples at the rate batch/rows.
func (u *published) mechanism() account.Mechanism {
	return account.Mechanism{Kind: account.Gaussian, Noise: u.options.Noise, Rate: float64(u.batch()) / float64(u.rows), Diameter: 2, Count: u.options.Steps}
}

// run takes the steps of one update from q, with the cavity q/factor, and returns
// where they end. Squares are Adagrad's accumulators, of 2P gradients that hold
// noise, and carry over from one update to the next: run adds to them. Draws come
// from r; they decide nothing about privacy. Each step asks for one sum.
func (u *published) run(q, factor Gaussian, squares []float64, r *rand.Rand, sum rowSum) (Gaussian, error) {
	g, err := NewGradient(u.likelihood, q.Over(factor), u.columns, float64(u.rows), float64(u.batch()))
	if err != nil {
		return Gaussian{}, err
	}
	optimiser := Adagrad{u.options.LearningRate, squares}
	if err := optimiser.Check(g.Len()); err != nil {
		return Gaussian{}, fmt.Errorf("accumulators: %w", err)
	}
	if err := q.CheckProper(g.Len() / 2); err != nil {
		return Gaussian{}, err
	}
	draws, x := make([]float64, u.options.Draws), Point(q)
	rule := Sampled(draws)
	for range u.options.Steps {
		if _, sampled := u.likelihood.(Logistic); sampled {
			for i := range draws {
				draws[i] = r.NormFloat64()
			}
			g.With(LogisticBy{Rule: rule})
		}
		g.At(x)
		gradient, err := sum(g.Example)
		if err != nil {
			return Gaussian{}, err
		}
		if len(gradient) != g.Len() {
			return Gaussian{}, fmt.Errorf("a sum of %d numbers, want %d", len(gradient), g.Len())
		}
		optimiser.Step(x, gradient)
	}
	return FromPoint(x)
}

// paperUpdates returns how often a mechanism can be charged before the published
// accountant says more than the total: moments of whole orders up to 33 and the
// classic conversion. Checked before each update, where the authors' code checks
// after. It is a valid bound, and about half of what a tight one allows.
func paperUpdates(m account.Mechanism, total account.Budget) (int, error) {
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
