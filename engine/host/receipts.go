package host

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"parley/engine"
	"parley/internal/files"
)

// Receipts keeps, in the file of this path, how far a site's ledger has come:
// the site's own mark, noted before an answer is told to anybody, and the last
// one that a coordinator has countersigned. The file should lie on another disk
// than the store, or at least in no backup of it: what is brought back together
// with the store notices nothing.
type Receipts string

type receiptFile struct {
	Lines int    `json:"ledger_lines"`
	Hash  string `json:"ledger_hash"`
	// Confirmed is the last receipt of each study's coordinator.
	Confirmed map[string]json.RawMessage `json:"confirmed,omitempty"`
	// of the rest; empty if an older program wrote the file
	Checksum string `json:"checksum,omitempty"`
}

func (f receiptFile) sum() string {
	f.Checksum = ""
	data, _ := json.Marshal(f) // what was read, or is about to be written, as JSON
	return files.Checksum(data)
}

// Load implements [engine.Marks].
func (r Receipts) Load() (engine.Mark, error) {
	f, err := r.read()
	if err != nil {
		return engine.Mark{}, err
	}
	hash, err := hex.DecodeString(f.Hash)
	if err != nil {
		return engine.Mark{}, fmt.Errorf("%s is damaged: %w", string(r), err)
	}
	return engine.Mark{Lines: f.Lines, Hash: hash}, nil
}

// Keep implements [engine.Marks].
func (r Receipts) Keep(m engine.Mark) error {
	return r.change(func(f *receiptFile) { f.Lines, f.Hash = m.Lines, hex.EncodeToString(m.Hash) })
}

// Confirm keeps the last receipt of a study's coordinator, as JSON.
func (r Receipts) Confirm(study string, receipt any) error {
	data, err := json.Marshal(receipt)
	if err != nil {
		return err
	}
	return r.change(func(f *receiptFile) {
		if f.Confirmed == nil {
			f.Confirmed = map[string]json.RawMessage{}
		}
		f.Confirmed[study] = data
	})
}

// Confirmed reads into receipt what [Receipts.Confirm] kept of a study; it stays
// as it is if nothing was.
func (r Receipts) Confirmed(study string, receipt any) error {
	f, err := r.read()
	if err != nil || f.Confirmed[study] == nil {
		return err
	}
	return json.Unmarshal(f.Confirmed[study], receipt)
}

func (r Receipts) read() (f receiptFile, err error) {
	data, err := os.ReadFile(string(r))
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err == nil {
		err = files.Decode(data, &f)
	}
	if err == nil && f.Checksum != "" && f.Checksum != f.sum() {
		err = errors.New("they are damaged: their checksum does not hold")
	}
	if err != nil {
		err = fmt.Errorf("reading the receipts in %s: %w", string(r), err)
	}
	return f, err
}

// changing has a lock for each file, held while it is changed: studies of one site share it.
var changing sync.Map

func (r Receipts) change(do func(*receiptFile)) error {
	lock, _ := changing.LoadOrStore(r, new(sync.Mutex))
	lock.(*sync.Mutex).Lock()
	defer lock.(*sync.Mutex).Unlock()
	f, err := r.read()
	if err != nil {
		return err
	}
	do(&f)
	f.Checksum = f.sum()
	data, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	return files.WriteOwn(string(r), append(data, '\n'))
}
