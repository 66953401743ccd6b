package dataset

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"parley/internal/testkit"
	"parley/problem"
)

// checkNumber holds scanNumber and parseNumber to strconv.ParseFloat.
func checkNumber(t *testing.T, cell string) {
	t.Helper()
	want, err := strconv.ParseFloat(cell, 64)
	if v, n, ok := scanNumber([]byte(cell)); ok {
		prefix, err := strconv.ParseFloat(cell[:n], 64)
		if err != nil || math.Float64bits(v) != math.Float64bits(prefix) {
			t.Errorf("scanNumber(%q) = %v of %d bytes, ParseFloat gives %v, %v", cell, v, n, prefix, err)
		}
	}
	v, ok := parseNumber([]byte(cell))
	switch {
	case isMissing([]byte(cell)):
		if !ok || !math.IsNaN(v) {
			t.Errorf("parseNumber(%q) = %v, %v, want NaN", cell, v, ok)
		}
	case err != nil || math.IsInf(want, 0) || math.IsNaN(want):
		if ok {
			t.Errorf("parseNumber(%q) = %v, want a refusal (ParseFloat: %v, %v)", cell, v, want, err)
		}
	case !ok || math.Float64bits(v) != math.Float64bits(want):
		t.Errorf("parseNumber(%q) = %v, %v, want %v", cell, v, ok, want)
	}
}

var numberSeeds = []string{"", "0", "-0", "+1", "-", ".", "5.", ".5", "-.5e3", "1e400", "9007199254740992", "9007199254740993", "9999999999999999999",
	"18446744073709551616", "0.0000000000000000000001", "0.30000000000000004", "123456789012345678.9", "1.7976931348623157e308", "5e-324",
	"NA", "nan", "null", "inf", "0x1p-2", "1_000", "1,5", "1 2", "١"}

func TestNumbersAgreeWithParseFloat(t *testing.T) {
	for _, s := range numberSeeds {
		checkNumber(t, s)
	}
	rng := rand.New(rand.NewPCG(3, 3))
	fast := 0
	for range 200_000 {
		s := strconv.FormatFloat(rng.NormFloat64()*math.Pow(10, float64(rng.IntN(16)-8)), 'f', rng.IntN(20), 64)
		if _, n, ok := scanNumber([]byte(s)); ok && n == len(s) {
			fast++
		}
		checkNumber(t, s)
	}
	if fast < 100_000 {
		t.Errorf("only %d of 200000 numbers took the fast path", fast)
	}
}

func FuzzNumber(f *testing.F) {
	for _, s := range numberSeeds {
		f.Add(s)
	}
	f.Fuzz(checkNumber)
}

// FuzzRecords holds the splitter to encoding/csv wherever that takes the text.
func FuzzRecords(f *testing.F) {
	for _, s := range []string{"id,x\na,1\n", "\"a\nb\",2\r\n\r\nc, d ", "a,\"b\"\"c\"\n", "a\"b\n\"", "\"\n\n\"", "\"a\r\r\n", "\"\"\r\r", "a,\"b\r\"\r\n", ",\n,\n", "\"a\" \n", " \"a\"\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s := &splitter{src: io.NopCloser(iotest.DataErrReader(bytes.NewReader(text))), buf: make([]byte, 4)}
		var got [][]string
		var lines []int
		last, wrong := 0, false
		for {
			rec, err := s.next()
			if err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			if rec.line <= last {
				t.Fatalf("line %d after line %d", rec.line, last)
			}
			last = rec.line
			fields, err := rec.appendFields(nil)
			if err != nil {
				wrong = true
				continue
			}
			var row []string
			for _, f := range fields {
				row = append(row, strings.Trim(string(f.text), " \t"))
			}
			if id := strings.Trim(string(rec.id), " \t"); id != row[0] {
				t.Fatalf("id %q of row %q", id, row)
			}
			got, lines = append(got, row), append(lines, rec.line)
		}
		reader := csv.NewReader(bytes.NewReader(text))
		reader.FieldsPerRecord = -1
		var want [][]string
		var wantLines []int
		var wantErr error
		for {
			row, err := reader.Read()
			if err == io.EOF {
				break
			} else if err != nil {
				wantErr = err
				break
			}
			line, _ := reader.FieldPos(0)
			for i := range row {
				row[i] = strings.Trim(row[i], " \t")
			}
			want, wantLines = append(want, row), append(wantLines, line)
		}
		if (wantErr != nil) != wrong {
			t.Fatalf("encoding/csv says %v, but faults found: %v", wantErr, wrong)
		}
		if wantErr != nil {
			return
		}
		if !slices.EqualFunc(got, want, slices.Equal[[]string]) || !slices.Equal(lines, wantLines) {
			t.Fatalf("got %q on lines %v, want %q on lines %v", got, lines, want, wantLines)
		}
	})
}

