package noise

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"math/big"
	"slices"
	"testing"
)

// broken fails after some blocks, as the system's source might.
type broken struct {
	blocks int
	seen   []byte // the caller's last block
}

var errBroken = errors.New("no entropy")

func (*broken) Seeded() bool { return true }

func (b *broken) fill(p []byte) error {
	if b.blocks--; b.blocks < 0 {
		return errBroken
	}
	b.seen = p
	return Seeded([32]byte{byte(b.blocks)}).fill(p)
}

func TestAFailingSourceGivesNoNoise(t *testing.T) {
	g := gaussian(t, "1048576")
	l, err := NewLaplace(big.NewRat(1000, 1))
	if err != nil {
		t.Fatal(err)
	}
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
	if err := gaussian(t, "1").Fill(make([]int64, 10), b); err != nil {
		t.Fatal(err)
	}
	if len(b.seen) == 0 || !bytes.Equal(b.seen, make([]byte, len(b.seen))) {
		t.Error("the random bits are still in memory")
	}
}

func TestTheSystemsSourceReportsFailure(t *testing.T) {
	reader := rand.Reader
	defer func() { rand.Reader = reader }()
	for _, r := range []io.Reader{bytes.NewReader(make([]byte, 100)), halfway{}} {
		rand.Reader = r
		v := []int64{42}
		if err := gaussian(t, "1").Fill(v, System()); err == nil || v[0] != 0 {
			t.Errorf("error %v, draw %d", err, v[0])
		}
	}
}

type halfway struct{}

func (halfway) Read(p []byte) (int, error) { return len(p) / 2, errBroken }

func TestSources(t *testing.T) {
	g := gaussian(t, "1099511627776")
	fill := func(s Source) []int64 {
		v := make([]int64, 1000)
		if err := g.Fill(v, s); err != nil {
			t.Fatal(err)
		}
		return v
	}
	if System().Seeded() || !Seeded([32]byte{}).Seeded() {
		t.Error("sources do not say which they are")
	}
	if slices.Equal(fill(System()), fill(System())) {
		t.Error("the system's source repeats itself")
	}
	one := Seeded([32]byte{1})
	first := fill(one)
	if !slices.Equal(first, fill(Seeded([32]byte{1}))) {
		t.Error("one seed gives two streams")
	}
	if slices.Equal(first, fill(one)) || slices.Equal(first, fill(Seeded([32]byte{2}))) {
		t.Error("noise was drawn twice")
	}
}

func TestParametersOutOfRange(t *testing.T) {
	for _, v := range []*big.Rat{nil, {}, big.NewRat(-1, 1), big.NewRat(1, 1<<21), ratio(t, "79228162514264337593543950337")} {
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
