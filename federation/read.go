package federation

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"parley/problem"
)

const damagedHint = "keep the file as it is for whoever looks into this; a backup that agrees with the head that was kept elsewhere can take its place"

// chain is how far a log has been verified.
type chain struct {
	seq  int    // lines
	head string // hash of the last
	size int64  // bytes
}

// ReadLog verifies the log at path line by line, and hands over each entry as it
// comes; an error of f ends it. The entries before damage are handed over before the
// error that says where it is, a [problem.Problem]. What stands after the last
// newline is no entry: somebody is writing it, or a crash has left it for [OpenLog]
// to mend.
func ReadLog(path string, f func(LogEntry) error) error {
	_, err := read(path, f)
	return err
}

// VerifyLog reads the whole log at path, and returns the number of its entries and
// the hexadecimal SHA-256 of its last line, which is empty if there is none.
func VerifyLog(path string) (n int, head string, err error) {
	c, err := read(path, nil)
	return c.seq, c.head, err
}

func read(path string, f func(LogEntry) error) (c chain, err error) {
	file, err := os.Open(path)
	if err != nil {
		return c, fmt.Errorf("reading the log: %w", err)
	}
	defer file.Close()
	_, err = c.read(path, file, f)
	return c, err
}

// read verifies lines until the end, and returns what stands after the last newline.
func (c *chain) read(path string, r io.Reader, f func(LogEntry) error) (torn []byte, err error) {
	lines := bufio.NewReaderSize(r, maxLine)
	for {
		line, err := lines.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF):
			return bytes.Clone(line), nil
		case errors.Is(err, bufio.ErrBufferFull):
			return nil, c.damaged(path, fmt.Sprintf("a line of more than %d bytes", maxLine))
		case err != nil:
			return nil, fmt.Errorf("reading the log %s: %w", path, err)
		}
		e, err := c.next(path, line[:len(line)-1])
		if err != nil {
			return nil, err
		}
		if f == nil {
			continue
		}
		if err := f(e); err != nil {
			return nil, err
		}
	}
}

func (c *chain) damaged(path, what string) error {
	return problem.Problem{File: path, Line: c.seq + 1, What: "the log is damaged: " + what, Hint: damagedHint}
}

// next holds a line, without its newline, against the one before.
func (c *chain) next(path string, line []byte) (e LogEntry, err error) {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&e); err != nil {
		return e, c.damaged(path, "this line is no entry")
	}
	again, err := encode(e)
	if err != nil || !bytes.Equal(again, line) || e.At.Location() != time.UTC || e.At.Nanosecond() != 0 {
		return e, c.damaged(path, "this line is not as this program writes it")
	}
	if e.Seq != c.seq+1 || e.Previous != c.head {
		return e, c.damaged(path, "this line does not follow the one before: one of them was changed, or lines were removed, added or moved")
	}
	*c = chain{seq: e.Seq, head: hash(line), size: c.size + int64(len(line)) + 1}
	return e, nil
}
