package engine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"parley/internal/atomicfile"
	"parley/internal/wire"
	"parley/method"
)

// Checkpoints stores where the coordinator stands: one current checkpoint, of
// a size that does not grow with the rounds, and beside it a log, which only
// grows. What an operation did is durable when it returns.
type Checkpoints interface {
	// Load returns the checkpoint, nil if there is none, and the whole log.
	Load() (checkpoint, log []byte, err error)
	// Append makes the log its first so many bytes, of which it has at least as
	// many, followed by data. A crash may leave any part of data.
	Append(size int64, data []byte) error
	// Replace puts another checkpoint in the place of the current one, all or nothing.
	Replace(checkpoint []byte) error
}

// checkpointVersion was 1 when the checkpoint held what is in the log now, and 2
// before it ended with its own SHA-256.
const checkpointVersion = 3

// checkpoint is everything that the coordinator needs to go on, with the log
// up to its Log. It is taken after every step, before its tasks are sent;
// answers that were folded since are asked for again, and the sites send the
// same bytes.
type checkpoint struct {
	Version     int            `cbor:"version"`
	Study       string         `cbor:"study"`
	Round       int            `cbor:"round"`
	State       []byte         `cbor:"state"`
	Wait        method.Wait    `cbor:"wait"`
	Outstanding []outstanding  `cbor:"outstanding"`
	Known       map[string]int `cbor:"known"` // manifest entries that each site has been sent
	Left        []string       `cbor:"left"`
	Log         logEnd         `cbor:"log"`
	Now         float64        `cbor:"now,omitempty"` // simulated time, in the method's unit
}

// outstanding is a task that has not been folded.
type outstanding struct {
	Site    string  `cbor:"site"`
	Kind    string  `cbor:"kind"`
	Round   int     `cbor:"round"`
	Message []byte  `cbor:"message"`
	Ends    float64 `cbor:"ends,omitempty"` // when, in simulated time

	Optional bool `cbor:"optional,omitempty"`
}

func (o outstanding) digest() [32]byte { return sha256.Sum256(o.Message) }

// save makes the log hold what has happened since the last checkpoint, and then
// replaces that. After a crash between the two the log has more than the
// checkpoint refers to: it is cut when it is next appended to.
func (r *run) save() error {
	if r.Checkpoints == nil {
		return nil
	}
	var err error
	if r.cp.State, err = r.state.MarshalBinary(); err != nil {
		return fmt.Errorf("encoding the coordinator's state: %w", err)
	}
	fresh := logRecord{Rounds: r.rounds[r.logged.rounds:], Manifest: r.manifest[r.logged.entries:]}
	if len(fresh.Rounds)+len(fresh.Manifest) > 0 {
		frame, end, err := fresh.frame(r.cp.Log)
		if err != nil {
			return err
		}
		if err := r.Checkpoints.Append(r.cp.Log.Size, frame); err != nil {
			return fmt.Errorf("appending to the checkpoint's log: %w", err)
		}
		r.cp.Log = end
	}
	data, err := wire.Marshal(r.cp)
	if err != nil {
		return fmt.Errorf("encoding the checkpoint: %w", err)
	}
	sum := sha256.Sum256(data)
	if err := r.Checkpoints.Replace(append(data, sum[:]...)); err != nil {
		return fmt.Errorf("saving the checkpoint: %w", err)
	}
	r.logged.rounds, r.logged.entries = len(r.rounds), len(r.manifest)
	return nil
}

