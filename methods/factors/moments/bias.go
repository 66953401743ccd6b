package moments

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat/distuv"

	"parley/methods/factors/ppca"
)

// Biases are how far predictions of a view from the others miss on average at single sites,
// which one model of all sites cannot follow: mean squares over the features of the views that a
// site has, each in parts of its feature's variance. They are without bias from the noise, and
// what noise may hide is added: see [ProjectedMoments.Biases].
type Biases struct {
	Sites []float64 // of each site; NaN where nothing tells
	All   float64   // of a site that nothing tells of; NaN if nothing tells of any
}

// missed is by how much the prediction of a feature misses over the subjects of a site, in all: the variance is
// that of noise and of chance.
type missed struct{ n, sum, variance float64 }

// Biases estimates them from the means of what sites released. At each site that has a view and others, a prediction of
// the one from the others misses by r = (m_k − μ_k) − G (m_o − μ_o) on average, m being the site's means. So r counts
// from its mean over the other sites, and the mean of its squares is the variance that predictions at a further site
// lack. With b their excess over what noise and chance make of sites that are alike, and s their standard deviation,
// returned is the mean of a normal law of b and s given that it is not negative, b + s φ(b/s)/Φ(b/s).
func (o *ProjectedMoments) Biases(sites [][]NoisyMoments, m *ppca.Params) (*Biases, error) {
	predictor, err := ppca.NewPredictor(o.layout, m)
	if err != nil {
		return nil, err
	}
	all, view, group := make([][]missed, len(sites)), o.layout.ViewOf(), o.layout.GroupOf()
	for i, patterns := range sites {
		all[i] = make([]missed, len(view))
		for k := range patterns {
			if err := o.misses(all[i], &patterns[k], predictor, m); err != nil {
				return nil, err
			}
		}
	}
	out := &Biases{All: math.NaN()}
	weight, squares, spread, features := 0.0, 0.0, 0.0, 0.0
	for i, own := range all {
		b, s, of, subjects := 0.0, 0.0, 0.0, 0.0
		for j, x := range own {
			var rest missed
			for e := range all {
				if e != i {
					rest.n, rest.sum, rest.variance = rest.n+all[e][j].n, rest.sum+all[e][j].sum, rest.variance+
						all[e][j].variance
				}
			}
			if x.n == 0 || rest.n == 0 {
				continue
			}
			w := m.W[j*m.Rank:][:m.Rank]
			off, variance, unit := x.sum/x.n-rest.sum/rest.n, x.variance/(x.n*x.n)+rest.variance/(rest.n*rest.n),
				floats.Dot(w, w)+m.Noise[group[j]]
			b, s, of, subjects = b+(off*off-variance)/unit, s+2*variance*variance/(unit*unit), of+1, max(subjects, x.n)
		}
		if of == 0 {
			out.Sites = append(out.Sites, math.NaN())
			continue
		}
		b, s = b/of, s/(of*of)
		out.Sites = append(out.Sites, student(of)*notNegative(b, math.Sqrt(s)))
		weight, squares, spread, features = weight+subjects, squares+subjects*b, spread+subjects*subjects*s, features+of
	}
	if weight > 0 {
		out.All = student(features) * notNegative(squares/weight, math.Sqrt(spread)/weight)
	}
	return out, nil
}

// misses adds what the subjects of a pattern say of predictions of each feature from those of other views, or of its
// own where there is no other; nothing where noise hides how many they are.
func (o *ProjectedMoments) misses(to []missed, u *NoisyMoments, predictor *ppca.Predictor, m *ppca.Params) error {
	n, fit, view, p := u.count(), u.fit, o.layout.ViewOf(), len(u.features)
	if !(n > fewestCounts*math.Sqrt(u.total.countVar)) {
		return nil
	}
	one := len(o.layout.ViewsOf(u.features)) == 1
	row, spread := make([]float64, p), make([]float64, p)
	for _, j := range u.features {
		others := slices.DeleteFunc(slices.Clone(u.features), func(other int) bool {
			return other == j || !one && view[other] == view[j]
		})
		all, err := missRow(predictor, m, j, others)
		if err != nil {
			return err
		}
		centre := m.Mu[j] - 0.5
		for a, other := range u.features {
			if row[a] = all[other]; other != j {
				centre += row[a] * (m.Mu[other] - 0.5)
			}
		}
		value, noise := u.total.linear(row, -centre)
		for a := range spread {
			spread[a] = floats.Dot(fit.cov[a*p:][:p], row)
		}
		to[j].n, to[j].sum, to[j].variance = to[j].n+n, to[j].sum+value, to[j].variance+noise+n*floats.Dot(row, spread)
	}
	return nil
}

