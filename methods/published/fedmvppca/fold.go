package fedmvppca

import (
	"math"

	"gonum.org/v1/gonum/floats"

	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
)

// Fold makes the next model of what the sites released around the prior, by name and in
// the same order. Stands is the share of the released change that stands out of its noise,
// which only joint-clipping tells.
func (c Plans) Fold(set options.Setup, prior *ppca.Prior, sites []string, all []*Answer) (model *ppca.Prior, stands float64, err error) {
	if set.Options.Mechanism == options.MechanismJoint {
		model, stands = c.foldJoint(set, prior, sites, all)
	} else {
		model, err = c.foldDifference(set.Layout, prior, sites, all)
	}
	return model, stands, err
}

// Check holds what a site released against what it was asked for.
func (c Plans) Check(site string, a *Answer) error { return a.check(c[site]) }

// foldDifference is the published update from the noised parameters of the
// sites: what they released, added to what the prior says, noise variances
// raised to the plan's floor.
func (c Plans) foldDifference(l ppca.Layout, prior *ppca.Prior, sites []string, all []*Answer) (*ppca.Prior, error) {
	var params []ppca.Params
	for i, site := range sites {
		params = append(params, c[site].moved(prior, all[i]))
	}
	model, counts, err := Master(l, params)
	if err != nil {
		return nil, err
	}
	for k, n := range counts {
		switch {
		case n == 0: // the only sites with the view have left
			keepView(l, model, prior, k)
		case n > 1 && model.VarW[k] == AloneVariance:
			// The noise has fallen below the last bit of W: that is no reason to
			// start it afresh.
			model.VarW[k] = prior.VarW[k]
		}
		if n > 1 && model.VarMu[k] == AloneVariance {
			model.VarMu[k] = prior.VarMu[k]
		}
	}
	model.Features = prior.Features
	return model, nil
}

// moved is the parameters that a site's noised change stands for.
func (c *Plan) moved(prior *ppca.Prior, a *Answer) ppca.Params {
	d := c.set.Layout.Features()
	out := ppca.Params{Rank: c.set.Options.Latent, W: make([]float64, d*c.set.Options.Latent), Mu: make([]float64, d), Noise: make([]float64, c.set.Layout.Views())}
	for i, pt := range c.parts {
		x, unit := a.Sums[i].Floats(0), c.unit(prior, pt)
		at := make([]float64, pt.length)
		pt.read(c.set.Layout, &prior.Params, at)
		for n := range at {
			at[n] += unit * x[n]
		}
		if pt.kind == ofVariance {
			at[0] = max(at[0], c.set.Options.Clipping.NoiseFloor)
			lo, hi := c.set.Layout.View(pt.view)
			for j := lo; j < hi; j++ {
				out.Features = append(out.Features, j)
			}
		}
		pt.write(c.set.Layout, &out, at)
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
func (c Plans) foldJoint(set options.Setup, prior *ppca.Prior, sites []string, all []*Answer) (model *ppca.Prior, share float64) {
	model = &ppca.Prior{Params: prior.Params.Clone(), VarW: prior.VarW, VarMu: prior.VarMu, Alpha: prior.Alpha, Beta: append([]float64(nil), prior.Beta...)}
	type sum struct {
		clipping *Plan
		z        []float64
		n        float64
		noise    float64 // Σ of the sites' noise variances
	}
	sums := map[[2]int]*sum{}
	for i, site := range sites {
		clipping, x := c[site], all[i].Sums[0].Floats(0)
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
	for k := range set.Layout.Views() {
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
			at.clipping.moveBy(model, pt, at.z, keep)
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
func (c *Plan) moveBy(model *ppca.Prior, pt piece, change []float64, keep float64) {
	x, unit := make([]float64, pt.length), c.unit(model, pt)
	pt.read(c.set.Layout, &model.Params, x)
	for i := range x {
		if c.logs(pt) {
			x[i] = min(max(x[i]*math.Exp(keep*unit*change[i]), c.set.Options.Clipping.NoiseFloor), ppca.Largest/(model.Alpha[pt.view]+1))
			model.Beta[pt.view] = x[i] * (model.Alpha[pt.view] + 1) // its mode
		} else {
			x[i] += keep * unit * change[i]
		}
	}
	pt.write(c.set.Layout, &model.Params, x)
}
