package federated

import (
	"fmt"
	"slices"

	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
)

// FitTask asks for a site's sums, what its subjects lack being filled by a model if there is one.
type FitTask struct {
	Scale  options.Scale   `cbor:"scale"`
	Model  *options.Params `cbor:"model,omitempty"`
	Offset *options.Offset `cbor:"offset,omitempty"` // of the site, where sites have means of their own
}

// FitAnswer is what a site says of its subjects, as [ppca.Describe] makes it.
type FitAnswer struct {
	Blocks []options.Block `cbor:"blocks"`
	Filled float64         `cbor:"filled"`  // cells
	LogLik float64         `cbor:"log_lik"` // of its subjects by the task's model; 0 without
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
	if err := ppca.Finite("log-likelihood", []float64{a.LogLik}); err != nil {
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
		if i > 0 && slices.Compare(set.Layout.ViewsOf(blocks[i-1].Features), set.Layout.ViewsOf(b.Features)) >= 0 {
			return nil, fmt.Errorf("block %d: its views do not follow those of the one before", i)
		}
		blocks = append(blocks, *b)
	}
	return blocks, nil
}
