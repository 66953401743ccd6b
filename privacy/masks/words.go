package masks

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
)

// Block is a run of numbers of one width: integers modulo 2^(64·Words).
type Block struct {
	_       struct{} `cbor:",toarray"`
	Numbers int      // 1 or more
	Words   int      // 64-bit words of each number, 1 to 4
}

// Shape is the layout of a vector: it follows from the plan, never from data.
type Shape []Block

// mostWords bounds a vector: what a release has room for.
const mostWords = 24 << 20

// Check reports a shape that no vector has.
func (s Shape) Check() error {
	words := 0
	for i, b := range s {
		if b.Words < 1 || b.Words > 4 || b.Numbers < 1 || b.Numbers > (mostWords-words)/b.Words {
			return fmt.Errorf("block %d of a vector: %d numbers of %d words", i+1, b.Numbers, b.Words)
		}
		words += b.Numbers * b.Words
	}
	if words == 0 {
		return errors.New("a vector without numbers")
	}
	return nil
}

// Words is how many words a vector of the shape has.
func (s Shape) Words() (n int) {
	for _, b := range s {
		n += b.Numbers * b.Words
	}
	return n
}

// Vector holds the numbers of a [Shape] in turn, the lowest word of each first.
type Vector []uint64

// Add adds from to to, number by number. Both are of the shape.
func (s Shape) Add(to, from Vector) { s.each(to, from, bits.Add64) }

// Subtract takes from off to, number by number.
func (s Shape) Subtract(to, from Vector) { s.each(to, from, bits.Sub64) }

func (s Shape) each(to, from Vector, op func(a, b, carry uint64) (uint64, uint64)) {
	for _, b := range s {
		n := b.Numbers * b.Words
		for i := 0; i < n; i += b.Words {
			carry := uint64(0)
			for w := i; w < i+b.Words; w++ {
				to[w], carry = op(to[w], from[w], carry)
			}
		}
		to, from = to[n:], from[n:]
	}
}

// Bytes are the words in little-endian order, as a vector travels.
func (v Vector) Bytes() []byte {
	b := make([]byte, 0, 8*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint64(b, x)
	}
	return b
}

// Vector reads what [Vector.Bytes] wrote; an error if it is not of the shape.
func (s Shape) Vector(b []byte) (Vector, error) {
	if n := s.Words(); len(b) != 8*n {
		return nil, fmt.Errorf("a masked vector has %d bytes, and %d words were declared", len(b), n)
	}
	v := make(Vector, len(b)/8)
	for i := range v {
		v[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return v, nil
}

// Digest is SHA-256 of the vector's bytes.
func (v Vector) Digest() [32]byte { return sha256.Sum256(v.Bytes()) }

// addStream adds the words of AES-256-CTR under a key that serves nothing else.
func (s Shape) addStream(v Vector, key [32]byte) error {
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return err
	}
	stream := cipher.NewCTR(block, make([]byte, aes.BlockSize))
	var raw [6144]byte // of whole numbers, whatever their width
	mask := make(Vector, len(raw)/8)
	for _, b := range s {
		own := v[:b.Numbers*b.Words]
		v = v[len(own):]
		for len(own) > 0 {
			n := min(len(own), len(mask))
			clear(raw[:8*n])
			stream.XORKeyStream(raw[:8*n], raw[:8*n])
			for i := range n {
				mask[i] = binary.LittleEndian.Uint64(raw[8*i:])
			}
			Shape{{Numbers: n / b.Words, Words: b.Words}}.Add(own[:n], mask[:n])
			own = own[n:]
		}
	}
	return nil
}

// Grid is the fixed-point grid of exact numbers: steps of 2^-Places in Words words. It is public, and
// nothing of it is measured: a step that followed from the sizes of numbers would leave low bits of a
// total to the site with the smallest ones.
type Grid struct {
	Words  int `cbor:"words" json:"words"`
	Places int `cbor:"places" json:"places"`
}

// The grids of exact sums: of numbers in units of the data, which has squares of 10⁻¹⁵ to nine digits and those of a
// hundred thousand times 10¹⁵, and of numbers brought to common units.
var (
	Raw          = Grid{Words: 4, Places: 128}
	Standardised = Grid{Words: 2, Places: 50}
)

// room is how many of a number's highest bits are kept for the sum over sites: 1 024 of them.
const room = 10

// errRange means that a number is too large for the grid, or not finite.
var errRange = errors.New("a sum is beyond the range that a secure sum has room for: give numbers as large as this " +
	"in a larger unit, such as millions")

// errTotal means that a total is none of numbers within the grid's range.
var errTotal = errors.New("a total is larger than any sites' sums make it")

// Put writes x to the grid's words, rounded to the nearest step, halves away from 0.
func (g Grid) Put(x float64, to []uint64) error {
	clear(to)
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return errRange
	}
	fraction, exponent := math.Frexp(math.Abs(x))
	m, shift := uint64(fraction*(1<<53)), exponent-53+g.Places
	if shift < 0 {
		down := min(-shift, 63)
		m, shift = (m+1<<(down-1))>>down, 0
	}
	if m == 0 {
		return nil
	}
	if shift+bits.Len64(m) > 64*g.Words-1-room {
		return errRange
	}
	w, b := shift/64, shift%64
	to[w] = m << b
	if high := m >> (64 - b); high != 0 {
		to[w+1] = high
	}
	if x < 0 {
		negate(to)
	}
	return nil
}

