package linalg

import "testing"

// Every test of this package runs on the widest path that the processor has; here what it has
// narrower.
func TestNarrowTilesGiveTheSameBits(t *testing.T) {
	if !wide {
		t.Skip("no AVX-512: the other tests run on the narrow tiles")
	}
	wide = false
	defer func() { wide = true }()
	TestMulAddGivesTheSameBitsOnEveryPath(t)
	TestScatterIsItsDefinitionBitForBit(t)
	TestBitsAreThoseOfEveryArchitecture(t)
}
