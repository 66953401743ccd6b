package fitted

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/internal/testkit"
)

// readNPY reads version 1.0 by its published layout.
func readNPY(b []byte) (shape string, values []float64, err error) {
	if len(b) < 10 || string(b[:8]) != "\x93NUMPY\x01\x00" {
		return "", nil, fmt.Errorf("magic %q", b[:min(8, len(b))])
	}
	n := int(binary.LittleEndian.Uint16(b[8:]))
	header := string(b[10 : 10+n])
	if (10+n)%64 != 0 || !strings.HasSuffix(header, "\n") {
		return "", nil, fmt.Errorf("the values start at %d, after %q", 10+n, header)
	}
	rest, ok := strings.CutPrefix(header, "{'descr': '<f8', 'fortran_order': False, 'shape': (")
	shape, _, closed := strings.Cut(rest, "), }")
	if !ok || !closed {
		return "", nil, fmt.Errorf("header %q", header)
	}
	return shape, floats(b[10+n:]), nil
}

func floats(b []byte) []float64 {
	values := make([]float64, len(b)/8)
	for i := range values {
		values[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
	}
	return values
}

// same compares bit by bit, NaN included.
func same(a, b []float64) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool { return math.Float64bits(x) == math.Float64bits(y) })
}

func draw(t *rapid.T, name string) tensor {
	x := tensor{Name: name, Shape: rapid.SliceOfN(rapid.IntRange(0, 5), 0, 3).Draw(t, "shape")}
	n := 1
	for _, s := range x.Shape {
		n *= s
	}
	x.Data = rapid.SliceOfN(rapid.Float64(), n, n).Draw(t, "data")
	return x
}

func TestNPYIsReadAsPublished(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := draw(t, "x")
		b, err := npy(x)
		if err != nil {
			t.Fatal(err)
		}
		shape, values, err := readNPY(b)
		if err != nil || !same(values, x.Data) {
			t.Fatalf("read %v, %v, wrote %v", values, err, x.Data)
		}
		var want []string
		for _, s := range x.Shape {
			want = append(want, fmt.Sprint(s))
		}
		text := strings.Join(want, ", ")
		if len(want) == 1 {
			text += ","
		}
		if shape != text {
			t.Fatalf("shape %q, want %q", shape, text)
		}
	})
}

func TestSafetensorsAreReadAsPublished(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var list []tensor
		for i := range rapid.IntRange(0, 4).Draw(t, "arrays") {
			list = append(list, draw(t, fmt.Sprintf("array %d", i)))
		}
		b := testkit.Get(safetensors(list, map[string]string{"names": `{"a": "ü"}`}))(t)
		n := binary.LittleEndian.Uint64(b)
		if n%8 != 0 || b[8] != '{' {
			t.Fatalf("a header of %d bytes that begins with %q", n, b[8])
		}
		var head map[string]json.RawMessage
		testkit.Do(t, json.Unmarshal(b[8:8+n], &head))
		var meta map[string]string
		if err := json.Unmarshal(head["__metadata__"], &meta); err != nil || meta["names"] != `{"a": "ü"}` {
			t.Fatalf("metadata %v, %v", meta, err)
		}
		end := 0
		for _, x := range list {
			var e struct {
				DType   string `json:"dtype"`
				Shape   []int  `json:"shape"`
				Offsets [2]int `json:"data_offsets"`
			}
			testkit.Do(t, json.Unmarshal(head[x.Name], &e))
			if e.DType != "F64" || e.Shape == nil || !slices.Equal(e.Shape, x.Shape) || e.Offsets[0] != end {
				t.Fatalf("entry %+v for %+v", e, x)
			}
			end = e.Offsets[1]
			if got := floats(b[8+int(n):][e.Offsets[0]:end]); !same(got, x.Data) {
				t.Fatalf("read %v, wrote %v", got, x.Data)
			}
		}
		if 8+int(n)+end != len(b) || len(head) != len(list)+1 {
			t.Fatalf("%d bytes and %d entries for %d arrays that end at %d", len(b), len(head), len(list), end)
		}
	})
}

func TestArraysThatDoNotFitAreRefused(t *testing.T) {
	for _, x := range []tensor{{Name: "x", Shape: []int{2}, Data: []float64{1}}, {Name: "x", Shape: []int{-1, -1}, Data: []float64{1}}, {Name: "x"}} {
		if _, err := npy(x); err == nil {
			t.Errorf("%+v was written", x)
		}
		if _, err := safetensors([]tensor{x}, nil); err == nil {
			t.Errorf("%+v was written", x)
		}
	}
	one := tensor{Name: "x", Data: []float64{1}}
	if _, err := safetensors([]tensor{one, one}, nil); err == nil {
		t.Error("two arrays of one name were written")
	}
	if _, err := safetensors([]tensor{{Name: "__metadata__", Data: []float64{1}}}, nil); err == nil {
		t.Error("an array was written in place of the metadata")
	}
	if _, err := npy(tensor{Shape: slices.Repeat([]int{1}, 30000), Data: []float64{1}}); err == nil {
		t.Error("a header too long for its length was written")
	}
}
