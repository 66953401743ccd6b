package tabular

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
)

// spss is a data set of SPSS as its dictionary has it (PSPP's developers' guide, "System File Format").
type spss struct {
	src    *io.SectionReader
	at     int64 // of what is read next of the header
	order  binary.ByteOrder
	packed int // 0: cases as they are; 1: in codes of a byte; 2: these in blocks of zlib
	bias   float64
	rows   int64     // -1 if the file does not say
	vars   []spssVar // with the parts of long texts, which belong to the first
	of     []int     // the variable of each 8 bytes of a case
	page   string    // of its texts; "" if the file does not say
}

type spssVar struct {
	name    string
	short   string // by which later records name it
	width   int    // of a text; 0 of a number
	at      int    // of its first 8 bytes in a case
	format  int    // kind of its print format
	part    bool
	labels  map[string]string // of values, by their bytes
	missing map[string]bool   // that its user calls so, by number or by text without the spaces behind
	low     float64           // numbers from low to high are so too
	high    float64
}

const (
	spssMost = 120_000 // of 8 bytes in a case
	spssPart = 252     // bytes of a long text that each of its parts makes room for; it holds 255
)

// since1582 is the day from which SPSS counts seconds.
var since1582 = time.Date(1582, 10, 14, 0, 0, 0, 0, time.UTC)

// SPSS returns the cases of a data set of SPSS (.sav or .zsav) as CSV. A column named id comes first. Numbers and texts
// that have labels are these labels where these do not only describe numbers of a scale, and those that are missing by
// the system or by the user are empty; days, times and moments are written as such by their formats. The source must
// stay open until the text is closed.
func SPSS(src io.ReaderAt, size int64) (_ io.ReadCloser, err error) {
	defer contain(&err)
	s := &spss{src: io.NewSectionReader(src, 0, size)}
	if err := s.header(); err != nil {
		return nil, err
	}
	more := true
	for more {
		if more, err = s.record(); err != nil {
			return nil, err
		}
	}
	decode, err := s.decoder()
	if err != nil {
		return nil, err
	}
	var vars []*spssVar
	var names []string
	for i := range s.vars {
		if v := &s.vars[i]; !v.part {
			vars, names = append(vars, v), append(names, decode([]byte(v.name)))
		}
	}
	if len(vars) == 0 {
		return nil, errors.New("it has no columns")
	}
	labels := make([]map[string]string, len(vars))
	for i, v := range vars {
		labels[i] = map[string]string{}
		for key, label := range v.labels {
			value := decode(bytes.TrimRight([]byte(key), " \x00"))
			if v.width == 0 {
				value = string(v.number(nil, s.number([]byte(key))))
			}
			labels[i][value] = decode([]byte(label))
		}
	}
	return labelled(names, labels, func() (func([][]byte) error, error) {
		cases, err := s.cases()
		row, done := make([]byte, 8*len(s.of)), int64(0)
		return func(cells [][]byte) error {
			if done == s.rows {
				return io.EOF
			}
			for i := range s.of {
				err := cases.next(row[8*i : 8*i+8])
				switch {
				case err == io.EOF && i == 0 && s.rows < 0:
					return io.EOF
				case err == io.EOF, err == io.ErrUnexpectedEOF:
					return errors.New("it ends before its last row")
				case err != nil:
					return err
				}
			}
			done++
			for i, v := range vars {
				cells[i] = s.cell(cells[i][:0], v, row, decode)
			}
			return nil
		}, err
	})
}

// take reads the next n bytes of the header.
func (s *spss) take(n int64) ([]byte, error) {
	b, err := bytesOf(s.src, s.at, n)
	s.at += int64(len(b))
	return b, err
}

func (s *spss) whole(b []byte) int      { return int(int32(s.order.Uint32(b))) }
func (s *spss) number(b []byte) float64 { return math.Float64frombits(s.order.Uint64(b)) }

func (s *spss) header() error {
	b, err := s.take(176)
	if err != nil || string(b[:3]) != "$FL" {
		return errors.New("it does not begin as one")
	}
	for _, s.order = range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		if layout := s.whole(b[64:]); layout == 2 || layout == 3 {
			s.packed, s.rows, s.bias = s.whole(b[72:]), int64(s.whole(b[80:])), s.number(b[84:])
			if s.whole(b[76:]) != 0 {
				return errors.New("its cases are weighted: save it with WEIGHT OFF; plans name a column of weights")
			}
			return nil
		}
	}
	return errors.New("its header is of a layout that is not known; one with a password is not read")
}