// resume takes up the last checkpoint, or starts from nothing.
func (r *run) resume(ctx context.Context) error {
	var data, log []byte
	if r.Checkpoints != nil {
		var err error
		if data, log, err = r.Checkpoints.Load(); err != nil {
			return fmt.Errorf("loading the checkpoint: %w", err)
		}
	}
	if data == nil {
		var err error
		r.cp = checkpoint{Version: checkpointVersion, Study: r.Study, Known: map[string]int{}, Log: logStart(r.Study)}
		r.state, err = r.Method.Init()
		return err
	}
	if err := r.load(data, log); err != nil {
		return err
	}
	for _, o := range r.cp.Outstanding {
		if r.Links[o.Site] == nil {
			return fmt.Errorf("the checkpoint waits for site %q, which cannot be reached", o.Site)
		}
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

// startAnew is what may be done about a checkpoint or log that cannot be used.
const startAnew = "put both back as they were; or remove both: the run then begins again, and each site sends once more what it has stored, without a new charge"

// load decodes a checkpoint and what it refers to of its log.
func (r *run) load(data, log []byte) error {
	body, whole := checked(data)
	if version, ok := versionOf(body); ok && version != checkpointVersion {
		return fmt.Errorf("the checkpoint has version %d, this program knows %d: go on with the parley that wrote it; or remove the checkpoint: "+
			"the run then begins again, and each site sends once more what it has stored, without a new charge", version, checkpointVersion)
	}
	if !whole {
		return fmt.Errorf("the checkpoint is damaged: its bytes are not those that were written; %s", startAnew)
	}
	if err := wire.Unmarshal(body, &r.cp); err != nil {
		return fmt.Errorf("decoding the checkpoint: %w; %s", err, startAnew)
	}
	if r.cp.Study != r.Study {
		return fmt.Errorf("the checkpoint belongs to study %.12s, not to %.12s", r.cp.Study, r.Study)
	}
	if r.cp.Known == nil {
		r.cp.Known = map[string]int{}
	}
	for _, site := range r.Sites {
		if n := r.cp.Known[site]; n < 0 {
			return fmt.Errorf("the checkpoint is damaged: site %s knows %d entries of the manifest; %s", site, n, startAnew)
		}
	}
	h, err := readLog(log, r.Study, r.cp.Log)
	if err == nil {
		err = h.Manifest.verify(true)
	}
	for _, site := range r.Sites {
		if n := r.cp.Known[site]; err == nil && n > len(h.Manifest) {
			err = fmt.Errorf("site %s knows %d entries of the manifest, and the log has %d", site, n, len(h.Manifest))
		}
	}
	if err != nil {
		return fmt.Errorf("the checkpoint's log is damaged: %w; %s", err, startAnew)
	}
	r.rounds, r.manifest = h.Rounds, h.Manifest
	r.logged.rounds, r.logged.entries = len(r.rounds), len(r.manifest)
	return nil
}

// checked is a checkpoint without the SHA-256 at its end, which it had from version 3
// on, or all of it where that is not the one of the rest.
func checked(data []byte) (body []byte, whole bool) {
	end := len(data) - sha256.Size
	if end < 0 {
		return data, false
	}
	if sum := sha256.Sum256(data[:end]); !bytes.Equal(sum[:], data[end:]) {
		return data, false
	}
	return data[:end], true
}

// versionOf is the version of a checkpoint of any format.
func versionOf(data []byte) (version uint64, ok bool) {
	var fields map[string]any
	if wire.Unmarshal(data, &fields) != nil {
		return 0, false
	}
	version, ok = fields["version"].(uint64)
	return version, ok
}

// FileCheckpoints keeps the checkpoint in the file of this path, and its log
// beside it.
type FileCheckpoints string

// LogSuffix is what the log's name has beyond the checkpoint's.
const LogSuffix = ".log"

// Load reads both files. A log without a checkpoint counts for nothing.
func (f FileCheckpoints) Load() (checkpoint, log []byte, err error) {
	checkpoint, err = os.ReadFile(string(f))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	log, err = os.ReadFile(string(f) + LogSuffix)
	if errors.Is(err, os.ErrNotExist) {
		err = nil // it has no bytes; the checkpoint knows whether that is too few
	}
	return checkpoint, log, err
}

// Append implements [Checkpoints].
func (f FileCheckpoints) Append(size int64, data []byte) (err error) {
	path := string(f) + LogSuffix
	if size == 0 {
		return atomicfile.Write(path, data) // makes its name durable too
	}
	log, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	info, err := log.Stat()
	if err != nil {
		return err
	}
	if info.Size() < size {
		return fmt.Errorf("%s has %d bytes, and had %d: something else has changed it", filepath.Base(path), info.Size(), size)
	}
	if info.Size() > size {
		if err := log.Truncate(size); err != nil {
			return err
		}
	}
	if _, err := log.WriteAt(data, size); err != nil {
		return err
	}
	return log.Sync()
}

// Replace implements [Checkpoints].
func (f FileCheckpoints) Replace(checkpoint []byte) error {
	return atomicfile.Write(string(f), checkpoint)
}
