package ppca

import (
	"fmt"
	"slices"

	"parley/internal/kernel"
)

// Params is one model: t = W x + μ + noise, x ~ N(0, I). At a site it is θ_c,
// at the coordinator the global model. Arrays cover all features of the
// layout; those which the model does not describe (views that a site lacks)
// hold zeros.
type Params struct {
	Features []int     // described, ascending
	Rank     int       // q, number of factors
	W        []float64 // d × q by rows: loadings
	Mu       []float64 // d: means
	Noise    []float64 // noise variance of each noise group of the layout
}

// Check says what is wrong with parameters that came from elsewhere.
func (p *Params) Check(l Layout) error {
	d := l.Features()
	if p.Rank < 1 || p.Rank > d {
		return fmt.Errorf("parameters: %d factors for %d features", p.Rank, d)
	}
	if len(p.W) != d*p.Rank || len(p.Mu) != d || len(p.Noise) != l.Groups() {
		return fmt.Errorf("parameters: W has %d, mu %d and noise %d entries, want %d, %d and %d",
			len(p.W), len(p.Mu), len(p.Noise), d*p.Rank, d, l.Groups())
	}
	if err := l.checkFeatures(p.Features); err != nil {
		return fmt.Errorf("parameters: %w", err)
	}
	for _, x := range [][]float64{p.W, p.Mu, p.Noise} {
		if err := Finite("parameters", x); err != nil {
			return err
		}
	}
	used := p.Groups(l)
	for g, v := range p.Noise {
		if used[g] && v < least || !used[g] && v != 0 {
			return fmt.Errorf("parameters: noise variance %v of group %d, which is described: %t", v, g, used[g])
		}
	}
	at := 0
	for j := range d {
		if at < len(p.Features) && p.Features[at] == j {
			at++
			continue
		}
		if p.Mu[j] != 0 || slices.ContainsFunc(p.W[j*p.Rank:][:p.Rank], func(x float64) bool { return x != 0 }) {
			return fmt.Errorf("parameters: feature %d is not described and yet has values", j)
		}
	}
	return nil
}

// Clone returns a copy that shares nothing.
func (p *Params) Clone() Params {
	return Params{
		Features: slices.Clone(p.Features), Rank: p.Rank,
		W: slices.Clone(p.W), Mu: slices.Clone(p.Mu), Noise: slices.Clone(p.Noise),
	}
}

// Groups says which noise groups the described features use.
func (p *Params) Groups(l Layout) []bool {
	used, of := make([]bool, l.Groups()), l.GroupOf()
	for _, j := range p.Features {
		used[of[j]] = true
	}
	return used
}

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
		if used && (p.Alpha[g] < least || p.Beta[g] < least) {
			return fmt.Errorf("prior: inverse-gamma parameters %v and %v of noise group %d are not positive", p.Alpha[g], p.Beta[g], g)
		}
	}
	return nil
}

// model is the working form of Params: padded loadings, noise per feature.
type model struct {
	d, q, ld int
	group    []int // of each feature
	w        []float64
	mu, psi  []float64
	doubt    []float64 // see [Predictor.Widen]; nil for none
}

func newModel(l Layout, rank int) *model {
	d, ld := l.Features(), kernel.Stride(rank)
	return &model{
		d: d, q: rank, ld: ld, group: l.GroupOf(),
		w: make([]float64, d*ld), mu: make([]float64, d), psi: make([]float64, d),
	}
}

// load takes over the values of p.
func (m *model) load(p *Params) {
	m.loadW(p.W)
	copy(m.mu, p.Mu)
	m.loadNoise(p.Noise)
}

func (m *model) loadW(w []float64) {
	for j := range m.d {
		copy(m.w[j*m.ld:][:m.q], w[j*m.q:][:m.q])
	}
}

func (m *model) loadNoise(noise []float64) {
	for j, g := range m.group {
		m.psi[j] = noise[g]
	}
}

// params returns the values for the described features as plain arrays.
func (m *model) params(l Layout, features []int) Params {
	p := Params{
		Features: slices.Clone(features), Rank: m.q,
		W: make([]float64, m.d*m.q), Mu: make([]float64, m.d), Noise: make([]float64, l.Groups()),
	}
	for _, j := range features {
		copy(p.W[j*m.q:][:m.q], m.w[j*m.ld:])
		p.Mu[j] = m.mu[j]
		p.Noise[m.group[j]] = m.psi[j]
	}
	return p
}

// Observed returns the features that at least one block observes, ascending.
func Observed(l Layout, blocks []Block) []int {
	seen := make([]bool, l.Features())
	for i := range blocks {
		for _, j := range blocks[i].Features {
			seen[j] = true
		}
	}
	var f []int
	for j, s := range seen {
		if s {
			f = append(f, j)
		}
	}
	return f
}

// ContainsAll says whether the sorted list has all the features of the other.
func ContainsAll(features, of []int) bool {
	i := 0
	for _, j := range of {
		for i < len(features) && features[i] < j {
			i++
		}
		if i == len(features) || features[i] != j {
			return false
		}
	}
	return true
}

// checkBlocks checks all blocks; there must be one at least.
func checkBlocks(l Layout, blocks []Block) error {
	if err := l.Check(); err != nil {
		return err
	}
	if len(blocks) == 0 {
		return fmt.Errorf("no subjects with any value observed")
	}
	for i := range blocks {
		if err := blocks[i].Check(l); err != nil {
			return err
		}
	}
	return nil
}

const Ln2Pi = 1.8378770664093454836

var ErrCollapsed = fmt.Errorf("the covariance of the factors is no longer positive definite: " +
	"the data have fewer directions than the model, so use fewer factors or more subjects")
