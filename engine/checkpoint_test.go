package engine_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"parley/engine"
	"parley/engine/enginetest"
	"parley/internal/testkit"
	"parley/internal/wire"
)

func finished(t *testing.T, m toy) (*enginetest.World, *engine.Outcome) {
	t.Helper()
	w := enginetest.New(sites...)
	out := testkit.Get(process(w, m, "", 3, nil).Run(t.Context()))(t)
	return w, out
}

// refused runs the study again and wants an error that says what to do.
func refused(t *testing.T, w *enginetest.World, m toy, want string) {
	t.Helper()
	saved, log := w.Checkpoint, w.Log
	_, err := process(w, m, "", 3, nil).Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), want) ||
		!strings.Contains(err.Error(), "each site sends once more what it has stored") {
		t.Fatalf("want %q, got %v", want, err)
	}
	if !bytes.Equal(saved, w.Checkpoint) || !bytes.Equal(log, w.Log) {
		t.Fatal("what was refused has been changed")
	}
}

// A checkpoint that became durable before its log did, and every other log that
// is shorter than the checkpoint refers to.
func TestShortLogIsRefused(t *testing.T) {
	m := toy{sites: sites, rounds: 2}
	w, _ := finished(t, m)
	whole := w.Log
	for n := 0; n < len(whole); n += 3 {
		w.Log = whole[:n]
		refused(t, w, m, "the checkpoint's log is damaged: it has ")
	}
	w.Log = nil
	refused(t, w, m, "the checkpoint's log is damaged: it has 0 bytes, and the checkpoint refers to ")
}

func TestDamagedLogIsRefused(t *testing.T) {
	m := toy{sites: sites, rounds: 2}
	w, _ := finished(t, m)
	whole := w.Log
	for i := 0; i < len(whole); i += 3 {
		w.Log = slices.Clone(whole)
		w.Log[i] ^= 1 << (i % 8)
		refused(t, w, m, "the checkpoint's log is damaged: record ")
	}
	other, _ := finished(t, m) // the same study once more: other releases
	w.Log = other.Log
	refused(t, w, m, "the checkpoint's log is damaged: ")
}

// Whatever follows the part of the log that the checkpoint refers to was never
// relied upon, and goes with the next append.
func TestTailOfTheLogIsCut(t *testing.T) {
	m := toy{sites: sites, rounds: 3}
	w, want := finished(t, m)
	for _, tail := range []string{"\x00", "\xff\xff\xff\xff", "\x00\x00\x00\x05torn", string(w.Log)} {
		cut := w.WithoutCheckpoint()
		stopped := process(cut, m, "", 3, nil)
		cut.Start(9) // operations: to between the second append and its checkpoint
		if _, err := stopped.Run(t.Context()); !errors.Is(err, enginetest.ErrCrash) || len(cut.Log) == 0 {
			t.Fatalf("not stopped: %v", err)
		}
		cut.Log = append(cut.Log, tail...)
		out, err := process(cut, m, "", 3, nil).Run(t.Context())
		if err != nil || !reflect.DeepEqual(out.Rounds, want.Rounds) || !bytes.Equal(cut.Log, w.Log) {
			t.Fatalf("tail %q: %v", tail, err)
		}
	}
}

func TestUselessCheckpointsAreRefused(t *testing.T) {
	m := toy{sites: sites, rounds: 1}
	w, _ := finished(t, m)
	whole := w.Checkpoint
	before := testkit.Get(wire.Marshal(map[string]any{"version": 1, "study": toyStudy, "rounds": []int{},
		"manifest": []int{}}))(t)
	w.Checkpoint = before
	if _, err := process(w, m, "", 3, nil).Run(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "the checkpoint has version 1, this program knows 5: go on with the parley "+
			"that wrote it") {
		t.Errorf("got %v", err)
	}
	for _, bytes := range [][]byte{whole[:len(whole)-1], {}, append(slices.Clone(whole), 0)} {
		w.Checkpoint = bytes
		refused(t, w, m, "the checkpoint is damaged")
	}
	for i := 0; i < len(whole); i += 3 {
		w.Checkpoint = slices.Clone(whole)
		w.Checkpoint[i] ^= 1 << (i % 8)
		refused(t, w, m, "the checkpoint is damaged")
	}
	other := []byte("not a checkpoint, but whole")
	sum := sha256.Sum256(other)
	w.Checkpoint = append(other, sum[:]...)
	refused(t, w, m, "decoding the checkpoint")

	w.Checkpoint = whole
	c := process(w, m, "", 3, nil)
	c.Study = strings.Repeat("0", 64)
	if _, err := c.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "belongs to study") {
		t.Fatalf("got %v", err)
	}
}

// What a step writes does not grow with the steps before it, but for the
// method's own state.
func TestStepsWriteNoMoreAsTheyGoOn(t *testing.T) {
	sizes := map[int]int{}
	for _, rounds := range []int{10, 60} {
		w, out := finished(t, toy{sites: sites, rounds: rounds, async: true})
		sizes[rounds] = len(w.Checkpoint) - len(out.Result.Files[0].Data)
		if w.Appended != len(w.Log) {
			t.Errorf("%d rounds: a log of %d bytes took %d", rounds, len(w.Log), w.Appended)
		}
	}
	if sizes[60] > sizes[10]+16 { // longer numbers
		t.Errorf("beside the state, a checkpoint has %d bytes after 10 rounds and %d after 60", sizes[10], sizes[60])
	}
}

func TestFileCheckpoints(t *testing.T) {
	path := filepath.Join(t.TempDir(), "checkpoint")
	f := engine.FileCheckpoints(path)
	holds := func(checkpoint, log string) {
		t.Helper()
		c, l, err := f.Load()
		if string(c) != checkpoint || string(l) != log || err != nil {
			t.Fatalf("got %q, %q, %v; want %q, %q", c, l, err, checkpoint, log)
		}
	}
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	holds("", "")
	do(f.Append(0, []byte("never referred to")))
	holds("", "")
	do(f.Replace([]byte("one")))
	holds("one", "never referred to")
	do(f.Append(0, []byte("first ")))
	do(f.Replace([]byte("two, longer")))
	holds("two, longer", "first ")
	do(f.Append(6, []byte("torn, and longer")))
	do(f.Append(6, []byte("second")))
	do(f.Replace([]byte("3")))
	holds("3", "first second")
	if err := f.Append(13, []byte("beyond")); err == nil ||
		!strings.Contains(err.Error(), "checkpoint.log has 12 bytes, and had 13") {
		t.Fatalf("got %v", err)
	}
	do(os.Remove(path + engine.LogSuffix))
	holds("3", "")
	if err := f.Append(12, []byte("beyond")); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("got %v", err)
	}
}