// BetweenSiteVariance is how far the means of sites are from each other in a feature, by what they released:
// without bias from the noise.
type BetweenSiteVariance struct {
	// Share of the variance that lies between sites, at least. What is fitted holds part of it, and
	// not all where clipping takes much from sites that are far off.
	Share float64 `cbor:"share"`
	Far   float64 `cbor:"far"` // largest distance of a site's mean from the model's, in its standard deviations
}

// fewestCounts is how many standard deviations of its noise a site's count must have for the
// site's mean to be told.
const fewestCounts = 3

// Apart returns that of all features, from all patterns of each site.
func (o *ProjectedMoments) Apart(sites [][]NoisyMoments, m *ppca.Params) []BetweenSiteVariance {
	out := make([]BetweenSiteVariance, o.layout.Features())
	for j := range out {
		between, fitted := 0.0, 0.0
		for _, all := range sites {
			off, variance, n, noise, model := 0.0, 0.0, 0.0, 0.0, 0.0
			for k := range all {
				u := &all[k]
				at := slices.Index(u.features, j)
				if at < 0 {
					continue
				}
				row := make([]float64, len(u.features))
				row[at] = 1
				value, noised := u.total.linear(row, 0.5-m.Mu[j])
				within := u.count() * u.fit.variance(at)
				off, variance, model = off+value, variance+noised+within, model+within
				n, noise = n+u.count(), noise+u.total.countVar
			}
			if n > fewestCounts*math.Sqrt(noise) && variance > 0 {
				between, fitted = between+(off*off-variance)/n, fitted+model
				out[j].Far = max(out[j].Far, math.Abs(off)/math.Sqrt(variance))
			}
		}
		if between > 0 && fitted > 0 {
			out[j].Share = between / (between + fitted)
		}
	}
	return out
}

// variance is that of a feature.
func (f *repaired) variance(j int) float64 { return f.cov[j*len(f.mean)+j] }

// student is the variance of Student's t, with which a further draw of a normal law is found in
// standard deviations that are estimated from as many squares; of 3 where there are fewer.
func student(squares float64) float64 {
	squares = max(3, squares)
	return squares / (squares - 2)
}

// notNegative is the mean of a normal law of b and s given that it is not negative.
func notNegative(b, s float64) float64 {
	if !(s > 0) {
		return max(0, b)
	}
	if z := b / s; z > -5 {
		return b + s*distuv.UnitNormal.Prob(z)/distuv.UnitNormal.CDF(z)
	}
	return -s * s / b // where both are hardly more than 0
}

// linear returns Σ (rᵀu + c), and the variance of the noise in it: as of ⟨A, T⟩ with A of that form. With T = T₀ + (c −
// T₀_dd) g, T₀ = Z Y Zᵀ, c a noised count and B = ZᵀAZ − ⟨A, g⟩ z zᵀ, z the last row of Z, it is ⟨B, Y⟩ + ⟨A, g⟩ c; the
// entries of Y have independent noise of variance v beside the diagonal and 2v on it.
func (t *total) linear(r []float64, c float64) (value, variance float64) {
	d := t.p + 1
	last, turned, g := t.z[t.p*d:][:d], make([]float64, d), c*t.gain[d*d-1]
	value = c * t.t[d*d-1]
	for j, x := range r {
		value, g = value+x*t.t[j*d+t.p], g+x*t.gain[j*d+t.p]
		floats.AddScaled(turned, x, t.z[j*d:][:d])
	}
	variance = g * g * t.more * t.more
	for i := range d {
		for k := range d {
			x := (turned[i]*last[k]+last[i]*turned[k])/2 + (c-g)*last[i]*last[k]
			variance += 2 * x * x * t.sd[i*d+k] * t.sd[i*d+k]
		}
	}
	return value, variance
}
