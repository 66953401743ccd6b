package graffl

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"

	"parley/tools/measure/flags"

	"parley/internal/cputime"
	"parley/methods/graffl"
)

const adjustRows = 900 // of a data set

// adjustTruths are the toy, and one whose components overlap.
var adjustTruths = []struct {
	name  string
	means []float64
}{{"apart", toyTruth.Means}, {"overlapping", []float64{-1.5, 0, 0, 1.5, 1.5, 0}}}

// adjust compares regression adjustment with the posterior that needs no simulation.
func adjust(ctx context.Context, args []string) error {
	set := flag.NewFlagSet("adjust", flag.ContinueOnError)
	sets := set.Int("sets", 5, "data sets of each row, from seeds 1, 2, …")
	draws := set.Int("draws", 1024, "draws of either posterior")
	share := set.Float64("share", 1, "share of the proposals, the nearest ones, that are adjusted")
	part := set.Float64("part", 0.4, "share of the rows that proposals know")
	if err := flags.Parse(set, args, func() error {
		if *sets < 1 || !(*part > 0 && *part <= 1) {
			return fmt.Errorf("want at least 1 set, and a part of the rows from above 0 to 1")
		}
		return graffl.Sampling{Particles: *draws, Sweeps: 1}.Check()
	}); err != nil {
		return err
	}
	fmt.Printf("%d data sets of %d rows a row, δ = %v; the posterior by landmarks / adjusted: %d draws from the posterior given %v of the rows, the share %v of them that is nearest. RMSE and width (of 90 %% intervals) of component means, mean effective sizes, the smallest in brackets.\n\n",
		*sets, adjustRows, toyDelta, *draws, *part, *share)
	fmt.Println("| modes | privacy | RMSE μ | width μ | coverage μ | effective size | CPU s |\n|---|---|---|---|---|---|---|")
	for _, t := range adjustTruths {
		for _, epsilon := range []float64{0, 5, 1} {
			truth := thirds()
			truth.Means = t.means
			a := adjusted{truth: truth, epsilon: epsilon, draws: *draws, share: *share, part: *part}
			for seed := range uint64(*sets) {
				if err := ctx.Err(); err != nil {
					return err
				}
				if err := a.add(seed + 1); err != nil {
					return fmt.Errorf("%s, ε %v, data set %d: %w", t.name, epsilon, seed+1, err)
				}
			}
			n := float64(*sets)
			fmt.Printf("| %s | %s | %.3f / %.3f | %.3f / %.3f | %.2f / %.2f | %.0f / %.0f (%.0f) | %.2f / %.2f |\n", t.name, privacyName(epsilon),
				a.plain.means.rmse(), a.regressed.means.rmse(), a.plain.means.width(), a.regressed.means.width(), a.plain.means.coverage(), a.regressed.means.coverage(),
				a.size[0]/n, a.size[1]/n, a.smallest, a.used[0]/n, a.used[1]/n)
		}
	}
	return nil
}

// adjusted is what both ways find on data sets of one kind.
type adjusted struct {
	truth            graffl.Mixture
	epsilon          float64
	draws            int
	share, part      float64 // of the proposals that are adjusted, and of the rows that they know
	plain, regressed scores
	size, used       [2]float64 // sums over data sets: effective sizes, seconds of processors
	smallest         float64    // effective size after adjustment
}

// add takes one data set. Its noise is drawn from the seed, as this is no release.
func (a *adjusted) add(seed uint64) error {
	plan, err := toyPlan(a.epsilon, seed, a.draws)
	if err != nil {
		return err
	}
	c, err := graffl.NewReplicate(plan, adjustRows)
	if err != nil {
		return err
	}
	c.Sampling.Seed = seed
	r := rand.New(rand.NewPCG(seed, 6))
	observed, err := release(c, a.truth, r)
	if err != nil {
		return err
	}
	start := cputime.Used()
	p, err := c.Landmarks.Posterior(observed, c.Prior, c.Sampling)
	if err != nil {
		return err
	}
	a.used[0] += (cputime.Used() - start).Seconds()
	a.size[0] += p.Size
	a.plain.add(p, a.truth)
	start = cputime.Used()
	if p, err = a.regress(c, observed, r); err != nil {
		return err
	}
	a.used[1] += (cputime.Used() - start).Seconds()
	a.size[1] += p.Size
	if a.smallest == 0 || p.Size < a.smallest {
		a.smallest = p.Size
	}
	a.regressed.add(p, a.truth)
	return nil
}

