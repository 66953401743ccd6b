package wire

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/internal/testkit"
)

type message struct {
	Name string            `cbor:"name"`
	V    Vector            `cbor:"v"`
	M    Matrix            `cbor:"m"`
	Info map[string]uint64 `cbor:"info"`
}

var finite = rapid.Float64Range(-math.MaxFloat64, math.MaxFloat64)

func drawMessage(t *rapid.T) message {
	rows, cols := rapid.IntRange(0, 40).Draw(t, "rows"), rapid.IntRange(0, 40).Draw(t, "cols")
	return message{
		Name: rapid.String().Draw(t, "name"),
		V:    rapid.SliceOfN(finite, 0, 300).Draw(t, "v"),
		M:    Matrix{Rows: rows, Cols: cols, Data: rapid.SliceOfN(finite, rows*cols, rows*cols).Draw(t, "m")},
		Info: rapid.MapOfN(rapid.StringN(0, 5, 10), rapid.Uint64(), 0, 10).Draw(t, "info"),
	}
}

func TestRoundTripIsExactAndDeterministic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawMessage(t)
		a := testkit.Get(Marshal(in))(t)
		var out message
		testkit.Do(t, Unmarshal(a, &out))
		b := testkit.Get(Marshal(out))(t)
		if !bytes.Equal(a, b) {
			t.Fatalf("encoding changed:\n%x\n%x", a, b)
		}
	})
}

func TestWhatIsNotFiniteIsRefused(t *testing.T) {
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if _, err := Marshal(Vector{1, x}); err == nil {
			t.Errorf("%v was encoded", x)
		}
	}
	data := testkit.Get(Marshal(Vector{1}))(t)
	copy(data[len(data)-2:], []byte{0xf8, 0x7f}) // the high bytes of a NaN
	var v Vector
	if err := Unmarshal(data, &v); err == nil || !strings.Contains(err.Error(), "finite") {
		t.Fatalf("NaN was decoded: %v, %v", v, err)
	}
}

func TestHostileBytesAreRefused(t *testing.T) {
	type plain struct {
		A uint64 `cbor:"a"`
	}
	for name, data := range map[string][]byte{
		"unknown field":       {0xa1, 0x61, 'b', 0x01},
		"another case":        {0xa1, 0x61, 'A', 0x01},
		"duplicate field":     {0xa2, 0x61, 'a', 0x01, 0x61, 'a', 0x02},
		"trailing bytes":      {0xa1, 0x61, 'a', 0x01, 0x00},
		"indefinite map":      {0xbf, 0x61, 'a', 0x01, 0xff},
		"huge array":          {0x9b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		"deep nesting":        bytes.Repeat([]byte{0x81}, 100),
		"truncated":           {0xa1, 0x61},
		"nothing":             {},
		"wrong type of field": {0xa1, 0x61, 'a', 0x61, 'x'},
	} {
		var p plain
		if err := Unmarshal(data, &p); err == nil {
			t.Errorf("%s: accepted as %+v", name, p)
		}
	}
	for name, data := range map[string][]byte{
		"array that claims 2⁶³ bytes": {0xd8, 86, 0x5b, 0x80, 0, 0, 0, 0, 0, 0, 0},
		"length in a long form":       {0xd8, 86, 0x58, 0x08, 0, 0, 0, 0, 0, 0, 0, 0},
		"seven bytes":                 {0xd8, 86, 0x47, 0, 0, 0, 0, 0, 0, 0},
		"big-endian array":            {0xd8, 82, 0x48, 0, 0, 0, 0, 0, 0, 0, 0},
		"no tag":                      {0x48, 0, 0, 0, 0, 0, 0, 0, 0},
	} {
		var v Vector
		if err := Unmarshal(data, &v); err == nil {
			t.Errorf("%s: accepted as %v", name, v)
		}
	}
	var m Matrix
	overflow := []byte{0xd8, 40, 0x82, 0x82, 0x1b, 0x80, 0, 0, 0, 0, 0, 0, 0, 0x02, 0xd8, 86, 0x40}
	if err := Unmarshal(overflow, &m); err == nil {
		t.Errorf("2⁶³ × 2 matrix without values: accepted as %+v", m)
	}
}

func FuzzUnmarshal(f *testing.F) {
	seed := testkit.Get(Marshal(message{Name: "x", V: Vector{1, 2},
		M: Matrix{Rows: 1, Cols: 2, Data: []float64{3, 4}}}))(f)
	f.Add(seed)
	f.Fuzz(func(t *testing.T, data []byte) {
		var m message
		if Unmarshal(data, &m) != nil {
			return
		}
		again, err := Marshal(m)
		if err != nil {
			t.Fatalf("decoded but cannot be encoded: %v", err)
		}
		var n message
		if err := Unmarshal(again, &n); err != nil {
			t.Fatalf("own encoding refused: %v", err)
		}
	})
}

func BenchmarkMatrix(b *testing.B) {
	m := Matrix{Rows: 300, Cols: 300, Data: make([]float64, 90000)}
	b.SetBytes(8 * 90000)
	b.ReportAllocs()
	for b.Loop() {
		data := testkit.Get(Marshal(m))(b)
		var out Matrix
		testkit.Do(b, Unmarshal(data, &out))
	}
}
