package federated

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"

	"parley/internal/linalg"
	"parley/methods/factors/fitted"
	"parley/methods/factors/halves"
	"parley/methods/factors/ppca"
)

const (
	// falseUnshared is the probability that a study of sites that do not differ names any direction.
	falseUnshared = 0.01
	// timesUnshared is how many times as large as elsewhere the variance along a direction must be.
	timesUnshared = 2
	// timesFactor is how many times as large as elsewhere the variance of a factor must be: a third of the
	// standard deviation is more than what other patients do.
	timesFactor = 9
	// fewestUnshared is how many subjects with the same features can show a direction.
	fewestUnshared = 15
	// minOrthogonalShare is the share of a feature's noise that must not lie along the factors for the
	// feature to be looked at.
	minOrthogonalShare = 0.05
	// powerIterations is how often a vector is multiplied at most to find the direction: where that is not
	// enough, the variance is larger than it says.
	powerIterations = 100
)

// siteEigenvector is a direction, apart from the factors, along which the subjects of a site vary more than
// those of others.
type siteEigenvector struct {
	Site     string  `cbor:"site"`
	Times    float64 `cbor:"times"`    // the variance, in that along it elsewhere
	Subjects float64 `cbor:"subjects"` // who show it
	Free     float64 `cbor:"free"`     // directions apart from the factors
	Features []int   `cbor:"features"` // that have most of it, falling
}

// residualScatter is what the factors leave of a block: (n − 1) times its covariance, in units in which each
// feature's is 1 at the site, is A P S P A with S the scatter over Ψ, P the projection away from
// the factors, and A diagonal.
type residualScatter struct {
	block *ppca.Block
	basis []float64 // p × q: orthonormal, of Ψ^(−1/2)W
	unit  []float64 // p: Ψ^(−1/2)
	a     []float64 // p
	q     int
}

// unsharedDirections are those beyond chance, if values are normal. In units of what the factors leave
// of each feature the covariances are the same at all sites if these are samples of one population, and
// the identity if the model is right, however much factors and noise vary at a site. The largest
// eigenvalue of that of n subjects in f dimensions then has the law of Tracy and Widom about
// (√(n − 2) + √f)² (Johnstone, Annals of Statistics 2001). A direction along which others vary as well
// is one of a factor that the model lacks: so it is compared with theirs, of the same views.
func unsharedDirections(l ppca.Layout, p *ppca.Params, names []string, sites [][]ppca.Block) (list []siteEigenvector) {
	md := ppca.NewModel(l, p.Rank)
	md.LoadW(p.W)
	md.LoadNoise(p.Noise)
	for _, pattern := range ppca.Patterns(l, slices.Concat(sites...)) {
		same, of := []*residualScatter{}, []int{}
		for i := range sites {
			for b := range sites[i] {
				block := &sites[i][b]
				if !slices.Equal(l.ViewsOf(block.Features), pattern.Views) || len(same) > 0 && !slices.Equal(block.Features, same[0].block.Features) {
					continue
				}
				if r := newRest(md, block); r != nil {
					same, of = append(same, r), append(of, i)
				}
			}
		}
		if len(same) < 2 {
			continue
		}
		for i, r := range same {
			value, v := r.largest()
			variance := value / (r.block.N - 1)
			u := siteEigenvector{Site: names[of[i]], Times: variance, Subjects: r.block.N, Free: float64(len(v) - p.Rank)}
			beyond := func() bool {
				return u.Times > timesUnshared && u.beyond(falseUnshared/float64(len(sites)), normalTails())
			}
			if !beyond() { // nor is it beside others, who only lessen it
				continue
			}
			there, n := 0.0, 0.0
			for k, o := range same {
				if of[k] != of[i] {
					there, n = there+o.along(v), n+o.block.N-1
				}
			}
			if u.Times = variance / max(1, there/max(n, 1)); n > 0 && beyond() {
				u.Features = most(v, r.block.Features)
				list = append(list, u)
			}
		}
	}
	return list
}

