package report

import (
	"fmt"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"

	"parley/methods/factors/fitted"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
)

// muchLinked is the share of a view's variance whose prediction must rest on such a link. If
// there is none, the squared error is larger by twice this share: intervals of 90 % of a view of
// which a third is predicted otherwise hold 2 % less.
const muchLinked = 0.05

// Linked is the verdict on pairs of views that nothing observed links, from the patterns of
// sites alone and what privacy noise adds to the variance of predictions of each feature.
func Linked(set options.Setup, m *fitted.Model, p *ppca.Params, sites []Site, doubt []float64) ([]fitted.Verdict, error) {
	predictor, err := ppca.NewPredictor(set.Layout, p)
	if err != nil {
		return nil, err
	}
	v := verdicts{set: set, m: m, predictor: predictor, sites: sites, doubt: doubt}
	v.unidentifiedCovariance()
	return v.list, nil
}

// unidentifiedCovariance names pairs of views that no subject, or no more than there are factors, has both of, and
// that the model links by factors which the views between them do not show. Subjects who have one
// of the pair fix such a factor up to a rotation among those that the views between do not show
// either, so the likelihood hardly depends on whether it is the same factor in both. Where there
// are fewer factors than the two views need, the fit makes one of two that have nothing in common.
func (v *verdicts) unidentifiedCovariance() {
	if len(v.groups()) > 1 {
		return // as was said already
	}
	shape := make([]viewShape, len(v.m.Views))
	for k := range shape {
		shape[k] = v.shapeOf(k)
	}
	var where []string
	var views []int
	for l := range shape {
		for k := range l {
			if v.having(k, l) > float64(v.set.Rank()) {
				continue
			}
			share := 0.0
			for _, between := range v.viewsBetween(k, l) {
				share = max(share, v.linkedShare(shape, k, l, between))
			}
			if share > muchLinked {
				where, views = append(where, fmt.Sprintf("%s and %s (%.0f %% of the variance)", v.m.Views[k].Name, v.m.Views[l].Name, 100*share)), append(views, k, l)
			}
		}
	}
	if len(where) > 0 {
		v.add(v.views(views...), "Hardly any subject has both, and the views between them do not show these factors, so another link, or none, would fit as well. To impute one of the two, leave the other out of the subjects' data: from both, predictions may be worse than from the views between alone, and their intervals are too narrow. Factors that run across both are arbitrary. Subjects who have both would tell, or more features in the views between.",
			"The model links views in a way that nothing observed supports: %s", shortened(where))
	}
}

// viewShape sums up what the model says of a view, over the features that it describes.
type viewShape struct {
	features    int
	information *mat.SymDense // Σ w wᵀ/ψ
	squares     *mat.SymDense // Σ w wᵀ
	variance    float64       // Σ |w|² + ψ
	doubt       float64       // Σ of what privacy noise does to predictions, over ψ
}

func (v *verdicts) shapeOf(k int) viewShape {
	_, md := v.predictor.Model()
	x := viewShape{information: mat.NewSymDense(md.Q, nil), squares: mat.NewSymDense(md.Q, nil)}
	for j, hi := v.set.Layout.View(k); j < hi; j++ {
		if !v.predictor.Describes(j) {
			continue
		}
		w := mat.NewVecDense(md.Q, md.W[j*md.LD:][:md.Q])
		x.features++
		x.information.SymRankOne(x.information, 1/md.Psi[j], w)
		x.squares.SymRankOne(x.squares, 1, w)
		x.variance += mat.Dot(w, w) + md.Psi[j]
		if v.doubt != nil {
			x.doubt += v.doubt[j] / md.Psi[j]
		}
	}
	return x
}

// having is how many subjects have view k and one of others.
func (v *verdicts) having(k int, others ...int) (n float64) {
	for _, s := range v.sites {
		for _, p := range s.Patterns {
			if slices.Contains(p.Views, k) && slices.ContainsFunc(others, func(l int) bool { return slices.Contains(p.Views, l) }) {
				n += float64(p.Subjects)
			}
		}
	}
	return n
}

// viewsBetween are the sets of views each of which has to show a factor for views k and l to be linked
// by it: those that go with both, or, at the ends of a chain, those that go with either.
func (v *verdicts) viewsBetween(k, l int) [][]int {
	var both, first, last []int
	for m := range v.m.Views {
		if m == k || m == l {
			continue
		}
		atK, atL := v.having(m, k) > 0, v.having(m, l) > 0
		if atK {
			first = append(first, m)
		}
		if atL {
			last = append(last, m)
		}
		if atK && atL {
			both = append(both, m)
		}
	}
	if len(both) > 0 {
		return [][]int{both}
	}
	return [][]int{first, last}
}

// linkedShare is the largest share of the variance of either of two views that the model predicts
// from the other by factors which the views between do not show. With n subjects and p features
// there, n times the sum of the q − r least eigenvalues of Σ w wᵀ/ψ is about χ² with (p − r)(q − r)
// degrees of freedom if the features show r directions of factors only: the variance of a loading
// is about ψ/n, and privacy noise adds a q-th of what it does to predictions.
func (v *verdicts) linkedShare(shape []viewShape, k, l int, between []int) (share float64) {
	q := v.predictor.Rank()
	p, doubt, information := 0, 0.0, mat.NewSymDense(q, nil)
	for _, m := range between {
		p, doubt = p+shape[m].features, doubt+shape[m].doubt
		information.AddSym(information, shape[m].information)
	}
	n := v.having(k, between...)
	if m := v.having(l, between...); n == 0 || m > 0 && m < n { // the far end of a chain has none
		n = m
	}
	var eigen mat.EigenSym
	if !(n > 0) || p == 0 || !eigen.Factorize(information, true) {
		return 0
	}
	n = 1 / (1/n + doubt/float64(p*q))
	values, hidden := eigen.Values(nil), q // directions: those with the least eigenvalues
	for ; hidden > 0; hidden-- {
		freedom := float64((p - q + hidden) * hidden)
		if !(freedom > 0) || !(n*floats.Sum(values[:hidden]) > (distuv.ChiSquared{K: freedom}).Quantile(1-falseVerdict)) {
			break
		}
	}
	if hidden == 0 {
		return 0
	}
	var vectors mat.Dense
	eigen.VectorsTo(&vectors)
	directions := vectors.Slice(0, q, 0, hidden)
	for _, pair := range [][2]viewShape{{shape[k], shape[l]}, {shape[l], shape[k]}} {
		// With A = EᵀΣwwᵀ/ψE of the one view, the covariance of what it says of these directions
		// is I − (I + A)⁻¹.
		var unknown, squares, product mat.Dense
		unknown.Product(directions.T(), pair[0].information, directions)
		for a := range hidden {
			unknown.Set(a, a, unknown.At(a, a)+1)
		}
		if unknown.Inverse(&unknown) != nil {
			continue
		}
		squares.Product(directions.T(), pair[1].squares, directions)
		product.Mul(&unknown, &squares)
		share = max(share, (squares.Trace()-product.Trace())/pair[1].variance)
	}
	return share
}
