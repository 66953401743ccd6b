package fedmvppca

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"parley/internal/linalg"
	"parley/methods/factors/ppca"

	"gonum.org/v1/gonum/stat/distuv"
)

// gibbs draws from the posterior of one model given single subjects, with flat
// priors on W, μ and every noise variance. One sweep draws
//
//	x  | W, μ, ψ   of every subject
//	g  | x, W      a change of the factors' units, x := xg, W := Wg⁻ᵀ, and of
//	               their origin, neither of which the likelihood sees
//	W, μ | x, ψ    a regression for each feature
//	ψ  | x, W, μ   inverse gamma
//
// The second is the generalised Gibbs step of Liu and Sabatti (Biometrika 2000). With S = Σ x xᵀ = L Lᵀ, n
// subjects and d features, Lᵀg has the law of a matrix h with h hᵀ ~ Wishart(n − d, I).
type gibbs struct {
	q, d     int
	patterns []pattern
	subjects int
	w        []float64 // d × q by rows
	mu, psi  []float64 // d; μ about the features' means
	group    []int     // noise group of each feature
	groups   int
	rng      *rand.Rand

	class   []int       // which patterns observe a feature, as a number
	members [][]int     // patterns of each class
	r       [][]float64 // per class: Σ x̃ x̃ᵀ, (q+1) × (q+1)
	b       []float64   // d × (q+1): Σ t x̃ᵀ
	square  []float64   // d: Σ t²
	count   []float64   // d
}

// pattern is the subjects who have the same features.
type pattern struct {
	features []int
	n        int
	t        []float64 // n × p, about the features' means
	x        []float64 // n × q
	r        []float64 // (q+1) × (q+1)
}

// newGibbs begins at a model; rows[i] holds the values of subject i's features.
func newGibbs(l ppca.Layout, features [][]int, rows [][]float64, start *ppca.Params, rng *rand.Rand) (*gibbs, error) {
	d, q := l.Features(), start.Rank
	g := &gibbs{q: q, d: len(start.Features), subjects: len(rows), w: append([]float64(nil), start.W...),
		mu: make([]float64, d), psi: make([]float64, d), group: l.GroupOf(), groups: l.Groups(), rng: rng,
		b: make([]float64, d*(q+1)), square: make([]float64, d), count: make([]float64, d)}
	if len(rows)-g.d < q {
		return nil, fmt.Errorf("%d subjects for %d features and %d factors: "+
			"under flat priors the posterior exists only from %d subjects on",
			len(rows), g.d, q, g.d+q)
	}
	mean := make([]float64, d)
	for i, row := range rows {
		for c, j := range features[i] {
			g.count[j]++
			mean[j] += (row[c] - mean[j]) / g.count[j]
		}
	}
	for _, j := range start.Features {
		g.mu[j] = start.Mu[j] - mean[j]
		g.psi[j] = start.Noise[g.group[j]]
		if g.count[j] < float64(q+3) {
			return nil, fmt.Errorf("a feature has %v values, too few for the posterior of %d loadings", g.count[j], q)
		}
	}
	at := map[string]int{}
	var blocks []ppca.Block // only to number the classes
	for i, row := range rows {
		key := fmt.Sprint(features[i])
		k, ok := at[key]
		if !ok {
			k = len(g.patterns)
			at[key] = k
			g.patterns = append(g.patterns, pattern{features: features[i], r: make([]float64, (q+1)*(q+1))})
			blocks = append(blocks, ppca.Block{Features: features[i]})
		}
		p := &g.patterns[k]
		p.n++
		for c, j := range features[i] {
			t := row[c] - mean[j]
			p.t = append(p.t, t)
			g.square[j] += t * t
		}
	}
	for k := range g.patterns {
		g.patterns[k].x = make([]float64, g.patterns[k].n*q)
	}
	class, needs := ppca.Classes(d, blocks)
	g.class = class
	for k, some := range needs {
		for _, c := range some {
			for c >= len(g.members) {
				g.members = append(g.members, nil)
				g.r = append(g.r, make([]float64, (q+1)*(q+1)))
			}
			g.members[c] = append(g.members[c], k)
		}
	}
	return g, nil
}

// sweep draws everything once, and writes the log-likelihood of every subject,
// factors integrated out, under the parameters that it began with. Subjects
// are in order of pattern.
func (g *gibbs) sweep(logLik []float64) error {
	at := 0
	for k := range g.patterns {
		p := &g.patterns[k]
		if err := g.drawFactors(p, logLik[at:at+p.n]); err != nil {
			return err
		}
		at += p.n
	}
	if err := g.changeUnits(); err != nil {
		return err
	}
	g.collect()
	if err := g.drawLoadings(); err != nil {
		return err
	}
	return g.drawNoise()
}

