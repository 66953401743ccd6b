package tabular

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// stata is a data set of Stata as its header has it (Stata's help for dta; format 110 is of Stata 7, as R's foreign
// writes it, 113 of 8 and 9, 114 and 115 of 10 to 12, 117 of 13, 118 and 119 of 14 to 18).
type stata struct {
	src     *io.SectionReader
	order   binary.ByteOrder
	release int
	vars    []stataVar
	rows    int64
	data    int64 // where rows begin
	labels  map[string]map[int32]string
	long    map[[2]uint64]int64 // where long texts stand
}

type stataVar struct {
	name, format, label string
	kind                int // 1 to 2045: a text of so many bytes; else one of those below
	width               int
}

const (
	stataLong   = 32768 // a text of any length, which stands elsewhere
	stataDouble = 65526
	stataFloat  = 65527
	stataInt32  = 65528
	stataInt16  = 65529
	stataInt8   = 65530
)

var stataWidth = map[int]int{stataLong: 8, stataDouble: 8, stataFloat: 4, stataInt32: 4, stataInt16: 2, stataInt8: 1}

// since1960 is the day from which Stata and SAS count.
var since1960 = time.Date(1960, 1, 1, 0, 0, 0, 0, time.UTC)

// Stata returns the rows of a data set of Stata as CSV. A column named id comes first. Values with labels are these
// labels as in [SPSS], the missing values . and .a to .z are empty, and days and moments are written as such by their
// formats. The source must stay open until the text is closed.
func Stata(src io.ReaderAt, size int64) (_ io.ReadCloser, err error) {
	defer contain(&err)
	s := &stata{src: io.NewSectionReader(src, 0, size), labels: map[string]map[int32]string{},
		long: map[[2]uint64]int64{}}
	head := make([]byte, 11)
	if _, err := io.ReadFull(s.src, head); err != nil {
		return nil, errors.New("it is too short")
	}
	if bytes.Equal(head, []byte("<stata_dta>")) {
		err = s.marked()
	} else {
		err = s.packed(int(head[0]))
	}
	if err != nil {
		return nil, err
	}
	width, err := s.measure()
	if err != nil {
		return nil, err
	}
	names, labels := make([]string, len(s.vars)), make([]map[string]string, len(s.vars))
	for i, v := range s.vars {
		names[i], labels[i] = v.name, map[string]string{}
		if v.kind > 2045 && v.kind != stataLong && v.label != "" {
			for x, label := range s.labels[v.label] {
				labels[i][string(appendSince(nil, float64(x), v.format, v.kind == stataFloat))] = label
			}
		}
	}
	return labelled(names, labels, func() (func([][]byte) error, error) {
		rows, row := bufio.NewReaderSize(io.NewSectionReader(src, s.data, s.rows*width), 1<<16), make([]byte, width)
		return func(cells [][]byte) error {
			_, err := io.ReadFull(rows, row)
			at := 0
			for i := range s.vars {
				v := &s.vars[i]
				if err == nil {
					cells[i], err = s.cell(cells[i][:0], v, row[at:at+v.width])
				}
				at += v.width
			}
			return err
		}, nil
	})
}

// measure gives the columns their widths, and returns that of a row.
func (s *stata) measure() (width int64, err error) {
	for i := range s.vars {
		v := &s.vars[i]
		if v.width = v.kind; v.kind > 2045 {
			v.width = stataWidth[v.kind]
		}
		if v.width <= 0 {
			return 0, fmt.Errorf("column %s is of a type that is not known (%d)", v.name, v.kind)
		}
		width += int64(v.width)
	}
	if width == 0 || s.rows < 0 || s.rows > (s.src.Size()-s.data)/width {
		return 0, errors.New("it ends before its last row")
	}
	return width, nil
}

// bytesOf reads n bytes at a place, of which there are some.
func (s *stata) bytesOf(at, n int64) ([]byte, error) { return bytesOf(s.src, at, n) }

