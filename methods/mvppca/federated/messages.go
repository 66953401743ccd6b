package federated

import (
	"errors"
	"fmt"

	"parley/internal/wire"
	"parley/methods/mvppca/message"
	"parley/methods/mvppca/options"
	"parley/methods/mvppca/ppca"
)

// FitTask asks for the one shot.
type FitTask struct {
	Scale message.Scale `cbor:"scale"`
}

// FitAnswer is a site's own fit, or its moments where they are smaller.
type FitAnswer struct {
	Patterns []message.Pattern `cbor:"patterns"`
	Params   *message.Params   `cbor:"params"`
	Moments  []message.Moments `cbor:"moments"`
}

func (a *FitAnswer) check(l ppca.Layout) error {
	_, err := a.blocks(l)
	return err
}

// blocks turns a site's answer into data for the coordinator's fit.
func (a *FitAnswer) blocks(l ppca.Layout) ([]ppca.Block, error) {
	patterns, err := message.UnpackPatterns(a.Patterns, l)
	if err != nil {
		return nil, err
	}
	if a.Params == nil && len(a.Moments) == 0 {
		return nil, fmt.Errorf("it holds neither parameters nor moments")
	}
	if a.Params != nil {
		if len(a.Moments) > 0 {
			return nil, fmt.Errorf("it holds both parameters and moments")
		}
		p, err := a.Params.Unpack(l)
		if err != nil {
			return nil, err
		}
		if err := p.Measured(l); err != nil {
			return nil, err
		}
		return ppca.PseudoBlocks(l, p, patterns)
	}
	var blocks []ppca.Block
	for i := range a.Moments {
		b, err := a.Moments[i].Unpack(l)
		if err != nil {
			return nil, err
		}
		if err := errors.Join(b.Measured(), b.MakePossible()); err != nil {
			return nil, err
		}
		blocks = append(blocks, *b)
	}
	return blocks, nil
}

// RefineTask asks for a hierarchical round.
type RefineTask struct {
	Scale message.Scale `cbor:"scale"`
	Prior message.Prior `cbor:"prior"`
	Start *siteStart    `cbor:"start"` // none in the first round
}

// siteStart is where the round before left a site.
type siteStart struct {
	Params message.Params `cbor:"params"`
	Nu     wire.Vector    `cbor:"nu"`
	Xi     wire.Vector    `cbor:"xi"`
}

// RefineAnswer is what a site's likelihood says of its own parameters, without
// the prior, and how likely the global model made its subjects.
type RefineAnswer struct {
	Runs     [][2]int    `cbor:"runs"`
	Y        wire.Matrix `cbor:"y"`
	Class    []int       `cbor:"class"`
	R        wire.Vector `cbor:"r"`
	Noise    wire.Vector `cbor:"noise"`
	SS       wire.Vector `cbor:"ss"`
	Cells    wire.Vector `cbor:"cells"`
	Spent    wire.Vector `cbor:"spent"`
	Subjects float64     `cbor:"subjects"`
	Nu       wire.Vector `cbor:"nu"`
	Xi       wire.Vector `cbor:"xi"`
	LogLik   float64     `cbor:"log_lik"`
}

func (a *RefineAnswer) message(l ppca.Layout) (*ppca.SiteMessage, error) {
	described, err := message.Features(a.Runs, l)
	if err != nil {
		return nil, err
	}
	if err := ppca.Finite("log-likelihood", []float64{a.LogLik}); err != nil {
		return nil, err
	}
	m := &ppca.SiteMessage{
		Features: described, Rank: a.Y.Cols - 1, Y: a.Y.Data, Class: a.Class, R: a.R,
		Noise: a.Noise, SS: a.SS, Cells: a.Cells, Spent: a.Spent, Subjects: a.Subjects, Nu: a.Nu, Xi: a.Xi,
	}
	return m, m.Check(l)
}

func (a *RefineAnswer) check(set options.Setup) error {
	m, err := a.message(set.Layout)
	if err != nil {
		return err
	}
	if m.Rank != set.Options.Latent {
		return fmt.Errorf("%d factors, not %d", m.Rank, set.Options.Latent)
	}
	return m.Measured()
}