// newRest returns nil where there is nothing to see.
func newRest(md *ppca.Model, block *ppca.Block) *residualScatter {
	n, q := len(block.Features), md.Q
	if block.N < fewestUnshared || n < q+3 {
		return nil
	}
	r := &residualScatter{block: block, q: q, basis: make([]float64, n*q), unit: make([]float64, n), a: slices.Repeat([]float64{1}, n)}
	gram := make([]float64, q*q)
	for i, j := range block.Features {
		if !(md.Psi[j] > 0) {
			return nil
		}
		r.unit[i] = 1 / math.Sqrt(md.Psi[j])
		w := r.basis[i*q:][:q]
		floats.ScaleTo(w, r.unit[i], md.W[j*md.LD:][:q])
		linalg.AddOuter(gram, w, w, 1)
	}
	if _, ok := linalg.Cholesky(gram, q, q); !ok {
		return nil // fewer factors than columns
	}
	for i := range block.Features { // V L⁻ᵀ, with VᵀV = L Lᵀ
		linalg.CholQuadratic(gram, q, q, r.basis[i*q:])
	}
	for i, s := range r.squares() {
		left := 1 - floats.Dot(r.basis[i*q:][:q], r.basis[i*q:][:q])
		if r.a[i] = 0; left > minOrthogonalShare && s > 0 {
			r.a[i] = math.Sqrt(left * (block.N - 1) / s)
		}
	}
	return r
}

// squares is the diagonal of P S P, with P = I − Q Qᵀ.
func (r *residualScatter) squares() []float64 {
	n, q := len(r.unit), r.q
	x, y := make([]float64, n), make([]float64, n)
	sq, qsq := make([]float64, n*q), make([]float64, q*q)
	for a := range q {
		for i := range x {
			x[i] = r.basis[i*q+a]
		}
		r.scatter(y, x)
		for i, v := range y {
			sq[i*q+a] = v
		}
	}
	for i := range n {
		linalg.AddOuter(qsq, r.basis[i*q:][:q], sq[i*q:][:q], 1)
	}
	out := make([]float64, n)
	if r.block.Scatter != nil {
		for i := range out {
			out[i] = r.block.Scatter[i*n+i]
		}
	} else {
		copy(out, r.block.Diag)
		for row := range slices.Chunk(r.block.Factor, n) {
			floats.MulTo(x, row, row)
			floats.Add(out, x)
		}
	}
	for i := range out {
		w := r.basis[i*q:][:q]
		out[i] = out[i]*r.unit[i]*r.unit[i] - 2*floats.Dot(w, sq[i*q:][:q]) + linalg.Quadratic(qsq, q, w, w)
	}
	return out
}

// scatter makes y the product of S and x.
func (r *residualScatter) scatter(y, x []float64) {
	n := len(x)
	z := make([]float64, n)
	floats.MulTo(z, r.unit, x)
	clear(y)
	if r.block.Scatter != nil {
		for i := range y {
			y[i] = floats.Dot(r.block.Scatter[i*n:][:n], z)
		}
	} else {
		for row := range slices.Chunk(r.block.Factor, n) {
			floats.AddScaled(y, floats.Dot(row, z), row)
		}
		for i, d := range r.block.Diag {
			y[i] += d * z[i]
		}
	}
	floats.Mul(y, r.unit)
}

// project takes out of x what lies along the factors.
func (r *residualScatter) project(x []float64) {
	along := make([]float64, r.q)
	for i, v := range x {
		floats.AddScaled(along, v, r.basis[i*r.q:][:r.q])
	}
	for i := range x {
		x[i] -= floats.Dot(along, r.basis[i*r.q:][:r.q])
	}
}

// times makes y the product of A P S P A and x.
func (r *residualScatter) times(y, x []float64) {
	z := make([]float64, len(x))
	floats.MulTo(z, r.a, x)
	r.project(z)
	r.scatter(y, z)
	r.project(y)
	floats.Mul(y, r.a)
}

// largest returns the largest eigenvalue and its unit vector, by powers.
func (r *residualScatter) largest() (value float64, v []float64) {
	n := len(r.unit)
	v, y := make([]float64, n), make([]float64, n)
	for i := range v {
		v[i] = math.Sin(float64(i + 1)) // nothing that features are sorted by
	}
	for range powerIterations {
		norm := floats.Norm(v, 2)
		if !(norm > 0) {
			return 0, v
		}
		floats.Scale(1/norm, v)
		r.times(y, v)
		last := value
		value = floats.Dot(v, y)
		if v, y = y, v; value-last < 1e-6*value {
			break
		}
	}
	floats.Scale(1/floats.Norm(v, 2), v)
	return value, v
}

