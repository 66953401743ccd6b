package wire

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"parley/engine"
	encoding "parley/internal/wire"
)

const messageVersion = 3

// The kinds of what the coordinator says.
const (
	sayTask    = 1 // answer it
	sayEnd     = 2 // the study has ended, and this is what the site may have
	sayDropped = 3 // the site has left the study
	sayHistory = 4 // what history has the site kept?
	sayMore    = 5 // the next part of a release
)

// PartBytes is how many bytes of a release travel at once: few enough for a broker that takes messages of a
// mebibyte.
const PartBytes = 8 << 20

// down is what the coordinator puts for a site.
type down struct {
	_       struct{} `cbor:",toarray"`
	Version int
	Say     int
	Body    []byte // the task, what the site may have, a number used once, or which part (see [partOf])
	Past    engine.Past
	// Term is the coordinator's (see [Claim]): a lower one than before is of an earlier
	// coordinator, or of one that has lost what it had claimed.
	Term uint64
	// Life is the process of the site that this is for: of two copies of a site, one answers.
	Life []byte
	Head []byte // of the history that Past ends with
	// Receipt is the coordinator's signature of Head, Term and the ledger's mark in Past.
	Receipt []byte
}

// The kinds of what a site says.
const (
	sayRelease = 1 // the stored release that answers the task
	sayRefuse  = 2 // why the site will never answer
	sayBehind  = 3 // the task is wanted again, with an earlier past; or the part's task
	sayWaiting = 4 // what a person at the site must do before it answers
	sayForked  = 7 // the site has seen another history
	sayKept    = 5 // the history that it has kept
	sayDone    = 6 // it has what it may have
	sayLater   = 8 // the receipt of a later term, which it has seen
)

// up is what a site puts for the coordinator.
type up struct {
	_       struct{} `cbor:",toarray"`
	Version int
	Say     int
	To      []byte // nameOf what this answers
	Body    []byte // the release or a part of it, a receipt, or words
	Size    int    // of the whole release, in bytes
	Records int    // of the history that the site has kept
	Ledger  engine.Mark
	History [][]byte
}

// nameOf is what an answer names its message by.
func nameOf(life, body []byte) []byte {
	h := sha256.New()
	h.Write(life)
	h.Write(body)
	return h.Sum(nil)
}

// partOf names the part of the release that answers a message, from a byte on.
func partOf(name []byte, from int) []byte {
	return binary.BigEndian.AppendUint64(bytes.Clone(name), uint64(from))
}

func decodeDown(data []byte) (m down, err error) {
	if err = encoding.Unmarshal(data, &m); err == nil && m.Version != messageVersion {
		err = fmt.Errorf("its version is %d, this program knows %d", m.Version, messageVersion)
	}
	return m, err
}

func decodeUp(data []byte) (m up, err error) {
	if err = encoding.Unmarshal(data, &m); err == nil && m.Version != messageVersion {
		err = fmt.Errorf("its version is %d, this program knows %d", m.Version, messageVersion)
	}
	return m, err
}

// Receipt is a coordinator's word for how far it has come with a site: how far the
// site's ledger had come, and the history that was shown to it. The site keeps the
// last one outside of its store. With it a coordinator that has lost everything
// knows a history for its own; without one, a site could make it up.
type Receipt struct {
	Study     string      `json:"study" cbor:"study"`
	Site      string      `json:"site" cbor:"site"`
	Mark      engine.Mark `json:"ledger" cbor:"ledger"`
	Records   int         `json:"history_records" cbor:"records"`
	Head      []byte      `json:"history_head" cbor:"head"`
	Term      uint64      `json:"term,omitempty" cbor:"term,omitempty"` // in which it was given
	Signature []byte      `json:"signature" cbor:"signature"`
}

// receiptOf is the receipt that came with a message.
func receiptOf(m *down, study, site string) Receipt {
	return Receipt{Study: study, Site: site, Mark: m.Past.Ledger, Records: m.Past.First + len(m.Past.Records),
		Head: m.Head, Term: m.Term, Signature: m.Receipt}
}

func (r Receipt) unsigned() ([]byte, error) {
	r.Signature = nil
	return encoding.Marshal(r)
}

const receiptPurpose = "receipt 1"

// confirm makes a receipt the coordinator's.
func (k *Key) confirm(r *Receipt) error {
	data, err := r.unsigned()
	if err == nil {
		r.Signature = k.Sign(receiptPurpose, data)
	}
	return err
}

// Verify says whether the coordinator signed the receipt.
func (r Receipt) Verify(coordinator Peer) error {
	data, err := r.unsigned()
	if err != nil {
		return err
	}
	return coordinator.Verify(receiptPurpose, data, r.Signature)
}
