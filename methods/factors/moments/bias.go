package moments

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

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

// biasDraws is how many draws tell what noise and chance make of sites that are alike.
const biasDraws = 64

// Biases estimates them from the means of what sites released. At each site that has a view and
// others, a prediction of the one from the others misses by
//
//	r = (m_k − μ_k) − G (m_o − μ_o)
//
// on average, m being the site's means. A site of one view can only tell how its features are
// predicted from each other. Predictions at a site without the view rest on the other sites. So r
// counts from its mean over the others, and the mean of its squares over sites that are draws from
// one law is the variance that predictions at a further site lack.
//
// Draws of the known noise, and of as many subjects of the model, say what squares sites have that
// are alike. With b the excess over their mean and s their standard deviation, what is returned is
// the mean of a normal law of b and s given that it is not negative, b + s φ(b/s)/Φ(b/s).
func (o *ProjectedMoments) Biases(sites [][]NoisyMoments, m *ppca.Params, seed uint64) (*Biases, error) {
	f, err := newBiasFinder(o.layout, m)
	if err != nil {
		return nil, err
	}
	for i := range sites {
		if err := f.site(sites[i], rand.New(rand.NewPCG(seed, uint64(i)))); err != nil {
			return nil, fmt.Errorf("site %d: %w", i, err)
		}
	}
	out := &Biases{All: math.NaN()}
	weight, features, all := 0.0, 0.0, make([]float64, biasDraws+1)
	for i := range sites {
		squares, n, of := f.squares(i)
		for draw, x := range squares {
			all[draw] += n * x
		}
		weight, features = weight+n, features+of
		out.Sites = append(out.Sites, student(of)*excess(squares))
	}
	if weight > 0 {
		for draw := range all {
			all[draw] /= weight
		}
		out.All = student(features) * excess(all)
	}
	return out, nil
}

// student is the variance of Student's t, with which a further draw of a normal law is found in
// standard deviations that are estimated from as many squares; of 3 where there are fewer.
func student(squares float64) float64 {
	squares = max(3, squares)
	return squares / (squares - 2)
}

// excess is by how much the first number exceeds the mean of the others, which are what it is
// by chance, drawn to what is not negative. NaN of none.
func excess(squares []float64) float64 {
	if len(squares) == 0 {
		return math.NaN()
	}
	mean, spread := 0.0, 0.0
	for _, x := range squares[1:] {
		mean += x / biasDraws
	}
	for _, x := range squares[1:] {
		spread += (x - mean) * (x - mean) / (biasDraws - 1)
	}
	b, s := squares[0]-mean, math.Sqrt(spread)
	if !(s > 0) {
		return max(0, b)
	}
	if z := b / s; z > -5 {
		return b + s*distuv.UnitNormal.Prob(z)/distuv.UnitNormal.CDF(z)
	}
	return -s * s / b // where both are hardly more than 0
}

// biasFinder has what sites say of predictions of views from the others, and of features from the
// others of their view.
type biasFinder struct {
	layout      ppca.Layout
	model       *ppca.Params
	pred        *ppca.Predictor
	sd          []float64 // of each feature, under the model
	views, each misses
}

// misses holds, by site and view, how many subjects have what is predicted and from what, 0 where
// noise hides it, and by how much predictions of the view's features miss on average: first what
// was released, and then draws of sites that are alike.
type misses struct {
	of     map[string][]float64 // R, by features
	n      [][]float64
	missed [][][]float64 // by site and draw, of each feature
}

func newBiasFinder(l ppca.Layout, m *ppca.Params) (*biasFinder, error) {
	pred, err := ppca.NewPredictor(l, m)
	if err != nil {
		return nil, err
	}
	f := &biasFinder{layout: l, model: m, pred: pred, views: misses{of: map[string][]float64{}}, each: misses{of: map[string][]float64{}}}
	for j, g := range l.GroupOf() {
		w := m.W[j*m.Rank:][:m.Rank]
		f.sd = append(f.sd, math.Sqrt(dot(w, w)+m.Noise[g]))
	}
	return f, nil
}

// prepare finds R for subjects with these features: R y is what predictions miss by, y being
// deviations from the model's mean. Rows are 0 where there is nothing to predict from.
func (f *biasFinder) prepare(features []int) error {
	key, view, p := fmt.Sprint(features), f.layout.ViewOf(), len(features)
	if f.views.of[key] != nil {
		return nil
	}
	views, each := make([]float64, p*p), make([]float64, p*p)
	for i, j := range features {
		if err := f.miss(each[i*p:][:p], features, i, func(other int) bool { return other != j && view[other] == view[j] }); err != nil {
			return err
		}
		others := func(other int) bool { return view[other] != view[j] }
		if slices.ContainsFunc(features, others) {
			if err := f.miss(views[i*p:][:p], features, i, others); err != nil {
				return err
			}
		}
	}
	f.views.of[key], f.each.of[key] = views, each
	return nil
}

// miss writes by what the i-th feature differs from its prediction from others.
func (f *biasFinder) miss(row []float64, features []int, i int, others func(int) bool) error {
	var seen, places []int
	for at, j := range features {
		if others(j) {
			seen, places = append(seen, j), append(places, at)
		}
	}
	post, err := f.pred.Given(seen)
	if err != nil {
		return err
	}
	row[i] = 1
	for a, at := range places {
		row[at] = -dot(f.model.W[features[i]*f.model.Rank:][:f.model.Rank], post.Gain(a))
	}
	return nil
}

