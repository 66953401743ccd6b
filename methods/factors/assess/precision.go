// Package assess says how well a fitted model describes what it was fitted to: how far the
// sampling of subjects moves its loadings ([PrecisionOf]), how many factors the data need
// ([Ranks]), how well each view is predicted from
// a subject's other views ([Predictor]), and whether single values are missing for what
// they are ([MissingnessSums]; missing at random: Rubin 1976). Sums that come from
// elsewhere give errors, never panics.
package assess

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"

	"parley/methods/factors/ppca"
)

// Pattern counts the subjects who have the same features.
type Pattern struct {
	Features []int // ascending
	Subjects float64
}

// Precision holds standard errors. Arrays cover all features of the layout, d × q by rows,
// with zeros where the model does not describe a feature.
type Precision struct {
	Loading      []float64 // of W, in units of the features
	Standardised []float64 // of w_jf/√(Σ_a w_ja² + ψ_j), the correlation of feature j and factor f
	// Freedom is, for each feature, the subjects who have it less q + 1, at least 1: an
	// interval is as wide as Student's law with so many degrees of freedom has it.
	Freedom []float64
	// Turn is, for each factor, the standard deviation in radians of the angle by which
	// it turns among the other factors: large where another factor is about as strong.
	Turn []float64

	half []float64 // see [Precision.Half]
}

// Stable is the angle in radians, 30°, up to which a factor is called stable. A factor that
// turns by more shares over a quarter of its variance with others, and another sample of
// subjects would show other loadings.
const Stable = math.Pi / 6

// leastStrength is the strength below which a factor tells nothing of its loadings.
const leastStrength = 1e-6

// PrecisionOf returns standard errors for the loadings of a model in canonical form
// ([ppca.Canonical]), of which strengths are the eigenvalues λ of WᵀΨ⁻¹W: those of
// maximum likelihood in large samples of subjects for whom the model holds.
//
// They are those of principal components (Girshick 1939; Anderson, "Asymptotic theory for
// principal component analysis", 1963) of the features in units of their noise, where
// W = Ψ^½ U Λ^½ and the covariance has eigenvalues ℓ = 1 + λ, and 1 in all other directions.
// A sample of N moves eigenvalue f by ℓ_f z_ff/√N and turns its vector u_f by
// √(ℓ_f ℓ_b/N)/(ℓ_f − ℓ_b) z_fb towards each direction b, with Var z_ff = 2 and Var z_fb = 1,
// or E z_f⁴ − 1 and E z_f² z_b² for factors that are not normal, of which fourths tell.
// The errors of the noise variances are added by their own law (see noise), but with more than
// mostNoise features, where these are so many compared with factors that it costs little. As in a regression on q factors and a mean, variances are larger than in
// large samples by n/(n − q − 1), n subjects having the feature.
//
// Where subjects lack features, N is the number who tell of the pair: those who have the
// feature, or for two factors, weighted by √(ρ_f ρ_b), with ρ_f the variance of factor f
// that a subject's features tell of in parts of what all features would.
//
// What differs between sites is not in these errors.
func PrecisionOf(l ppca.Layout, p *ppca.Params, strengths []float64, fourths Fourths, patterns []Pattern) (*Precision, error) {
	q, d := p.Rank, l.Features()
	if err := p.Check(l); err != nil {
		return nil, err
	}
	if err := checkFactors(q, strengths, fourths); err != nil {
		return nil, err
	}
	n := newTold(l, p, strengths, fourths, patterns)
	out := &Precision{Loading: make([]float64, d*q), Standardised: make([]float64, d*q), Freedom: make([]float64, d), Turn: make([]float64, q), half: make([]float64, d)}
	for f, lf := range strengths {
		sum := 0.0
		for b, lb := range strengths {
			if b != f {
				sum += n.fourths.variance(f, b, q) * rotation(1+lf, 1+lb) / n.pair[f*q+b]
			}
		}
		out.Turn[f] = math.Sqrt(sum)
	}
	group, free := l.GroupOf(), (*noise)(nil)
	all, v, subjects := []float64(nil), []float64(nil), []float64(nil) // of described features: U, U Λ^½, and who has them
	for _, j := range p.Features {
		for f, s := range strengths {
			v = append(v, p.W[j*q+f]/math.Sqrt(p.Noise[group[j]]))
			all = append(all, v[len(v)-1]/math.Sqrt(s))
		}
		subjects = append(subjects, n.feature[j])
	}
	if slices.Min(strengths) > leastStrength {
		free = newNoise(l, p, strengths, all, subjects)
	}
	u, halves := make([]float64, q), map[float64]float64{} // many features have the same freedom
	for i, j := range p.Features {
		psi, total, rest := p.Noise[group[j]], p.Noise[group[j]], 1.0
		for f := range u {
			w := p.W[j*q+f]
			total += w * w
			u[f] = 0
			if strengths[f] > 0 {
				u[f] = w / math.Sqrt(psi*strengths[f])
			}
			rest -= u[f] * u[f]
		}
		rest = max(0, rest)
		out.Freedom[j] = n.freedom(j, q)
		if _, known := halves[out.Freedom[j]]; !known {
			halves[out.Freedom[j]] = half(out.Freedom[j])
		}
		out.half[j] = halves[out.Freedom[j]]
		few := n.few(j, q)
		for f := range strengths {
			own, with, both := n.loading(f, j, u, strengths, rest)
			if free != nil {
				more, along := free.errors(i, f, q, v)
				own, with = own+more, with+along
			}
			out.Loading[j*q+f] = few * math.Sqrt(psi*own)
			// r = w/s with ds = d(s²)/2s, and d(s²) that of the feature's own variance.
			w := p.W[j*q+f]
			variance := psi*own/total - w*psi*math.Sqrt(psi)*with/(total*total) + w*w*psi*psi*both/(4*total*total*total)
			out.Standardised[j*q+f] = few * math.Sqrt(max(0, variance))
		}
	}
	return out, nil
}

