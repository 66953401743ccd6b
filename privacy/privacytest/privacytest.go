// Package privacytest gives simulations and tests privacy noise that repeats.
// Noise from a seed protects nobody: whoever knows the seed takes it away.
// Only tests and the measuring tools may import this package.
package privacytest

import (
	"crypto/sha256"
	"fmt"

	"parley/privacy"
	"parley/privacy/internal/noise"
)

// Seeded makes a gate draw its noise from a seed. Each session has a stream of
// its own, which depends on the seed, the study, the site, the round and the
// attempt: no noise is used twice, and a repeated simulation repeats it. The
// gate's releases and charges are marked as seeded.
func Seeded(seed uint64) privacy.Option {
	return privacy.Noise(func(session string) noise.Source {
		return noise.Seeded(sha256.Sum256(fmt.Appendf(nil, "parley noise %d %s", seed, session)))
	})
}