// release simulates rows and what would be released of them.
func release(c graffl.Replicate, m graffl.Mixture, r *rand.Rand) (graffl.Observation, error) {
	rows := make([]float64, c.Rows*m.Dim)
	if err := m.Simulate(r, rows); err != nil {
		return graffl.Observation{}, err
	}
	o := graffl.Observation{Mean: make([]float64, c.Landmarks.Len()), Rows: float64(c.Rows) + c.RowsNoise*r.NormFloat64(), RowsVar: c.RowsNoise * c.RowsNoise}
	phi := make([]float64, c.Landmarks.Len())
	for at := 0; at < len(rows); at += m.Dim {
		c.Landmarks.Features(phi, rows[at:])
		for j, v := range phi {
			o.Mean[j] += v
		}
	}
	for j := range o.Mean {
		o.Mean[j] = (o.Mean[j] + c.Noise*r.NormFloat64()) / o.Rows
	}
	o.NoiseVar = c.Noise * c.Noise / (o.Rows * o.Rows)
	return o, nil
}

// regress proposes, simulates a set for each proposal, and adjusts. Proposals are the
// posterior given a part of the rows: wider than it, so that there is something to
// regress on, and no wider than a straight line allows.
func (a *adjusted) regress(c graffl.Replicate, observed graffl.Observation, r *rand.Rand) (*graffl.Posterior, error) {
	wide := observed
	wide.Rows *= a.part
	wide.NoiseVar /= a.part
	wide.RowsVar *= a.part // for v/n² to grow as all else does
	proposals, err := c.Landmarks.Posterior(wide, c.Prior, c.Sampling)
	if err != nil {
		return nil, err
	}
	space := graffl.Coordinates{K: c.Prior.Components(), Dim: c.Prior.Dim()}
	var parameters, statistics [][]float64
	for _, m := range proposals.Draws {
		u := make([]float64, space.Len())
		if err := space.To(u, m); err != nil {
			return nil, err
		}
		s, err := release(c, m, r)
		if err != nil {
			return nil, err
		}
		parameters, statistics = append(parameters, u), append(statistics, s.Mean)
	}
	moved, kernel, err := graffl.Adjust(parameters, statistics, observed.Mean, a.share)
	if err != nil {
		return nil, err
	}
	// Proposals have the density p(u) L(u), L the likelihood of the part of the rows: the
	// weight p/q of an adjusted parameter is 1/L. As in the posterior, a variance of 1/n² keeps
	// landmarks that hardly a row comes near from deciding.
	wide.NoiseVar += 1 / (wide.Rows * wide.Rows)
	p, most := &graffl.Posterior{}, math.Inf(-1)
	var logs []float64
	for i, u := range moved {
		if kernel[i] == 0 {
			continue
		}
		m := graffl.NewMixture(space.K, space.Dim)
		space.From(m, u)
		l, err := c.Landmarks.LogLikelihood(wide, m)
		if err != nil { // moved to where all rows are in one place
			continue
		}
		p.Draws, logs = append(p.Draws, m), append(logs, math.Log(kernel[i]*proposals.Weights[i])-l)
		most = max(most, logs[len(logs)-1])
	}
	total := 0.0
	for _, l := range logs {
		p.Weights = append(p.Weights, math.Exp(l-most))
		total += p.Weights[len(p.Weights)-1]
	}
	for i := range p.Weights {
		p.Weights[i] /= total
	}
	if len(p.Draws) == 0 {
		return nil, errors.New("no adjusted draw has a likelihood")
	}
	p.Size = graffl.EffectiveSize(p.Weights)
	return p, nil
}