func negate(v []uint64) {
	carry := uint64(1)
	for i := range v {
		v[i], carry = bits.Add64(^v[i], 0, carry)
	}
}

// Get is the float64 nearest to the grid's words, which are the total of so many numbers that [Grid.Put] has written;
// an error if no such numbers have it.
func (g Grid) Get(from []uint64, of int) (float64, error) {
	v := append([]uint64(nil), from...)
	negative := v[len(v)-1]>>63 == 1
	if negative {
		negate(v)
	}
	if v[len(v)-1]>>(63-room) >= uint64(of) {
		return 0, errTotal
	}
	top := len(v) - 1
	for top > 0 && v[top] == 0 {
		top--
	}
	m, places := v[top], g.Places-64*top
	if top > 0 { // the highest 64 bits, of which the last says whether there is anything below them
		up := bits.LeadingZeros64(m)
		m, places = m<<up|v[top-1]>>(64-up), places+up
		v[top-1] <<= up
		for _, below := range v[:top] {
			m |= min(below, 1)
		}
	}
	x := math.Ldexp(float64(m), -places)
	if negative {
		x = -x
	}
	return x, nil
}

// Vector writes numbers one after the other, each by [Grid.Put].
func (g Grid) Vector(numbers []float64) (Vector, error) {
	v := make(Vector, len(numbers)*g.Words)
	for i, x := range numbers {
		if err := g.Put(x, v[i*g.Words:][:g.Words]); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// Numbers reads the total of so many such vectors, each by [Grid.Get].
func (g Grid) Numbers(total Vector, of int) ([]float64, error) {
	numbers, err := make([]float64, len(total)/g.Words), error(nil)
	for i := range numbers {
		if numbers[i], err = g.Get(total[i*g.Words:][:g.Words], of); err != nil {
			return nil, err
		}
	}
	return numbers, nil
}

// Sum is the total of the numbers of some parties as a secure sum tells it, where nothing is secret.
func (g Grid) Sum(parties int, of func(i int) ([]float64, error)) ([]float64, error) {
	var total Vector
	for i := range parties {
		numbers, err := of(i)
		if err != nil {
			return nil, err
		}
		v, err := g.Vector(numbers)
		if err != nil {
			return nil, err
		}
		if total == nil {
			total = make(Vector, len(v))
		}
		Shape{{Numbers: len(numbers), Words: g.Words}}.Add(total, v)
	}
	return g.Numbers(total, parties)
}
