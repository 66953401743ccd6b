package federated

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat/distuv"

	"parley/methods/mvppca/linalg"
	"parley/methods/mvppca/ppca"
	"parley/methods/mvppca/use"
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

// discord is a feature whose loadings disagree between sites.
type discord struct {
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

// spreadOf is how a feature's regressions differ between sites.
type spreadOf struct {
	ratio  float64 // of F law if sites do not differ
	f1, f2 float64 // its degrees of freedom; none where nothing can be compared
	share  float64 // of the variance within sites
}

// discords names single features whose loadings disagree between sites far more than those of
// the rest of their view, by the sites' blocks alone. A site's regression of a feature on what
// the model expects of the factors given its other features does not depend on the site's own
// axes, and is the same at all sites if they are samples of one population, whether or
// not the model is right, as long as they are of subjects with the same views: only such are compared.
func discords(l ppca.Layout, p *ppca.Params, names []string, sites [][]ppca.Block) []discord {
	by := make([]map[string][]regression, l.Features()) // by feature and views
	for i, blocks := range sites {
		for k := range blocks {
			key := fmt.Sprint(l.ViewsOf(blocks[k].Features))
			regress(l, p, &blocks[k], func(j int, r regression) {
				if by[j] == nil {
					by[j] = map[string][]regression{}
				}
				r.site = i
				by[j][key] = append(by[j][key], r)
			})
		}
	}
	var list []discord
	of, spreads := l.ViewOf(), make([]spreadOf, l.Features())
	all, views := new(compared), make([]compared, l.Views())
	for j := range spreads {
		if spreads[j] = compare(p.Rank, by[j]); spreads[j].f1 > 0 {
			all.add(spreads[j])
			views[of[j]].add(spreads[j])
		}
	}
	all.sort()
	for k := range views {
		views[k].sort()
	}
	for j, s := range spreads {
		if !(s.f1 > 0) || !(s.share > leastDiscord) || len(all.ratios) <= fewestOthers {
			continue
		}
		ratio, share := all.usual(0.75, s)
		if view := &views[of[j]]; len(view.ratios) > fewestOthers {
			r, x := view.usual(0.5, s)
			ratio, share = max(ratio, r), max(share, x)
		}
		law := distuv.F{D1: s.f1, D2: s.f2}
		if s.share > timesDiscord*share && law.Survival(s.ratio/max(1, ratio)) < falseDiscord/float64(len(all.ratios)) {
			list = append(list, discord{j, reversed(p.Rank, names, by[j])})
		}
	}
	return list
}

// compared is how some features differ between sites.
type compared struct{ ratios, shares []float64 }

func (c *compared) add(s spreadOf) {
	c.ratios, c.shares = append(c.ratios, s.ratio), append(c.shares, s.share)
}

func (c *compared) sort() {
	slices.Sort(c.ratios)
	slices.Sort(c.shares)
}

// usual returns what a part of the features, other than one of them, have at most.
func (c *compared) usual(part float64, but spreadOf) (ratio, share float64) {
	k := int(math.Ceil(part * float64(len(c.ratios)-1)))
	upTo := func(sorted []float64, x float64) float64 {
		if x <= sorted[k-1] {
			return sorted[k]
		}
		return sorted[k-1]
	}
	return upTo(c.ratios, but.ratio), upTo(c.shares, but.share)
}

// regress yields the regressions of a block's features, each on the factors' posterior means
// given the block's other features, x̂ = K⁻¹ Bᵀt with B = Ψ⁻¹W and K = I + WᵀB.
func regress(l ppca.Layout, p *ppca.Params, block *ppca.Block, yield func(j int, r regression)) {
	q, n, group := p.Rank, len(block.Features), l.GroupOf()
	if n < 2 || block.N-1-float64(q) < fewestFree {
		return
	}
	b, k := make([]float64, n*q), make([]float64, q*q)
	for i, j := range block.Features {
		for a, w := range p.W[j*q:][:q] {
			if w != 0 { // as of what the model does not describe
				b[i*q+a] = w / p.Noise[group[j]]
			}
		}
		addOuter(k, p.W[j*q:][:q], b[i*q:][:q], 1)
	}
	for a := range q {
		k[a*q+a]++
	}
	u, squares := make([]float64, n*q), make([]float64, n) // S B, and the diagonal of S
	block.Squares(squares)
	if block.Scatter != nil {
		for i := range n {
			addTimes(u[i*q:][:q], block.Scatter[i*n:][:n], b)
		}
	} else {
		fb := make([]float64, q)
		for row := range slices.Chunk(block.Factor, n) {
			clear(fb)
			addTimes(fb, row, b)
			for i, x := range row {
				for a, y := range fb {
					u[i*q+a] += x * y
				}
			}
		}
		for i, x := range block.Diag {
			for a := range q {
				u[i*q+a] += x * b[i*q+a]
			}
		}
	}
	c := make([]float64, q*q) // BᵀSB
	for i := range n {
		addOuter(c, b[i*q:][:q], u[i*q:][:q], 1)
	}
	for i, j := range block.Features {
		bi, ui, s, measured := b[i*q:][:q], u[i*q:][:q], squares[i], block.N
		if block.Filled != nil {
			measured -= block.Filled[i]
		}
		r := regression{free: measured - 1 - float64(q), variance: s}
		if r.free < fewestFree || !(s > 0) {
			continue
		}
		// Without feature i itself.
		inner, gram := slices.Clone(k), slices.Clone(c)
		addOuter(inner, p.W[j*q:][:q], bi, -1)
		addOuter(gram, bi, ui, -1)
		addOuter(gram, ui, bi, -1)
		addOuter(gram, bi, bi, s)
		cross := make([]float64, q)
		for a := range cross {
			cross[a] = ui[a] - s*bi[a]
		}
		if _, ok := linalg.Cholesky(inner, q, q); !ok {
			continue
		}
		linalg.CholSolve(inner, q, q, cross)
		for range 2 { // K⁻¹ G K⁻¹, G being symmetric
			for row := range slices.Chunk(gram, q) {
				linalg.CholSolve(inner, q, q, row)
			}
			transpose(gram, q)
		}
		linalg.Symmetrise(gram, q, q)
		chol := slices.Clone(gram)
		if _, ok := linalg.Cholesky(chol, q, q); !ok {
			continue
		}
		r.gram, r.b = gram, slices.Clone(cross)
		linalg.CholSolve(chol, q, q, r.b)
		rest := s
		for a, x := range cross {
			rest -= x * r.b[a]
		}
		if r.noise = rest / r.free; !(rest > 1e-9*s) {
			continue // the others determine it
		}
		// Cells that were filled in say nothing.
		for a := range r.gram {
			r.gram[a] *= measured / block.N
		}
		yield(j, r)
	}
}

// compare tests that regressions on the same views are the same at all sites, whose noise
// may differ, by the statistic of Johansen 1980 (the multivariate one of Welch).
func compare(q int, by map[string][]regression) (out spreadOf) {
	q1 := float64(q)
	statistic, slack, between, variance := 0.0, 0.0, 0.0, 0.0
	for _, key := range slices.Sorted(maps.Keys(by)) {
		list := by[key]
		if len(list) < 2 {
			continue
		}
		for weighted := range 2 { // by precision, for the test; by subjects, for the share
			total, mean := make([]float64, q*q), make([]float64, q)
			each := make([][]float64, len(list))
			for i, r := range list {
				each[i] = slices.Clone(r.gram)
				if weighted == 0 {
					for a := range each[i] {
						each[i][a] /= r.noise
					}
				}
				for a, x := range each[i] {
					total[a] += x
				}
				for a := range q {
					for c := range q {
						mean[a] += each[i][a*q+c] * r.b[c]
					}
				}
			}
			chol := total
			if _, ok := linalg.Cholesky(chol, q, q); !ok {
				return spreadOf{}
			}
			linalg.CholSolve(chol, q, q, mean)
			away := make([]float64, q)
			for i, r := range list {
				for a := range q {
					away[a] = r.b[a] - mean[a]
				}
				d := linalg.Quadratic(each[i], q, away, away)
				part := slices.Clone(each[i])
				for row := range slices.Chunk(part, q) { // W_s W⁻¹
					linalg.CholSolve(chol, q, q, row)
				}
				trace, square := q1, 0.0 // of I − W_s W⁻¹, and of its square
				for a := range q {
					trace -= part[a*q+a]
					square += 1 - 2*part[a*q+a]
					for c := range q {
						square += part[a*q+c] * part[c*q+a]
					}
				}
				if weighted == 0 {
					statistic += d
					slack += (square + trace*trace) / (2 * r.free)
				} else {
					between += d - r.noise*trace
					variance += r.variance
				}
			}
		}
		out.f1 += q1 * float64(len(list)-1)
	}
	if f := out.f1; f > 0 {
		out.ratio = statistic / (f + 2*slack - 6*slack/(f+2))
		out.f2 = f * (f + 2) / (3 * slack)
		out.share = between / variance
		if ppca.Finite("", []float64{out.ratio, out.f2, out.share}) != nil || !(out.ratio >= 0 && out.f2 > 0) {
			return spreadOf{} // of numbers that no computer can compare
		}
	}
	return out
}

// reversed names the sites whose loadings clearly point against those of others. These are the
// fewer; of as many, those without the first.
func reversed(q int, names []string, by map[string][]regression) []string {
	var clearest *regression
	most := 0.0
	for _, key := range slices.Sorted(maps.Keys(by)) {
		for i := range by[key] {
			r := &by[key][i]
			if x := linalg.Quadratic(r.gram, q, r.b, r.b) / r.noise; x > most {
				most, clearest = x, r
			}
		}
	}
	if clearest == nil {
		return nil
	}
	along, variance := make([]float64, len(names)), make([]float64, len(names))
	for _, key := range slices.Sorted(maps.Keys(by)) {
		for _, r := range by[key] {
			along[r.site] += linalg.Quadratic(r.gram, q, r.b, clearest.b) / r.noise
			variance[r.site] += linalg.Quadratic(r.gram, q, clearest.b, clearest.b) / r.noise
		}
	}
	var ways [2][]string
	first := 0
	for i, name := range names {
		if z := along[i] / math.Sqrt(variance[i]); math.Abs(z) > clearSign {
			side := 0
			if z < 0 {
				side = 1
			}
			if len(ways[0])+len(ways[1]) == 0 {
				first = side
			}
			ways[side] = append(ways[side], name)
		}
	}
	if len(ways[0]) == 0 || len(ways[1]) == 0 {
		return nil
	}
	if len(ways[first]) < len(ways[1-first]) {
		return ways[first]
	}
	return ways[1-first]
}

// discordVerdict says which features disagree; nil if none does.
func discordVerdict(l ppca.Layout, m *use.Model, list []discord) *use.Verdict {
	if len(list) == 0 {
		return nil
	}
	const shown = 5
	var what []string
	v := &use.Verdict{Advice: "The model has one set of loadings for all sites, and that of such a feature is a mean of what disagrees: close to nothing where it is reversed at half of them. Look for reversed scales, other codings or other instruments at these sites, or at the others where as many go the other side. The rest of its view may be so too. Where sites are rightly unlike in it, leave it out."}
	view := l.ViewOf()
	for _, d := range list {
		k := view[d.Feature]
		lo, _ := l.View(k)
		name := m.Views[k].Features[d.Feature-lo].Name
		if len(d.Reversed) > 0 {
			name += " (reversed at " + strings.Join(d.Reversed, ", ") + ")"
		}
		what = append(what, name)
		if !slices.Contains(v.Views, m.Views[k].Name) {
			v.Views = append(v.Views, m.Views[k].Name)
		}
	}
	if more := len(what) - shown; more > 0 {
		what = append(what[:shown-1], fmt.Sprintf("%s and %d more", what[shown-1], more))
	}
	v.Says = "Features go with the others in other ways at some sites than at others: " + strings.Join(what, ", ")
	return v
}

// addOuter adds times × x yᵀ.
func addOuter(a, x, y []float64, times float64) {
	for i, u := range x {
		for j, v := range y {
			a[i*len(y)+j] += times * u * v
		}
	}
}

// addTimes adds xᵀ B, B having as many columns as dst.
func addTimes(dst, x, b []float64) {
	for i, u := range x {
		for a := range dst {
			dst[a] += u * b[i*len(dst)+a]
		}
	}
}

func transpose(a []float64, n int) {
	for i := range n {
		for j := range i {
			a[i*n+j], a[j*n+i] = a[j*n+i], a[i*n+j]
		}
	}
}
