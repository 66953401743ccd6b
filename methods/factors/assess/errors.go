// Package assess says how well a fitted model describes what it was fitted to: how well it predicts subjects who
// were left out, and how far leaving them out moves its loadings ([LeaveOut]), how many factors the data need
// ([Ranks]), how well each view is predicted from
// a subject's other views ([Predictor]), and whether single values are missing for what
// they are ([MissingnessSums]; missing at random: Rubin 1976). Sums that come from
// elsewhere give errors, never panics.
package assess

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"parley/internal/wire"
	"parley/methods/factors/ppca"
)

// Errors are standard errors of the loadings of a model in canonical form ([ppca.Canonical]), by the jackknife
// (Quenouille 1949, Tukey 1958): with G groups of subjects left out in turn, G − 1 times the mean square by which that
// moves them. Where the groups are sites, they hold what differs between sites.
type Errors struct {
	// Loading is of W, and Standardised of w_jf/√(Σ_a w_ja² + ψ_j), the correlation of feature and factor: d × q by
	// rows, 0 where nothing is known.
	Loading      wire.Vector `cbor:"loading" json:"-"`
	Standardised wire.Vector `cbor:"standardised" json:"-"`
	// Turns is, for each factor, the standard deviation in radians of the angle by which
	// it turns among the other factors: large where another factor is about as strong.
	Turns wire.Vector `cbor:"turn" json:"turns"`
	// Tilts are q × q numbers by rows for each group: K = (VᵀV)⁻¹Vᵀ dV times the root of their weight, V being the
	// loadings in units of the noise, and dV what leaving the group out adds to them. Outside is the variance of dV
	// in each direction in which V has nothing, for each factor.
	Tilts   [][]float64 `cbor:"tilts" json:"tilts"`
	Outside wire.Vector `cbor:"outside" json:"outside"`
}

// Stable is the angle in radians, 30°, up to which a factor is called stable. A factor that
// turns by more shares over a quarter of its variance with others, and another sample of
// subjects would show other loadings.
const Stable = math.Pi / 6

// weakest is the strength of a factor that no subject shows: nothing is along it.
const weakest = 1e-9

// Half is half the width of an interval of 90 %, in standard errors: that of Student's law with as many degrees of
// freedom as ten groups have.
const Half = 1.8331129326536335

// Check says what is wrong with what is said of q factors that came from elsewhere.
func (e *Errors) Check(q int) error {
	if e == nil {
		return nil
	}
	const what = "errors of factors"
	return cmp.Or(ppca.Numbers(what, q, 0, e.Turns, e.Outside), ppca.Numbers(what, q*q, math.Inf(-1), e.Tilts...))
}

// Widen returns the posterior covariance M of a subject's factors, q × q, given p features, with what the errors of the
// loadings add. With v the features in units of their noise and r = v − V z, scores z = M Vᵀv move by M (dVᵀr − VᵀdV
// z): along the factors, dV = V K, by (M (K + Kᵀ) − K) z, and outside of these by M dVᵀr. Of other axes than the fit's
// own, which a rotation finds anew, the part of K that differs from Kᵀ does not count. A mean of n subjects, 1/n being
// given, adds (I − M)/n.
func Widen(m, z []float64, p int, tilts [][]float64, outside []float64, mean float64, turns bool) []float64 {
	q := len(z)
	out, cov := mat.NewDense(q, q, slices.Clone(m)), mat.NewDense(q, q, m)
	out.Scale(1-mean, out)
	for _, k := range tilts {
		var along, both, moved mat.VecDense
		x, tilt := mat.NewVecDense(q, z), mat.NewDense(q, q, k)
		along.MulVec(tilt, x)
		both.MulVec(tilt.T(), x)
		both.AddVec(&both, &along)
		if !turns {
			along.ScaleVec(0.5, &both)
		}
		moved.MulVec(cov, &both)
		moved.SubVec(&moved, &along)
		out.RankOne(out, 1, &moved, &moved)
	}
	for f, v := range outside {
		out.Set(f, f, out.At(f, f)+mean)
		column := cov.ColView(f)
		out.RankOne(out, v*float64(max(0, p-q)), column, column)
	}
	return out.RawMatrix().Data
}

