package nats

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
)

// What stands under a key is a short value itself, or says of what parts a long
// one is made. The parts stand under KEY.0, KEY.1 and so on, and are put before.
const (
	formShort = 0 // and the value
	formParts = 1 // and number of parts (1 byte), size (4, big-endian), SHA-256 of the value (32)
)

// head is what stands under a key, decoded.
type head struct {
	short []byte // the value, if parts is 0
	parts int
	size  int
	hash  [sha256.Size]byte
}

func encodeShort(value []byte) []byte {
	return append([]byte{formShort}, value...)
}

func encodeParts(parts int, value []byte) []byte {
	hash := sha256.Sum256(value)
	data := binary.BigEndian.AppendUint32([]byte{formParts, byte(parts)}, uint32(len(value)))
	return append(data, hash[:]...)
}

// decodeHead reads what another organisation put under a key.
func decodeHead(data []byte) (h head, err error) {
	if len(data) == 0 {
		return h, errors.New("it is empty")
	}
	switch form, data := data[0], data[1:]; form {
	case formShort:
		h.short = data
		return h, nil
	case formParts:
		if len(data) != 1+4+sha256.Size {
			return h, fmt.Errorf("its head has %d bytes", 1+len(data))
		}
		h.parts, h.size = int(data[0]), int(binary.BigEndian.Uint32(data[1:5]))
		copy(h.hash[:], data[5:])
		if h.parts < 1 || h.parts > maxParts || h.size < h.parts || h.size > MaxValue {
			return head{}, fmt.Errorf("its head tells of %d bytes in %d parts", h.size, h.parts)
		}
		return h, nil
	default:
		return h, fmt.Errorf("its head has the form %d", form)
	}
}
