package halves

import (
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat/distuv"

	"parley/internal/linalg"
	"parley/methods/factors/fitted"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
)

const (
	// falseDiscord is the probability that a study of sites that do not differ names any feature.
	falseDiscord = 0.01
	// leastDiscord is the share of a feature's variance within sites that its loadings' differences
	// between sites must make up, and timesDiscord how many times as much as in other features:
	// a feature of which half is explained, and that is reversed at half of the sites, has a half.
	leastDiscord, timesDiscord = 0.15, 3
	// fewestFree is how many degrees of freedom a site's regression must leave.
	fewestFree = 15
	// fewestOthers is how many other features say how much loadings differ anyhow: half of
	// those of the view, and three quarters of all, differ by no more.
	fewestOthers = 3
	// clearSign is how many standard errors tell the sign of a site's loadings.
	clearSign = 3
)

// loadingHeterogeneity is a feature whose loadings disagree between sites.
type loadingHeterogeneity struct {
	Feature int `cbor:"feature"`
	// Reversed are the sites where it goes the other side, if some clearly do and others
	// clearly do not.
	Reversed []string `cbor:"reversed,omitempty"`
}

// regression is a feature's on the factors, at the subjects of a site with the same views.
type regression struct {
	site     int
	gram     []float64 // q × q: of the factors
	b        []float64 // q
	noise    float64   // residual variance
	free     float64   // its degrees of freedom
	variance float64   // sum of the feature's squares
}

// difference is how a feature's regressions differ between sites.
type difference struct {
	ratio  float64 // of F law if sites do not differ
	f1, f2 float64 // its degrees of freedom; none where nothing can be compared
	share  float64 // of the variance within sites
}

// discords names single features whose loadings disagree between sites far more than those of
// the rest of their view, by the sites' blocks alone. A site's regression of a feature on what
// the model expects of the factors given its other features does not depend on the site's own
// axes, and is the same at all sites if they are samples of one population, whether or
// not the model is right, as long as they are of subjects with the same views: only such are compared.
func discords(l ppca.Layout, p *ppca.Params, names []string, sites [][]ppca.Block) []loadingHeterogeneity {
	by := regressions(l, p, sites, fewestFree)
	// The ratios and shares of each view's features, and at last those of all.
	of, all := l.ViewOf(), l.Views()
	differences, ratios, shares := make([]difference, len(by)), make([][]float64, all+1), make([][]float64, all+1)
	for j := range by {
		d := compare(p.Rank, by[j])
		if differences[j] = d; d.f1 > 0 {
			for _, k := range []int{of[j], all} {
				ratios[k], shares[k] = append(ratios[k], d.ratio), append(shares[k], d.share)
			}
		}
	}
	for k := range ratios {
		slices.Sort(ratios[k])
		slices.Sort(shares[k])
	}
	compared := len(ratios[all])
	if compared <= fewestOthers {
		return nil
	}
	var list []loadingHeterogeneity
	for j, d := range differences {
		if !(d.f1 > 0) || !(d.share > leastDiscord) {
			continue
		}
		ratio, share := usual(ratios[all], 0.75, d.ratio), usual(shares[all], 0.75, d.share)
		if k := of[j]; len(ratios[k]) > fewestOthers {
			ratio, share = max(ratio, usual(ratios[k], 0.5, d.ratio)), max(share, usual(shares[k], 0.5, d.share))
		}
		law := distuv.F{D1: d.f1, D2: d.f2}
		if d.share > timesDiscord*share && law.Survival(d.ratio/max(1, ratio)) < falseDiscord/float64(compared) {
			list = append(list, loadingHeterogeneity{j, reversed(p.Rank, names, slices.Concat(by[j]...))})
		}
	}
	return list
}

// usual returns what a part of some numbers, other than one of them, are at most.
func usual(sorted []float64, part, but float64) float64 {
	k := int(math.Ceil(part * float64(len(sorted)-1)))
	if but <= sorted[k-1] {
		return sorted[k]
	}
	return sorted[k-1]
}

