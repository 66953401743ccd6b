package ppca

import (
	"fmt"
	"math"

	"parley/internal/linalg"
)

// LogLik returns the log-likelihood of all subjects in the blocks, natural
// logarithm with all constants, and the number of subjects.
func LogLik(l Layout, p *Params, blocks []Block) (total, subjects float64, err error) {
	e, md, err := evaluator(l, p, blocks)
	if err != nil {
		return 0, 0, err
	}
	defer e.Release()
	defer md.Release()
	for i := range blocks {
		if err := e.Run(md, &blocks[i], nil); err != nil {
			return 0, 0, err
		}
		total += e.LogDensity(md, &blocks[i])
		subjects += blocks[i].N
	}
	return total, subjects, nil
}

// ExpectedLogLik is (15): the expected complete-data log-likelihood without
// the terms in 2π, the moments of the factors taken at the same parameters.
func ExpectedLogLik(l Layout, p *Params, blocks []Block) (float64, error) {
	e, md, err := evaluator(l, p, blocks)
	if err != nil {
		return 0, err
	}
	total := 0.0
	for n := range blocks {
		b := &blocks[n]
		if err := e.Run(md, b, nil); err != nil {
			return 0, err
		}
		for i, j := range b.Features {
			w := e.w[i*e.ld:][:e.q]
			s := e.Square[i] + linalg.Quadratic(e.SXX, e.ld, w, w)
			for a, x := range w {
				s -= 2 * x * e.STX[i*e.ld+a]
			}
			total -= (b.N*math.Log(md.Psi[j]) + s/md.Psi[j]) / 2
		}
		for a := range e.q {
			total -= e.SXX[a*e.ld+a] / 2
		}
	}
	return total, nil
}

// evaluator checks parameters against blocks and prepares an E step.
func evaluator(l Layout, p *Params, blocks []Block) (*EStep, *Model, error) {
	if err := CheckBlocks(l, blocks); err != nil {
		return nil, nil, err
	}
	if err := p.Check(l); err != nil {
		return nil, nil, err
	}
	if !ContainsAll(p.Features, Observed(l, blocks)) {
		return nil, nil, fmt.Errorf("subjects have features that the parameters do not describe")
	}
	md := NewModel(l, p.Rank)
	md.Load(p)
	return NewEStep(p.Rank, blocks), md, nil
}
