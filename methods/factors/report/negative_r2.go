package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"
)

// goesTogether is the share of a view's squared error that its prediction must take away for the view
// to be said to go with the others there.
const goesTogether = 0.05

// negativeR2 names sites where a view is predicted from the others worse than by its mean, though
// elsewhere it is predicted better. It is beyond chance by one of two tests, each with half of
// the probability: the ratio of the errors, where the values of a subject count as one, finds
// what goes together closely elsewhere; and what the prediction takes away finds what is weak
// in the model, such as of a view that several sites have turned the other way.
func (v *verdicts) negativeR2() error {
	tail := falseVerdict / float64(2*len(v.sites)*len(v.m.Views))
	var where []string
	var views []int
	for i, s := range v.sites {
		var names []string
		for k := range v.m.Views {
			elsewhere := 1 - (v.all.Error[k]-s.LeftOut.Error[k])/(v.all.Squares[k]-s.LeftOut.Squares[k])
			here := s.LeftOut.Gain(k)
			if !(here < 0 && elsewhere > goesTogether) {
				continue
			}
			less, err := v.takesLess(k, s, tail)
			if err != nil {
				return err
			}
			if less || beyond((1-here)/(1-elsewhere), v.together(k, s), tail) {
				names, views, v.said[i][k] = append(names, fmt.Sprintf("%s (R² −%.2f, elsewhere %.2f)", v.m.Views[k].Name, -here, elsewhere)), append(views, k), true
			}
		}
		if len(names) > 0 {
			where = append(where, fmt.Sprintf("%s: %s", s.Name, strings.Join(names, ", ")))
		}
	}
	if len(where) > 0 {
		means := ""
		if !v.m.Separate() {
			means = " The sites' means have no place in this model, and others than elsewhere do that too."
		}
		v.add(v.views(views...), "R² is that of predicting the view from the others. Look for ids that belong to other subjects in one of the site's files, for scales that run the other way there, and for mixed-up columns. Otherwise leave the view or the site out, because its subjects blur the factors of all."+means,
			"Views do not go together as they do elsewhere at %s", shortened(where))
	}
	return nil
}

// takesLess says whether the prediction of view k from the others takes less of the squared
// error away at a site than the model expects, beyond chance. With a value y = p + e, p predicted,
// a feature's share of that is y² − e² = p² + 2pe. Summed over a view it has the mean tr P and the
// variance 2 tr P² + 4 tr PE, P and E being the covariances of p and e: far less than the two
// squared errors by themselves where little is predicted. More noise at the site, and heavier
// tails, make it vary more.
func (v *verdicts) takesLess(k int, s Site, tail float64) (bool, error) {
	lo, hi := v.set.Layout.View(k)
	_, md := v.predictor.Model()
	q := md.Q
	h, noisy := mat.NewSymDense(q, nil), mat.NewSymDense(q, nil) // WᵀW and WᵀΨW of the view
	psi := 0.0
	for j := lo; j < hi; j++ {
		w := mat.NewVecDense(q, md.W[j*md.LD:][:q])
		h.SymRankOne(h, 1, w)
		noisy.SymRankOne(noisy, md.Psi[j], w)
		psi += md.Psi[j]
	}
	subjects, mean, variance, left := 0.0, 0.0, 0.0, 0.0
	for _, pt := range s.Patterns {
		if len(pt.Views) < 2 || !slices.Contains(pt.Views, k) {
			continue
		}
		features, err := v.set.Layout.FeaturesOf(slices.DeleteFunc(slices.Clone(pt.Views), func(l int) bool { return l == k }))
		if err != nil {
			return false, err
		}
		post, err := v.predictor.Given(slices.DeleteFunc(features, func(j int) bool { return !v.predictor.Describes(j) }))
		if err != nil {
			return false, err
		}
		unknown := mat.NewDense(q, q, slices.Clone(post.Cov))
		known := mat.NewDense(q, q, nil) // covariance of what the others say of the factors
		for a := range q {
			known.Set(a, a, 1)
		}
		known.Sub(known, unknown)
		var p, e, pp, pe, noise mat.Dense
		p.Mul(known, h)
		e.Mul(unknown, h)
		pp.Mul(&p, &p)
		pe.Mul(&p, &e)
		noise.Mul(known, noisy)
		n := float64(pt.Subjects)
		subjects += n
		n *= pt.Share
		mean, left = mean+n*p.Trace(), left+n*(e.Trace()+psi)
		variance += n * (2*pp.Trace() + 4*(pe.Trace()+noise.Trace()))
	}
	if !(variance > 0) || subjects < 2 {
		return false, nil
	}
	variance *= max(1, s.LeftOut.Error[k]/left) * v.tails[k]
	t := (s.LeftOut.Squares[k] - s.LeftOut.Error[k] - mean) / math.Sqrt(variance)
	return distuv.StudentsT{Sigma: 1, Nu: subjects - 1}.CDF(t) < tail, nil
}