// site takes in all patterns of a site.
func (f *biasFinder) site(all []NoisyMoments, r *rand.Rand) error {
	off := make([][][]float64, len(all)) // Σ (u − μ), by pattern and draw
	for i := range all {
		u := &all[i]
		if err := f.prepare(u.features); err != nil {
			return err
		}
		for draw := range biasDraws + 1 {
			last := make([]float64, u.total.p+1) // Σ (u, 1)
			if draw == 0 {
				for i := range last {
					last[i] = u.total.t[i*len(last)+u.total.p]
				}
			} else {
				last = u.total.noiseOfMeans(r)
			}
			x := make([]float64, u.total.p)
			for i, j := range u.features {
				x[i] = last[i] - (f.model.Mu[j]-0.5)*last[u.total.p]
			}
			if draw > 0 {
				f.addSubjects(x, u, r)
			}
			off[i] = append(off[i], x)
		}
	}
	f.views.add(f.layout, all, off)
	f.each.add(f.layout, all, off)
	return nil
}

func (m *misses) add(l ppca.Layout, all []NoisyMoments, off [][][]float64) {
	view := l.ViewOf()
	n, noise, missed := make([]float64, l.Views()), make([]float64, l.Views()), make([][]float64, biasDraws+1)
	for draw := range missed {
		missed[draw] = make([]float64, l.Features())
	}
	for i := range all {
		u := &all[i]
		p, miss := len(u.features), m.of[fmt.Sprint(u.features)]
		for i, j := range u.features {
			if first, _ := l.View(view[j]); j == first && miss[i*p+i] != 0 {
				n[view[j]] += u.count()
				noise[view[j]] += u.total.countVar
			}
		}
		for draw, sum := range missed {
			for a, j := range u.features {
				sum[j] += dot(miss[a*p:][:p], off[i][draw])
			}
		}
	}
	for k := range n {
		if !(n[k] > fewestCounts*math.Sqrt(noise[k])) {
			n[k] = 0
		}
	}
	for _, sum := range missed {
		for j := range sum {
			if k := view[j]; n[k] > 0 {
				sum[j] /= n[k]
			}
		}
	}
	m.n, m.missed = append(m.n, n), append(m.missed, missed)
}

// addSubjects adds Σ (u − μ) of as many subjects of the model as the pattern has.
func (f *biasFinder) addSubjects(off []float64, u *NoisyMoments, r *rand.Rand) {
	group, root := f.layout.GroupOf(), math.Sqrt(u.count())
	x := make([]float64, f.model.Rank)
	for a := range x {
		x[a] = root * r.NormFloat64()
	}
	for i, j := range u.features {
		off[i] += dot(f.model.W[j*f.model.Rank:][:f.model.Rank], x) + root*math.Sqrt(f.model.Noise[group[j]])*r.NormFloat64()
	}
}

// squares returns the mean squares of a site, by draw, over the features of views that another
// site has, too, and the numbers of its subjects and of the features; none if there are no such views.
func (f *biasFinder) squares(at int) (mean []float64, subjects, features float64) {
	if mean, subjects, features = f.views.squares(f, at); mean == nil {
		mean, subjects, features = f.each.squares(f, at)
	}
	return mean, subjects, features
}

func (m *misses) squares(f *biasFinder, at int) (mean []float64, subjects, features float64) {
	mean = make([]float64, biasDraws+1)
	for k, n := range m.n[at] {
		var others []int
		whole := 0.0
		for i := range m.n {
			if i != at && m.n[i][k] > 0 {
				others, whole = append(others, i), whole+m.n[i][k]
			}
		}
		if n == 0 || len(others) == 0 {
			continue
		}
		lo, hi := f.layout.View(k)
		features, subjects = features+float64(hi-lo), max(subjects, n)
		for draw := range mean {
			for j := lo; j < hi; j++ {
				x := m.missed[at][draw][j]
				for _, i := range others {
					x -= m.n[i][k] / whole * m.missed[i][draw][j]
				}
				mean[draw] += x * x / (f.sd[j] * f.sd[j])
			}
		}
	}
	if features == 0 {
		return nil, 0, 0
	}
	for draw := range mean {
		mean[draw] /= features
	}
	return mean, subjects, features
}

// noiseOfMeans draws noise like that in Σ (u, 1), the last column of T; see [total.noise].
func (t *total) noiseOfMeans(r *rand.Rand) []float64 {
	d := t.p + 1
	last := t.z[t.p*d:][:d]
	y := make([]float64, d) // Y z, z the last row of Z
	for i := range d {
		for j := range i {
			v := t.sd[i*d+j] * r.NormFloat64()
			y[i], y[j] = y[i]+v*last[j], y[j]+v*last[i]
		}
		y[i] += math.Sqrt2 * t.sd[i*d+i] * r.NormFloat64() * last[i]
	}
	x := make([]float64, d)
	for i := range d {
		x[i] = dot(t.z[i*d:][:d], y)
	}
	more := t.more*r.NormFloat64() - x[t.p]
	for i := range d {
		x[i] += more * t.gain[i*d+t.p]
	}
	return x
}
