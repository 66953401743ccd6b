package ppca

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"parley/internal/linalg"
	"parley/internal/wire"
)

// Explained holds the sums from which the variance explained by each factor in
// each view follows. A site can send them: they add over sites.
//
// A subject is described by W x + μ, x the posterior mean of the factors given
// all that was observed of the subject, and by W_f x_f + μ for factor f alone.
// Everything is about the site's own means, so that the sums tell how subjects
// of one site differ from each other, whoever is at the site: a feature's total
// is Σ (t − t̄)², and its residuals r count as Σ (r − r̄)².
type Explained struct {
	Cells        wire.Vector `cbor:"cells"`         // per view: values observed, of which filled ones are none
	Total        wire.Vector `cbor:"total"`         // per view
	Residual     wire.Matrix `cbor:"residual"`      // views × (q+1): with factor f alone, and last with all
	FeatureTotal wire.Vector `cbor:"feature_total"` // per feature
}

// NoneExplained are the sums of no subjects.
func NoneExplained(views, q, features int) *Explained {
	vector := func(n int) wire.Vector { return make(wire.Vector, n) }
	return &Explained{Cells: vector(views), Total: vector(views),
		Residual: wire.Matrix{Rows: views, Cols: q + 1, Data: vector(views * (q + 1))}, FeatureTotal: vector(features)}
}

// Rank is q.
func (x *Explained) Rank() int { return x.Residual.Cols - 1 }

// Plus is the sums with those of others.
func (x *Explained) Plus(others ...*Explained) *Explained {
	sum := NoneExplained(x.Residual.Rows, x.Rank(), len(x.FeatureTotal))
	for _, o := range append([]*Explained{x}, others...) {
		for i, list := range sum.lists() {
			floats.Add(list, o.lists()[i])
		}
	}
	return sum
}

func (x *Explained) lists() [][]float64 {
	return [][]float64{x.Cells, x.Total, x.Residual.Data, x.FeatureTotal}
}

// NewExplained computes the sums over one site's blocks under one model, and what [LogLik] says of these.
func NewExplained(l Layout, p *Params, blocks []Block) (out *Explained, logLik, subjects float64, err error) {
	predictor, err := NewPredictor(l, p)
	if err == nil {
		err = predictor.covers(blocks)
	}
	if err != nil {
		return nil, 0, 0, err
	}
	e, md := NewEStep(p.Rank, blocks), predictor.md.Model
	defer e.Release()
	defer md.Release()
	q, ld := p.Rank, e.ld
	out = NoneExplained(l.Views(), q, l.Features())
	view := l.ViewOf()
	means := make([]float64, q*ld) // Σ ⟨x⟩⟨x⟩ᵀ
	// Per feature, over the subjects who have it: their number, Σ (t − μ), Σ r² and Σ ⟨x⟩.
	vector := func() []float64 { return make([]float64, l.Features()) }
	count, dev, left, sum := vector(), vector(), vector(), make([]float64, l.Features()*q)
	for n := range blocks {
		b := &blocks[n]
		if err := e.Run(md, b); err != nil {
			return nil, 0, 0, err
		}
		logLik += e.LogDensity(md, b)
		subjects += b.N
		for a := range q {
			for c := range q {
				means[a*ld+c] = e.ksk[a*ld+c] + b.N*e.X[a]*e.X[c]
			}
		}
		for i, j := range b.Features {
			w, s := e.w[i*ld:][:q], e.STX[i*ld:][:q]
			count[j] += b.N
			out.Cells[view[j]] += b.N
			if b.Filled != nil {
				out.Cells[view[j]] -= b.Filled[i]
			}
			dev[j] += b.N * e.Delta[i]
			res := out.Residual.Data[view[j]*(q+1):][:q+1]
			all := e.Square[i] + linalg.Quadratic(means, ld, w, w)
			for a, x := range w {
				sum[j*q+a] += b.N * e.X[a]
				res[a] += e.Square[i] - 2*x*s[a] + x*x*means[a*ld+a]
				all -= 2 * x * s[a]
			}
			left[j] += all
			out.FeatureTotal[j] += e.Square[i]
		}
	}
	for j, n := range count {
		if n == 0 {
			continue
		}
		k := view[j]
		res, all := out.Residual.Data[k*(q+1):][:q+1], dev[j]
		for a, w := range md.W[j*ld:][:q] {
			r := dev[j] - w*sum[j*q+a]
			res[a] -= r * r / n
			all -= w * sum[j*q+a]
		}
		out.FeatureTotal[j] -= dev[j] * dev[j] / n
		out.Total[k] += out.FeatureTotal[j]
		res[q] += left[j] - all*all/n
	}
	// rounding may leave −1e-20
	for _, x := range out.lists() {
		for i := range x {
			x[i] = max(0, x[i])
		}
	}
	return out, logLik, subjects, nil
}

