package wire

import (
	"fmt"

	"github.com/fxamacker/cbor/v2"
)

// Raw is an encoded value that is decoded later, when it is known how large it
// may be. Decoding it copies its bytes, and takes no other room.
type Raw = cbor.RawMessage

// Count demands that an encoded array has from least to most elements, before
// anything is allocated for them: an element that takes one byte as it travels
// may take a hundred in memory.
func Count(array Raw, least, most int) error {
	n, _, err := readHead(array, majorArray)
	if err != nil {
		return fmt.Errorf("an array: %w", err)
	}
	if n < uint64(least) || n > uint64(most) {
		return fmt.Errorf("an array of %d elements, where there must be from %d to %d", n, least, most)
	}
	return nil
}

// Elements returns the elements of such an array.
func Elements(array Raw, least, most int) (elements []Raw, err error) {
	if err := Count(array, least, most); err != nil {
		return nil, err
	}
	err = Unmarshal(array, &elements)
	return elements, err
}
