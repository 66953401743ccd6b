package mixture

import (
	"fmt"
	"math"

	"parley/methods/mixture/gmm"
)

// Draws that a model keeps: most, or as many as have keptNumbers together, but fewest.
const (
	mostKept, fewestKept = 64, 16
	keptNumbers          = 100_000
)

// kept is the part of a posterior that a model keeps.
func kept(p *gmm.Posterior) *gmm.Posterior {
	k, d := p.Draws[0].Components(), p.Draws[0].Dim
	return p.Thin(min(max(keptNumbers/(k*(1+d+d*d)), fewestKept), mostKept))
}

// checkKept reports what is wrong with such a part of the posterior of mixtures of k components in d
// dimensions; nil if there is none.
func checkKept(p *gmm.Posterior, k, d int) error {
	if p == nil {
		return nil
	}
	sum := 0.0
	for i, x := range p.Draws {
		if x.Components() != k || x.Dim != d {
			return fmt.Errorf("draw %d of its sample has %d components in %d dimensions", i+1, x.Components(), x.Dim)
		}
		if err := x.Check(); err != nil {
			return fmt.Errorf("draw %d of its sample: %w", i+1, err)
		}
	}
	for i, w := range p.Weights {
		if !(w >= 0) {
			return fmt.Errorf("draw %d of its sample has weight %v", i+1, w)
		}
		sum += w
	}
	if len(p.Draws) != len(p.Weights) || math.Abs(sum-1) > 1e-6 {
		return fmt.Errorf("a sample of %d draws and %d weights that sum to %v", len(p.Draws), len(p.Weights), sum)
	}
	return nil
}