// record reads the next record of the dictionary, and says whether there are more.
func (s *spss) record() (bool, error) {
	b, err := s.take(4)
	if err != nil {
		return false, err
	}
	switch kind := s.whole(b); kind {
	case 2:
		return true, s.variable()
	case 3:
		return true, s.labels()
	case 6:
		if b, err = s.take(4); err == nil {
			_, err = s.take(80 * int64(s.whole(b)))
		}
		return true, err
	case 7:
		if b, err = s.take(12); err != nil {
			return false, err
		}
		each, n := int64(s.whole(b[4:])), int64(s.whole(b[8:]))
		if each < 0 || n < 0 || each > s.src.Size() || n > s.src.Size() {
			return false, errors.New("its header is damaged")
		}
		data, err := s.take(each * n)
		if err == nil {
			err = s.extension(s.whole(b), data)
		}
		return true, err
	case 999:
		_, err := s.take(4)
		return false, err
	default:
		return false, fmt.Errorf("its header has a record of kind %d, which is not known", kind)
	}
}

func (s *spss) variable() error {
	b, err := s.take(28)
	if err != nil {
		return err
	}
	width, missing := s.whole(b), s.whole(b[8:])
	name := strings.TrimRight(string(b[20:28]), " ")
	v := spssVar{name: name, short: name, width: width, at: len(s.of),
		format: s.whole(b[12:]) >> 16 & 0xff, missing: map[string]bool{}, low: 1, high: -1}
	if s.whole(b[4:]) != 0 { // what describes it
		if b, err = s.take(4); err == nil {
			_, err = s.take((int64(s.whole(b)) + 3) / 4 * 4)
		}
	}
	if err == nil {
		b, err = s.take(8 * int64(max(missing, -missing)))
	}
	switch {
	case err != nil:
		return err
	case len(s.of) == spssMost || width < -1 || width > 255 || missing < -3 || missing > 3 || missing == -1:
		return fmt.Errorf("column %s is of a type that is not known (%d)", v.name, width)
	case width < 0 && len(s.vars) == 0:
		return errors.New("its first column has no beginning")
	case width >= 0:
		s.vars = append(s.vars, v)
	}
	if missing < 0 {
		v.low, v.high, b = s.number(b), s.number(b[8:]), b[16:]
	}
	for ; len(b) > 0; b = b[8:] {
		v.missing[s.key(&v, b[:8])] = true
	}
	if width >= 0 {
		s.vars[len(s.vars)-1] = v
	}
	s.of = append(s.of, len(s.vars)-1)
	return nil
}

// key is a value as missing values name it.
func (s *spss) key(v *spssVar, raw []byte) string {
	if v.width > 0 {
		return string(bytes.TrimRight(raw, " \x00"))
	}
	return strconv.FormatFloat(s.number(raw)+0, 'g', -1, 64) // of -0 that of 0
}

// labels reads a set of labels, and the record after it, which says whose they are.
func (s *spss) labels() error {
	b, err := s.take(4)
	if err != nil {
		return err
	}
	set := map[string]string{}
	for range s.whole(b) {
		head, err := s.take(9)
		if err != nil {
			return err
		}
		label, err := s.take(int64(head[8]) + 7 - int64(head[8])%8)
		if err != nil {
			return err
		}
		set[string(head[:8])] = strings.TrimRight(string(label[:head[8]]), " ")
	}
	if b, err = s.take(8); err != nil {
		return err
	}
	if s.whole(b) != 4 {
		return errors.New("its labels belong to no column")
	}
	whose, err := s.take(4 * int64(s.whole(b[4:])))
	for ; err == nil && len(whose) > 0; whose = whose[4:] {
		at := s.whole(whose) - 1
		if at < 0 || at >= len(s.of) {
			return errors.New("its labels belong to no column")
		}
		s.vars[s.of[at]].labels = set
	}
	return err
}

