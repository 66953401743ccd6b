package factors

import (
	"testing"

	"parley/method/methodtest"
)

// States come back from checkpoints, which may be damaged.
func TestDamagedStates(t *testing.T) {
	studies := privateStudies(t)
	for name, options := range map[string]string{
		"federated": federatedOptions,
		"scaled":    "  latent: 1\n  scaling: min-max\n  noise: feature\n",
		"adjusted":  adjustedOptions,
	} {
		studies[name] = threeSites(t, options)
	}
	for name, s := range studies {
		t.Run(name, func(t *testing.T) { methodtest.Damaged(t, Method{}, s.plan, sources(s), 40) })
	}
}
