package tabular

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/internal/testkit"
)

func gunzipped(t testing.TB, name string) []byte {
	t.Helper()
	z := testkit.Get(gzip.NewReader(bytes.NewReader(testkit.Get(os.ReadFile(filepath.Join("testdata", name)))(t))))(t)
	return testkit.Get(io.ReadAll(z))(t)
}

type reader func(io.ReaderAt, int64) (io.ReadCloser, error)

func decoded(t testing.TB, read reader, data []byte) string {
	t.Helper()
	r := testkit.Get(read(bytes.NewReader(data), int64(len(data))))(t)
	defer r.Close()
	return string(testkit.Get(io.ReadAll(r))(t))
}

// Every format of Stata, as pandas and R write it, gives the rows that were written: labels for the numbers of a
// category, days, texts of any length, nothing for what is missing.
func TestStata(t *testing.T) {
	const begin, long = "id,crp,age,dose,stage,born,note\np0000,0.225,56,0,II,1943-07-26,xxxxxxxxxx\np0001,3.567,43," +
		"0.32,I,1953-04-24,xxxxxxxxxx\n", 3000
	for _, name := range []string{"few110", "few113", "few114", "few117", "few118", "few119"} {
		got := decoded(t, Stata, gunzipped(t, name+".dta.gz"))
		if !strings.HasPrefix(got, begin) || strings.Count(got, "\n") != 6 {
			t.Errorf("%s: %.400s", name, got)
		}
		if name > "few114" && !strings.Contains(got, ","+strings.Repeat("y", long)+"\n") {
			t.Errorf("%s: no text of any length in %.300s", name, got)
		}
		if strings.HasSuffix(name, "8") && !strings.Contains(got, "Großzellig") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// Every form of SPSS, as R's haven and PSPP write it, gives the rows that were written: labels for the values of a
// category, nothing for what is missing by the system or the user, days and moments, texts of any length.
func TestSPSS(t *testing.T) {
	const begin = "id,crp,age,dose,stage,born,note,seen,at,code,a_long_name_of_a_column\np0000,0.225,56,,II," +
		"1943-07-26,xxxxxxxxxx,2020-02-29T13:14:15,00:00:00,\"first, of two\",1\np0001,3.567,43,,I,1953-04-24," +
		"xxxxxxxxxx,2020-03-01T13:14:15.5,00:00:59,second,\np0002,0.385,29,-2.87,I,1939-02-09,"
	for _, name := range []string{"few-none", "few-byte", "few-zsav"} {
		got := decoded(t, SPSS, gunzipped(t, name+".sav.gz"))
		if !strings.HasPrefix(got, begin) || strings.Count(got, "\n") != 6 || !strings.Contains(got, ",Großzellig,") ||
			!strings.Contains(got, ","+strings.Repeat("y", 3000)+",") {
			t.Errorf("%s: %.500s", name, got)
		}
	}
	const all = "id,x,sex,d,t,stay,way_of_discharge,discharge_letter\n" +
		"a1,1.5,male,1990-01-01,2021-02-03T10:11:12,01:00:00,lang lang wr,BIG\n" +
		"a2,,female,2000-02-29,2021-02-03T10:11:12,49:30:00,nobody at all,BIG\n" +
		"a3,,,1899-12-31,2021-02-03,00:00:01,,BIG\n"
	want := strings.ReplaceAll(all, "BIG", strings.Repeat("k", 300)+strings.Repeat("m", 300)+"end")
	plain := gunzipped(t, "pspp.sav.gz")
	for name, data := range map[string][]byte{
		"plain": plain, "in blocks": gunzipped(t, "pspp.zsav.gz"),
		"in a code page": bytes.Replace(bytes.Replace(plain, []byte("UTF-8"), []byte("cp866"), 1),
			[]byte("\x04male"), []byte("\x04m\xa0le"), 1),
	} {
		if got := decoded(t, SPSS, data); strings.Replace(got, "mаle", "male", 1) != want {
			t.Errorf("%s: %.300s", name, got)
		}
	}
}

// A label is the word for its value, or describes a number of a scale whose others have none.
func TestLabels(t *testing.T) {
	for c, labels := range map[[2]string]map[string]string{
		{"0 4 3 7 10 99 -9", "0 4 3 7 10 a b"}:   {"0": "none", "10": "worst", "99": "a", "-9": "b"},
		{"3 6 5 4 7 1 2", "3 6 5 4 7 1 2"}:       {"1": "low", "7": "high"},
		{"-3 -2 0 1 2", "-3 -2 0 1 2"}:           {"-3": "worse", "3": "better"},
		{"0 5 6 7 9 8", "0 5 6 7 b a"}:           {"8": "a", "9": "b"},
		{"0 80 95 20 -1 9999", "0 80 95 20 a b"}: {"0": "nothing", "-1": "a", "9999": "b"},
		{"20 50 93 97 98", "20 50 93 a b"}:       {"97": "a", "98": "b"},
		{"0 4 5 6", "unknown 4 5 6"}:             {"0": "unknown"},
		{"1 2 3 4 5 6", "a b c 4 5 6"}:           {"1": "a", "2": "b", "3": "c"},
	} {
		r := testkit.Get(labelled([]string{"x"}, []map[string]string{labels}, func() (func([][]byte) error, error) {
			in := strings.NewReader(c[0])
			return func(cells [][]byte) error { _, err := fmt.Fscan(in, &cells[0]); return err }, nil
		}))(t)
		if got := string(testkit.Get(io.ReadAll(r))(t)); got != strings.ReplaceAll("x "+c[1]+" ", " ", "\n") {
			t.Errorf("%q: %s", c, got)
		}
	}
}

// Missing values and periods of Stata, and the numbers of IBM's mainframes.
func TestCellsOfStatisticsPrograms(t *testing.T) {
	s := &stata{release: 118, order: binary.LittleEndian}
	for _, c := range []struct {
		v    stataVar
		raw  string
		want string
	}{
		{stataVar{kind: stataInt8}, "\x64", "100"}, {stataVar{kind: stataInt8}, "\x65", ""},
		{stataVar{kind: stataInt8}, "\x7f", ""}, {stataVar{kind: stataInt8}, "\xff", "-1"},
		{stataVar{kind: stataInt16}, "\xe4\x7f", "32740"}, {stataVar{kind: stataInt16}, "\xe5\x7f", ""},
		{stataVar{kind: stataInt32}, "\xe4\xff\xff\x7f", "2147483620"},
		{stataVar{kind: stataInt32}, "\xe6\xff\xff\x7f", ""},
		{stataVar{kind: stataFloat}, "\xcd\xcc\xcc\x3d", "0.1"}, {stataVar{kind: stataFloat}, "\x00\x00\x00\x7f", ""},
		{stataVar{kind: stataFloat}, "\x00\x00\x80\xbf", "-1"},
		{stataVar{kind: stataDouble}, "\x00\x00\x00\x00\x00\x00\xe0\x7f", ""},
		{stataVar{kind: stataDouble}, "\x00\x00\x00\x00\x00\x08\xe0\x7f", ""},
		{stataVar{kind: stataDouble}, "\x9a\x99\x99\x99\x99\x99\xb9\xbf", "-0.1"},
		{stataVar{kind: stataInt16, format: "%td"}, "\x00\x00", "1960-01-01"},
		{stataVar{kind: stataInt16, format: "%-tdD_m_Y"}, "\xff\xff", "1959-12-31"},
		{stataVar{kind: stataInt16, format: "%tm"}, "\xff\xff", "1959m12"},
		{stataVar{kind: stataInt16, format: "%tq"}, "\x05\x00", "1961q2"}, {stataVar{kind: stataDouble, format: "%tc"},
			"\x00\x00\x00\x00\x00\x40\x8f\x40", "1960-01-01T00:00:01"},
		{stataVar{kind: 5}, "ab\x00zz", "ab"}, {stataVar{kind: 3}, "M\xfc\x80", "Mü€"},
	} {
		if got, err := s.cell(nil, &c.v, []byte(c.raw)); err != nil || string(got) != c.want {
			t.Errorf("%+v %q: %q, %v, want %q", c.v, c.raw, got, err, c.want)
		}
	}
	for raw, want := range map[string]string{ // examples of TS-140, and the format's own limits
		"\x41\x10\x00\x00\x00\x00\x00\x00": "1", "\xc1\x10": "-1", "\x40\x19\x99\x99\x99\x99\x99\x9a": "0.1",
		"\x00\x00": "0", ".\x00\x00\x00\x00\x00\x00\x00": "", "_\x00": "", "A\x00": "", "\x42\x64": "100",
	} {
		v := xportVar{width: len(raw)}
		if got := v.cell(nil, []byte(raw)); string(got) != want {
			t.Errorf("%q: %q, want %q", raw, got, want)
		}
	}
	s.release = 110
	if got, _ := s.cell(nil, &stataVar{kind: stataInt8}, []byte("\x65")); string(got) != "101" {
		t.Errorf("a byte of Stata 7: %s", got)
	}
	moment := xportVar{width: 8, format: "DATETIME"}
	if got := string(moment.cell(nil, []byte("\x45\x15\x18\x00\x00\x00\x00\x00"))); got != "1960-01-02" {
		t.Errorf("a moment: %s", got)
	}
}

// However many rows there are, what fills the last record is none of them, and nothing is lacking.
func TestXportEnds(t *testing.T) {
	whole := gunzipped(t, "rows.xpt.gz")
	all := strings.Count(decoded(t, Xport, whole), "\n")
	for drop := range 6 {
		data := whole[:len(whole)-drop*48] // a row has 48 bytes
		for len(data)%80 != 0 {
			data = append(bytes.Clone(data), ' ')
		}
		if got := strings.Count(decoded(t, Xport, data), "\n"); got != all-drop {
			t.Errorf("%d rows less: %d lines, not %d", drop, got, all-drop)
		}
	}
}

// What is not read here is said, and so is what is damaged.
func TestStatisticsFilesRefused(t *testing.T) {
	whole, transport := gunzipped(t, "few118.dta.gz"), gunzipped(t, "rows.xpt.gz")
	spss := gunzipped(t, "pspp.sav.gz")
	twice := append(bytes.Clone(transport), transport[240:]...)
	at := bytes.Index(spss, []byte("\x07\x00\x00\x00\x15\x00\x00\x00\x01\x00\x00\x00")) + 12 // labels of long texts
	behind := slices.Insert(bytes.Clone(spss), at+4+int(spss[at]), []byte("ab")...)
	behind[at] += 2
	for _, c := range []struct {
		read reader
		data []byte
		want string
	}{
		{Stata, whole[:5], "too short"}, {Stata, whole[:len(whole)/3], "it ends"},
		{Stata, append([]byte{109}, make([]byte, 200)...), "format 109 of Stata is not read here"},
		{Stata, bytes.Replace(whole, []byte("<release>118"), []byte("<release>120"), 1), "format 120"},
		{SPSS, slices.Replace(bytes.Clone(spss), 76, 77, 1), "its cases are weighted"},
		{SPSS, spss[:100], "does not begin as one"}, {SPSS, spss[:400], "it ends within its header"},
		{SPSS, append([]byte("$FL2"), make([]byte, 400)...), "a layout that is not known"},
		{SPSS, bytes.Replace(spss, []byte("UTF-8"), []byte("XTF-8"), 1), "its texts are in \"XTF-8\""},
		{SPSS, behind, "a text ends before its end"},
		{Xport, transport[:900], "it ends within its columns"},
		{Xport, []byte(strings.Repeat("HEADER RECORD*******LIBV8   ", 20)), "no LIBRARY"},
		{Xport, twice, "it holds several data sets"},
	} {
		if _, err := c.read(bytes.NewReader(c.data), int64(len(c.data))); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}

func FuzzStata(f *testing.F) {
	for _, name := range []string{"few110", "few113", "few114", "few117", "few118", "few119"} {
		f.Add(gunzipped(f, name+".dta.gz"))
	}
	fuzz(f, Stata)
}

func FuzzSPSS(f *testing.F) {
	for _, name := range []string{"few-none.sav", "few-byte.sav", "few-zsav.sav", "pspp.sav", "pspp.zsav"} {
		f.Add(gunzipped(f, name+".gz"))
	}
	fuzz(f, SPSS)
}

func FuzzXport(f *testing.F) {
	f.Add(gunzipped(f, "rows.xpt.gz")[:1600])
	fuzz(f, Xport)
}

func fuzz(f *testing.F, read reader) {
	f.Fuzz(func(t *testing.T, data []byte) {
		if r, err := read(bytes.NewReader(data), int64(len(data))); err == nil {
			io.Copy(io.Discard, io.LimitReader(r, 1<<20))
			r.Close()
		}
	})
}