func (g *gibbs) drawFactors(p *pattern, logLik []float64) error {
	q, d := g.q, len(p.features)
	v, prec := make([]float64, d*q), make([]float64, q*q)
	constant := 0.0
	for i, j := range p.features {
		w := g.w[j*q:][:q]
		constant += ppca.Ln2Pi + math.Log(g.psi[j])
		for a, x := range w {
			v[i*q+a] = x / g.psi[j]
			for c, y := range w {
				prec[a*q+c] += x * y / g.psi[j]
			}
		}
	}
	for a := range q {
		prec[a*q+a]++
	}
	logDet, ok := linalg.Cholesky(prec, q, q)
	if !ok {
		return ppca.ErrCollapsed
	}
	for n := range p.n {
		x, t := p.x[n*q:][:q], p.t[n*d:][:d]
		clear(x)
		quad := 0.0
		for i, j := range p.features {
			y := t[i] - g.mu[j]
			quad += y * y / g.psi[j]
			for a, s := range v[i*q:][:q] {
				x[a] += s * y
			}
		}
		forward(prec, q, x)
		for a, y := range x {
			quad -= y * y
			x[a] = y + g.rng.NormFloat64()
		}
		backward(prec, q, x)
		logLik[n] = -0.5 * (constant + logDet + quad)
	}
	return nil
}

// forward and backward replace x by L⁻¹x and L⁻ᵀx, L as [linalg.Cholesky] leaves it.
func forward(l []float64, n int, x []float64) {
	for i := range n {
		s := x[i]
		for k, y := range x[:i] {
			s -= l[i*n+k] * y
		}
		x[i] = s * l[i*n+i]
	}
}

func backward(l []float64, n int, x []float64) {
	for i := n - 1; i >= 0; i-- {
		s := x[i]
		for k := i + 1; k < n; k++ {
			s -= l[k*n+i] * x[k]
		}
		x[i] = s * l[i*n+i]
	}
}

// changeUnits draws a new origin and new units of the factors.
func (g *gibbs) changeUnits() error {
	q, n := g.q, float64(g.subjects)
	move, s := make([]float64, q), make([]float64, q*q)
	g.eachFactor(func(x []float64) {
		for a, v := range x {
			move[a] -= v / n
		}
	})
	for a := range move {
		move[a] += g.rng.NormFloat64() / math.Sqrt(n)
	}
	g.eachFactor(func(x []float64) {
		for a := range x {
			x[a] += move[a]
		}
		for a, y := range x {
			for c, z := range x[:a+1] {
				s[a*q+c] += y * z
			}
		}
	})
	for j := range g.mu {
		for a, y := range move {
			g.mu[j] -= g.w[j*q+a] * y
		}
	}
	if _, ok := linalg.Cholesky(s, q, q); !ok { // s is now L
		return ppca.ErrCollapsed
	}
	// Bartlett: t tᵀ ~ Wishart(n − d, I) for this lower triangle.
	t := make([]float64, q*q)
	for a := range q {
		for c := range a {
			t[a*q+c] = g.rng.NormFloat64()
		}
		t[a*q+a] = math.Sqrt(distuv.ChiSquared{K: n - float64(g.d+a), Src: g.rng}.Rand())
	}
	// x := x L⁻ᵀ t and W := W L t⁻ᵀ, row by row.
	row := make([]float64, q)
	g.eachFactor(func(x []float64) {
		forward(s, q, x)
		for c := range q {
			row[c] = 0
			for a := c; a < q; a++ {
				row[c] += x[a] * t[a*q+c]
			}
		}
		copy(x, row)
	})
	for a := range q { // as cholesky leaves it
		t[a*q+a] = 1 / t[a*q+a]
	}
	for j := range g.mu {
		w := g.w[j*q:][:q]
		for c := range q {
			row[c] = w[c] / s[c*q+c]
			for a := c + 1; a < q; a++ {
				row[c] += w[a] * s[a*q+c]
			}
		}
		forward(t, q, row)
		copy(w, row)
	}
	return nil
}

func (g *gibbs) eachFactor(do func(x []float64)) {
	for k := range g.patterns {
		p := &g.patterns[k]
		for n := range p.n {
			do(p.x[n*g.q:][:g.q])
		}
	}
}

// collect adds up what the regressions need.
func (g *gibbs) collect() {
	q := g.q
	clear(g.b)
	x := make([]float64, q+1)
	x[q] = 1
	for k := range g.patterns {
		p := &g.patterns[k]
		clear(p.r)
		d := len(p.features)
		for n := range p.n {
			copy(x, p.x[n*q:][:q])
			for a, y := range x {
				for c, z := range x[:a+1] {
					p.r[a*(q+1)+c] += y * z
				}
			}
			for i, t := range p.t[n*d:][:d] {
				b := g.b[p.features[i]*(q+1):][:q+1]
				for a, y := range x {
					b[a] += t * y
				}
			}
		}
	}
	for c, members := range g.members {
		clear(g.r[c])
		for _, k := range members {
			for a := range q + 1 {
				for e := range a + 1 {
					g.r[c][a*(q+1)+e] += g.patterns[k].r[a*(q+1)+e]
				}
			}
		}
		for a := range q + 1 {
			for e := range a {
				g.r[c][e*(q+1)+a] = g.r[c][a*(q+1)+e]
			}
		}
	}
}