func checkFactors(q int, strengths []float64, fourths Fourths) error {
	if len(strengths) != q {
		return fmt.Errorf("%d strengths for %d factors", len(strengths), q)
	}
	return fourths.Check(q)
}

// Half is half the width of an interval of 90 % for a loading of feature j, in standard
// errors; 0 where the model does not describe it.
func (p *Precision) Half(j int) float64 { return p.half[j] }

// half is the same with so many degrees of freedom.
func half(freedom float64) float64 { return distuv.StudentsT{Sigma: 1, Nu: freedom}.Quantile(0.95) }

// rotation is N times the variance of the angle between two directions of eigenvalues a and
// b; beyond a right angle it has no meaning, and is infinite where they are equal.
func rotation(a, b float64) float64 { return a * b / ((a - b) * (a - b)) }

// told is how many subjects tell of what.
type told struct {
	q       int
	fourths Fourths
	feature []float64 // d
	pair    []float64 // q × q: of two factors
	factor  []float64 // d × q: of a factor, among those who have the feature
}

func newTold(l ppca.Layout, p *ppca.Params, strengths []float64, fourths Fourths, patterns []Pattern) *told {
	q, d := p.Rank, l.Features()
	n := &told{q: q, fourths: fourths, feature: make([]float64, d), pair: make([]float64, q*q), factor: make([]float64, d*q)}
	group := l.GroupOf()
	share := make([]float64, q)
	for _, t := range patterns {
		clear(share)
		for _, j := range t.Features {
			for f := range share {
				w := p.W[j*q+f]
				share[f] += w * w / p.Noise[group[j]]
			}
		}
		for f, s := range strengths {
			if s > 0 {
				share[f] = share[f] / (1 + share[f]) * (1 + s) / s
			}
		}
		for f := range share {
			for b := range share {
				n.pair[f*q+b] += t.Subjects * math.Sqrt(share[f]*share[b])
			}
		}
		for _, j := range t.Features {
			n.feature[j] += t.Subjects
			for f := range share {
				n.factor[j*q+f] += t.Subjects * share[f]
			}
		}
	}
	return n
}

// freedom is the degrees of freedom of a regression of feature j on q factors and a mean.
func (n *told) freedom(j, q int) float64 { return max(1, n.feature[j]-float64(q+1)) }

// few is by how much errors are larger than in large samples.
func (n *told) few(j, q int) float64 { return math.Sqrt(max(1, n.feature[j]/n.freedom(j, q))) }

