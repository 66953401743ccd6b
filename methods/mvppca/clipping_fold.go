package mvppca

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"

	"parley/method"
	"parley/methods/mvppca/options"
	"parley/methods/mvppca/ppca"
)

// clipped folds a private round.
func (c *publishedRounds) clipped(s *state) ([]method.Task, method.Info, error) {
	prior, err := s.Model.prior(c.layout)
	if err != nil {
		return nil, nil, err
	}
	sites, all, err := answers(c.coordinator, s, func(site string, a *clipAnswer) error { return a.check(c.clips[site]) })
	if err != nil {
		return nil, nil, err
	}
	var info method.Info
	var model *ppca.Prior
	if c.opts.Mechanism == options.MechanismJoint {
		var share float64
		model, share = c.foldJoint(prior, sites, all)
		s.Trace = append(s.Trace, tracePoint{Round: s.Round, StandsOut: share})
		info = method.Info{"share of the released change that stands out of its noise": share}
	} else {
		if model, err = c.foldDifference(prior, sites, all); err != nil {
			return nil, nil, fmt.Errorf("round %d: %w: the noise of the private rounds grew without end, as it does if the clipping constants are too large for the budget", s.Round, err)
		}
		info = s.record(s.Round, model)
	}
	if err := model.Check(c.layout); err != nil {
		return nil, nil, err
	}
	s.Model = packPrior(c.layout, model)
	tasks, err := c.nextRound(s)
	return tasks, info, err
}

// foldDifference is the published update from the noised parameters of the
// sites: what they released, added to what the prior says, noise variances
// raised to the plan's floor.
func (c *publishedRounds) foldDifference(prior *ppca.Prior, sites []string, all []*clipAnswer) (*ppca.Prior, error) {
	var params []ppca.Params
	for i, site := range sites {
		params = append(params, c.clips[site].moved(prior, all[i]))
	}
	model, counts, err := ppca.PublishedMaster(c.layout, params)
	if err != nil {
		return nil, err
	}
	for k, n := range counts {
		switch {
		case n == 0: // the only sites with the view have left
			keepView(c.layout, model, prior, k)
		case n > 1 && model.VarW[k] == ppca.AloneVariance:
			// The noise has fallen below the last bit of W: that is no reason to
			// start it afresh.
			model.VarW[k] = prior.VarW[k]
		}
		if n > 1 && model.VarMu[k] == ppca.AloneVariance {
			model.VarMu[k] = prior.VarMu[k]
		}
	}
	model.Features = prior.Features
	return model, nil
}

// moved is the parameters that a site's noised change stands for.
func (c *clipPlan) moved(prior *ppca.Prior, a *clipAnswer) ppca.Params {
	d := c.layout.Features()
	out := ppca.Params{Rank: c.rank, W: make([]float64, d*c.rank), Mu: make([]float64, d), Noise: make([]float64, c.layout.Views())}
	for i, pt := range c.parts {
		x, unit := a.Sums[i].Floats(0), c.unit(prior, pt)
		at := make([]float64, pt.length)
		pt.read(c.layout, &prior.Params, at)
		for n := range at {
			at[n] += unit * x[n]
		}
		if pt.kind == ofVariance {
			at[0] = max(at[0], c.opts.Clipping.NoiseFloor)
			lo, hi := c.layout.View(pt.view)
			for j := lo; j < hi; j++ {
				out.Features = append(out.Features, j)
			}
		}
		pt.write(c.layout, &out, at)
	}
	return out
}

// keepView takes over everything about a view from another prior.
func keepView(l ppca.Layout, p, from *ppca.Prior, k int) {
	lo, hi := l.View(k)
	copy(p.W[lo*p.Rank:hi*p.Rank], from.W[lo*p.Rank:])
	copy(p.Mu[lo:hi], from.Mu[lo:hi])
	p.Noise[k], p.VarW[k], p.VarMu[k], p.Alpha[k], p.Beta[k] = from.Noise[k], from.VarW[k], from.VarMu[k], from.Alpha[k], from.Beta[k]
}

// foldJoint moves the prior by what the sites released. The noise of their mean
// is known, so each part moves by the share of its change that [standsOut]; one
// that is all noise does no harm. The spreads between sites stay the plan's:
// nothing is learned of them. It returns what share of the whole released
// change, in length, the model moved by.
func (c *publishedRounds) foldJoint(prior *ppca.Prior, sites []string, all []*clipAnswer) (model *ppca.Prior, share float64) {
	model = &ppca.Prior{Params: prior.Params.Clone(), VarW: prior.VarW, VarMu: prior.VarMu, Alpha: prior.Alpha, Beta: append([]float64(nil), prior.Beta...)}
	type sum struct {
		clipping *clipPlan
		z        []float64
		n        float64
		noise    float64 // Σ of the sites' noise variances
	}
	sums := map[[2]int]*sum{}
	for i, site := range sites {
		clipping, x := c.clips[site], all[i].Sums[0].Floats(0)
		sd := clipping.sums[0].Mechanism.Noise
		for _, pt := range clipping.parts {
			key := [2]int{pt.view, int(pt.kind)}
			if sums[key] == nil {
				sums[key] = &sum{clipping: clipping, z: make([]float64, pt.length)}
			}
			at := sums[key]
			floats.Add(at.z, x[:pt.length])
			at.n++
			at.noise += sd * sd
			x = x[pt.length:]
		}
	}
	kept, length := 0.0, 0.0
	for k := range c.layout.Views() {
		for _, kind := range []parameter{ofMeans, ofLoadings, ofVariance} {
			at := sums[[2]int{k, int(kind)}]
			if at == nil {
				continue
			}
			pt := piece{k, kind, len(at.z)}
			floats.Scale(1/at.n, at.z)
			norm := floats.Dot(at.z, at.z)
			keep := standsOut(norm, pt.length, at.noise/(at.n*at.n))
			kept, length = kept+keep*keep*norm, length+norm
			c.moveBy(model, at.clipping, pt, at.z, keep)
		}
	}
	return model, math.Sqrt(kept / max(length, math.SmallestNonzeroFloat64))
}

// standsOut is the share of z, n entries of a signal and noise of variance s²,
// that the signal deserves, given |z|². Where noise alone is that long with a
// probability above 0.001, it is 0:
//
//	P(|noise|² ≥ s² {n + 2√(n x) + 2x}) ≤ exp(−x)
//
// (Laurent and Massart 2000, lemma 1). Above, it is that of James and Stein, 1 − n s²/|z|².
func standsOut(squares float64, n int, noise float64) float64 {
	const x = 6.907755 // ln 1000
	entries := float64(n)
	if squares <= noise*(entries+2*math.Sqrt(entries*x)+2*x) {
		return 0
	}
	return 1 - entries*noise/squares
}

// moveBy moves a part by a share of a change in units of the clip.
func (c *publishedRounds) moveBy(model *ppca.Prior, clipping *clipPlan, pt piece, change []float64, keep float64) {
	x, unit := make([]float64, pt.length), clipping.unit(model, pt)
	pt.read(c.layout, &model.Params, x)
	for i := range x {
		if clipping.logs(pt) {
			x[i] = min(max(x[i]*math.Exp(keep*unit*change[i]), c.opts.Clipping.NoiseFloor), ppca.Largest/(model.Alpha[pt.view]+1))
			model.Beta[pt.view] = x[i] * (model.Alpha[pt.view] + 1) // its mode
		} else {
			x[i] += keep * unit * change[i]
		}
	}
	pt.write(c.layout, &model.Params, x)
}
