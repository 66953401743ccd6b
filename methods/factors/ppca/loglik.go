package ppca

import (
	"fmt"
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
		if err := e.Run(md, &blocks[i]); err != nil {
			return 0, 0, err
		}
		total += e.LogDensity(md, &blocks[i])
		subjects += blocks[i].N
	}
	return total, subjects, nil
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
