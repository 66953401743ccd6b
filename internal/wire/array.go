package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
)

// CBOR heads of RFC 8746: tag 86 marks a little-endian float64 typed array,
// tag 40 a row-major multi-dimensional array.
const (
	headFloat64LE   = 0xd8_56
	headMultiDim    = 0xd8_28
	majorByteString = 2 << 5
	majorArray      = 4 << 5
	majorUnsigned   = 0 << 5
)

// exponent has all its bits in NaN and ±Inf, and in no other number.
const exponent = 0x7ff << 52

var errNotFinite = errors.New("value is not finite")

// Vector is a sequence of finite float64, encoded as one typed array.
type Vector []float64

// MarshalCBOR encodes v as tag 86.
func (v Vector) MarshalCBOR() ([]byte, error) {
	return appendVector(make([]byte, 0, 11+8*len(v)), v)
}

// UnmarshalCBOR decodes tag 86.
func (v *Vector) UnmarshalCBOR(data []byte) error {
	out, rest, err := readVector(data)
	if err != nil {
		return err
	}
	if len(rest) != 0 {
		return errors.New("bytes after a typed array")
	}
	*v = out
	return nil
}

// Matrix is a row-major Rows × Cols matrix of finite float64.
type Matrix struct {
	Rows, Cols int
	Data       []float64 // Rows·Cols values
}

// MarshalCBOR encodes m as tag 40: [[rows, cols], typed array].
func (m Matrix) MarshalCBOR() ([]byte, error) {
	if m.Rows < 0 || m.Cols < 0 || len(m.Data) != m.Rows*m.Cols {
		return nil, fmt.Errorf("a %d×%d matrix cannot hold %d values", m.Rows, m.Cols, len(m.Data))
	}
	b := make([]byte, 0, 40+8*len(m.Data))
	b = binary.BigEndian.AppendUint16(b, headMultiDim)
	b = append(b, majorArray|2, majorArray|2)
	b = appendHead(b, majorUnsigned, uint64(m.Rows))
	b = appendHead(b, majorUnsigned, uint64(m.Cols))
	return appendVector(b, m.Data)
}

// UnmarshalCBOR decodes tag 40 with two dimensions.
func (m *Matrix) UnmarshalCBOR(data []byte) error {
	if len(data) < 4 || binary.BigEndian.Uint16(data) != headMultiDim || data[2] != majorArray|2 ||
		data[3] != majorArray|2 {
		return errors.New("not a matrix (RFC 8746, tag 40, two dimensions)")
	}
	rows, rest, err := readHead(data[4:], majorUnsigned)
	if err != nil {
		return err
	}
	cols, rest, err := readHead(rest, majorUnsigned)
	if err != nil {
		return err
	}
	values, rest, err := readVector(rest)
	if err != nil {
		return err
	}
	if len(rest) != 0 {
		return errors.New("bytes after a matrix")
	}
	const maxDim = MaxBytes / 8
	if rows > maxDim || cols > maxDim || rows*cols != uint64(len(values)) {
		return fmt.Errorf("a %d×%d matrix cannot hold %d values", rows, cols, len(values))
	}
	*m = Matrix{Rows: int(rows), Cols: int(cols), Data: values}
	return nil
}

func appendVector(b []byte, v []float64) ([]byte, error) {
	b = binary.BigEndian.AppendUint16(b, headFloat64LE)
	b = appendHead(b, majorByteString, uint64(8*len(v)))
	at := len(b)
	b = slices.Grow(b, 8*len(v))[:at+8*len(v)]
	to := b[at:]
	for i, x := range v {
		bits := math.Float64bits(x)
		if bits&exponent == exponent {
			return nil, fmt.Errorf("entry %d: %w", i, errNotFinite)
		}
		binary.LittleEndian.PutUint64(to, bits)
		to = to[8:]
	}
	return b, nil
}

func readVector(data []byte) (v []float64, rest []byte, err error) {
	if len(data) < 2 || binary.BigEndian.Uint16(data) != headFloat64LE {
		return nil, nil, errors.New("not a float64 array (RFC 8746, tag 86)")
	}
	n, data, err := readHead(data[2:], majorByteString)
	if err != nil {
		return nil, nil, err
	}
	if n%8 != 0 || n > uint64(len(data)) {
		return nil, nil, fmt.Errorf("float64 array of %d bytes in %d", n, len(data))
	}
	v = make([]float64, n/8)
	from := data[:n]
	for i := range v {
		bits := binary.LittleEndian.Uint64(from)
		if bits&exponent == exponent {
			return nil, nil, fmt.Errorf("entry %d: %w", i, errNotFinite)
		}
		v[i], from = math.Float64frombits(bits), from[8:]
	}
	return v, data[n:], nil
}

// appendHead writes a CBOR head: major type and argument in the shortest form.
func appendHead(b []byte, major byte, n uint64) []byte {
	switch {
	case n < 24:
		return append(b, major|byte(n))
	case n <= math.MaxUint8:
		return append(b, major|24, byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(b, major|25), uint16(n))
	case n <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(b, major|26), uint32(n))
	default:
		return binary.BigEndian.AppendUint64(append(b, major|27), n)
	}
}

// readHead reads what appendHead writes and refuses longer forms.
func readHead(data []byte, major byte) (n uint64, rest []byte, err error) {
	if len(data) == 0 || data[0]&^31 != major {
		return 0, nil, errors.New("unexpected CBOR type")
	}
	info := data[0] & 31
	if info < 24 {
		return uint64(info), data[1:], nil
	}
	width := 1 << (info - 24)
	if info > 27 || len(data) < 1+width {
		return 0, nil, errors.New("truncated CBOR head")
	}
	for _, c := range data[1 : 1+width] {
		n = n<<8 | uint64(c)
	}
	if len(appendHead(nil, major, n)) != 1+width {
		return 0, nil, errors.New("CBOR length is not in its shortest form")
	}
	return n, data[1+width:], nil
}
