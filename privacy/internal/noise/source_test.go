package noise

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"testing"

	"parley/internal/testkit"
)

// broken fails after some blocks, as the system's source might.
type broken struct {
	blocks int
	seen   []byte // the caller's last block
}

var errBroken = errors.New("no entropy")

func (b *broken) fill(p []byte) error {
	if b.blocks--; b.blocks < 0 {
		return errBroken
	}
	b.seen = p
	return Keyed([32]byte{byte(b.blocks)}).fill(p)
}

func TestAFailingSourceGivesNoNoise(t *testing.T) {
	g := gaussian(t, "1048576")
	l := testkit.Get(NewLaplace(big.NewRat(1000, 1)))(t)
	for name, fill := range map[string]func([]int64, Source) error{"Gaussian": g.Fill, "Laplace": l.Fill} {
		for blocks := range 3 {
			v := slices.Repeat([]int64{42}, 10_000)
			if err := fill(v, &broken{blocks: blocks}); !errors.Is(err, errBroken) {
				t.Errorf("%s after %d blocks: error %v", name, blocks, err)
			}
			if slices.ContainsFunc(v, func(x int64) bool { return x != 0 }) {
				t.Errorf("%s after %d blocks: part of the noise stayed", name, blocks)
			}
		}
		v := []int64{42}
		if err := fill(v, nil); err == nil || v[0] != 0 {
			t.Errorf("%s without a source: error %v, draw %d", name, err, v[0])
		}
	}
}

func TestRandomBitsAreWiped(t *testing.T) {
	b := &broken{blocks: 9}
	testkit.Do(t, gaussian(t, "1").Fill(make([]int64, 10), b))
	if len(b.seen) == 0 || !bytes.Equal(b.seen, make([]byte, len(b.seen))) {
		t.Error("the random bits are still in memory")
	}
}

// Whoever replaces the generator of crypto/rand does not choose keys.
func TestKeysComeFromTheOperatingSystem(t *testing.T) {
	reader := rand.Reader
	defer func() { rand.Reader = reader }()
	rand.Reader = bytes.NewReader(make([]byte, 1000))
	seen := map[[KeySize]byte]bool{{}: true}
	for range 100 {
		k, err := NewKey()
		if err != nil || seen[k] {
			t.Fatalf("key %x, %v", k, err)
		}
		seen[k] = true
	}
}

// The stream of AES-256 in counter mode is one that others make, too: from the
// all-zero key, NIST's known answer for the all-zero block.
func TestStreamIsAES256InCounterMode(t *testing.T) {
	p := make([]byte, 16)
	testkit.Do(t, Keyed([KeySize]byte{}).fill(p))
	if got := fmt.Sprintf("%x", p); got != "dc95c078a2408989ad48a21492842087" {
		t.Errorf("the first block is %s", got)
	}
}

func TestSources(t *testing.T) {
	g := gaussian(t, "1099511627776")
	fill := func(s Source) []int64 {
		v := make([]int64, 1000)
		testkit.Do(t, g.Fill(v, s))
		return v
	}
	one := Keyed([32]byte{1})
	first := fill(one)
	if !slices.Equal(first, fill(Keyed([32]byte{1}))) {
		t.Error("one key gives two streams")
	}
	if slices.Equal(first, fill(one)) || slices.Equal(first, fill(Keyed([32]byte{2}))) {
		t.Error("noise was drawn twice")
	}
}

func TestParametersOutOfRange(t *testing.T) {
	for _, v := range []*big.Rat{nil, {}, big.NewRat(-1, 1), big.NewRat(1, 1<<21),
		ratio(t, "79228162514264337593543950337")} {
		if _, err := NewGaussian(v); err == nil {
			t.Errorf("variance %v is accepted", v)
		}
	}
	for _, v := range []*big.Rat{nil, {}, big.NewRat(-1, 1), big.NewRat(1, 1<<32), big.NewRat(1<<48+1, 1)} {
		if _, err := NewLaplace(v); err == nil {
			t.Errorf("scale %v is accepted", v)
		}
	}
}