// along is vᵀA P S P A v.
func (r *residualScatter) along(v []float64) float64 {
	y := make([]float64, len(v))
	r.times(y, v)
	return floats.Dot(v, y)
}

// most lists the features that have three quarters of a direction, or the first of them.
func most(v []float64, features []int) (list []int) {
	const part, shown = 0.75, 5
	order := make([]int, len(v))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(math.Abs(v[b]), math.Abs(v[a])) })
	sum, all := 0.0, floats.Dot(v, v)
	for _, i := range order[:min(shown, len(order))] {
		if sum > part*all {
			break
		}
		sum += v[i] * v[i]
		list = append(list, features[i])
	}
	return list
}

// unsharedFactors are directions of the factors' space along which subjects hardly vary but at one
// site: a factor took up what is peculiar to it. Sites are compared whose subjects all have the same
// views. With G = WᵀΨ⁻¹W, the scores z = (I + G)⁻¹WᵀΨ⁻¹(t − μ) of subjects whose factors have the
// covariance Ξ are (I + G⁻¹)⁻¹ times what has the covariance Ξ + G⁻¹.
func unsharedFactors(l ppca.Layout, s *halves.State, m *fitted.Model) (list []siteEigenvector) {
	q := len(m.Factors)
	var w, sd []float64
	for _, view := range m.Views {
		for _, f := range view.Features {
			w = append(w, f.Loadings...)
			sd = append(sd, math.Sqrt(floats.Dot(f.Loadings, f.Loadings)+f.Noise))
		}
	}
	like := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(s.Reports)) {
		if r := s.Reports[name]; len(r.Patterns) == 1 && r.Patterns[0].Subjects >= fewestUnshared {
			key := fmt.Sprint(r.Patterns[0].Views)
			like[key] = append(like[key], name)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(like)) {
		names := like[key]
		features, err := l.FeaturesOf(s.Reports[names[0]].Patterns[0].Views)
		if err != nil || len(names) < 2 {
			continue
		}
		g := make([]float64, q*q)
		for _, j := range features {
			if noise := sd[j]*sd[j] - floats.Dot(w[j*q:][:q], w[j*q:][:q]); noise > 0 {
				linalg.AddOuter(g, w[j*q:][:q], w[j*q:][:q], 1/noise)
			}
		}
		e := linalg.NewEigen(q)
		inverse, posterior := make([]float64, q*q), make([]float64, q*q)
		if !e.Factorise(g, q) || !e.Power(inverse, q, -1) {
			continue // the views do not determine the factors
		}
		for a := range q {
			g[a*q+a]++
		}
		if !e.Factorise(g, q) || !e.Power(posterior, q, -1) {
			continue
		}
		grow := slices.Clone(inverse)
		for a := range q {
			grow[a*q+a]++
		}
		var seen [][]float64
		all, subjects := make([]float64, q*q), 0.0
		for _, name := range names {
			cov, n := slices.Clone(s.Reports[name].Cov), float64(s.Reports[name].Subjects())
			floats.Sub(cov, posterior)
			seen = append(seen, sandwich(grow, cov, q))
			floats.AddScaled(all, n, seen[len(seen)-1])
			subjects += n
		}
		for i, name := range names {
			n := float64(s.Reports[name].Subjects())
			others := slices.Clone(all)
			floats.AddScaled(others, -n, seen[i])
			floats.Scale(1/(subjects-n), others)
			half, root := make([]float64, q*q), make([]float64, q*q)
			if !e.Factorise(others, q) || !e.Power(half, q, -0.5) || !e.Power(root, q, 0.5) || !e.Factorise(sandwich(half, seen[i], q), q) {
				continue
			}
			first, contrast, along := make([]float64, q), make([]float64, q), make([]float64, q)
			for a := range q {
				first[a] = e.Vectors[a*q+q-1]
			}
			linalg.Times(contrast, half, q, first)
			linalg.Times(along, root, q, first)
			noise := linalg.Quadratic(inverse, q, contrast, contrast) // of the scores, and 1 in all elsewhere
			u := siteEigenvector{Site: name, Times: e.Values[q-1], Subjects: n, Free: float64(q)}
			if u.Times > timesUnshared && u.Times-noise > timesFactor*(1-noise) {
				v := make([]float64, len(sd))
				for j := range v {
					v[j] = floats.Dot(w[j*q:][:q], along) / sd[j]
				}
				u.Features = most(v, l.AllFeatures())
				list = append(list, u)
			}
		}
	}
	return list
}

