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

	"parley/internal/files"
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

// checkpointVersion was 1 when the checkpoint held what is in the log now, 2
// before it ended with its own SHA-256, and 3 when tasks held the history.
const checkpointVersion = 5

// checkpoint is everything that the coordinator needs to go on, with the log
// up to its Log. It is taken after every step, before its tasks are sent;
// answers that were folded since are asked for again, and the sites send the
// same bytes.
type checkpoint struct {
	Version     int           `cbor:"version"`
	Study       string        `cbor:"study"`
	Revision    int           `cbor:"revision"`
	Round       int           `cbor:"round"`
	State       []byte        `cbor:"state"`
	Wait        method.Wait   `cbor:"wait"`
	Outstanding []outstanding `cbor:"outstanding"`
	Bodies      [][]byte      `cbor:"bodies"` // of the outstanding tasks: one that is broadcast stands once
	Marks       []Mark        `cbor:"marks"`  // of the sites' ledgers, in the plan's order
	Log         logEnd        `cbor:"log"`
	Now         float64       `cbor:"now,omitempty"` // simulated time, in the method's unit
}

// outstanding is a task that has not been folded.
type outstanding struct {
	Site    string  `cbor:"site"`
	Kind    string  `cbor:"kind"`
	Round   int     `cbor:"round"`
	Body    int     `cbor:"body"`           // place among the bodies
	Records int     `cbor:"records"`        // of the history, when it was given out
	Ends    float64 `cbor:"ends,omitempty"` // when, in simulated time

	Optional bool `cbor:"optional,omitempty"`

	body []byte
}

// save makes the log hold what has happened since the last checkpoint, and then
// replaces that. After a crash between the two the log has more than the
// checkpoint refers to: it is cut when it is next appended to.
func (r *run) save() error {
	if r.Checkpoints == nil {
		return nil
	}
	// What could not be loaded again is not saved.
	if err := guarded(func() error { _, err := r.Method.Restore(r.before); return err }); err != nil {
		return fmt.Errorf("the coordinator's state could not be restored from what would be saved: %w", err)
	}
	r.cp.State = r.before
	r.cp.Bodies = nil
	for i := range r.cp.Outstanding {
		o := &r.cp.Outstanding[i]
		o.Body = slices.IndexFunc(r.cp.Bodies, func(b []byte) bool { return bytes.Equal(b, o.body) })
		if o.Body < 0 {
			o.Body, r.cp.Bodies = len(r.cp.Bodies), append(r.cp.Bodies, o.body)
		}
	}
	fresh := logRecord{Rounds: r.rounds[r.logged.rounds:], History: r.history.records[r.logged.records:]}
	for i := range fresh.History {
		fresh.Releases = append(fresh.Releases, r.history.released(r.logged.records+i))
	}
	if len(fresh.Rounds)+len(fresh.History) > 0 {
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
	if err := wire.Unmarshal(data, new(checkpoint)); err != nil {
		return fmt.Errorf("the checkpoint could not be read again: %w", err)
	}
	sum := sha256.Sum256(data)
	if err := r.Checkpoints.Replace(append(data, sum[:]...)); err != nil {
		return fmt.Errorf("saving the checkpoint: %w", err)
	}
	r.logged.rounds, r.logged.records = len(r.rounds), len(r.history.records)
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
		return r.begin()
	}
	if err := r.load(data, log); err != nil {
		return err
	}
	for i, record := range r.history.records[:min(len(r.history.records), len(r.Follow))] {
		// what all sites have kept is the study, and not a branch that no site follows
		if !bytes.Equal(record, r.Follow[i]) {
			return r.begin()
		}
	}
	for _, o := range r.cp.Outstanding {
		if r.Links[o.Site] == nil {
			return fmt.Errorf("the checkpoint waits for site %q, which cannot be reached", o.Site)
		}
	}
	if err := guarded(func() (err error) { r.state, err = r.Method.Restore(r.cp.State); return err }); err != nil {
		return fmt.Errorf("restoring the coordinator's state: %w", err)
	}
	r.before = r.cp.State
	r.observe(Event{Resumed: true})
	for _, o := range slices.Clone(r.cp.Outstanding) {
		if err := r.send(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// begin starts from nothing.
func (r *run) begin() (err error) {
	r.cp = checkpoint{Version: checkpointVersion, Study: r.Study, Revision: r.Revision,
		Marks: make([]Mark, len(r.Sites)), Log: logStart(r.Study)}
	r.history, r.rounds, r.logged.rounds, r.logged.records = newManifest(len(r.Sites)), nil, 0, 0
	r.state, err = r.Method.Init()
	return err
}

// startAnew is what may be done about a checkpoint or log that cannot be used.
const startAnew = "put the files checkpoint and checkpoint.log of the results back as they were, or remove both and " +
	"go on: the run then begins anew, and each site sends once more what it has stored, without a new charge"

// load decodes a checkpoint and what it refers to of its log.
func (r *run) load(data, log []byte) error {
	body, whole := checked(data)
	if version, ok := versionOf(body); ok && version != checkpointVersion {
		return fmt.Errorf("the checkpoint has version %d, this program knows %d: go on with the parley that wrote it; "+
			"or begin the study anew elsewhere", version, checkpointVersion)
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
	if r.cp.Revision != r.Revision {
		return fmt.Errorf("the checkpoint was made with revision %d of the method, and this program has %d: go on "+
			"with the parley that wrote it; or begin the study anew elsewhere", r.cp.Revision, r.Revision)
	}
	if len(r.cp.Marks) != len(r.Sites) {
		return fmt.Errorf("the checkpoint is damaged: it has %d marks for %d sites; %s", len(r.cp.Marks),
			len(r.Sites), startAnew)
	}
	h, err := readLog(log, r.Study, r.cp.Log)
	for i := range h.History {
		if err == nil {
			err = r.history.append(h.History[i], foldedOf(h.Releases[i]))
		}
	}
	if err != nil {
		return fmt.Errorf("the checkpoint's log is damaged: %w; %s", err, startAnew)
	}
	for i := range r.cp.Outstanding {
		o := &r.cp.Outstanding[i]
		if o.Body < 0 || o.Body >= len(r.cp.Bodies) || o.Records < 0 || o.Records > len(r.history.records) {
			return fmt.Errorf("the checkpoint is damaged: the task of site %s has no body, or no place in the "+
				"history; %s", o.Site, startAnew)
		}
		o.body = r.cp.Bodies[o.Body]
	}
	r.rounds = h.Rounds
	r.logged.rounds, r.logged.records = len(r.rounds), len(r.history.records)
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
		return files.WriteOwn(path, data) // makes its name durable too
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
		return fmt.Errorf("%s has %d bytes, and had %d: something else has changed it", filepath.Base(path),
			info.Size(), size)
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
	return files.WriteOwn(string(f), checkpoint)
}
