package moments

import (
	"fmt"
	"slices"

	"parley/methods/factors/ppca"
)

// Fit fits a model of any rank to the repaired moments: post-processing, which
// costs nothing. Values are in parts of the ranges, from 0 to 1 (scaling: range).
func (o *ProjectedMoments) Fit(rank int) (*ppca.Fitted, error) {
	return ppca.Fit(o.layout, o.blocks, rank, nil, ppca.FitOptions{Tol: 1e-6, MaxIter: 500})
}

// Blocks returns the repaired moments as data for [ppca.Fit].
func (o *ProjectedMoments) Blocks() []ppca.Block { return o.blocks }

// Uncertainty returns, for each feature, the variance that the privacy noise
// adds to the error of predicting it from all other views: to be added to the
// variance of what the fit imputes.
//
// It is a parametric bootstrap of the noise alone. With the repaired moments as
// the truth, moments with fresh noise of the known law are repaired and fitted
// by the same rules. What the refitted model's predictions err by under the
// truth, less the variance that it claims itself, is averaged over the draws;
// it is not taken below 0.
func (o *ProjectedMoments) Uncertainty(fit *ppca.Fitted) ([]float64, error) {
	d := o.layout.Features()
	extra := make([]float64, d)
	truth, err := newConditionals(o.layout, &fit.Params)
	if err != nil {
		return nil, err
	}
	noise := make([][][]float64, len(o.pooled))
	for i, f := range o.fits {
		for _, x := range o.noise[i] {
			noise[i] = append(noise[i], f.sized(x))
		}
	}
	for draw := range o.noise[0] {
		again := make([]*repaired, len(o.pooled))
		for i, q := range o.pooled {
			t := o.fits[i].moments(noise[i][draw])
			if again[i], err = q.repair(o.layout, t, noise[i], 1); err != nil {
				return nil, fmt.Errorf("pattern %v: %w", q.views, err)
			}
		}
		blocks := append(repairedBlocks(o.pooled, again), o.assumed()...)
		refit, err := ppca.Fit(o.layout, blocks, fit.Rank, nil, ppca.FitOptions{Tol: 1e-4, MaxIter: 100})
		if err != nil {
			return nil, fmt.Errorf("fitting to fresh noise: %w", err)
		}
		other, err := newConditionals(o.layout, &refit.Params)
		if err != nil {
			return nil, err
		}
		truth.errors(other, func(j int, squared float64) {
			extra[j] += squared / float64(len(o.noise[0]))
		})
	}
	for j := range extra {
		extra[j] = max(0, min(0.25, extra[j]))
	}
	return extra, nil
}

// moments returns T of data with this mean and covariance, plus noise.
func (f *repaired) moments(noise []float64) []float64 {
	p := len(f.mean)
	d := p + 1
	t := slices.Clone(noise)
	for i := range p {
		for j := range p {
			t[i*d+j] += f.n * (f.cov[i*p+j] + f.mean[i]*f.mean[j])
		}
		t[i*d+p] += f.n * f.mean[i]
		t[p*d+i] += f.n * f.mean[i]
	}
	t[d*d-1] += f.n
	return t
}

// conditionals predict each view from all others: t_h = μ_h + G (t_o − μ_o).
type conditionals struct {
	l     ppca.Layout
	p     *ppca.Params
	cov   []float64 // d × d
	gains [][]float64
	vars  [][]float64
}

func newConditionals(l ppca.Layout, p *ppca.Params) (*conditionals, error) {
	pred, err := ppca.NewPredictor(l, p)
	if err != nil {
		return nil, err
	}
	d, q := l.Features(), p.Rank
	group := l.GroupOf()
	c := &conditionals{l: l, p: p, cov: make([]float64, d*d)}
	for i := range d {
		for j := range d {
			for a := range q {
				c.cov[i*d+j] += p.W[i*q+a] * p.W[j*q+a]
			}
		}
		c.cov[i*d+i] += p.Noise[group[i]]
	}
	for k := range l.Views() {
		lo, hi := l.View(k)
		post, err := pred.Given(slices.Delete(l.AllFeatures(), lo, hi))
		if err != nil {
			return nil, err
		}
		v := make([]float64, hi-lo)
		post.MissingVar(v)
		n := len(post.Observed)
		g := make([]float64, (hi-lo)*n)
		for i := range hi - lo {
			for j := range n {
				g[i*n+j] = dot(p.W[(lo+i)*q:][:q], post.Gain(j))
			}
		}
		c.gains, c.vars = append(c.gains, g), append(c.vars, v)
	}
	return c, nil
}

// errors tells, of every feature, the mean squared error of another model's
// predictions under this one, and the variance that the other claims.
func (c *conditionals) errors(other *conditionals, tell func(j int, squared float64)) {
	d := c.l.Features()
	for k := range c.l.Views() {
		lo, hi := c.l.View(k)
		seen := slices.Delete(c.l.AllFeatures(), lo, hi)
		n := len(seen)
		diff, turned := make([]float64, n), make([]float64, n)
		for i := range hi - lo {
			j := lo + i
			offset := other.p.Mu[j] - c.p.Mu[j]
			for a, o := range seen {
				g := other.gains[k][i*n+a]
				diff[a] = g - c.gains[k][i*n+a]
				offset -= g * (other.p.Mu[o] - c.p.Mu[o])
			}
			for a, o := range seen {
				s := 0.0
				for b, x := range diff {
					s += x * c.cov[o*d+seen[b]]
				}
				turned[a] = s
			}
			tell(j, offset*offset+max(0, dot(diff, turned)))
		}
	}
}
