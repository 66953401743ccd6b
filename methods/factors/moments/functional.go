package moments

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"parley/methods/factors/ppca"
)

// NoisyMoments is T = Σ (u, 1)(u, 1)ᵀ of the subjects of one pattern at one site, as
// they were released: with noise whose law is known, and not repaired. T itself
// need not be moments that any data have, but it has no bias from the noise, and
// so has nothing that is linear in it.
type NoisyMoments struct {
	features []int
	total    *total
}

// LogLik returns the log-likelihood that a gives the subjects.
func (u *NoisyMoments) LogLik(a Functional) float64 { return dot(a, u.total.t) }

// count is the noised number of subjects, not below 0.
func (u *NoisyMoments) count() float64 { return max(0, u.total.t[len(u.total.t)-1]) }

// fitOf is what the whole study says of the subjects of the pattern.
func (o *ProjectedMoments) fitOf(u *NoisyMoments) *repaired {
	return o.fits[slices.IndexFunc(o.pooled, func(q *pooled) bool { return slices.Equal(q.features, u.features) })]
}

// Unrepaired estimates T of every pattern that a site released. What clipping
// took is made up for by what it takes from subjects like those of the whole
// study; that is the same for all candidates.
func (o *ProjectedMoments) Unrepaired(site Released, seed uint64) ([]NoisyMoments, error) {
	var out []NoisyMoments
	for i := range site {
		x := &site[i]
		at := slices.IndexFunc(o.pooled, func(q *pooled) bool { return slices.Equal(q.views, x.Fine.Views) })
		if at < 0 {
			return nil, fmt.Errorf("pattern %v is not one of the study's", x.Fine.Views)
		}
		pass, err := clipping(o.fits[at], x.Coarse, x.Fine, seed)
		if err != nil {
			return nil, err
		}
		t, err := x.combine(pass)
		if err != nil {
			return nil, err
		}
		out = append(out, NoisyMoments{o.pooled[at].features, t})
	}
	return out, nil
}

// Functional is a symmetric (p+1) × (p+1) matrix A with which a model gives
// data the log-likelihood ⟨A, T⟩ = Σ Aᵢⱼ Tᵢⱼ.
type Functional []float64

// Density returns the A of the subjects' features under a model.
func (u *NoisyMoments) Density(l ppca.Layout, m *ppca.Params) (Functional, error) {
	return density(l, m, u.features)
}

// density returns the A of the features under a model of values in parts of the
// ranges from 0 to 1: with C = W Wᵀ + Ψ and the mean μ,
//
//	−2 A = (C⁻¹, −C⁻¹μ; −μᵀC⁻¹, μᵀC⁻¹μ + ln |2πC|).
func density(l ppca.Layout, m *ppca.Params, features []int) (Functional, error) {
	p, q := len(features), m.Rank
	group := l.GroupOf()
	c := mat.NewSymDense(p, nil)
	mu := mat.NewVecDense(p, nil)
	for i, a := range features {
		mu.SetVec(i, m.Mu[a]-0.5)
		for j, b := range features[:i+1] {
			s := dot(m.W[a*q:][:q], m.W[b*q:][:q])
			if i == j {
				s += m.Noise[group[a]]
			}
			c.SetSym(i, j, s)
		}
	}
	var chol mat.Cholesky
	if !chol.Factorize(c) {
		return nil, ppca.ErrCollapsed
	}
	var inv mat.SymDense
	if err := chol.InverseTo(&inv); err != nil && !isConditionWarning(err) {
		return nil, fmt.Errorf("inverting a model's covariance: %w", err)
	}
	var h mat.VecDense
	h.MulVec(&inv, mu)
	d := p + 1
	out := make(Functional, d*d)
	for i := range p {
		for j := range p {
			out[i*d+j] = -inv.At(i, j) / 2
		}
		out[i*d+p] = h.AtVec(i) / 2
		out[p*d+i] = out[i*d+p]
	}
	out[d*d-1] = -(mat.Dot(mu, &h) + float64(p)*math.Log(2*math.Pi) + chol.LogDet()) / 2
	return out, nil
}

// of returns ⟨A, T⟩ and the variance that the noise in T gives it.
//
// T = T₀ + (c − T₀_dd) g, T₀ = Z Y Zᵀ, where c is a count with noise of its own.
// With B = ZᵀAZ − ⟨A, g⟩ z zᵀ, z the last row of Z, ⟨A, T⟩ = ⟨B, Y⟩ + ⟨A, g⟩ c, and
// the entries of Y have independent noise: variance v beside the diagonal, where
// every entry counts twice, and 2v on it.
func (a Functional) of(t *total) (value, variance float64) {
	d := t.p + 1
	value = dot(a, t.t)
	b := product(product(transpose(t.z, d), a, d), t.z, d)
	g := dot(a, t.gain)
	last := t.z[t.p*d:][:d]
	variance = g * g * t.more * t.more
	for i := range d {
		for j := range d {
			x := b[i*d+j] - g*last[i]*last[j]
			variance += 2 * x * x * t.sd[i*d+j] * t.sd[i*d+j]
		}
	}
	return value, variance
}