func bytesOf(src *io.SectionReader, at, n int64) ([]byte, error) {
	if at < 0 || n < 0 || n > src.Size()-at {
		return nil, errors.New("it ends within its header")
	}
	b := make([]byte, n)
	_, err := src.ReadAt(b, at)
	if err == io.EOF {
		err = nil
	}
	return b, err
}

// word is a text that ends at its first zero, in UTF-8 or in the code page of Windows that older programs wrote.
func word(b []byte) string {
	if at := bytes.IndexByte(b, 0); at >= 0 {
		b = b[:at]
	}
	if utf8.Valid(b) {
		return string(b)
	}
	var w strings.Builder
	for _, c := range b {
		if c >= 0x80 && c < 0xa0 {
			w.WriteRune(windows[c-0x80])
		} else {
			w.WriteRune(rune(c))
		}
	}
	return w.String()
}

var windows = []rune("€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ")

// table is one part of the header: so many bytes for each column.
func (s *stata) table(at int64, each int, use func(i int, b []byte)) (int64, error) {
	b, err := s.bytesOf(at, int64(each)*int64(len(s.vars)))
	if err != nil {
		return 0, err
	}
	for i := range s.vars {
		use(i, b[i*each:(i+1)*each])
	}
	return at + int64(len(b)), nil
}

const maxStata = 120_000 // columns

// packed reads formats 110, 111 and 113 to 115.
func (s *stata) packed(release int) (err error) {
	if s.release = release; release < 110 || release > 115 {
		return fmt.Errorf("format %d of Stata is not read here: saveold it for Stata 13, or export delimited", release)
	}
	b, err := s.bytesOf(0, 109)
	if err != nil {
		return err
	}
	if s.order = binary.ByteOrder(binary.LittleEndian); b[1] == 1 {
		s.order = binary.BigEndian
	}
	s.vars = make([]stataVar, s.order.Uint16(b[4:]))
	s.rows = int64(int32(s.order.Uint32(b[6:])))
	kinds := map[byte]int{251: stataInt8, 252: stataInt16, 253: stataInt32, 254: stataFloat, 255: stataDouble}
	texts, format := byte(0), 49 // before the length of a text
	if release < 114 {
		format = 12
	}
	if release < 111 {
		kinds = map[byte]int{'b': stataInt8, 'i': stataInt16, 'l': stataInt32, 'f': stataFloat, 'd': stataDouble}
		texts = 127
	}
	at := int64(109)
	if at, err = s.table(at, 1, func(i int, b []byte) {
		if s.vars[i].kind = kinds[b[0]]; s.vars[i].kind == 0 && b[0] > texts {
			s.vars[i].kind = int(b[0] - texts)
		}
	}); err != nil {
		return err
	}
	if at, err = s.table(at, 33, func(i int, b []byte) { s.vars[i].name = word(b) }); err != nil {
		return err
	}
	at += 2 * int64(len(s.vars)+1)
	if at, err = s.table(at, format, func(i int, b []byte) { s.vars[i].format = word(b) }); err != nil {
		return err
	}
	if at, err = s.table(at, 33, func(i int, b []byte) { s.vars[i].label = word(b) }); err != nil {
		return err
	}
	at += 81 * int64(len(s.vars))
	for {
		b, err := s.bytesOf(at, 5)
		if err != nil {
			return err
		}
		n := int64(s.order.Uint32(b[1:]))
		if at += 5 + n; b[0] == 0 && n == 0 {
			break
		}
	}
	s.data = at
	width, err := s.measure()
	if err != nil {
		return err
	}
	for at += s.rows * width; at < s.src.Size(); {
		if at, err = s.valueLabels(at, 33); err != nil {
			return err
		}
	}
	return nil
}