// regressions are those of each feature that leave at least so many degrees of freedom, apart for
// subjects with other views.
func regressions(l ppca.Layout, p *ppca.Params, sites [][]ppca.Block, least float64) [][][]regression {
	blocks := slices.Concat(sites...)
	step, md := ppca.NewEStep(p.Rank, blocks), ppca.NewModel(l, p.Rank)
	md.LoadW(p.W)
	md.LoadNoise(p.Noise)
	by := make([][][]regression, l.Features())
	for _, pattern := range ppca.Patterns(l, blocks) {
		same := make([][]regression, len(by))
		for site := range sites {
			for _, b := range sites[site] {
				if slices.Equal(l.ViewsOf(b.Features), pattern.Views) {
					regress(step, md, b, site, least, same)
				}
			}
		}
		for j, list := range same {
			by[j] = append(by[j], list)
		}
	}
	return by
}

// regress appends to each feature's regressions that at a block's subjects, on the factors'
// posterior means given the block's other features. These are x̂ − m e: x̂ = K⁻¹WᵀΨ⁻¹t are
// those given all features, with K = I + WᵀΨ⁻¹W; of this feature, m = K⁻¹w/ψ is the part in
// them, and e = (t − wᵀx̂)/(1 − wᵀm) is what the others leave of it (Sherman and Morrison).
func regress(step *ppca.EStep, md *ppca.Model, block ppca.Block, site int, least float64, to [][]regression) {
	q, n, unfree := md.Q, len(block.Features), 1+float64(md.Q)
	block.Mean = make([]float64, n) // subjects are centred on their own mean
	if n < 2 || block.N-unfree < least || step.Run(md, &block) != nil {
		return
	}
	w := func(i int) []float64 { return md.W[block.Features[i]*md.LD:][:q] }
	tx := func(i int) []float64 { return step.STX[i*md.LD:][:q] } // Σ t x̂
	parts, xx := make([]float64, n*q), make([]float64, q*q)       // m, and Σ x̂x̂ᵀ
	for i, j := range block.Features {
		m := parts[i*q:][:q]
		linalg.Times(m, step.M, md.LD, w(i))
		floats.Scale(1/md.Psi[j], m)
		linalg.AddOuter(xx, m, tx(i), 1)
	}
	linalg.Symmetrise(xx, q, q)
	room, chol := make([]float64, n*q*(q+1)), make([]float64, q*q)
	ex, cross := make([]float64, q), make([]float64, q) // Σ e x̂, and Σ t (x̂ − m e)
	for i, j := range block.Features {
		s, measured := step.Square[i], block.N
		if block.Filled != nil {
			measured -= block.Filled[i]
		}
		w, m, tx := w(i), parts[i*q:][:q], tx(i)
		left := 1 - floats.Dot(w, m)
		r := regression{site: site, free: measured - unfree, variance: s}
		if r.free < least || !(s > 0) || !(left > 0) {
			continue
		}
		linalg.Times(ex, xx, q, w)
		floats.SubTo(ex, tx, ex)
		floats.Scale(1/left, ex)
		et := (s - floats.Dot(w, tx)) / left
		ee := (et - floats.Dot(w, ex)) / left
		r.gram, r.b, room = room[:q*q:q*q], room[q*q:q*(q+1):q*(q+1)], room[q*(q+1):]
		copy(r.gram, xx)
		linalg.AddOuter(r.gram, m, ex, -1)
		linalg.AddOuter(r.gram, ex, m, -1)
		linalg.AddOuter(r.gram, m, m, ee)
		copy(chol, r.gram)
		if _, ok := linalg.Cholesky(chol, q, q); !ok {
			continue
		}
		floats.AddScaledTo(cross, tx, -et, m)
		copy(r.b, cross)
		linalg.CholSolve(chol, q, q, r.b)
		rest := s - floats.Dot(cross, r.b)
		if !(rest > 1e-9*s) {
			continue // the others determine it
		}
		r.noise = rest / r.free
		floats.Scale(measured/block.N, r.gram) // cells that were filled in say nothing
		to[j] = append(to[j], r)
	}
}

// compare tests that regressions on the same views are the same at all sites, whose noise
// may differ, by the statistic of Johansen 1980 (the multivariate one of Welch).
func compare(q int, views [][]regression) (out difference) {
	statistic, slack, between, variance := 0.0, 0.0, 0.0, 0.0
	for _, list := range views {
		if len(list) < 2 {
			continue
		}
		byPrecision, ok := departures(q, list, func(r *regression) float64 { return 1 / r.noise })
		bySubjects, too := departures(q, list, func(*regression) float64 { return 1 })
		if !ok || !too {
			return difference{}
		}
		for i, r := range list {
			test, size := byPrecision[i], bySubjects[i]
			statistic += test.squared
			slack += (test.square + test.trace*test.trace) / (2 * r.free)
			between += size.squared - r.noise*size.trace
			variance += r.variance
		}
		out.f1 += float64(q * (len(list) - 1))
	}
	if f := out.f1; f > 0 {
		out.ratio = statistic / (f + 2*slack - 6*slack/(f+2))
		out.f2 = f * (f + 2) / (3 * slack)
		out.share = between / variance
		if ppca.Finite("", []float64{out.ratio, out.f2, out.share}) != nil || !(out.ratio >= 0 && out.f2 > 0) {
			return difference{} // of numbers that no computer can compare
		}
	}
	return out
}

