// Package privacytest gives simulations and tests privacy noise that repeats, or
// none. Such noise protects nobody: whoever knows the seed takes it away. Only
// tests and the measuring tools may import this package.
package privacytest

import (
	"crypto/sha256"
	"fmt"

	"parley/privacy"
	"parley/privacy/internal/noise"
)

// Seeded makes a gate derive its noise from a seed. The key of each release
// depends on the seed, the study, the site and the round: a repeated simulation
// repeats it. The gate's releases and charges are marked as seeded.
func Seeded(seed uint64) privacy.Option { return privacy.Simulate(seeded(seed)) }

// Replaced makes a gate release what release returns in place of noised sums: it
// is given a sum's name and the exact sums, block by block, in steps. So tests
// see what a row moves, and what a release depends on but its noised sums.
func Replaced(release func(sum string, exact [][]int64) [][]int64) privacy.Option {
	s := seeded(0)
	s.Release = release
	return privacy.Simulate(s)
}

func seeded(seed uint64) noise.Simulation {
	return noise.Simulation{Key: func(release string) [noise.KeySize]byte {
		return sha256.Sum256(fmt.Appendf(nil, "parley noise %d %s", seed, release))
	}}
}