// newErrors compares a model of n subjects for each feature with those that were fitted without one group each. The
// prediction error of few subjects is larger than they show, by (n + p)/(n − p) with p parameters of a feature
// ([ppca.SamplingTimes]), and so is that of loadings.
func newErrors(l ppca.Layout, model *ppca.Params, without []*ppca.Params, n []float64) (*Errors, error) {
	like, strengths, _, err := ppca.Canonical(l, model)
	if err != nil {
		return nil, err
	}
	d, q, groups, group := l.Features(), like.Rank, float64(len(without)), l.GroupOf()
	vector := func(n int) wire.Vector { return make(wire.Vector, n) }
	e := &Errors{Loading: vector(d * q), Standardised: vector(d * q), Turns: vector(q), Outside: vector(q)}
	ratio, known, p, subjects := standardised(l, like), slices.Repeat([]bool{true}, d), float64(q+2), slices.Max(n)
	times := func(n float64) float64 { return (groups - 1) / groups * (n + p) / max(n-p, 1) }
	for _, other := range without {
		turned, angles, err := aligned(l, other, like)
		if err != nil {
			return nil, err
		}
		for j := range known {
			_, has := slices.BinarySearch(other.Features, j)
			known[j] = known[j] && has
		}
		for i, r := range standardised(l, turned) {
			w, r := turned.W[i]-like.W[i], r-ratio[i]
			e.Loading[i] += times(n[i/q]) * w * w
			e.Standardised[i] += times(n[i/q]) * r * r
		}
		for f, a := range angles {
			e.Turns[f] += times(subjects) * a * a
		}
		tilt, moved := make([]float64, q*q), make([]float64, q)
		each := func(do func(v, moved []float64)) {
			for _, j := range other.Features {
				v, unit := slices.Clone(like.W[j*q:][:q]), 1/math.Sqrt(like.Noise[group[j]])
				floats.SubTo(moved, turned.W[j*q:][:q], v)
				floats.Scale(unit, v)
				floats.Scale(unit, moved)
				do(v, moved)
			}
		}
		each(func(v, moved []float64) {
			for f, x := range v {
				if strengths[f] > weakest {
					floats.AddScaled(tilt[f*q:][:q], x/strengths[f], moved)
				}
			}
		})
		each(func(v, moved []float64) {
			for f, x := range v {
				floats.AddScaled(moved, -x, tilt[f*q:][:q])
			}
			for b, x := range moved {
				e.Outside[b] += times(subjects) * x * x / float64(len(other.Features))
			}
		})
		floats.Scale(math.Sqrt(times(subjects)), tilt)
		e.Tilts = append(e.Tilts, tilt)
	}
	for i := range e.Loading {
		if !known[i/q] {
			e.Loading[i], e.Standardised[i] = 0, 0
		}
	}
	for _, x := range []wire.Vector{e.Loading, e.Standardised, e.Turns} {
		for i := range x {
			x[i] = math.Sqrt(x[i])
		}
	}
	return e, cmp.Or(e.Check(q), ppca.Finite("standard errors of loadings", slices.Concat(e.Loading, e.Standardised)))
}

// standardised are the correlations of features and factors, 0 of features that the model does not describe.
func standardised(l ppca.Layout, p *ppca.Params) []float64 {
	out, group, q := make([]float64, len(p.W)), l.GroupOf(), p.Rank
	for _, j := range p.Features {
		total := p.Noise[group[j]]
		for _, w := range p.W[j*q:][:q] {
			total += w * w
		}
		for f, w := range p.W[j*q:][:q] {
			out[j*q+f] = w / math.Sqrt(total)
		}
	}
	return out
}

// aligned is a model on its canonical axes, in the order and with the signs that make it most like another, and the
// angles between their factors, weighted by the other's noise.
func aligned(l ppca.Layout, p, like *ppca.Params) (out *ppca.Params, angles []float64, err error) {
	c, _, _, err := ppca.Canonical(l, p)
	if err != nil {
		return nil, nil, err
	}
	q, group := like.Rank, l.GroupOf()
	cross, own, other := make([]float64, q*q), make([]float64, q), make([]float64, q)
	for _, j := range p.Features {
		for a, w := range c.W[j*q:][:q] {
			own[a] += w * w / like.Noise[group[j]]
			for b, v := range like.W[j*q:][:q] {
				cross[a*q+b] += w * v / like.Noise[group[j]]
			}
		}
		for b, v := range like.W[j*q:][:q] {
			other[b] += v * v / like.Noise[group[j]]
		}
	}
	turn, taken := make([]float64, q*q), make([]bool, q)
	for b := range q {
		at, most := -1, -1.0
		for a := range q {
			if x := math.Abs(cross[a*q+b]) / math.Sqrt(max(own[a]*other[b], ppca.Least)); !taken[a] && x > most {
				at, most = a, x
			}
		}
		taken[at], turn[at*q+b] = true, math.Copysign(1, cross[at*q+b])
		angles = append(angles, math.Acos(min(most, 1)))
	}
	out, err = c.Rotate(turn)
	return out, angles, err
}
