package tabular

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A SAS transport file of version 5 is records of 80 bytes, after SAS's TS-140, "Record layout of a SAS version 5 or 6
// data set in SAS transport format".
const xportRecord = 80

type xportVar struct {
	name, format string
	text         bool
	at, width    int
}

// Xport returns the one data set of a SAS transport file as CSV. A column named id comes first. Numbers are those of
// IBM's mainframes, . and .A to ._ are empty, and days, times and moments are written as such by their formats. The
// source must stay open until the text is closed.
func Xport(src io.ReaderAt, size int64) (_ io.ReadCloser, err error) {
	defer contain(&err)
	in := bufio.NewReaderSize(io.NewSectionReader(src, 0, size), 1<<16)
	record := make([]byte, xportRecord)
	header := func(kind string) error { // or what stands where no header does, in small letters
		if _, err := io.ReadFull(in, record); err != nil {
			return fmt.Errorf("it ends before its %s", kind)
		}
		if kind[0] < 'a' && !bytes.HasPrefix(record, []byte("HEADER RECORD*******"+kind)) {
			return fmt.Errorf("it is no transport file of version 5, or damaged: no %s where it should be (%.28q)",
				strings.TrimSpace(kind), record)
		}
		return nil
	}
	each := 0
	for _, kind := range []string{"LIBRARY ", "members", "members", "MEMBER  ", "DSCRPTR ", "columns", "columns",
		"NAMESTR "} {
		if err := header(kind); err != nil {
			return nil, err
		}
		if kind != "MEMBER  " {
			continue
		}
		if each, _ = strconv.Atoi(strings.TrimSpace(string(record[74:78]))); each != 140 && each != 136 {
			return nil, fmt.Errorf("its columns are described in %d bytes each, not in 140", each)
		}
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(record[54:58])))
	if err != nil || n < 1 {
		return nil, errors.New("it has no columns")
	}
	all := make([]byte, (n*each+xportRecord-1)/xportRecord*xportRecord)
	if _, err := io.ReadFull(in, all); err != nil {
		return nil, errors.New("it ends within its columns")
	}
	vars, names, width := make([]xportVar, n), make([]string, n), 0
	for i := range vars {
		b := all[i*each : (i+1)*each]
		order := binary.BigEndian
		v := xportVar{name: strings.TrimRight(word(b[8:16]), " "), format: strings.TrimRight(word(b[56:64]), " "),
			text: order.Uint16(b) == 2, at: int(int32(order.Uint32(b[84:]))), width: int(order.Uint16(b[4:]))}
		if v.at < 0 || v.width < 1 || !v.text && (v.width < 2 || v.width > 8) || v.at > 1<<20 {
			return nil, fmt.Errorf("column %s has %d bytes", v.name, v.width)
		}
		vars[i], names[i], width = v, v.name, max(width, v.at+v.width)
	}
	if err := header("OBS     "); err != nil {
		return nil, err
	}
	start := int64(9*xportRecord + len(all))
	if err := oneMember(src, start, size); err != nil {
		return nil, err
	}
	row, left := make([]byte, width), size-start
	return inOrder(names, func(cells [][]byte) error {
		if left < int64(width) {
			return io.EOF
		}
		if left < xportRecord { // what fills the last record are spaces
			if rest, _ := in.Peek(int(left)); len(bytes.TrimRight(rest, " ")) == 0 {
				return io.EOF
			}
		}
		if _, err := io.ReadFull(in, row); err != nil {
			return err
		}
		left -= int64(width)
		for i := range vars {
			v := &vars[i]
			cells[i] = v.cell(cells[i][:0], row[v.at:v.at+v.width])
		}
		return nil
	}, nil), nil
}

// oneMember refuses a file that holds another data set after the first.
func oneMember(src io.ReaderAt, at, size int64) error {
	rest := bufio.NewReaderSize(io.NewSectionReader(src, at, size-at), 1<<16)
	record := make([]byte, xportRecord)
	for {
		if _, err := io.ReadFull(rest, record); err == io.EOF || err == io.ErrUnexpectedEOF {
			return nil
		} else if err != nil {
			return err
		}
		if bytes.HasPrefix(record, []byte("HEADER RECORD*******MEMBER  ")) {
			return errors.New("it holds several data sets, and a table is one")
		}
	}
}

// moment is so many milliseconds after the beginning of 1960, which a duration has no room for.
func moment(ms float64) time.Time {
	days := math.Floor(ms / 86400e3)
	return since1960.AddDate(0, 0, int(days)).Add(time.Duration(math.Round(ms-days*86400e3)) * time.Millisecond)
}

func (v *xportVar) cell(b, raw []byte) []byte {
	if v.text {
		return append(b, strings.TrimRight(word(raw), " ")...)
	}
	x, ok := ibm(raw)
	if !ok {
		return b
	}
	switch {
	case math.Abs(x) > 1e12:
	case momentFormat.MatchString(v.format):
		return appendTime(b, moment(x*1e3))
	case dayFormat.MatchString(v.format):
		return appendTime(b, since1960.AddDate(0, 0, int(math.Floor(x))))
	case clockFormat.MatchString(v.format) && x >= 0 && x < 86400:
		return append(b, since1960.Add(time.Duration(math.Round(x*1e3))*time.Millisecond).Format("15:04:05.999")...)
	}
	return AppendFloat(b, x, 64)
}

var (
	momentFormat = regexp.MustCompile(`^(DATETIME|DATEAMPM|E8601DT|IS8601DT|B8601DT|MDYAMPM)`)
	dayFormat    = regexp.MustCompile(
		`^(DATE|DDMMYY|MMDDYY|YYMMDD|E8601DA|IS8601DA|B8601DA|DAY|EURDF|JULIAN|MONYY|YYMM|MMYY|WORDDAT|WEEKDAT|YYQ|YYMON)`)
	clockFormat = regexp.MustCompile(`^(TIME|TOD|HHMM|E8601TM|IS8601TM)`)
)

// ibm is a number of IBM's System/360, of which the last bytes may be cut: a sign, an exponent of 16 and a fraction.
// Not ok is a missing value.
func ibm(raw []byte) (float64, bool) {
	var all [8]byte
	copy(all[:], raw)
	bits := binary.BigEndian.Uint64(all[:])
	if c := raw[0]; bits<<8 == 0 && (c == '.' || c == '_' || c >= 'A' && c <= 'Z') {
		return 0, false
	}
	x := math.Ldexp(float64(bits&(1<<56-1)), 4*(int(bits>>56&0x7f)-64)-56)
	if bits>>63 == 1 {
		x = -x
	}
	return x, true
}