// readFuzzed reads a data set of any content: it must come out whole, in
// order, or as a list of problems that name their file.
func readFuzzed(t *testing.T, name string, text []byte, extra map[string]string) *Table {
	dir := folder(t, extra)
	testkit.Do(t, os.WriteFile(filepath.Join(dir, name), text, 0o666))
	var tables []*Table
	for _, memory := range []int{0, 100} {
		table, err := readAll(dir, Options{sortMemory: memory})
		if err != nil {
			var list problem.List
			if !errors.As(err, &list) || len(list) == 0 {
				t.Fatalf("got %T %v, want a problem.List", err, err)
			}
			for _, p := range list {
				if p.File == "" || p.What == "" {
					t.Fatalf("problem without file or text: %#v", p)
				}
			}
			continue
		}
		if _, err := NewTable(table.schema, table.rows); err != nil {
			t.Fatal(err)
		}
		tables = append(tables, table)
	}
	switch len(tables) {
	case 0:
		return nil
	case 1:
		t.Fatal("memory for sorting decides whether the data set is sound")
	}
	if diff := sameRows(tables[0], tables[1]); diff != "" {
		t.Fatal(diff)
	}
	return tables[0]
}

func FuzzView(f *testing.F) {
	for _, s := range []string{"id,x\na,1\nb,2\nc,3\n", "id,x,y\nc,1,\nb,NA,2\na,,\n", "id;x\na;1,5\n", "id,\"x\ny\"\na,\"1\"\n", "\xff\xfe", "id,x\na,1e9\na,2\n", "x,a,b\n1,2,3"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		table := readFuzzed(t, "view_v.csv", text, map[string]string{"subjects.csv": subjects("a", "b", "c")})
		if table == nil || bytes.HasPrefix(text, []byte{0x1f, 0x8b}) {
			return
		}
		// What was accepted is what encoding/csv and strconv read.
		rows := testkit.Get(csv.NewReader(bytes.NewReader(bytes.TrimPrefix(text, []byte("\ufeff")))).ReadAll())(t)
		for _, cells := range rows[1:] {
			i := slices.IndexFunc(table.rows, func(r Row) bool { return r.ID == strings.Trim(cells[0], " \t") })
			for j, cell := range cells[1:] {
				want, _ := parseNumber([]byte(strings.Trim(cell, " \t")))
				if v := table.rows[i].Views[0]; v != nil && v[j] != want && !math.IsNaN(want) {
					t.Fatalf("cell %q became %v", cell, v[j])
				}
			}
		}
	})
}

func FuzzLong(f *testing.F) {
	for _, s := range []string{"a,v,x,1\na,v,y,2\nb,w,z,3\n", "b,v,x,1\na,v,x,\n", "a,v,x,1\na,v,x,1\n", "a,v,x\n", "a,\"v\nw\",\"x\",1\n", "a,,x,1", "a,v,x,one"} {
		f.Add([]byte(longHeader + "\n" + s))
	}
	f.Fuzz(func(t *testing.T, text []byte) { readFuzzed(t, "long.csv", text, nil) })
}