// loading returns, in units of the noise of feature j, the variance of its loading on factor
// f, the covariance of this with the feature's own variance, and the variance of that.
func (n *told) loading(f, j int, u, strengths []float64, rest float64) (own, with, both float64) {
	lf, q := 1+strengths[f], n.q
	of := strengths[f]
	if of <= 0 {
		of = math.SmallestNonzeroFloat64
	}
	pair, itself := n.pair[f*q+f], n.fourths.variance(f, f, q)
	own = lf * lf * u[f] * u[f] * itself / (4 * of * pair)
	with = lf * lf * u[f] * u[f] * u[f] * itself / (2 * math.Sqrt(of) * pair)
	for b, s := range strengths {
		if b == f {
			continue
		}
		lb, times := 1+s, n.fourths.variance(f, b, q)/n.pair[f*q+b]
		own += of * rotation(lf, lb) * u[b] * u[b] * times
		with += 2 * math.Sqrt(of) * lf * lb * u[f] * u[b] * u[b] * times / (lf - lb)
	}
	told := n.factor[j*q+f]
	own += lf / of * rest / told
	with += 2 * lf * u[f] * rest / (math.Sqrt(of) * told)
	variance, heavy := rest, 0.0
	for b, s := range strengths {
		variance += (1 + s) * u[b] * u[b]
		for c, t := range strengths {
			heavy += n.fourths.excess(b, c, q) * (1 + s) * u[b] * u[b] * (1 + t) * u[c] * u[c]
		}
	}
	return own, with, (2*variance*variance + heavy) / n.feature[j]
}

const (
	// directions is how many perturbations [Rotated] draws: standard errors have a standard
	// deviation of 1/√(2·directions), 3.5 %.
	directions = 400
	// small is the size of a perturbation of the factors among each other, in radians.
	small = 1e-4
)

// Rotated returns standard errors of loadings that were rotated, W T by rows, d × q. Rotate
// finds T from standardised loadings, those of the features that the model describes by rows;
// model, strengths, fourths and patterns are as for [Of].
//
// It is the delta method: the square root of the mean square of the derivative of W T in
// directions drawn from the law that [Of] has for W in large samples, of the rotation as well as
// of the loadings. Derivatives are numerical, so any smooth rotation will do (compare Archer
// and Jennrich, "Estimated standard errors for rotated factor loadings", 1973). Directions are
// the same for the same arguments.
func Rotated(l ppca.Layout, p *ppca.Params, strengths []float64, fourths Fourths, patterns []Pattern, rotate func(standardised []float64) ([]float64, error)) ([]float64, error) {
	if err := p.Check(l); err != nil {
		return nil, err
	}
	if err := checkFactors(p.Rank, strengths, fourths); err != nil {
		return nil, err
	}
	for _, s := range strengths {
		if !(s > leastStrength) {
			return nil, fmt.Errorf("a factor of strength %v tells nothing of its loadings", s)
		}
	}
	w := newPerturbed(l, p, strengths, newTold(l, p, strengths, fourths, patterns))
	squares := make([]float64, len(p.Features)*p.Rank)
	if _, err := w.each(rotate, func(step float64, fitted, moved axes) {
		for i, x := range moved.loadings {
			slope := (x - fitted.loadings[i]) / step
			squares[i] += slope * slope / directions
		}
	}); err != nil {
		return nil, err
	}
	out := make([]float64, len(p.W))
	for i, j := range p.Features {
		for f := range p.Rank {
			out[j*p.Rank+f] = w.n.few(j, p.Rank) * math.Sqrt(squares[i*p.Rank+f])
		}
	}
	return out, nil
}

// axes are rotated loadings, and T by which they are.
type axes struct{ loadings, t []float64 }

// scores is T⁻¹, by which scores are rotated; not ok where two axes are nearly one.
func (a axes) scores(q int) (*mat.Dense, bool) {
	r := new(mat.Dense)
	return r, r.Inverse(mat.NewDense(q, q, slices.Clone(a.t))) == nil
}

// each rotates the loadings as they are and after a small step in each of the directions, the same for the
// same model.
func (w *perturbed) each(rotate func([]float64) ([]float64, error), yield func(step float64, fitted, moved axes)) (fitted axes, err error) {
	if fitted, err = w.rotated(0, rotate); err != nil {
		return axes{}, err
	}
	rng := rand.New(rand.NewPCG(uint64(len(w.p.Features)), uint64(w.p.Rank)))
	for range directions {
		step := w.draw(rng)
		moved, err := w.rotated(step, rotate)
		if err != nil {
			return axes{}, err
		}
		yield(step, fitted, moved)
	}
	return fitted, nil
}

// perturbed is a model with one direction in which sampling moves it. Loadings and variances
// are in units of the features' noise.
type perturbed struct {
	p         *ppca.Params
	strengths []float64
	n         *told
	noise     []float64 // p
	u         []float64 // p × q: U
	rest      []float64 // p: 1 − |u_j|²

	loading  []float64 // p × q: direction of Ψ^−½W
	variance []float64 // p: of the features' variances
	free     *noise    // nil where the noise counts as known
	delta    []float64 // groups: relative, of the noise
}

