package wire_test

import (
	"bytes"
	"strings"
	"testing"

	"parley/internal/testkit"
	"parley/internal/wire"
)

func TestElementsAreCountedBeforeTheyAreDecoded(t *testing.T) {
	data := testkit.Get(wire.Marshal([]any{1, "two", []int{3}}))(t)
	elements, err := wire.Elements(data, 1, 3)
	if err != nil || len(elements) != 3 || !bytes.Equal(elements[2], []byte{0x81, 3}) {
		t.Fatalf("%x, %v", elements, err)
	}
	for want, c := range map[string]struct {
		array       wire.Raw
		least, most int
	}{
		"of 3 elements, where there must be from 0 to 2": {data, 0, 2},
		"of 3 elements, where there must be from 4 to 9": {data, 4, 9},
		"unexpected CBOR type":                           {wire.Raw{0xa0}, 0, 9},
		"unexpected":                                     {nil, 0, 9},
		"truncated":                                      {wire.Raw{0x99, 1}, 0, 999},
		"EOF":                                            {wire.Raw{0x82, 1}, 0, 9},
	} {
		if got, err := wire.Elements(c.array, c.least, c.most); err == nil || got != nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %x, %v", want, got, err)
		}
	}
	// A head that promises a million elements costs no more than its own few bytes.
	many := append(wire.Raw{0x9a, 0, 0x10, 0, 0}, make([]byte, 1<<20)...)
	if n := testing.AllocsPerRun(10, func() {
		if wire.Count(many, 0, 1<<20) != nil {
			t.Fatal("they are within the limit")
		}
	}); n > 1 {
		t.Errorf("%v allocations to count", n)
	}
}
