package moments

import (
	"math"
	"slices"

	"parley/methods/factors/ppca"
)

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
