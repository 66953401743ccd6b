package federation

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"parley/internal/files"
	"parley/problem"
)

// LogEntry is one line of a log.
type LogEntry struct {
	Seq   int       `json:"seq"`             // from 1
	At    time.Time `json:"at"`              // UTC, whole seconds, by the clock of whoever wrote the line
	What  string    `json:"what"`            // kind, in a word such as "approved"
	Study string    `json:"study,omitempty"` // digest
	Site  string    `json:"site,omitempty"`  // name
	Text  string    `json:"text"`            // one plain line for people, without any subject's data
	// hexadecimal SHA-256 of the line before, without its newline; empty in the first
	Previous string `json:"previous"`
}

// Limits of a line. What an entry may hold is below that of the whole line,
// however it is escaped.
const (
	maxLogText = 1000 // runes
	maxName    = 100  // runes of what, study and site
	maxLine    = 32 << 10
)

// patience is how long Open and Add wait for other processes that add.
const patience = 10 * time.Second

// Log is a record of what was decided and done, for people and auditors: a file of JSON
// lines, each with the SHA-256 of the line before. Several goroutines and processes may
// add to it at once; it holds nothing open.
//
// Whoever changes, removes, adds or moves a line breaks the chain, which every reader
// notices, unless they write all later lines anew. What no chain shows is its end: the
// last lines may have been cut off or replaced. So whoever wants to be sure of the whole
// keeps the number of lines and the head, as [VerifyLog] returns them, elsewhere from time
// to time, and compares.
type Log struct {
	path string

	mu  sync.Mutex
	end chain // of what has been verified
}

// OpenLog verifies the log at path, and makes an empty one if there is none, for
// its owner alone. A log that is damaged is refused, with a [problem.Problem]. A
// last line that a crash left unfinished is cut, and an entry says so.
func OpenLog(path string) (*Log, error) {
	l := &Log{path: path}
	if err := l.change(nil); err != nil {
		return nil, err
	}
	return l, nil
}

// Add appends an entry, which is durable when Add returns. Each text is reduced
// to one printable line. After an error the entry may or may not be in the log.
func (l *Log) Add(what, study, site, text string) error {
	return l.change(&LogEntry{What: printable(what, maxName), Study: printable(study, maxName),
		Site: printable(site, maxName), Text: printable(text, maxLogText)})
}

// change reads what others have appended, and appends e. Without one it makes the
// file if there is none.
func (l *Log) change(e *LogEntry) (err error) {
	defer func() {
		if p := (problem.Problem{}); err != nil && !errors.As(err, &p) {
			err = fmt.Errorf("the log %s: %w", l.path, err)
		}
	}()
	l.mu.Lock()
	defer l.mu.Unlock()
	lock, err := acquire(l.path+".lock", patience)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	if e == nil {
		if _, err := os.Stat(l.path); errors.Is(err, fs.ErrNotExist) {
			if err := files.WriteOwn(l.path, nil); err != nil {
				return err
			}
		}
	}
	f, err := os.OpenFile(l.path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	torn, err := l.catchUp(f)
	if err != nil {
		return err
	}
	if len(torn) > 0 {
		if err := l.mend(f, torn); err != nil {
			return err
		}
	}
	if e == nil {
		return nil
	}
	return l.append(f, *e)
}

// catchUp verifies the lines after those that are known, and returns what stands
// after the last newline.
func (l *Log) catchUp(f *os.File) (torn []byte, err error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() < l.end.size {
		return nil, problem.Problem{File: l.path,
			What: fmt.Sprintf("the log is shorter than it was: it had %d lines in %d bytes, and has %d bytes",
				l.end.seq, l.end.size, info.Size()), Hint: damagedHint}
	}
	if _, err := f.Seek(l.end.size, io.SeekStart); err != nil {
		return nil, err
	}
	return l.end.read(l.path, f, nil)
}

// mend finishes a last line that lacks nothing but its newline, and cuts any
// other that is unfinished.
func (l *Log) mend(f *os.File, torn []byte) error {
	if json.Valid(torn) {
		after := l.end
		if _, err := after.next(l.path, torn); err != nil {
			return err
		}
		if err := write(f, l.end.size+int64(len(torn)), []byte("\n")); err != nil {
			return err
		}
		l.end = after
		return nil
	}
	// The entry takes the place of what is cut, so that no crash in between hides it.
	size := l.end.size + int64(len(torn))
	if err := l.append(f, LogEntry{What: "repaired",
		Text: fmt.Sprintf("A last line of %d bytes, which a crash had left unfinished, was cut.", len(torn))}); err !=
		nil {
		return err
	}
	if l.end.size >= size {
		return nil
	}
	if err := f.Truncate(l.end.size); err != nil {
		return err
	}
	return f.Sync()
}

// append writes an entry as the next line.
func (l *Log) append(f *os.File, e LogEntry) error {
	e.Seq, e.At, e.Previous = l.end.seq+1, time.Now().UTC().Truncate(time.Second), l.end.head
	line, err := encode(e)
	if err != nil {
		return err
	}
	after := l.end
	if _, err := after.next(l.path, line); err != nil {
		return err
	}
	if err := write(f, l.end.size, append(line, '\n')); err != nil {
		return err
	}
	l.end = after
	return nil
}

func write(f *os.File, at int64, data []byte) error {
	if _, err := f.WriteAt(data, at); err != nil {
		return err
	}
	return f.Sync()
}

// encode is an entry's line, without its newline.
func encode(e LogEntry) ([]byte, error) {
	var b bytes.Buffer
	j := json.NewEncoder(&b)
	j.SetEscapeHTML(false)
	err := j.Encode(e)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// printable reduces text to one line of so many printable runes at most.
func printable(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, " "))
	text = strings.Join(strings.Fields(text), " ")
	if utf8.RuneCountInString(text) > most {
		text = string([]rune(text)[:most-1]) + "…"
	}
	return text
}

func hash(line []byte) string {
	sum := sha256.Sum256(line)
	return hex.EncodeToString(sum[:])
}

const damagedHint = "keep the file as it is for whoever looks into this; a backup that agrees with the head that was " +
	"kept elsewhere can take its place"

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
	if err := files.Decode(line, &e); err != nil {
		return e, c.damaged(path, "this line is no entry")
	}
	again, err := encode(e)
	if err != nil || !bytes.Equal(again, line) || e.At.Location() != time.UTC || e.At.Nanosecond() != 0 {
		return e, c.damaged(path, "this line is not as this program writes it")
	}
	if e.Seq != c.seq+1 || e.Previous != c.head {
		return e, c.damaged(path, "this line does not follow the one before: one of them was changed, or lines were "+
			"removed, added or moved")
	}
	*c = chain{seq: e.Seq, head: hash(line), size: c.size + int64(len(line)) + 1}
	return e, nil
}