func newPerturbed(l ppca.Layout, p *ppca.Params, strengths []float64, n *told) *perturbed {
	q, group, subjects := p.Rank, l.GroupOf(), []float64(nil)
	w := &perturbed{p: p, strengths: strengths, n: n, loading: make([]float64, len(p.Features)*q), variance: make([]float64, len(p.Features))}
	for _, j := range p.Features {
		psi, rest := p.Noise[group[j]], 1.0
		for f, s := range strengths {
			u := p.W[j*q+f] / math.Sqrt(psi*s)
			w.u = append(w.u, u)
			rest -= u * u
		}
		w.noise, w.rest = append(w.noise, psi), append(w.rest, max(0, rest))
		subjects = append(subjects, n.feature[j])
	}
	w.free = newNoise(l, p, strengths, w.u, subjects)
	return w
}

// draw sets a direction and returns how far to go.
func (w *perturbed) draw(rng *rand.Rand) (step float64) {
	q := len(w.strengths)
	z, turn, most := make([]float64, q*q), make([]float64, q*q), 1.0
	for f, s := range w.strengths {
		for b := range f + 1 {
			x := math.Sqrt(w.n.fourths.variance(f, b, q)/w.n.pair[f*q+b]) * rng.NormFloat64()
			z[f*q+b], z[b*q+f] = x, x
			if b == f {
				turn[f*q+f] = (1 + s) * x / (2 * s)
			} else {
				apart := math.Sqrt(rotation(1+s, 1+w.strengths[b])) * x
				if s < w.strengths[b] {
					apart = -apart
				}
				turn[f*q+b], turn[b*q+f] = apart, -apart
			}
			most = max(most, math.Abs(turn[f*q+b]))
		}
	}
	outside := make([]float64, len(w.loading)) // drawn, less what lies in the factors
	inside := make([]float64, q*q)
	for i := range w.rest {
		for f := range q {
			x := rng.NormFloat64()
			outside[i*q+f] = x
			for b := range q {
				inside[b*q+f] += w.u[i*q+b] * x
			}
		}
	}
	for i, j := range w.p.Features {
		u := w.u[i*q:][:q]
		variance := w.rest[i] * math.Sqrt(2/w.n.feature[j]) * rng.NormFloat64()
		for f, s := range w.strengths {
			g := outside[i*q+f]
			for b, x := range u {
				g -= x * inside[b*q+f]
			}
			g /= math.Sqrt(w.n.factor[j*q+f])
			x := math.Sqrt((1+s)/s) * g
			variance += 2 * math.Sqrt(1+s) * u[f] * g
			for b, v := range u {
				x += math.Sqrt(s) * turn[f*q+b] * v
				variance += math.Sqrt((1+s)*(1+w.strengths[b])) * u[f] * v * z[f*q+b]
			}
			w.loading[i*q+f] = x
		}
		w.variance[i] = variance
	}
	if w.free != nil {
		w.delta = w.free.draw(rng, w.scaled(), w.loading, w.variance)
	}
	return small / most
}

// scaled is Ψ^−½W.
func (w *perturbed) scaled() []float64 {
	v := slices.Clone(w.u)
	for i := range v {
		v[i] *= math.Sqrt(w.strengths[i%len(w.strengths)])
	}
	return v
}

// rotated is the rotated loadings so far along the direction, those of described features.
func (w *perturbed) rotated(step float64, rotate func([]float64) ([]float64, error)) (axes, error) {
	q := len(w.strengths)
	loadings, standardised, out := make([]float64, len(w.loading)), make([]float64, len(w.loading)), make([]float64, len(w.loading))
	for i := range w.rest {
		total := 1 + step*w.variance[i]
		for f, s := range w.strengths {
			v := math.Sqrt(s) * w.u[i*q+f]
			total += v * v
			loadings[i*q+f] = math.Sqrt(w.noise[i]) * (v + step*w.loading[i*q+f])
		}
		for f := range q {
			standardised[i*q+f] = loadings[i*q+f] / math.Sqrt(w.noise[i]*total)
		}
	}
	t, err := rotate(standardised)
	if err != nil {
		return axes{}, err
	}
	for i := range w.rest {
		for f := range q {
			for b := range q {
				out[i*q+f] += loadings[i*q+b] * t[b*q+f]
			}
		}
	}
	return axes{out, t}, nil
}