// marked reads formats 117 to 119, whose parts stand between marks.
func (s *stata) marked() error {
	b, err := s.bytesOf(0, min(s.src.Size(), 1<<12))
	if err != nil {
		return err
	}
	part := func(name string) []byte {
		_, rest, ok := bytes.Cut(b, []byte("<"+name+">"))
		if !ok {
			return nil
		}
		return rest
	}
	release := part("release")
	if len(release) < 3 {
		return errors.New("its header has no release")
	}
	s.release, _ = strconv.Atoi(string(release[:3]))
	name, format, columns, count := 129, 57, 2, 8
	switch s.release {
	case 117:
		name, format, count = 33, 49, 4
	case 118:
	case 119:
		columns = 4
	default:
		return fmt.Errorf("format %d of Stata is not read here: saveold it for Stata 13, or export delimited",
			s.release)
	}
	if s.order = binary.ByteOrder(binary.LittleEndian); bytes.HasPrefix(part("byteorder"), []byte("MSF")) {
		s.order = binary.BigEndian
	}
	k, n, places := part("K"), part("N"), part("map")
	if len(k) < 4 || len(n) < 8 || len(places) < 14*8 {
		return errors.New("its header is not whole")
	}
	of := int(s.order.Uint16(k))
	if columns == 4 {
		of = int(s.order.Uint32(k))
	}
	if of > maxStata {
		return fmt.Errorf("it has %d columns", of)
	}
	s.vars = make([]stataVar, of)
	if s.rows = int64(s.order.Uint32(n)); count == 8 {
		s.rows = int64(s.order.Uint64(n))
	}
	place := func(i int, mark string) int64 { return int64(s.order.Uint64(places[8*i:])) + int64(len(mark)) + 2 }
	for _, of := range []struct {
		at, each int
		mark     string
		use      func(i int, b []byte)
	}{
		{2, 2, "variable_types", func(i int, b []byte) { s.vars[i].kind = int(s.order.Uint16(b)) }},
		{3, name, "varnames", func(i int, b []byte) { s.vars[i].name = word(b) }},
		{5, format, "formats", func(i int, b []byte) { s.vars[i].format = word(b) }},
		{6, name, "value_label_names", func(i int, b []byte) { s.vars[i].label = word(b) }},
	} {
		if _, err := s.table(place(of.at, of.mark), of.each, of.use); err != nil {
			return err
		}
	}
	s.data = place(9, "data")
	if err := s.longTexts(place(10, "strls")); err != nil {
		return err
	}
	for at := place(11, "value_labels"); ; {
		b, err := s.bytesOf(at, 5)
		if err != nil || string(b) != "<lbl>" {
			return err
		}
		if at, err = s.valueLabels(at+5, name); err != nil {
			return err
		}
		at += int64(len("</lbl>"))
	}
}

// valueLabels reads one set of labels.
func (s *stata) valueLabels(at int64, name int) (int64, error) {
	head := 4 + name + 3
	b, err := s.bytesOf(at, int64(head)+8)
	if err != nil {
		return 0, err
	}
	set := map[int32]string{}
	n, chars := int64(s.order.Uint32(b[head:])), int64(s.order.Uint32(b[head+4:]))
	all, err := s.bytesOf(at+int64(len(b)), 8*n+chars)
	if err != nil {
		return 0, err
	}
	texts := all[8*n:]
	for i := range n {
		off := int64(s.order.Uint32(all[4*i:]))
		if off >= chars {
			return 0, errors.New("a label stands beyond its texts")
		}
		set[int32(s.order.Uint32(all[4*(n+i):]))] = word(texts[off:])
	}
	s.labels[word(b[4:4+name])] = set
	return at + int64(len(b)+len(all)), nil
}

