package engine

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"slices"

	"parley/internal/atomicfile"
	"parley/internal/wire"
	"parley/method"
)

const checkpointVersion = 1

// checkpoint is everything that the coordinator needs to go on. It is taken
// after every step, before its tasks are sent; answers that were folded since
// are asked for again, and the sites send the same bytes.
type checkpoint struct {
	Version     int            `cbor:"version"`
	Study       string         `cbor:"study"`
	Round       int            `cbor:"round"`
	State       []byte         `cbor:"state"`
	Wait        method.Wait    `cbor:"wait"`
	Outstanding []outstanding  `cbor:"outstanding"`
	Manifest    manifest       `cbor:"manifest"`
	Known       map[string]int `cbor:"known"` // manifest entries that each site has been sent
	Left        []string       `cbor:"left"`
	Rounds      []Round        `cbor:"rounds"`
	Now         float64        `cbor:"now,omitempty"` // simulated time, in the method's unit
}

// outstanding is a task that has not been folded.
type outstanding struct {
	Site    string  `cbor:"site"`
	Kind    string  `cbor:"kind"`
	Round   int     `cbor:"round"`
	Message []byte  `cbor:"message"`
	Ends    float64 `cbor:"ends,omitempty"` // when, in simulated time
}

func (o outstanding) digest() [32]byte { return sha256.Sum256(o.Message) }

func (r *run) save() error {
	if r.Checkpoints == nil {
		return nil
	}
	var err error
	if r.cp.State, err = r.state.MarshalBinary(); err != nil {
		return fmt.Errorf("encoding the coordinator's state: %w", err)
	}
	data, err := wire.Marshal(r.cp)
	if err != nil {
		return fmt.Errorf("encoding the checkpoint: %w", err)
	}
	if err := r.Checkpoints.Save(data); err != nil {
		return fmt.Errorf("saving the checkpoint: %w", err)
	}
	return nil
}

// resume takes up the last checkpoint, or starts from nothing.
func (r *run) resume(ctx context.Context) error {
	var data []byte
	if r.Checkpoints != nil {
		var err error
		if data, err = r.Checkpoints.Load(); err != nil {
			return fmt.Errorf("loading the checkpoint: %w", err)
		}
	}
	if data == nil {
		var err error
		r.cp = checkpoint{Version: checkpointVersion, Study: r.Study, Known: map[string]int{}}
		r.state, err = r.Method.Init()
		return err
	}
	if err := wire.Unmarshal(data, &r.cp); err != nil {
		return fmt.Errorf("decoding the checkpoint: %w", err)
	}
	switch {
	case r.cp.Version != checkpointVersion:
		return fmt.Errorf("the checkpoint has version %d, this program knows %d", r.cp.Version, checkpointVersion)
	case r.cp.Study != r.Study:
		return fmt.Errorf("the checkpoint belongs to study %.12s, not to %.12s", r.cp.Study, r.Study)
	}
	if err := r.cp.Manifest.verify(true); err != nil {
		return fmt.Errorf("the checkpoint is damaged: %w", err)
	}
	for _, o := range r.cp.Outstanding {
		if r.Links[o.Site] == nil {
			return fmt.Errorf("the checkpoint waits for site %q, which cannot be reached", o.Site)
		}
	}
	if r.cp.Known == nil {
		r.cp.Known = map[string]int{}
	}
	var err error
	if r.state, err = r.Method.Restore(r.cp.State); err != nil {
		return fmt.Errorf("restoring the coordinator's state: %w", err)
	}
	r.observe(Event{Resumed: true})
	for _, o := range slices.Clone(r.cp.Outstanding) {
		r.send(ctx, o)
	}
	return nil
}

// FileCheckpoints keeps the checkpoint in one file, replaced as a whole.
type FileCheckpoints string

// Load reads the file; nil if it does not exist.
func (f FileCheckpoints) Load() ([]byte, error) {
	data, err := os.ReadFile(string(f))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// Save replaces the file as a whole.
func (f FileCheckpoints) Save(data []byte) error { return atomicfile.Write(string(f), data) }
