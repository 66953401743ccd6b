package engine

import (
	"crypto/sha256"
	"fmt"

	"parley/internal/wire"
)

const taskVersion = 2

// task is what the coordinator asks of a site. What names it is the SHA-256 of
// its bytes: the same question always has the same ones, so a site that has
// answered it recognises it. How the coordinator came to ask it is told by the
// head of its history; the history itself travels beside ([Past]).
type task struct {
	Version  int    `cbor:"version"`
	Study    string `cbor:"study"`
	Revision int    `cbor:"revision"` // of the method at the coordinator
	Site     string `cbor:"site"`
	Round    int    `cbor:"round"`
	Kind     string `cbor:"kind"`
	Body     []byte `cbor:"body"`
	Head     []byte `cbor:"head"` // of the history: see sitestore.Next
}

// TaskID names a task by its bytes.
func TaskID(encoded []byte) [32]byte { return sha256.Sum256(encoded) }

// common names what all sites of a round are asked alike: the task without the site's name.
func common(encoded []byte) ([32]byte, error) {
	t, err := decodeTask(encoded)
	if err != nil {
		return [32]byte{}, err
	}
	t.Site = ""
	alike, err := wire.Marshal(t)
	return TaskID(alike), err
}

func decodeTask(data []byte) (t task, err error) {
	if err := wire.Unmarshal(data, &t); err != nil {
		return t, fmt.Errorf("decoding a task: %w", err)
	}
	if t.Version != taskVersion {
		return t, fmt.Errorf("decoding a task: its version is %d, this program knows %d", t.Version, taskVersion)
	}
	if len(t.Head) != sha256.Size {
		return t, fmt.Errorf("decoding a task: the head of its history has %d bytes, not %d", len(t.Head), sha256.Size)
	}
	return t, nil
}

// Mark is how far a site's ledger has come: it tells of every charge.
type Mark struct {
	_     struct{} `cbor:",toarray"`
	Lines int      `json:"lines"` // of the ledger, over all studies
	Hash  []byte   `json:"hash"`  // of the last of them; empty without lines
}

// Past is what travels beside a task, and is no part of what names it: the
// history from where the site stands, and how far the site's ledger had come
// when it last answered.
type Past struct {
	First   int      `cbor:"first"`   // position of the first record, from 0
	Records [][]byte `cbor:"records"` // encoded Records, to the head that the task names
	Own     []Claim  `cbor:"own"`     // of the site's releases that these records count
	Ledger  Mark     `cbor:"ledger"`
}

// Claim is what a history says of a site's own release.
type Claim struct {
	_      struct{} `cbor:",toarray"`
	Round  int
	Digest []byte // SHA-256 of the release's bytes
}

// History is what a coordinator has to tell one site of the past, as it was
// when a task was given out. It does not change.
type History struct {
	records [][]byte
	claims  []placedClaim // of the site, by the record that counts them
	ledger  Mark
	head    [32]byte
}

type placedClaim struct {
	record int
	Claim
}

// Head is the hash that tells of all records.
func (h History) Head() [32]byte { return h.head }

// Len returns how many records there are.
func (h History) Len() int { return len(h.records) }

// Since returns the past for a site that has kept the first n records.
func (h History) Since(n int) Past {
	n = min(max(n, 0), len(h.records))
	p := Past{First: n, Records: h.records[n:], Ledger: h.ledger}
	for _, c := range h.claims {
		if c.record >= n {
			p.Own = append(p.Own, c.Claim)
		}
	}
	return p
}