// extension reads one of the records that came with later versions.
func (s *spss) extension(kind int, data []byte) error {
	switch kind {
	case 3:
		if len(data) == 32 && s.page == "" && s.whole(data[28:]) > 4 { // those are ASCII, and what no program writes
			s.page = strconv.Itoa(s.whole(data[28:]))
		}
	case 13, 14: // long names; lengths of long texts
		for pair := range strings.SplitSeq(string(data), "\t") {
			short, value, _ := strings.Cut(strings.TrimRight(pair, "\x00"), "=")
			for i := range s.vars {
				v := &s.vars[i]
				if !alike(v.short, short) || v.part {
					continue
				}
				if kind == 13 {
					v.name = value
				} else if err := s.join(i, value); err != nil {
					return err
				}
				break
			}
		}
	case 16:
		if len(data) == 16 {
			s.rows = int64(s.order.Uint64(data[8:]))
		}
	case 20:
		s.page = string(data)
	case 21, 22: // labels of texts of more than 8 bytes; missing values of these, by the first 8
		for len(data) > 0 {
			name := string(s.counted(&data))
			v := &spssVar{width: 1, missing: map[string]bool{}} // of nobody
			for i := range s.vars {
				if s.vars[i].name == name || alike(s.vars[i].short, name) {
					v = &s.vars[i]
				}
			}
			if kind == 22 {
				n := int(data[0])
				for data = data[5:]; n > 0; n, data = n-1, data[8:] {
					v.missing[s.key(v, data[:8])] = true
				}
				continue
			}
			n := s.whole(data[4:])
			if v.labels = map[string]string{}; n < 0 {
				panic("less than no labels")
			}
			for data = data[8:]; n > 0; n-- {
				key := s.counted(&data)
				v.labels[string(key)] = strings.TrimRight(string(s.counted(&data)), " ")
			}
		}
	}
	return nil
}

// alike compares names, whose bytes can be of any code page: as UTF-8, those that are not would all be the same.
func alike(a, b string) bool {
	x, _ := charmap.ISO8859_1.NewDecoder().String(a)
	y, _ := charmap.ISO8859_1.NewDecoder().String(b)
	return strings.EqualFold(x, y)
}

// counted takes a text off, which stands behind its length; it panics where that is not true.
func (s *spss) counted(data *[]byte) []byte {
	n := -1
	if len(*data) >= 4 {
		n = s.whole(*data)
	}
	if n < 0 || n > len(*data)-4 {
		panic("a text ends before its end")
	}
	text := (*data)[4 : 4+n]
	*data = (*data)[4+n:]
	return text
}

// join makes one text of this column and those after it.
func (s *spss) join(i int, length string) error {
	n, err := strconv.Atoi(length)
	parts := (n + spssPart - 1) / spssPart
	if err != nil || n < 1 || i+parts > len(s.vars) || s.vars[i].width == 0 {
		return fmt.Errorf("column %s is a text of %.20q bytes, and has not as many parts", s.vars[i].name, length)
	}
	s.vars[i].width = n
	for j := 1; j < parts; j++ {
		s.vars[i+j].part = true
	}
	return nil
}

