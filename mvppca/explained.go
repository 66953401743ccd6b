package mvppca

import (
	"fmt"
	"math"
)

// Explained holds the sums from which the variance explained by each factor in
// each view follows. A site can send them: they add over sites.
//
// A subject is described by W x + μ, x the posterior mean of the factors given
// all that was observed of the subject, and by W_f x_f + μ for factor f alone.
type Explained struct {
	Views, Rank int
	Count       []float64 // per feature: values observed
	Dev         []float64 // per feature: Σ (t − μ)
	Square      []float64 // per view: Σ (t − μ)²
	Residual    []float64 // views × (q+1) by rows: Σ of squared residuals with factor f alone, and with all of them
}

// NewExplained computes the sums over blocks under one model.
func NewExplained(l Layout, p *Params, blocks []Block) (*Explained, error) {
	e, md, err := evaluator(l, p, blocks)
	if err != nil {
		return nil, err
	}
	q, ld, z := p.Rank, e.ld, standard(p.Rank)
	out := &Explained{
		Views: l.Views(), Rank: q,
		Count: make([]float64, l.Features()), Dev: make([]float64, l.Features()),
		Square: make([]float64, l.Views()), Residual: make([]float64, l.Views()*(q+1)),
	}
	view := l.ViewOf()
	means := make([]float64, q*ld) // Σ ⟨x⟩⟨x⟩ᵀ
	for n := range blocks {
		b := &blocks[n]
		if err := e.run(md, b, z); err != nil {
			return nil, err
		}
		for a := range q {
			for c := range q {
				means[a*ld+c] = e.ksk[a*ld+c] + b.N*e.x[a]*e.x[c]
			}
		}
		for i, j := range b.Features {
			w, s := e.w[i*ld:][:q], e.stx[i*ld:][:q]
			out.Count[j] += b.N
			out.Dev[j] += b.N * e.delta[i]
			out.Square[view[j]] += e.square[i]
			res := out.Residual[view[j]*(q+1):][:q+1]
			all := e.square[i] + quadratic(means, ld, w, w)
			for a, x := range w {
				res[a] += e.square[i] - 2*x*s[a] + x*x*means[a*ld+a]
				all -= 2 * x * s[a]
			}
			res[q] += all
		}
	}
	return out, nil
}

// Check says what is wrong with sums that came from elsewhere.
func (x *Explained) Check(l Layout) error {
	if x.Views != l.Views() || x.Rank < 1 || x.Rank > l.Features() || len(x.Count) != l.Features() || len(x.Dev) != l.Features() ||
		len(x.Square) != l.Views() || len(x.Residual) != l.Views()*(x.Rank+1) {
		return fmt.Errorf("explained variance: %d views and %d factors do not fit the layout", x.Views, x.Rank)
	}
	for _, v := range [][]float64{x.Count, x.Dev, x.Square, x.Residual} {
		if err := finite("explained variance", v); err != nil {
			return err
		}
	}
	return nil
}

// Add adds the sums of another site under the same model.
func (x *Explained) Add(y *Explained) error {
	if x.Views != y.Views || x.Rank != y.Rank || len(x.Count) != len(y.Count) || len(x.Residual) != len(y.Residual) {
		return fmt.Errorf("explained variance of %d views and %d factors cannot be added to %d and %d", y.Views, y.Rank, x.Views, x.Rank)
	}
	for _, v := range [][2][]float64{{x.Count, y.Count}, {x.Dev, y.Dev}, {x.Square, y.Square}, {x.Residual, y.Residual}} {
		for i := range v[0] {
			v[0][i] += v[1][i]
		}
	}
	return nil
}

// R2 returns, for each view, 1 − residual/total: for each factor by itself, and
// for all factors together. The total is the sum of squares about the mean of
// each feature over all subjects in the sums. It is NaN where a view does not
// vary. Factors overlap and views have different totals, so the numbers add up
// neither over factors nor over views. A factor can score below zero in a view
// where the others must correct it.
func (x *Explained) R2(l Layout) (factor [][]float64, all []float64, err error) {
	if err := x.Check(l); err != nil {
		return nil, nil, err
	}
	for k := range x.Views {
		total := x.Square[k]
		lo, hi := l.View(k)
		for j := lo; j < hi; j++ {
			if x.Count[j] > 0 {
				total -= x.Dev[j] * x.Dev[j] / x.Count[j]
			}
		}
		row := make([]float64, x.Rank+1)
		for f := range row {
			if row[f] = 1 - x.Residual[k*(x.Rank+1)+f]/total; !(total > 0) {
				row[f] = math.NaN()
			}
		}
		factor, all = append(factor, row[:x.Rank]), append(all, row[x.Rank])
	}
	return factor, all, nil
}