// longTexts notes where texts of any length stand.
func (s *stata) longTexts(at int64) error {
	head := 3 + 4 + 4 + 1 + 4
	if s.release > 117 {
		head += 4
	}
	for {
		b, err := s.bytesOf(at, min(int64(head), s.src.Size()-at))
		if err != nil || !bytes.HasPrefix(b, []byte("GSO")) || len(b) < head {
			return err
		}
		second := uint64(s.order.Uint32(b[7:]))
		if s.release > 117 {
			second = s.order.Uint64(b[7:])
		}
		s.long[[2]uint64{uint64(s.order.Uint32(b[3:])), second}] = at + int64(head) - 4
		at += int64(head) + int64(s.order.Uint32(b[head-4:]))
	}
}

// cell appends a value as a cell.
func (s *stata) cell(b []byte, v *stataVar, raw []byte) ([]byte, error) {
	if v.kind <= 2045 {
		return append(b, word(raw)...), nil
	}
	var x float64
	old := s.release < 113 // with one missing value of each type
	switch v.kind {
	case stataLong:
		key := [2]uint64{uint64(s.order.Uint32(raw)), uint64(s.order.Uint32(raw[4:]))}
		if s.release > 117 { // the two numbers have 2 and 6 bytes, or 3 and 5
			parts := uint(16 + 8*(s.release-118))
			if all := s.order.Uint64(raw); s.order == binary.ByteOrder(binary.LittleEndian) {
				key = [2]uint64{all & (1<<parts - 1), all >> parts}
			} else {
				key = [2]uint64{all >> (64 - parts), all & (1<<(64-parts) - 1)}
			}
		}
		at, ok := s.long[key]
		if !ok {
			return b, nil // none was written
		}
		n, err := s.bytesOf(at, 4)
		if err != nil {
			return b, err
		}
		long, err := s.bytesOf(at+4, int64(s.order.Uint32(n)))
		return append(b, word(long)...), err
	case stataInt8:
		n := int8(raw[0])
		if n > 100 && !(old && n < 127) {
			return b, nil
		}
		x = float64(n)
	case stataInt16:
		n := int16(s.order.Uint16(raw))
		if n > 32740 && !(old && n < 32767) {
			return b, nil
		}
		x = float64(n)
	case stataInt32:
		n := int32(s.order.Uint32(raw))
		if n > 2147483620 && !(old && n < 2147483647) {
			return b, nil
		}
		x = float64(n)
	case stataFloat:
		bits := s.order.Uint32(raw)
		if bits >= 0x7f000000 && bits < 0x80000000 {
			return b, nil
		}
		x = float64(math.Float32frombits(bits))
	case stataDouble:
		bits := s.order.Uint64(raw)
		if bits >= 0x7fe0000000000000 && bits < 1<<63 {
			return b, nil
		}
		x = math.Float64frombits(bits)
	}
	return appendSince(b, x, v.format, v.kind == stataFloat), nil
}

// periods are how many months, quarters, halves and weeks a year has in Stata.
var periods = map[byte]int{'m': 12, 'q': 4, 'h': 2, 'w': 52}

// appendSince appends a number, or the day, moment or other period that its format makes of it.
func appendSince(b []byte, x float64, format string, single bool) []byte {
	whole := int(math.Floor(x))
	format = strings.TrimLeft(strings.TrimPrefix(format, "%"), "-")
	if math.Abs(x) < 1e15 {
		switch {
		case strings.HasPrefix(format, "td"), strings.HasPrefix(format, "d"):
			return appendTime(b, since1960.AddDate(0, 0, whole))
		case strings.HasPrefix(format, "tc"), strings.HasPrefix(format, "tC"):
			return appendTime(b, moment(x))
		case len(format) > 1 && format[0] == 't' && periods[format[1]] > 0:
			year, part := whole/periods[format[1]], whole%periods[format[1]]
			if part < 0 {
				year, part = year-1, part+periods[format[1]]
			}
			return fmt.Appendf(b, "%d%c%d", 1960+year, format[1], part+1)
		}
	}
	bits := 64
	if single {
		bits = 32
	}
	return AppendFloat(b, x, bits)
}