// Check says what is wrong with sums that came from elsewhere.
func (x *Explained) Check(l Layout) error {
	if r := x.Residual; r.Rows != l.Views() || r.Cols < 2 || r.Cols > l.Features()+1 {
		return fmt.Errorf("explained variance: %d views and %d factors do not fit the layout", r.Rows, r.Cols-1)
	}
	const what = "explained variance"
	return cmp.Or(Numbers(what, l.Views(), 0, x.Cells, x.Total),
		Numbers(what, l.Views()*x.Residual.Cols, 0, x.Residual.Data),
		Numbers(what, l.Features(), 0, x.FeatureTotal))
}

// R2 returns 1 − residual/total of view k: with factor f alone, or with all
// factors together for f = q. It is NaN where a view does not vary. Factors
// overlap and views have different totals, so the numbers add up neither over
// factors nor over views. A factor can score below zero in a view where the
// others must correct it.
func (x *Explained) R2(k, f int) float64 {
	if !(x.Total[k] > 0) {
		return math.NaN()
	}
	if r := 1 - x.Residual.Data[k*x.Residual.Cols+f]/x.Total[k]; !math.IsInf(r, 0) {
		return r
	}
	return math.NaN() // the total is next to nothing
}

// SamplingTimes is how many times as large as a maximum-likelihood model of q factors says the
// variance of a prediction is for a subject who took no part in the fit, for each view, given
// the patterns of those who did. With n subjects who have the view, and another if there are
// several, and p parameters for each feature (its loadings, its mean, and its noise where that
// is its own) it is
//
//	(n + p)/(n − p),
//
// the final prediction error of Akaike (1970) over what the model says, which is the error at
// those whom it was fitted to.
func SamplingTimes(l Layout, q int, patterns []Pattern) []float64 {
	p := float64(q + 1)
	if l.Noise == NoisePerFeature {
		p++
	}
	times := make([]float64, l.Views())
	for k := range times {
		n := 0.0
		for _, x := range patterns {
			if (len(x.Views) > 1 || l.Views() == 1) && slices.Contains(x.Views, k) {
				n += float64(x.Subjects) * x.Share
			}
		}
		times[k] = (n + p) / max(n-p, 1)
	}
	return times
}

// Sampled multiplies the variance of every prediction of a view's features by its
// [SamplingTimes]; without times, the parameters are taken for known.
func (p *Predictor) Sampled(times []float64) error {
	p.md.sampling = nil
	if len(times) == 0 {
		return nil
	}
	if err := Numbers("what sampling multiplies variances by", p.layout.Views(), 1, times); err != nil {
		return err
	}
	for _, k := range p.layout.ViewOf() {
		p.md.sampling = append(p.md.sampling, times[k])
	}
	return nil
}

// LogLik is [Predictor.LogLik] of a model.
func LogLik(l Layout, p *Params, blocks []Block) (total, subjects float64, err error) {
	predictor, err := NewPredictor(l, p)
	if err != nil {
		return 0, 0, err
	}
	defer predictor.md.Release()
	return predictor.LogLik(blocks)
}
