package assess

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"parley/methods/factors/ppca"
)

// Ranks compares numbers of factors by models that are fitted to nine tenths of the subjects of some sites, as far as
// their sums tell, and judged by how likely they make the others. All is about the means of the sites.
type Ranks struct {
	Values []int // that were tried
	layout ppca.Layout
	all    []ppca.Block
	groups [][]ppca.Block
	scores [][]float64 // log-likelihood of each group, by value
	errors float64     // standard errors by which a value may be behind
}

// What a model has filled repeats the model, and subjects who are left out then tell numbers of factors apart with more
// certainty than they have: differences count from twice the standard error on.
const (
	errorsOfMeans = 1.0
	errorsOfModel = 2.0
)

// NewRanks divides subjects at random where they come from fewer than ten sites. Filled says whether a model has filled
// what they lack. It returns nil where nobody can be left out.
func NewRanks(l ppca.Layout, sites [][]ppca.Block, filled bool, rng *rand.Rand) *Ranks {
	all, _, parts := divided(l, true, sites, rng)
	groups := grouped(parts)
	if len(groups) < 2 {
		return nil
	}
	r := &Ranks{layout: l, all: all, groups: groups, errors: errorsOfMeans}
	if filled {
		r.errors = errorsOfModel
	}
	return r
}

// Try adds models of q factors. It is false, and adds nothing, where fewer were tried and the subjects carry no more.
func (r *Ranks) Try(q int) (bool, error) {
	first := len(r.Values) == 0
	fit, err := ppca.FitBest(r.layout, ppca.Merge(slices.Clone(r.all)), q,
		ppca.FitOptions{LeastNoise: ppca.LeastNoise, Tol: toleranceLeftOut})
	if err != nil {
		if first {
			return false, fmt.Errorf("choosing the number of factors: %w", err)
		}
		return false, nil // more factors than directions
	}
	var score []float64
	err = eachOut(r.layout, &fit.Params, r.groups, func(p *ppca.Params, out []ppca.Block) error {
		logLik, _, err := ppca.LogLik(r.layout, p, out)
		score = append(score, logLik)
		return err
	})
	switch {
	case err == nil:
		r.Values, r.scores = append(r.Values, q), append(r.scores, score)
		return true, nil
	case errors.Is(err, ppca.ErrCollapsed) && !first:
		return false, nil
	}
	return false, fmt.Errorf("choosing the number of factors: %w", err)
}

// LogLik is the log-likelihood per subject who was left out (nats), by value.
func (r *Ranks) LogLik() []float64 {
	out, n := make([]float64, len(r.scores)), subjects(r.all)
	for i, score := range r.scores {
		out[i] = floats.Sum(score) / n
	}
	return out
}

// Likeliest is the place of the value that makes subjects who were left out the likeliest.
func (r *Ranks) Likeliest() int { return floats.MaxIdx(r.LogLik()) }

// Behind is by how much a subject who was left out is less likely than with the likeliest value (nats), and the
// standard error of that, by how groups differ.
func (r *Ranks) Behind(i int) (mean, se float64) {
	behind := slices.Clone(r.scores[r.Likeliest()])
	floats.Sub(behind, r.scores[i])
	mean, sd := stat.MeanStdDev(behind, nil)
	n := float64(len(behind))
	each := subjects(r.all) / n
	return mean / each, sd / math.Sqrt(n) / each
}

// Choice is the place of the smallest value that is not behind the likeliest by more than a standard error, or two where
// a model has filled cells.
func (r *Ranks) Choice() int {
	for i := range r.Values {
		if mean, se := r.Behind(i); !(mean > r.errors*se) {
			return i
		}
	}
	return r.Likeliest()
}

// ChooseRank is the number of factors that [Ranks] chooses, at most so many. It ends where three more factors have not
// helped.
func ChooseRank(l ppca.Layout, sites [][]ppca.Block, filled bool, most int, rng *rand.Rand) (int, error) {
	r := NewRanks(l, sites, filled, rng)
	if r == nil {
		return 1, nil
	}
	for q := 1; q <= most && (q == 1 || q <= r.Values[r.Likeliest()]+3); q++ {
		if carried, err := r.Try(q); err != nil {
			return 0, err
		} else if !carried {
			break
		}
	}
	return r.Values[r.Choice()], nil
}
