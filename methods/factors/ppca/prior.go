package ppca

import (
	"fmt"
	"math"
	"slices"
)

// Prior is the global state: the distribution from which the parameters of the
// sites are drawn, equations (4) to (6). Params holds W̃ and μ̃, and as noise the
// variances to use wherever the global model is evaluated.
type Prior struct {
	Params
	VarW, VarMu []float64 // per view: variance between sites of each entry of W and μ
	Alpha, Beta []float64 // per noise group: inverse-gamma prior of the noise variance
}

// Check says what is wrong with a prior that came from elsewhere. Variances
// may be zero: the sites then share one value.
func (p *Prior) Check(l Layout) error {
	if err := p.Params.Check(l); err != nil {
		return fmt.Errorf("prior: %w", err)
	}
	if len(p.VarW) != l.Views() || len(p.VarMu) != l.Views() || len(p.Alpha) != l.Groups() || len(p.Beta) != l.Groups() {
		return fmt.Errorf("prior: %d and %d variances for %d views, %d and %d inverse-gamma parameters for %d noise groups",
			len(p.VarW), len(p.VarMu), l.Views(), len(p.Alpha), len(p.Beta), l.Groups())
	}
	for _, x := range [][]float64{p.VarW, p.VarMu, p.Alpha, p.Beta} {
		if err := Finite("prior", x); err != nil {
			return err
		}
		if slices.Min(x) < 0 {
			return fmt.Errorf("prior: a variance or inverse-gamma parameter is negative")
		}
	}
	for g, used := range p.Groups(l) {
		if used && (p.Alpha[g] < Least || p.Beta[g] < Least) {
			return fmt.Errorf("prior: inverse-gamma parameters %v and %v of noise group %d are not positive", p.Alpha[g], p.Beta[g], g)
		}
	}
	return nil
}

// Weak returns a prior around a model to begin hierarchical rounds with: the
// variances between sites are 1 % of the mean square of the loadings of a view,
// and the noise variances are worth six values (α = 3).
func Weak(l Layout, p *Params) (*Prior, error) {
	if err := p.Check(l); err != nil {
		return nil, err
	}
	out := &Prior{
		Params: p.Clone(),
		VarW:   make([]float64, l.Views()), VarMu: make([]float64, l.Views()),
		Alpha: make([]float64, l.Groups()), Beta: make([]float64, l.Groups()),
	}
	for k := range l.Views() {
		lo, hi := l.View(k)
		s := 0.0
		for _, w := range p.W[lo*p.Rank : hi*p.Rank] {
			s += w * w
		}
		out.VarW[k] = 0.01 * s / float64((hi-lo)*p.Rank)
		out.VarMu[k] = out.VarW[k]
	}
	for g, v := range p.Noise {
		out.Alpha[g], out.Beta[g] = 3, 3*v
	}
	return out, nil
}

// Spread returns the variances between sites of the entries of W and μ, per
// view, as they should be reported: v d/(d − q). Of the d directions in which a
// column of W can differ, q are absorbed by the sites' own factor laws and by
// rotation, and so are missing from v.
func (p *Prior) Spread() (varW, varMu []float64) {
	f := 1.0
	if d := len(p.Features); d > p.Rank {
		f = float64(d) / float64(d-p.Rank)
	}
	varW, varMu = slices.Clone(p.VarW), slices.Clone(p.VarMu)
	for k := range varW {
		varW[k] *= f
		varMu[k] *= f
	}
	return varW, varMu
}

// InverseGammaVariance is (20), β² / ((α − 1)²(α − 2)). It is +Inf for α ≤ 2.
func InverseGammaVariance(alpha, beta float64) float64 {
	if alpha <= 2 {
		return math.Inf(1)
	}
	return beta / (alpha - 1) * beta / (alpha - 1) / (alpha - 2)
}