// spreadAmong returns the variance of xᵀ A x, x = (u, 1), among subjects with
// this mean and covariance, if they are normal: 2 tr (A C A C) + 4 bᵀ C b, where
// b is half the gradient at the mean.
func (a Functional) spreadAmong(f *repaired) float64 {
	p := len(f.mean)
	d := p + 1
	ac := make([]float64, p*p)
	b := make([]float64, p)
	for i := range p {
		b[i] = a[i*d+p] + dot(a[i*d:][:p], f.mean)
		for k, x := range a[i*d:][:p] {
			for j, y := range f.cov[k*p:][:p] {
				ac[i*p+j] += x * y
			}
		}
	}
	v := 0.0
	for i := range p {
		for j := range p {
			v += 2*ac[i*p+j]*ac[j*p+i] + 4*b[i]*b[j]*f.cov[i*p+j]
		}
	}
	return max(0, v)
}

// isConditionWarning says whether an inverse was computed, if not to all digits.
func isConditionWarning(err error) bool {
	c, ok := err.(mat.Condition)
	return ok && !math.IsInf(float64(c), 0)
}

// SiteR2 is what a model takes away of the squared error of a view at one site by predicting
// it from the others, over what giving everybody the model's mean leaves, by what the site
// released: linear in that, so without bias from the noise.
type SiteR2 struct {
	Gain  float64 // as a share of the view's variance in the whole study, about the model's mean
	Less  float64 // by how much that is below what subjects like those of the whole study would have
	SD    float64 // of Less, by privacy noise and by which subjects the site has
	Known bool    // the site may have subjects with the view and another
}

// SiteGains returns those of all views, from all patterns of a site.
func (o *ProjectedMoments) SiteGains(all []NoisyMoments, m *ppca.Params) ([]SiteR2, error) {
	predictor, err := ppca.NewPredictor(o.layout, m)
	if err != nil {
		return nil, err
	}
	var out []SiteR2
	for k := range o.layout.Views() {
		takes, less, variance, whole := 0.0, 0.0, 0.0, 0.0
		lo, hi := o.layout.View(k)
		for i := range all {
			u := &all[i]
			if !slices.Contains(u.features, lo) || len(u.features) == hi-lo {
				continue
			}
			fit := o.fitOf(u)
			take, squares, err := takesAway(predictor, m, u.features, lo, hi)
			if err != nil {
				return nil, err
			}
			value, _ := take.of(u.total)
			d := u.total.p + 1
			take[d*d-1] -= take.among(fit) // what is expected of each subject
			below, noise := take.of(u.total)
			takes, less, variance = takes+value, less-below, variance+noise+u.count()*take.spreadAmong(fit)
			whole += u.count() * squares.among(fit)
		}
		if !(whole > 0) {
			out = append(out, SiteR2{})
			continue
		}
		out = append(out, SiteR2{Gain: takes / whole, Less: less / whole, SD: math.Sqrt(variance) / whole, Known: true})
	}
	return out, nil
}

// takesAway returns the A of what predicting the features from lo to below hi from the others
// takes away of their squares about the mean, and that of the squares. With y = t − μ and the
// prediction G y_o, a feature's share is y² − (y − g y_o)² = 2 y g y_o − (g y_o)².
func takesAway(predictor *ppca.Predictor, m *ppca.Params, features []int, lo, hi int) (takes, squares Functional, err error) {
	others := slices.DeleteFunc(slices.Clone(features), func(j int) bool { return j >= lo && j < hi })
	post, err := predictor.Given(others)
	if err != nil {
		return nil, nil, err
	}
	d := len(features) + 1
	takes, squares = make(Functional, d*d), make(Functional, d*d)
	place := func(j int) int { return slices.Index(features, j) }
	g := make([]float64, len(others))
	for j := lo; j < hi; j++ {
		row := place(j)
		squares[row*d+row] = 1
		for i, other := range others {
			g[i] = dot(m.W[j*m.Rank:][:m.Rank], post.Gain(i))
			at := place(other)
			takes[row*d+at] += g[i]
			takes[at*d+row] += g[i]
		}
		for i, a := range others {
			for n, b := range others {
				takes[place(a)*d+place(b)] -= g[i] * g[n]
			}
		}
	}
	for _, a := range []Functional{takes, squares} { // of (u, 1) in place of y
		for i, j := range features {
			for n, other := range features {
				x := a[i*d+n] * (m.Mu[other] - 0.5)
				a[i*d+d-1] -= x
				a[d*d-1] += x * (m.Mu[j] - 0.5)
			}
			a[(d-1)*d+i] = a[i*d+d-1]
		}
	}
	return takes, squares, nil
}

// among returns the mean of xᵀ A x, x = (u, 1), among subjects with this mean and covariance.
func (a Functional) among(f *repaired) float64 {
	p := len(f.mean)
	d := p + 1
	mean := a[d*d-1]
	for i, x := range f.mean {
		mean += 2 * a[i*d+p] * x
		for j, y := range f.mean {
			mean += a[i*d+j] * (f.cov[i*p+j] + x*y)
		}
	}
	return mean
}