// drawLoadings draws [w μ] of each feature ~ N(R⁻¹b, ψ R⁻¹).
func (g *gibbs) drawLoadings() error {
	q := g.q
	factor := make([][]float64, len(g.r))
	for c, r := range g.r {
		factor[c] = append([]float64(nil), r...)
		if _, ok := linalg.Cholesky(factor[c], q+1, q+1); !ok {
			return ppca.ErrCollapsed
		}
	}
	row := make([]float64, q+1)
	for j, psi := range g.psi {
		if psi == 0 {
			continue
		}
		copy(row, g.b[j*(q+1):][:q+1])
		l := factor[g.class[j]]
		forward(l, q+1, row)
		for a := range row {
			row[a] += math.Sqrt(psi) * g.rng.NormFloat64()
		}
		backward(l, q+1, row)
		copy(g.w[j*q:], row[:q])
		g.mu[j] = row[q]
	}
	return nil
}

// drawNoise draws each noise variance from IG(n/2 − 1, SS/2).
func (g *gibbs) drawNoise() error {
	q := g.q
	ss, n := make([]float64, g.groups), make([]float64, g.groups)
	row := make([]float64, q+1)
	for j, psi := range g.psi {
		if psi == 0 {
			continue
		}
		copy(row, g.w[j*q:][:q])
		row[q] = g.mu[j]
		s := g.square[j] + linalg.Quadratic(g.r[g.class[j]], q+1, row, row)
		for a, y := range row {
			s -= 2 * y * g.b[j*(q+1)+a]
		}
		ss[g.group[j]] += s
		n[g.group[j]] += g.count[j]
	}
	for h := range ss {
		if n[h] == 0 {
			continue
		}
		if !(ss[h] > 0) {
			return ppca.ErrCollapsed
		}
		ss[h] /= 2 * distuv.Gamma{Alpha: n[h]/2 - 1, Beta: 1, Src: g.rng}.Rand()
	}
	for j, psi := range g.psi {
		if psi != 0 {
			g.psi[j] = ss[g.group[j]]
		}
	}
	return nil
}

// How the posterior is drawn for the criterion.
const (
	burnIn = 100 // sweeps
	wanted = 80
	every  = 3 // sweeps for each draw that is kept
)

// drawn computes the criterion from draws of the posterior given subjects, begun at a fit:
// rows[i] holds the values of subject i's features. It is an error where that posterior does
// not exist, as with hardly more subjects than features.
func drawn(ctx context.Context, l ppca.Layout, features [][]int, rows [][]float64, start *ppca.Params,
	rng *rand.Rand) (criterion, error) {
	g, err := newGibbs(l, features, rows, start, rng)
	if err != nil {
		return criterion{}, err
	}
	kept := make([][]float64, 0, wanted)
	scratch := make([]float64, g.subjects)
	for i := 0; len(kept) < wanted; i++ {
		if err := ctx.Err(); err != nil {
			return criterion{}, err
		}
		logLik := scratch
		if i >= burnIn && (i-burnIn)%every == 0 {
			logLik = make([]float64, g.subjects)
			kept = append(kept, logLik)
		}
		if err := g.sweep(logLik); err != nil {
			return criterion{}, fmt.Errorf("sweep %d: %w", i, err)
		}
	}
	return criterionOf(kept)
}

// criterion is the widely applicable information criterion and its parts.
type criterion struct {
	LPPD float64 // Σₙ ln meanₛ exp l(s, n)
	P    float64 // Σₙ varianceₛ l(s, n), denominator S − 1: effective number of parameters
	WAIC float64 // −2 (LPPD − P)
}

// criterionOf computes the criterion from logLik[s][n], the log-likelihood of subject n
// under draw s of the parameters from their posterior, for two draws or more.
// It means something only for draws from a real posterior: drawing W with the
// factors held fixed makes P too small.
func criterionOf(logLik [][]float64) (criterion, error) {
	if len(logLik) < 2 {
		return criterion{}, fmt.Errorf("the criterion needs two draws or more, got %d", len(logLik))
	}
	for s, row := range logLik {
		if len(row) != len(logLik[0]) {
			return criterion{}, fmt.Errorf("draw %d has %d subjects, draw 0 has %d", s, len(row), len(logLik[0]))
		}
		if err := ppca.Finite("log-likelihood", row); err != nil {
			return criterion{}, err
		}
	}
	var c criterion
	draws := float64(len(logLik))
	for n := range logLik[0] {
		top, mean := math.Inf(-1), 0.0
		for _, row := range logLik {
			top = max(top, row[n])
			mean += row[n] / draws
		}
		sum, square := 0.0, 0.0
		for _, row := range logLik {
			sum += math.Exp(row[n] - top)
			square += (row[n] - mean) * (row[n] - mean)
		}
		c.LPPD += top + math.Log(sum/draws)
		c.P += square / (draws - 1)
	}
	c.WAIC = -2 * (c.LPPD - c.P)
	return c, nil
}
