package dataset

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"slices"
)

// maxUnsorted is how many bytes of text, over all files of a data set that are
// not sorted by id, are sorted on the fly; beyond that the data set is refused.
const maxUnsorted = 4 << 30

// sortMemory is how many bytes of text all files of a data set may hold in
// memory while they are sorted.
const sortMemory = 128 << 20

// sorter gives the rows of a file in ascending order of id, and of line within
// an id. What fits in memory is sorted there; what does not is written to a
// temporary file, as sorted runs, which are then merged.
type sorter struct {
	rows   []record // in memory, their texts in arena
	arena  []byte
	size   int // of rows and arena, bounded by memory
	memory int

	file    *os.File // holds the runs
	unnamed bool     // file has no name any more and goes when it is closed
	out     *bufio.Writer
	ends    []int64 // of the runs in file
	at      int64

	runs []*run // being merged, those with rows left
	last *run   // gave the row that was asked for last
	pos  int    // of the next row, if there are no runs
}

// rowOverhead is about what a row takes in memory besides its text.
const rowOverhead = 96

// newSorter reads src to its end and closes it.
func newSorter(ctx context.Context, src records, memory int) (*sorter, error) {
	s := &sorter{memory: memory}
	err := s.read(ctx, src)
	if e := src.Close(); err == nil {
		err = e
	}
	if err != nil {
		s.Close() // the first error says more
		return nil, err
	}
	return s, nil
}

func (s *sorter) read(ctx context.Context, src records) error {
	for n := 0; ; n++ {
		if n%checkEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		rec, err := src.next()
		if err == io.EOF {
			break
		}
		if err == nil {
			err = s.add(rec)
		}
		if err != nil {
			return err
		}
	}
	if s.file == nil {
		s.sort()
		return nil
	}
	if err := s.spill(); err != nil {
		return err
	}
	return s.startMerge()
}

func (s *sorter) add(rec *record) error {
	if len(s.rows) > 0 && s.size+len(rec.text)+rowOverhead > s.memory {
		if err := s.spill(); err != nil {
			return err
		}
	}
	s.size += len(rec.text) + rowOverhead
	from := len(s.arena)
	// Texts of earlier rows stay in the old array when the arena grows into a
	// new one, so it grows in blocks that are never copied.
	if from+len(rec.text) > cap(s.arena) {
		s.arena, from = make([]byte, 0, max(4<<10, min(2*cap(s.arena), 1<<20), len(rec.text))), 0
	}
	s.arena = append(s.arena, rec.text...)
	kept := record{line: rec.line, quoted: rec.quoted, text: s.arena[from:len(s.arena):len(s.arena)]}
	kept.setID()
	s.rows = append(s.rows, kept)
	return nil
}

func (s *sorter) sort() {
	slices.SortFunc(s.rows, func(a, b record) int { return compareRecords(&a, &b) })
}

func compareRecords(a, b *record) int {
	return cmp.Or(bytes.Compare(a.id, b.id), cmp.Compare(a.line, b.line))
}

// spill writes the rows in memory as one run: line·2 + quoted, length, text.
func (s *sorter) spill() (err error) {
	if s.file == nil {
		if s.file, err = os.CreateTemp("", "parley-sort-*"); err != nil {
			return err
		}
		// Where the system lets an open file lose its name, a process that is
		// killed leaves no rows behind.
		s.unnamed = os.Remove(s.file.Name()) == nil
		s.out = bufio.NewWriterSize(s.file, 1<<20)
	}
	s.sort()
	var head []byte
	for i := range s.rows {
		r := &s.rows[i]
		tag := uint64(r.line) << 1
		if r.quoted {
			tag |= 1
		}
		head = binary.AppendUvarint(binary.AppendUvarint(head[:0], tag), uint64(len(r.text)))
		if _, err := s.out.Write(head); err != nil {
			return err
		}
		if _, err := s.out.Write(r.text); err != nil {
			return err
		}
		s.at += int64(len(head) + len(r.text))
	}
	s.ends = append(s.ends, s.at)
	clear(s.rows)
	s.rows, s.arena, s.size = s.rows[:0], s.arena[:0], 0
	return nil
}

func (s *sorter) startMerge() error {
	if err := s.out.Flush(); err != nil {
		return err
	}
	s.rows, s.arena, s.out = nil, nil, nil
	from := int64(0)
	for _, end := range s.ends {
		r := &run{src: bufio.NewReaderSize(io.NewSectionReader(s.file, from, end-from), 64<<10)}
		if err := r.next(); err != nil { // a run is never empty
			return err
		}
		s.runs = append(s.runs, r)
		from = end
	}
	slices.SortFunc(s.runs, compareRuns)
	return nil
}

func (s *sorter) next() (*record, error) {
	if s.file == nil {
		if s.pos == len(s.rows) {
			return nil, io.EOF
		}
		s.pos++
		return &s.rows[s.pos-1], nil
	}
	if s.last != nil {
		// The first run moves on and takes its new place among the others.
		switch err := s.last.next(); err {
		case nil:
			rest := s.runs[1:]
			i, _ := slices.BinarySearchFunc(rest, s.last, compareRuns)
			copy(s.runs, rest[:i])
			s.runs[i] = s.last
		case io.EOF:
			s.runs = s.runs[1:]
		default:
			return nil, err
		}
		s.last = nil
	}
	if len(s.runs) == 0 {
		return nil, io.EOF
	}
	s.last = s.runs[0]
	return &s.last.rec, nil
}

// Close removes the temporary file.
func (s *sorter) Close() error {
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	if !s.unnamed {
		err = errors.Join(err, os.Remove(s.file.Name()))
	}
	return err
}

// run is a sorted part of the file.
type run struct {
	src *bufio.Reader
	rec record
}

func compareRuns(a, b *run) int { return compareRecords(&a.rec, &b.rec) }

func (r *run) next() error {
	tag, err := binary.ReadUvarint(r.src)
	if err != nil {
		return err
	}
	n, err := binary.ReadUvarint(r.src)
	if err != nil {
		return io.ErrUnexpectedEOF
	}
	text := slices.Grow(r.rec.text[:0], int(n))[:n]
	if _, err := io.ReadFull(r.src, text); err != nil {
		return io.ErrUnexpectedEOF
	}
	r.rec = record{line: int(tag >> 1), quoted: tag&1 == 1, text: text}
	r.rec.setID()
	return nil
}