// sandwich is a b a, of symmetric n × n matrices.
func sandwich(a, b []float64, n int) []float64 {
	out, row := make([]float64, n*n), make([]float64, n)
	for i := range n {
		linalg.Times(row, b, n, a[i*n:][:n])
		linalg.Times(out[i*n:], a, n, row)
	}
	linalg.Symmetrise(out, n, n)
	return out
}

// beyond says whether chance has such a direction with less than some probability, given how far the
// site's subjects are spread.
func (u *siteEigenvector) beyond(probability float64, s tails) bool {
	n, f := math.Sqrt(u.Subjects-2), math.Sqrt(u.Free*s.heavy)
	edge, scale := max((n+f)*(n+f), u.Subjects+s.farthest), (n+f)*math.Cbrt(1/n+1/f)
	x := (u.Times*(u.Subjects-1) - edge) / scale
	// The tail of the law of Tracy and Widom, of order 1.
	return x > 1 && math.Exp(-2./3*math.Pow(x, 1.5))/(4*math.SqrtPi*math.Pow(x, 0.75)) < probability
}

// tails are how far subjects are spread in all directions together. Where some are far from the model
// in everything, the largest variance is more than that of normal values, and one of them may make
// it alone. For normal values neither matters.
type tails struct {
	heavy    float64 // mean fourth power of the distance over the square of the mean square, in that of normal values
	farthest float64 // most that the largest squared distance can be
}

// normalTails are those of normal values, of which nobody is far.
func normalTails() tails { return tails{heavy: 1} }

// add takes in d numbers of each of n subjects, given the sums of their mean squares and of the squares
// of these. Nothing is further from the mean of n numbers than √(n − 1) standard deviations
// (Samuelson 1968).
func (s *tails) add(d, n, sum, squares float64) {
	if n > 0 && sum > 0 {
		ratio := n * squares / (sum * sum)
		s.heavy = max(s.heavy, ratio/(1+2/d))
		s.farthest += d * (1 + math.Sqrt((n-1)*max(0, ratio-1)))
	}
}

// unsharedVerdict says which sites vary along directions of their own; nil if none does. Subjects of
// whom some are far from the model in everything spread in all directions, more than the same of normal
// values: what sites said of their distances tells.
func unsharedVerdict(l ppca.Layout, s *halves.State, m *fitted.Model, list []siteEigenvector) *fitted.Verdict {
	var where []string
	v := &fitted.Verdict{Advice: "Either no factor knows it, and what is said of the site's subjects is too sure, or a factor is hardly of anybody else. Look for batches, a changed instrument or protocol within the site, for two kinds of patients, for features on another scale there, such as logarithms, and for a file of which a part has the ids of other subjects."}
	view := l.ViewOf()
	factors := unsharedFactors(l, s, m)
	for i, u := range slices.Concat(factors, list) {
		of := normalTails()
		if a := s.Reports[u.Site]; a != nil && i < len(factors) {
			for f, squares := range a.ScoreSquares {
				of.add(1, float64(a.Subjects()), squares, a.ScoreFourths[f*(len(a.ScoreSquares)+1)])
			}
		} else if a != nil {
			for k, d := range l.Dims {
				of.add(float64(d), a.Noise.Subjects[k], a.Noise.U[k], a.Noise.Squares[k])
			}
		}
		if !u.beyond(falseUnshared/float64(max(1, len(s.Reports))), of) {
			continue
		}
		var names []string
		for _, j := range u.Features {
			lo, _ := l.View(view[j])
			names = append(names, m.Views[view[j]].Features[j-lo].Name)
			if name := m.Views[view[j]].Name; !slices.Contains(v.Views, name) {
				v.Views = append(v.Views, name)
			}
		}
		where = append(where, fmt.Sprintf("%s (%.1f times, in %s)", u.Site, u.Times, strings.Join(names, ", ")))
	}
	if len(where) == 0 {
		return nil
	}
	v.Says = "Subjects differ from each other in a way in which those of other sites do not: " + strings.Join(where, "; ")
	return v
}
