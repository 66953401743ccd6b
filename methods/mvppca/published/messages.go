package published

import (
	"fmt"

	"parley/methods/mvppca/message"
	"parley/methods/mvppca/options"
	"parley/methods/mvppca/ppca"
)

// IterateTask asks for a round of the published iteration.
type IterateTask struct {
	Scale message.Scale  `cbor:"scale"`
	Round int            `cbor:"round"` // from 1; it seeds what is drawn
	Prior *message.Prior `cbor:"prior"` // none in a first round without a prior
}

// IterateAnswer is θ_c.
type IterateAnswer struct {
	Params message.Params `cbor:"params"`
}

func (a *IterateAnswer) check(set options.Setup) error {
	p, err := a.Params.Unpack(set.Layout)
	if err != nil {
		return err
	}
	if p.Rank != set.Options.Latent {
		return fmt.Errorf("%d factors, not %d", p.Rank, set.Options.Latent)
	}
	for k := range set.Layout.Views() {
		if view, err := set.Layout.FeaturesOf([]int{k}); err != nil || p.Noise[k] != 0 && !ppca.ContainsAll(p.Features, view) {
			return fmt.Errorf("a part of view %s, where the published method knows whole views", set.Plan.Views[k].Name)
		}
	}
	return p.Measured(set.Layout)
}