// departure is how far a regression of weight Wᵢ is from the mean b̄ = W⁻¹ Σ Wᵢbᵢ, W = Σ Wᵢ.
type departure struct {
	squared       float64 // (bᵢ − b̄)ᵀWᵢ(bᵢ − b̄)
	trace, square float64 // of I − WᵢW⁻¹, and of its square
	weight        float64 // tr (Wᵢ − WᵢW⁻¹Wᵢ)
}

// departures weighs by multiples of the factors' gram matrices. It reports false if W cannot be
// inverted.
func departures(q int, list []regression, times func(*regression) float64) ([]departure, bool) {
	chol, mean, away := make([]float64, q*q), make([]float64, q), make([]float64, q)
	for i := range list {
		r := &list[i]
		floats.AddScaled(chol, times(r), r.gram)
		linalg.Times(away, r.gram, q, r.b)
		floats.AddScaled(mean, times(r), away)
	}
	if _, ok := linalg.Cholesky(chol, q, q); !ok {
		return nil, false
	}
	linalg.CholSolve(chol, q, q, mean)
	out, part := make([]departure, len(list)), make([]float64, q*q)
	for i := range list {
		r, d := &list[i], &out[i]
		floats.SubTo(away, r.b, mean)
		d.squared = times(r) * linalg.Quadratic(r.gram, q, away, away)
		floats.ScaleTo(part, times(r), r.gram)
		for a := range q {
			d.weight += part[a*q+a]
		}
		linalg.CholSolveRows(chol, q, q, part, q, q)
		d.weight -= times(r) * linalg.Inner(part, r.gram, q, q)
		d.trace, d.square = float64(q), float64(q)
		for a := range q {
			d.trace -= part[a*q+a]
			d.square -= 2 * part[a*q+a]
			for c := range q {
				d.square += part[a*q+c] * part[c*q+a]
			}
		}
	}
	return out, true
}

// reversed names the sites whose loadings clearly point against those of others. These are the
// fewer; of as many, those without the first.
func reversed(q int, names []string, list []regression) []string {
	var clearest []float64
	most := 0.0
	for _, r := range list {
		if x := linalg.Quadratic(r.gram, q, r.b, r.b) / r.noise; x > most {
			most, clearest = x, r.b
		}
	}
	along, variance := make([]float64, len(names)), make([]float64, len(names))
	for _, r := range list {
		along[r.site] += linalg.Quadratic(r.gram, q, r.b, clearest) / r.noise
		variance[r.site] += linalg.Quadratic(r.gram, q, clearest, clearest) / r.noise
	}
	var first, others []string // as the first that is clear, and against it
	sign := 0.0
	for i, name := range names {
		z := along[i] / math.Sqrt(variance[i])
		switch {
		case !(math.Abs(z) > clearSign):
		case z*sign >= 0:
			first, sign = append(first, name), z
		default:
			others = append(others, name)
		}
	}
	if len(first) < len(others) {
		return first
	}
	return others
}

// discordVerdict says which features disagree; nothing if none does.
func discordVerdict(set options.Setup, list []loadingHeterogeneity) fitted.Verdict {
	var found fitted.Found
	for _, d := range list { // in the order of features
		view, feature := set.Feature(d.Feature)
		name := feature.Name
		if len(d.Reversed) > 0 {
			name += " (reversed at " + strings.Join(d.Reversed, ", ") + ")"
		}
		found.Add(name, view.Name)
	}
	return found.Verdict(fitted.OnSites, "The model has one set of loadings for all sites, and that of such a "+
		"feature is a mean of what disagrees: close to nothing where it is reversed at half of them. Look for "+
		"reversed scales, other codings or other instruments at these sites, or at the others where as many go the "+
		"other side. The rest of its view may be so too. Where sites are rightly unlike in it, leave it out.",
		"Features go with the others in other ways at some sites than at others: %s")
}
