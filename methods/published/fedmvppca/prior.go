package fedmvppca

import (
	"fmt"
	"math"
	"slices"

	"parley/internal/wire"
	"parley/methods/factors/fitted"
	"parley/methods/factors/ppca"
)

// Prior is the global state: the distribution from which the parameters of the
// sites are drawn, equations (4) to (6). Params holds W̃ and μ̃, and as noise the
// variances to use wherever the global model is evaluated.
type Prior struct {
	ppca.Params
	VarW, VarMu []float64 // per view: variance between sites of each entry of W and μ
	Alpha, Beta []float64 // per noise group: inverse-gamma prior of the noise variance
}

// Check says what is wrong with a prior that came from elsewhere. Variances
// may be zero: the sites then share one value.
func (p *Prior) Check(l ppca.Layout) error {
	if err := p.Params.Check(l); err != nil {
		return fmt.Errorf("prior: %w", err)
	}
	if len(p.VarW) != l.Views() || len(p.VarMu) != l.Views() || len(p.Alpha) != l.Groups() ||
		len(p.Beta) != l.Groups() {
		return fmt.Errorf("prior: %d and %d variances for %d views, %d and %d inverse-gamma parameters for %d noise "+
			"groups",
			len(p.VarW), len(p.VarMu), l.Views(), len(p.Alpha), len(p.Beta), l.Groups())
	}
	for _, x := range [][]float64{p.VarW, p.VarMu, p.Alpha, p.Beta} {
		if err := ppca.Finite("prior", x); err != nil {
			return err
		}
		if slices.Min(x) < 0 {
			return fmt.Errorf("prior: a variance or inverse-gamma parameter is negative")
		}
	}
	for g, used := range p.Groups(l) {
		if used && (p.Alpha[g] < ppca.Least || p.Beta[g] < ppca.Least) {
			return fmt.Errorf("prior: inverse-gamma parameters %v and %v of noise group %d are not positive",
				p.Alpha[g], p.Beta[g], g)
		}
	}
	return nil
}

// spread returns the variances between sites of the entries of W and μ, per
// view, as they should be reported: v d/(d − q). Of the d directions in which a
// column of W can differ, q are absorbed by the sites' own factor laws and by
// rotation, and so are missing from v.
func (p *Prior) spread() (varW, varMu []float64) {
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

// describe puts into the model's file what rounds learned of how sites differ.
func (p *Prior) describe(m *fitted.Model) {
	loadings, means := p.spread()
	for k := range loadings {
		loadings[k], means[k] = math.Sqrt(loadings[k]), math.Sqrt(means[k])
	}
	m.PutSpread(loadings, means)
}

// PackedPrior is a [Prior] as it travels and is kept.
type PackedPrior struct {
	Params ppca.Params `cbor:"params"`
	VarW   wire.Vector `cbor:"var_w"`
	VarMu  wire.Vector `cbor:"var_mu"`
	Alpha  wire.Vector `cbor:"alpha"`
	Beta   wire.Vector `cbor:"beta"`
}

func packPrior(p *Prior) *PackedPrior {
	return &PackedPrior{p.Params.Clone(), p.VarW, p.VarMu, p.Alpha, p.Beta}
}

func (m *PackedPrior) unpack(l ppca.Layout) (*Prior, error) {
	p := &Prior{m.Params.Clone(), m.VarW, m.VarMu, m.Alpha, m.Beta}
	return p, p.Check(l)
}
