package dataset

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"math"
)

// Census is what one reading of all rows counts.
type Census struct {
	Subjects int
	Having   []int // subjects who have each view
	// Fingerprint identifies the rows: SHA-256 over the ids, values, subject columns and
	// persons of all rows in their order. How they are stored changes nothing. It says nothing
	// of a person, but whoever has a guess of the data can confirm it: keep it at the
	// site.
	Fingerprint [sha256.Size]byte
}

// Hex is the fingerprint in hexadecimal.
func (c *Census) Hex() string { return hex.EncodeToString(c.Fingerprint[:]) }

// Count reads src once, which checks every cell.
func Count(ctx context.Context, src Source) (*Census, error) {
	c := newCounter(src)
	for row, err := range src.Rows(ctx) {
		if err != nil {
			return nil, err
		}
		c.add(row)
	}
	return c.census(), ctx.Err()
}

type counter struct {
	seen Census
	sum  hash.Hash
	text []byte

	people bool // whether rows have a person, who is part of the fingerprint then
}

func newCounter(src Source) *counter {
	schema := src.Schema()
	return &counter{seen: Census{Having: make([]int, len(schema.Views))}, sum: sha256.New(), people: schema.Person != ""}
}

func (c *counter) add(row *Row) {
	c.seen.Subjects++
	b := c.text[:0]
	text := func(s string) {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	text(row.ID)
	for k, v := range row.Views {
		if v != nil {
			c.seen.Having[k]++
		}
		b = binary.AppendUvarint(b, uint64(len(v)))
		for _, x := range v {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
		}
	}
	for _, s := range row.Subject {
		text(s)
	}
	if c.people {
		text(row.Person)
	}
	c.sum.Write(b)
	c.text = b
}

func (c *counter) census() *Census {
	c.seen.Fingerprint = [sha256.Size]byte(c.sum.Sum(nil))
	return &c.seen
}
