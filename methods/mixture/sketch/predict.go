package sketch

import (
	"math"
	"math/rand/v2"
	"sync"

	"parley/methods/mixture/gmm"
)

const (
	// nullSets is how many data sets a check draws: of three statistics at a level of 1 %
	// together, each may be exceeded by none of 299.
	nullSets = 299
	// Work is divided among so many goroutines, whatever the machine has.
	nullWorkers = 4
)

// null draws what sites could have released if the mixture is right: its law is that of a
// posterior predictive check (Gelman, Meng and Stern 1996).
type null struct {
	Observed  Observation
	Posterior *gmm.Posterior
	Features  func(dst, x []float64)   // φ of a row
	Expected  func(draw int) []float64 // E φ under a draw
	// Rows is of how many rows at most a data set is made; of more rows it has the covariance
	// still, by a factor, but the law of the mean of so few.
	Rows int
}

// Statistics draws 299 data sets, and returns what check makes of each: of which draw it is of, and
// of the distances of its means from those that the draw expects. check may overwrite them, and
// must be safe for concurrent use.
func (u null) Statistics(check func(draw int, off []float64) []float64) ([][]float64, error) {
	out := make([][]float64, nullSets)
	draws := make([]int, nullSets)
	at, sum := 0, u.Posterior.Weights[0]
	for b := range draws {
		for want := (float64(b) + 0.5) / nullSets; sum < want && at < len(u.Posterior.Draws)-1; sum += u.Posterior.Weights[at] {
			at++
		}
		draws[b] = at
	}
	var wait sync.WaitGroup
	failed := make([]error, nullWorkers)
	for first := range nullWorkers {
		wait.Go(func() {
			for b := first; b < nullSets; b += nullWorkers {
				off, err := u.one(draws[b], rand.New(rand.NewPCG(uint64(b), 5)))
				if err != nil {
					failed[first] = err
					return
				}
				out[b] = check(draws[b], off)
			}
		})
	}
	wait.Wait()
	for _, err := range failed {
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// one is the distances of one data set.
func (u null) one(draw int, r *rand.Rand) ([]float64, error) {
	o, m, expected := u.Observed, u.Posterior.Draws[draw], u.Expected(draw)
	rows := int(math.Round(max(1, min(o.Rows, float64(u.Rows)))))
	x, phi, off := make([]float64, rows*m.Dim), make([]float64, len(expected)), make([]float64, len(expected))
	if err := m.Simulate(r, x); err != nil {
		return nil, err
	}
	for i := range rows {
		u.Features(phi, x[i*m.Dim:][:m.Dim])
		for j, v := range phi {
			off[j] += v
		}
	}
	like := 1 / math.Sqrt(float64(rows)*o.Rows) // the mean of o.Rows rows is as far off
	count, noise := math.Sqrt(o.RowsVar)/o.Rows*r.NormFloat64(), math.Sqrt(o.NoiseVar)
	for j, e := range expected {
		off[j] = (off[j]-float64(rows)*e)*like + count*e + noise*r.NormFloat64()
	}
	return off, nil
}

// tailOf is the probability of what was observed, by statistics that are large where a mixture
// is wrong: the share of data sets, itself included, that are as far off by the statistic that
// speaks most against it, times the number of statistics (Bonferroni).
func tailOf(observed []float64, null [][]float64) float64 {
	p := 1.
	for i, v := range observed {
		beyond := 1
		for _, n := range null {
			if n[i] >= v {
				beyond++
			}
		}
		p = min(p, float64(len(observed)*beyond)/float64(len(null)+1))
	}
	return p
}