// decoder is for texts in the file's code page.
func (s *spss) decoder() (func([]byte) string, error) {
	if s.page == "" || strings.EqualFold(s.page, "utf-8") {
		return word, nil
	}
	e, err := htmlindex.Get(s.page)
	if n, bad := strconv.Atoi(strings.TrimPrefix(strings.ToLower(s.page), "cp")); err != nil && bad == nil {
		switch {
		case n == 65001:
			return word, nil
		case n > 28590 && n < 28606:
			e, err = htmlindex.Get(fmt.Sprintf("iso-8859-%d", n-28590))
		default:
			e, err = htmlindex.Get(fmt.Sprintf("windows-%d", n))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("its texts are in %.40q, which is not read here: save it in Unicode", s.page)
	}
	d := e.NewDecoder()
	return func(b []byte) string {
		text, err := d.Bytes(b)
		if err != nil {
			return word(b)
		}
		return string(text)
	}, nil
}

// spssCases are the cases of a file, 8 bytes after 8.
type spssCases struct {
	s     *spss
	in    *bufio.Reader
	codes [8]byte // of packed cases
	used  int
}

func (s spss) cases() (*spssCases, error) {
	c := &spssCases{s: &s, used: 8}
	var in io.Reader = io.NewSectionReader(s.src, s.at, s.src.Size()-s.at)
	switch s.packed {
	case 0, 1:
	case 2:
		b, err := s.take(24)
		if err != nil {
			return nil, err
		}
		s.at = int64(s.order.Uint64(b[8:]))
		if b, err = s.take(24); err != nil {
			return nil, err
		}
		var blocks []io.Reader
		for range s.whole(b[20:]) {
			if b, err = s.take(24); err != nil {
				return nil, err
			}
			blocks = append(blocks, &spssBlock{src: io.NewSectionReader(s.src, int64(s.order.Uint64(b[8:])),
				int64(s.whole(b[20:])))})
		}
		in = io.MultiReader(blocks...)
	default:
		return nil, fmt.Errorf("its cases are compressed in a way that is not known (%d)", s.packed)
	}
	c.in = bufio.NewReaderSize(in, 1<<16)
	return c, nil
}

// spssBlock is compressed on its own, and opened when it is read.
type spssBlock struct {
	src  io.Reader
	open io.Reader
}

func (z *spssBlock) Read(p []byte) (n int, err error) {
	if z.open == nil {
		if z.open, err = zlib.NewReader(z.src); err != nil {
			return 0, err
		}
	}
	if n, err = z.open.Read(p); err == io.EOF {
		z.src, z.open = nil, bytes.NewReader(nil)
	}
	return n, err
}

// next reads the next 8 bytes; io.EOF at the end of the file.
func (c *spssCases) next(b []byte) error {
	for c.s.packed > 0 {
		if c.used == 8 {
			if _, err := io.ReadFull(c.in, c.codes[:]); err != nil {
				return err
			}
			c.used = 0
		}
		code := c.codes[c.used]
		c.used++
		switch code {
		case 0: // fills up
			continue
		case 252:
			return io.EOF
		case 253: // the bytes follow
		case 254:
			copy(b, "        ")
			return nil
		case 255:
			c.s.order.PutUint64(b, math.Float64bits(-math.MaxFloat64))
			return nil
		default:
			c.s.order.PutUint64(b, math.Float64bits(float64(code)-c.s.bias))
			return nil
		}
		break
	}
	_, err := io.ReadFull(c.in, b)
	return err
}

// cell appends a value of a case as a cell.
func (s *spss) cell(b []byte, v *spssVar, row []byte, decode func([]byte) string) []byte {
	raw := row[8*v.at:]
	if v.width > 0 {
		text := raw[:min(v.width, 255)]
		if v.width > 255 {
			text = nil
			for part := 0; 255*part < v.width; part++ { // each stands in 256 bytes
				text = append(text, raw[256*part:][:min(v.width-255*part, 255)]...)
			}
		}
		text = bytes.TrimRight(text, " \x00")
		if v.missing[string(text)] {
			return b
		}
		return append(b, decode(text)...)
	}
	x := s.number(raw)
	if x == -math.MaxFloat64 || math.IsNaN(x) || x >= v.low && x <= v.high || v.missing[s.key(v, raw)] {
		return b
	}
	return v.number(b, x)
}

// number appends one as its print format has it.
func (v *spssVar) number(b []byte, x float64) []byte {
	switch x += 0; { // -0 is 0
	case math.Abs(x) > 1e12:
	case v.format == 20, v.format == 22, v.format == 23, v.format == 24, v.format >= 28 && v.format <= 30,
		v.format == 38, v.format == 39, v.format == 41: // dates of all forms
		days := math.Floor(x / 86400)
		return appendTime(b, since1582.AddDate(0, 0, int(days)).Add(
			time.Duration(math.Round((x-days*86400)*1e3))*time.Millisecond))
	case v.format == 21, v.format == 25: // how long something took, which can be more than a day
		ms := int64(math.Round(math.Abs(x) * 1e3))
		if x < 0 {
			b = append(b, '-')
		}
		b = fmt.Appendf(b, "%02d", ms/3600000)
		return append(b, since1582.Add(time.Duration(ms%3600000)*time.Millisecond).Format(":04:05.999")...)
	}
	return AppendFloat(b, x, 64)
}
