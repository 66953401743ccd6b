package ppca

import (
	"errors"
	"fmt"
	"slices"
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
	if err := l.CheckFeatures(p.Features); err != nil {
		return fmt.Errorf("parameters: %w", err)
	}
	for _, x := range [][]float64{p.W, p.Mu, p.Noise} {
		if err := Finite("parameters", x); err != nil {
			return err
		}
	}
	used := p.Groups(l)
	for g, v := range p.Noise {
		if used[g] && v < Least || !used[g] && v != 0 {
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

// Measured holds what a site says of its parameters to what values can be.
func (p *Params) Measured(l Layout) error {
	if err := Within("parameters: loadings", p.W, LargestValue); err != nil {
		return err
	}
	if err := Within("parameters: means", p.Mu, LargestValue); err != nil {
		return err
	}
	for g, used := range p.Groups(l) {
		if used {
			if err := checkVariance(p.Noise[g]); err != nil {
				return fmt.Errorf("parameters: noise group %d: %w", g, err)
			}
		}
	}
	return nil
}

// Observed returns the features that at least one block observes, ascending.
func Observed(l Layout, blocks []Block) []int {
	seen, n := make([]bool, l.Features()), 0
	for i := range blocks {
		for _, j := range blocks[i].Features {
			if !seen[j] {
				seen[j] = true
				n++
			}
		}
	}
	f := make([]int, 0, n)
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

// CheckBlocks checks all blocks; there must be one at least.
func CheckBlocks(l Layout, blocks []Block) error {
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

// Ln2Pi is ln 2π.
const Ln2Pi = 1.8378770664093454836

// ErrCollapsed is returned where the data cannot carry so many factors.
var ErrCollapsed = fmt.Errorf("the covariance of the factors is no longer positive definite: " +
	"the data have fewer directions than the model, so use fewer factors or more subjects")

// ErrNoVariance is returned when no observed feature varies.
var ErrNoVariance = errors.New("nothing varies: every observed feature is constant")
