package federated

import (
	"fmt"
	"slices"

	"parley/internal/wire"
	"parley/methods/factors/between"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
)

// FitTask asks for the one shot.
type FitTask struct {
	Scale options.Scale `cbor:"scale"`
}

// FitAnswer is what a site says of its subjects: a block for each set of views that they
// have, as [ppca.Condense] makes them.
type FitAnswer struct {
	Blocks []options.Block `cbor:"blocks"`
	// Filled is how many single missing cells were filled to describe the subjects.
	Filled float64 `cbor:"filled"`
}

// RefillTask asks for the one shot again, single missing cells being filled by a model.
type RefillTask struct {
	Scale  options.Scale   `cbor:"scale"`
	Model  options.Params  `cbor:"model"`
	Offset *options.Offset `cbor:"offset,omitempty"` // of the site, where sites have means of their own
}

func (a *FitAnswer) check(set options.Setup) error {
	_, err := a.blocks(set)
	return err
}

// blocks returns them as data for the coordinator's fit.
func (a *FitAnswer) blocks(set options.Setup) (blocks []ppca.Block, err error) {
	if len(a.Blocks) == 0 && set.Options.Minimum <= 1 {
		return nil, fmt.Errorf("it says nothing of any subject")
	}
	if err := ppca.Counts("cells filled", []float64{a.Filled}, ppca.LargestCount*ppca.MaxFeatures); err != nil {
		return nil, err
	}
	if len(a.Blocks) > ppca.LargestPatterns {
		return nil, fmt.Errorf("%d sets of views, want at most %d", len(a.Blocks), ppca.LargestPatterns)
	}
	for i := range a.Blocks {
		b, err := a.Blocks[i].Unpack(set.Layout)
		if err != nil {
			return nil, err
		}
		if rows := b.Rows(); rows > set.Options.LocalRank && len(b.Factor) > ppca.LargestExact {
			return nil, fmt.Errorf("a block of %d factors, and the plan has at most %d where they are of %d features", rows, set.Options.LocalRank, len(b.Features))
		}
		if i > 0 && slices.Compare(set.Layout.ViewsOf(blocks[i-1].Features), set.Layout.ViewsOf(b.Features)) >= 0 {
			return nil, fmt.Errorf("block %d: its views do not follow those of the one before", i)
		}
		blocks = append(blocks, *b)
	}
	return blocks, nil
}

// RefineTask asks for a hierarchical round.
type RefineTask struct {
	Scale options.Scale `cbor:"scale"`
	Prior options.Prior `cbor:"prior"`
	Start *siteStart    `cbor:"start"` // none in the first round
	// Offset is taken from the site's values before; none where sites are taken for samples
	// of one population.
	Offset *options.Offset `cbor:"offset,omitempty"`
}

// siteStart is where the round before left a site.
type siteStart struct {
	Params options.Params `cbor:"params"`
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
	Fitted   wire.Vector `cbor:"fitted"`
	Subjects float64     `cbor:"subjects"`
	Nu       wire.Vector `cbor:"nu"`
	Xi       wire.Vector `cbor:"xi"`
	LogLik   float64     `cbor:"log_lik"`
	// Undetermined says that the site's subjects do not determine a model with so many
	// factors; then nothing else is said.
	Undetermined bool `cbor:"undetermined,omitempty"`
}

func (a *RefineAnswer) message(l ppca.Layout) (*between.Message, error) {
	described, err := options.Features(a.Runs, l)
	if err != nil {
		return nil, err
	}
	if err := ppca.Finite("log-likelihood", []float64{a.LogLik}); err != nil {
		return nil, err
	}
	m := &between.Message{
		Features: described, Rank: a.Y.Cols - 1, Y: a.Y.Data, Class: a.Class, R: a.R,
		Noise: a.Noise, SS: a.SS, Cells: a.Cells, Spent: a.Spent, Fitted: a.Fitted, Subjects: a.Subjects, Nu: a.Nu, Xi: a.Xi,
	}
	return m, m.Check(l)
}

func (a *RefineAnswer) check(set options.Setup) error {
	if a.Undetermined {
		return nil
	}
	m, err := a.message(set.Layout)
	if err != nil {
		return err
	}
	if m.Rank != set.Options.Latent {
		return fmt.Errorf("%d factors, not %d", m.Rank, set.Options.Latent)
	}
	return m.Measured()
}
