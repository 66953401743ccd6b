package dataset

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"parley/internal/tabular"
	"parley/problem"
)

// input is one file of a data set, as it was when the data set was opened.
type input struct {
	path    string
	size    int64
	changed time.Time
}

func newInput(path string) (input, error) {
	info, err := os.Stat(path)
	if err != nil {
		return input{}, err
	}
	if !info.Mode().IsRegular() {
		return input{}, problem.Problem{File: path, What: "is not a regular file"}
	}
	return input{path, info.Size(), info.ModTime()}, nil
}

// open returns the text of the file: decompressed if it starts as gzip does,
// whatever its name, and without a byte order mark. The text is read ahead by
// a goroutine where it has to be decompressed; Close ends it.
func (in input) open() (io.ReadCloser, error) {
	f, err := os.Open(in.path)
	if err != nil {
		return nil, err
	}
	r, err := in.text(f)
	if err != nil {
		f.Close()
		return nil, err
	}
	return r, nil
}

func (in input) text(f *os.File) (io.ReadCloser, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() != in.size || !info.ModTime().Equal(in.changed) {
		return nil, in.problem("has changed since it was opened", "start again with the new data")
	}
	if kind := ending(in.path); kind == ".xlsx" || kind == ".parquet" {
		return in.decode(f, kind)
	}
	raw := bufio.NewReaderSize(f, 64<<10)
	var text io.ReadCloser = struct {
		*bufio.Reader
		io.Closer
	}{raw, f}
	if magic, _ := raw.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(raw)
		if err != nil {
			return nil, in.problem("is damaged: "+err.Error(), "copy or compress it again")
		}
		text = newReadAhead(z, f)
	}
	start := bufio.NewReaderSize(text, 16)
	mark, err := start.Peek(4)
	if err != nil && err != io.EOF {
		text.Close()
		return nil, in.damaged(err)
	}
	if end := bytes.IndexByte(mark, '\n'); end >= 0 { // what follows is of rows
		mark = mark[:end]
	}
	const saveAs = "save it as CSV in UTF-8, with commas and decimal points"
	switch {
	case bytes.HasPrefix(mark, []byte("\xef\xbb\xbf")):
		start.Discard(3)
	case bytes.HasPrefix(mark, []byte("\xff\xfe")), bytes.HasPrefix(mark, []byte("\xfe\xff")):
		text.Close()
		return nil, in.problem("is UTF-16, not UTF-8", saveAs)
	case bytes.IndexByte(mark, 0) >= 0:
		text.Close()
		return nil, in.problem("is not text, or UTF-16 without a byte order mark", saveAs)
	case bytes.HasPrefix(mark, []byte("PK\x03\x04")):
		text.Close()
		return nil, in.problem("is a spreadsheet workbook or a zip archive, not CSV", "if it is an Excel workbook, let its name end in .xlsx; otherwise "+saveAs)
	case bytes.HasPrefix(mark, []byte("\xd0\xcf\x11\xe0")):
		text.Close()
		return nil, in.problem("is a workbook of Excel 97 to 2003 (.xls), not CSV", "save it as .xlsx, or as CSV in UTF-8")
	case bytes.HasPrefix(mark, []byte("PAR1")):
		text.Close()
		return nil, in.problem("is a Parquet file, not CSV", "let its name end in .parquet")
	}
	return struct {
		io.Reader
		io.Closer
	}{start, text}, nil
}

// decode returns the table in a workbook or a Parquet file as CSV.
func (in input) decode(f *os.File, kind string) (io.ReadCloser, error) {
	if kind == ".parquet" {
		text, err := tabular.Parquet(f, in.size)
		if err != nil {
			return nil, in.problem("cannot be read as Parquet: "+err.Error(), "write texts, numbers and dates in flat columns, or save it as CSV in UTF-8")
		}
		return struct {
			io.Reader
			io.Closer
		}{text, closers{text, f}}, nil
	}
	text, err := tabular.XLSX(f)
	f.Close() // it was read as a whole
	if err != nil {
		return nil, in.problem("cannot be read as an Excel workbook: "+err.Error(), "save the one sheet that holds the table as .xlsx, or as CSV in UTF-8")
	}
	return text, nil
}

// closers closes all.
type closers []io.Closer

func (c closers) Close() error {
	var errs []error
	for _, one := range c {
		errs = append(errs, one.Close())
	}
	return errors.Join(errs...)
}

func (in input) problem(what, hint string) problem.Problem {
	return problem.Problem{File: in.path, What: what, Hint: hint}
}

// damaged explains an error of the decompressor or of the disk.
func (in input) damaged(err error) error {
	return in.problem("cannot be read to its end: "+err.Error(), "copy or compress it again")
}

// readAhead reads in a goroutine of its own, a few blocks ahead.
type readAhead struct {
	src     io.Closer
	blocks  chan block // filled
	spare   chan []byte
	stop    chan struct{}
	done    chan struct{}
	close   sync.Once
	current block
	off     int
}

type block struct {
	data []byte
	err  error // after data
}

const aheadBlocks, aheadBlockSize = 4, 128 << 10

func newReadAhead(r io.Reader, src io.Closer) *readAhead {
	a := &readAhead{
		src:    src,
		blocks: make(chan block, aheadBlocks),
		spare:  make(chan []byte, aheadBlocks),
		stop:   make(chan struct{}),
		done:   make(chan struct{}),
	}
	for range aheadBlocks {
		a.spare <- make([]byte, aheadBlockSize)
	}
	go func() {
		defer close(a.done)
		defer close(a.blocks)
		for {
			var buf []byte
			select {
			case buf = <-a.spare:
			case <-a.stop:
				return
			}
			n, err := 0, error(nil)
			for n < len(buf) && err == nil {
				var m int
				m, err = r.Read(buf[n:])
				n += m
			}
			a.blocks <- block{buf[:n], err} // never blocks: as many blocks as places
			if err != nil {
				return
			}
		}
	}()
	return a
}

func (a *readAhead) Read(p []byte) (int, error) {
	for a.off == len(a.current.data) {
		if a.current.err != nil {
			return 0, a.current.err
		}
		if a.current.data != nil {
			a.spare <- a.current.data[:cap(a.current.data)]
		}
		next, ok := <-a.blocks
		if !ok {
			return 0, os.ErrClosed
		}
		a.current, a.off = next, 0
	}
	n := copy(p, a.current.data[a.off:])
	a.off += n
	return n, nil
}

// Close ends the goroutine and waits until it has let go of the file.
func (a *readAhead) Close() error {
	a.close.Do(func() { close(a.stop) })
	<-a.done
	return a.src.Close()
}
