package fitted

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strings"
)

// tensor is an array in row-major order. A scalar has no shape and one value.
type tensor struct {
	Name  string
	Shape []int
	Data  []float64
}

func (t tensor) check() error {
	n := 1
	for _, s := range t.Shape {
		if s < 0 {
			return fmt.Errorf("array %s: shape %v", t.Name, t.Shape)
		}
		n *= s
	}
	if n != len(t.Data) {
		return fmt.Errorf("array %s: %d values for the shape %v", t.Name, len(t.Data), t.Shape)
	}
	return nil
}

func appendValues(b []byte, values []float64) []byte {
	for _, v := range values {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	return b
}

// npy returns the array in version 1.0 of NumPy's format: the magic string, a
// Python dictionary padded so that the values start at a multiple of 64 bytes,
// and the values, little-endian in C order
// (numpy.org/doc/stable/reference/generated/numpy.lib.format.html).
func npy(t tensor) ([]byte, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	shape := make([]string, len(t.Shape))
	for i, s := range t.Shape {
		shape[i] = fmt.Sprint(s)
	}
	list := strings.Join(shape, ", ")
	if len(shape) == 1 {
		list += "," // a tuple of one
	}
	header := fmt.Sprintf("{'descr': '<f8', 'fortran_order': False, 'shape': (%s), }", list)
	const before = 10 // magic, version, length of the header
	pad := 63 - (before+len(header))%64
	header += strings.Repeat(" ", pad) + "\n"
	if len(header) > math.MaxUint16 {
		return nil, fmt.Errorf("array %s has too many dimensions for NPY 1.0", t.Name)
	}
	b := append([]byte("\x93NUMPY\x01\x00"), 0, 0)
	binary.LittleEndian.PutUint16(b[8:], uint16(len(header)))
	return appendValues(append(b, header...), t.Data), nil
}

// safetensors returns all arrays in one safetensors file: the length of a JSON
// header in 8 bytes, the header with each array's type, shape and place, and
// the values (github.com/huggingface/safetensors, section Format). The
// metadata are strings. The header is padded with spaces so that the values
// are aligned to 8 bytes.
func safetensors(tensors []tensor, metadata map[string]string) ([]byte, error) {
	type entry struct {
		Type    string `json:"dtype"`
		Shape   []int  `json:"shape"`
		Offsets [2]int `json:"data_offsets"`
	}
	head := map[string]any{}
	if len(metadata) > 0 {
		head["__metadata__"] = metadata
	}
	var values []byte
	for _, t := range tensors {
		if err := t.check(); err != nil {
			return nil, err
		}
		if _, taken := head[t.Name]; taken || t.Name == "__metadata__" {
			return nil, fmt.Errorf("two arrays are called %s", t.Name)
		}
		shape := t.Shape
		if shape == nil {
			shape = []int{}
		}
		from := len(values)
		values = appendValues(values, t.Data)
		head[t.Name] = entry{"F64", shape, [2]int{from, len(values)}}
	}
	header, err := json.Marshal(head) // in order of name
	if err != nil {
		return nil, fmt.Errorf("writing safetensors: %w", err)
	}
	if rest := len(header) % 8; rest != 0 {
		header = append(header, bytes.Repeat([]byte(" "), 8-rest)...)
	}
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), values...), nil
}
