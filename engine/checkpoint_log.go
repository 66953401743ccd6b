package engine

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"parley/internal/wire"
)

// The log beside the checkpoint is a sequence of frames, one for each
// checkpoint before which something had happened:
//
//	length of the payload   4 bytes, big-endian
//	payload                 a logRecord in deterministic CBOR
//	chain                   SHA-256(chain before ‖ payload), 32 bytes
//
// The chain starts from the study's digest. A checkpoint refers to a number of
// bytes and to the chain there. So what follows them was written for a
// checkpoint that never came to be, whatever it is, and what precedes them is
// known to the last bit.

const (
	logLength = 4
	logChain  = sha256.Size
)

// logEnd is the part of a log that a checkpoint refers to.
type logEnd struct {
	Size  int64  `cbor:"size"`
	Chain []byte `cbor:"chain"`
}

// logStart is the empty log of a study.
func logStart(study string) logEnd {
	h := sha256.Sum256([]byte("parley log " + study))
	return logEnd{Chain: h[:]}
}

func chainLog(before, payload []byte) []byte {
	h := sha256.New()
	h.Write(before)
	h.Write(payload)
	return h.Sum(nil)
}

// logRecord is what has happened between two checkpoints.
type logRecord struct {
	Rounds   []Round         `cbor:"rounds"`
	History  [][]byte        `cbor:"history"`
	Releases [][]loggedClaim `cbor:"releases"` // that each record of the history counts
}

// loggedClaim is a folded release as the log keeps it.
type loggedClaim struct {
	_      struct{} `cbor:",toarray"`
	Site   int
	Round  int
	Digest []byte
}

func foldedOf(list []loggedClaim) (all []folded) {
	for _, c := range list {
		f := folded{site: c.Site, round: c.Round}
		copy(f.digest[:], c.Digest)
		all = append(all, f)
	}
	return all
}

// frame encodes the record for its place in the log.
func (r logRecord) frame(after logEnd) (frame []byte, end logEnd, err error) {
	payload, err := wire.Marshal(r)
	if err != nil {
		return nil, logEnd{}, fmt.Errorf("encoding a record of the checkpoint's log: %w", err)
	}
	if err := wire.Unmarshal(payload, new(logRecord)); err != nil {
		return nil, logEnd{}, fmt.Errorf("a record of the checkpoint's log could not be read again: %w", err)
	}
	frame, end = sealFrame(payload, after)
	return frame, end, nil
}

func sealFrame(payload []byte, after logEnd) (frame []byte, end logEnd) {
	chain := chainLog(after.Chain, payload)
	frame = binary.BigEndian.AppendUint32(make([]byte, 0, logLength+len(payload)+logChain), uint32(len(payload)))
	frame = append(append(frame, payload...), chain...)
	return frame, logEnd{after.Size + int64(len(frame)), chain}
}

// readLog joins the records of a study's log up to end, all of which must be as
// they were written.
func readLog(log []byte, study string, end logEnd) (all logRecord, err error) {
	switch {
	case end.Size < 0:
		return all, fmt.Errorf("the checkpoint refers to %d bytes of it", end.Size)
	case int64(len(log)) < end.Size:
		return all, fmt.Errorf("it has %d bytes, and the checkpoint refers to %d", len(log), end.Size)
	}
	log = log[:end.Size]
	at := logStart(study)
	for n := 1; at.Size < end.Size; n++ {
		r, next, err := readFrame(log[at.Size:], at)
		if err != nil {
			return all, fmt.Errorf("record %d, from byte %d: %w", n, at.Size, err)
		}
		all.Rounds, all.History, all.Releases = append(all.Rounds, r.Rounds...), append(all.History, r.History...),
			append(all.Releases, r.Releases...)
		at = next
	}
	if !bytes.Equal(at.Chain, end.Chain) {
		return all, errors.New("it is not the one that the checkpoint refers to")
	}
	return all, nil
}

// readFrame decodes the frame that rest, the log from at on, begins with.
func readFrame(rest []byte, at logEnd) (r logRecord, next logEnd, err error) {
	if len(rest) < logLength {
		return r, next, errors.New("it is cut off")
	}
	length := int64(binary.BigEndian.Uint32(rest))
	if int64(len(rest)) < logLength+length+logChain {
		return r, next, errors.New("it is cut off")
	}
	payload, rest := rest[logLength:logLength+length], rest[logLength+length:]
	chain := chainLog(at.Chain, payload)
	if !bytes.Equal(chain, rest[:logChain]) {
		return r, next, errors.New("its bytes are not those that were written")
	}
	if err := wire.Unmarshal(payload, &r); err != nil {
		return r, next, fmt.Errorf("decoding it: %w", err)
	}
	if len(r.History) != len(r.Releases) {
		return r, next, errors.New("it has releases of other records than it holds")
	}
	return r, logEnd{at.Size + logLength + length + logChain, chain}, nil
}
