package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"parley/internal/wire"
)

const messageVersion = 1

// task is what the coordinator sends to a site. The same task always has the
// same bytes, so a site that has answered it recognises it.
type task struct {
	Version int    `cbor:"version"`
	Study   string `cbor:"study"`
	Site    string `cbor:"site"`
	Round   int    `cbor:"round"`
	Kind    string `cbor:"kind"`
	Body    []byte `cbor:"body"`
	// First and Manifest are the entries that the site has not seen yet.
	First    int      `cbor:"first"`
	Manifest [][]byte `cbor:"manifest"`
}

func decodeTask(data []byte) (t task, err error) {
	if err := wire.Unmarshal(data, &t); err != nil {
		return t, fmt.Errorf("decoding a task: %w", err)
	}
	if t.Version != messageVersion {
		return t, fmt.Errorf("decoding a task: its version is %d, this program knows %d", t.Version, messageVersion)
	}
	return t, nil
}

// Entry is one line of the manifest: what the coordinator has folded, in
// order, each line chained to the one before it by SHA-256. The global state
// is a function of the plan and of the releases it lists.
type Entry struct {
	Previous []byte `cbor:"previous"` // SHA-256 of the entry before; empty for the first
	Round    int    `cbor:"round"`
	Site     string `cbor:"site"`
	Release  []byte `cbor:"release"` // SHA-256 of the folded release; empty if the site left
}

// manifest is the chain as the coordinator and the sites keep it: encoded entries.
type manifest [][]byte

func (m manifest) head() []byte {
	if len(m) == 0 {
		return []byte{}
	}
	h := sha256.Sum256(m[len(m)-1])
	return h[:]
}

func (m *manifest) append(round int, site string, release []byte) error {
	digest := []byte{}
	if release != nil {
		h := sha256.Sum256(release)
		digest = h[:]
	}
	e, err := wire.Marshal(Entry{Previous: m.head(), Round: round, Site: site, Release: digest})
	if err != nil {
		return fmt.Errorf("encoding a manifest entry: %w", err)
	}
	*m = append(*m, e)
	return nil
}

// verify checks that every entry decodes and continues the one before it; the
// first must be the beginning of a manifest if whole is set, and is taken on
// trust otherwise.
func (m manifest) verify(whole bool) error {
	for i, data := range m {
		var e Entry
		if err := wire.Unmarshal(data, &e); err != nil {
			return fmt.Errorf("decoding a manifest entry: %w", err)
		}
		if (i > 0 || whole) && string(e.Previous) != string(m[:i].head()) {
			return fmt.Errorf("the manifest's entry for site %s in round %d does not continue the one before it", e.Site, e.Round)
		}
	}
	return nil
}

func digestHex(data []byte) string {
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:])
}
