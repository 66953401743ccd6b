// Package wire encodes what passes between the coordinator and the sites:
// CBOR (RFC 8949) in core deterministic encoding, so that equal values have
// equal bytes, with arrays of float64 as typed arrays (RFC 8746).
//
// Decoding is strict, because the bytes come from another organisation:
// unknown and duplicate fields, indefinite lengths, trailing bytes, values
// that are not finite and anything above the limits below are errors. Nothing
// is allocated on the word of a length prefix alone.
package wire

import (
	"fmt"
	"sync"

	"github.com/fxamacker/cbor/v2"
)

// Limits of one message.
const (
	MaxBytes    = 256 << 20 // encoded size
	MaxValue    = 64 << 20  // of what travels at once; releases travel in parts
	maxElements = 1 << 20   // entries of a CBOR array (typed arrays count as one byte string)
	maxPairs    = 1 << 12   // entries of a CBOR map
	maxDepth    = 24        // nesting
)

var modes = sync.OnceValues(func() (cbor.EncMode, cbor.DecMode) {
	options := cbor.CoreDetEncOptions()
	options.NilContainers = cbor.NilContainerAsEmpty   // nil and empty are the same to a reader
	options.BinaryMarshaler = cbor.BinaryMarshalerNone // states implement theirs by this package
	enc, err := options.EncMode()
	if err != nil {
		panic(err) // the options are constants
	}
	dec, err := cbor.DecOptions{
		BinaryUnmarshaler: cbor.BinaryUnmarshalerNone,
		DupMapKey:         cbor.DupMapKeyEnforcedAPF,
		ExtraReturnErrors: cbor.ExtraDecErrorUnknownField,
		FieldNameMatching: cbor.FieldNameMatchingCaseSensitive,
		IndefLength:       cbor.IndefLengthForbidden,
		MaxArrayElements:  maxElements,
		MaxMapPairs:       maxPairs,
		MaxNestedLevels:   maxDepth,
	}.DecMode()
	if err != nil {
		panic(err)
	}
	return enc, dec
})

// Marshal encodes v deterministically. Maps are sorted by encoded key; a
// [Vector] or [Matrix] that holds NaN or ±Inf is an error, and so is whatever is
// above the limits of Unmarshal: nothing is written that could not be read.
func Marshal(v any) ([]byte, error) {
	enc, dec := modes()
	data, err := enc.Marshal(v)
	if err != nil {
		return nil, err
	}
	if len(data) > MaxBytes {
		return nil, fmt.Errorf("message of %d bytes is above the limit of %d", len(data), MaxBytes)
	}
	return data, dec.Wellformed(data)
}

// Unmarshal decodes data into v and refuses whatever Marshal would not have
// written for v's type, as far as the type can tell.
func Unmarshal(data []byte, v any) error {
	if len(data) > MaxBytes {
		return fmt.Errorf("message of %d bytes is above the limit of %d", len(data), MaxBytes)
	}
	_, dec := modes()
	return dec.Unmarshal(data, v)
}

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
