package tabular

import (
	"archive/zip"
	"bytes"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/xuri/excelize/v2"

	"parley/internal/testkit"
)

// workbook is an Excel file with the cells of a few sheets.
func workbook(t testing.TB, sheets ...[][]any) []byte {
	t.Helper()
	book := excelize.NewFile()
	defer book.Close()
	for i, rows := range sheets {
		name := []string{"Sheet1", "more", "notes"}[i]
		testkit.Get(book.NewSheet(name))(t)
		for j, row := range rows {
			cell, _ := excelize.CoordinatesToCellName(1, j+1)
			testkit.Do(t, book.SetSheetRow(name, cell, &row))
		}
	}
	var b bytes.Buffer
	testkit.Do(t, book.Write(&b))
	return b.Bytes()
}

func TestXLSX(t *testing.T) {
	cells := [][]any{{"id", "age", "note"}, {"s1", 0.1, "a, \"b\""}, {}, {"s2", nil, " c"}, {"s3", 1e-7},
		{7, -9, "x", "beyond"}}
	data := workbook(t, cells, nil)
	r := testkit.Get(XLSX(bytes.NewReader(data), int64(len(data))))(t)
	defer r.Close()
	got, err := io.ReadAll(r)
	want := "id,age,note\ns1,0.1,\"a, \"\"b\"\"\"\n\ns2,,\" c\"\ns3,0.0000001,\n7,-9,x,beyond\n"
	if err != nil || string(got) != want {
		t.Errorf("%v: got\n%s\nwant\n%s", err, got, want)
	}
}

// damagedSheet is a workbook with a character in a cell that XML has not.
func damagedSheet(t *testing.T) []byte {
	whole := workbook(t, [][]any{{"id", "x"}, {"s1", 0.25}, {"s2", 1}}, nil)
	var b bytes.Buffer
	out := zip.NewWriter(&b)
	for _, f := range testkit.Get(zip.NewReader(bytes.NewReader(whole), int64(len(whole))))(t).File {
		part := testkit.Get(io.ReadAll(testkit.Get(f.Open())(t)))(t)
		testkit.Get(testkit.Get(out.Create(f.Name))(t).Write(bytes.ReplaceAll(part, []byte("0.25"), []byte("&#1;"))))(t)
	}
	testkit.Do(t, out.Close())
	return b.Bytes()
}

func TestXLSXRefused(t *testing.T) {
	for want, data := range map[string][]byte{
		"illegal character code":             damagedSheet(t),
		"2 sheets hold cells (Sheet1, more)": workbook(t, [][]any{{"id"}}, [][]any{{"id"}}),
		"not a valid zip file":               []byte("PK\x03\x04 nothing"),
		"password":                           []byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1 an older workbook"),
	} {
		if _, err := XLSX(bytes.NewReader(data), int64(len(data))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

type row struct {
	Age  float64   `parquet:"age"`
	Dose float32   `parquet:"dose"`
	N    *int32    `parquet:"n,optional"`
	Many uint64    `parquet:"many"`
	Yes  bool      `parquet:"yes"`
	Day  int32     `parquet:"day,date"`
	At   time.Time `parquet:"at,timestamp(microsecond)"`
	Word string    `parquet:"word"`
	ID   string    `parquet:"id"`
}

func TestParquet(t *testing.T) {
	n := int32(-3)
	var b bytes.Buffer
	w := parquet.NewGenericWriter[row](&b)
	at := time.Date(2020, 2, 29, 12, 0, 0, 500000, time.UTC)
	for _, rows := range [][]row{{{0.1, 0.1, &n, math.MaxUint64, true, 18321, at, "a,b", "s1"}},
		{{math.NaN(), 2, nil, 0, false, 0, at, "", "s2"}}} {
		testkit.Get(w.Write(rows))(t)
		if err := w.Flush(); err != nil { // a group of its own
			t.Fatal(err)
		}
	}
	testkit.Do(t, w.Close())
	got := readParquet(t, b.Bytes())
	want := "id,age,dose,n,many,yes,day,at,word\n" +
		"s1,0.1,0.1,-3,18446744073709551615,TRUE,2020-02-29,2020-02-29T12:00:00.0005,\"a,b\"\n" +
		"s2,NaN,2,,0,FALSE,1970-01-01,2020-02-29T12:00:00.0005,\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Decimals are written as the numbers that they are, whatever holds them, and moments of Spark as moments.
func TestParquetDecimals(t *testing.T) {
	schema := parquet.NewSchema("table", ordered{parquet.Group{"id": parquet.String(),
		"small": parquet.Decimal(2, 9, parquet.Int32Type), "large": parquet.Decimal(3, 18, parquet.Int64Type),
		"bytes": parquet.Decimal(4, 30, parquet.FixedLenByteArrayType(13)), "at": parquet.Leaf(parquet.Int96Type)},
		[]string{"id", "small", "large", "bytes", "at"}})
	var b bytes.Buffer
	w := parquet.NewWriter(&b, schema)
	unscaled := bytes.Repeat([]byte{0xff}, 13) // -1
	for _, r := range []parquet.Row{
		{parquet.ByteArrayValue([]byte("a")), parquet.Int32Value(-1250), parquet.Int64Value(7),
			parquet.FixedLenByteArrayValue(unscaled), parquet.Int96Value(deprecated.Int96{0, 0, 2440589})},
		{parquet.ByteArrayValue([]byte("b")), parquet.Int32Value(300), parquet.Int64Value(123456789),
			parquet.FixedLenByteArrayValue(make([]byte, 13)), parquet.Int96Value(deprecated.Int96{1e9, 0, 2440588})},
	} {
		for i := range r {
			r[i] = r[i].Level(0, 0, i)
		}
		testkit.Get(w.WriteRows([]parquet.Row{r}))(t)
	}
	testkit.Do(t, w.Close())
	want := "id,small,large,bytes,at\na,-12.5,0.007,-0.0001,1970-01-02\nb,3,123456.789,0,1970-01-01T00:00:01\n"
	if got := readParquet(t, b.Bytes()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func readParquet(t *testing.T, data []byte) string {
	t.Helper()
	r := testkit.Get(Parquet(bytes.NewReader(data), int64(len(data))))(t)
	defer r.Close()
	got := testkit.Get(io.ReadAll(r))(t)
	return string(got)
}

func TestParquetRefused(t *testing.T) {
	var lists bytes.Buffer
	if err := parquet.Write(&lists, []struct {
		ID string    `parquet:"id"`
		X  []float64 `parquet:"x"`
	}{{"a", []float64{1, 2}}}); err != nil {
		t.Fatal(err)
	}
	for want, data := range map[string][]byte{"column x is of a type": lists.Bytes(),
		"magic": []byte("PAR1 something else")} {
		if _, err := Parquet(bytes.NewReader(data), int64(len(data))); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// What is written as Parquet reads back as the same table.
func TestWriteParquet(t *testing.T) {
	const table = "id,zeta,alpha,predicted\n007,0.1,x,1\n\"s,2\",,2,0\n"
	var b bytes.Buffer
	testkit.Do(t, WriteParquet(&b, func(w io.Writer) error { _, err := io.WriteString(w, table); return err }))
	if got := readParquet(t, b.Bytes()); got != table {
		t.Errorf("got\n%s\nwant\n%s", got, table)
	}
	f := testkit.Get(parquet.OpenFile(bytes.NewReader(b.Bytes()), int64(b.Len())))(t)
	for name, kind := range map[string]parquet.Kind{"id": parquet.ByteArray, "zeta": parquet.Double,
		"alpha": parquet.ByteArray, "predicted": parquet.ByteArray} {
		if got := f.Root().Column(name).Type().Kind(); got != kind {
			t.Errorf("%s is %v, want %v", name, got, kind)
		}
	}
}

// Whatever the bytes are, decoders end with text or an error.
func FuzzXLSX(f *testing.F) {
	f.Add(workbook(f, [][]any{{"id", "x"}, {"a", 1.5}}))
	f.Add(sheetOf(f, "", `<row r="1"><c r="A1" t="s"><v>0</v></c></row><row r="3"><c r="B3" `+
		`s="1"><v>43890</v></c></row>`))
	f.Add([]byte("PK\x03\x04"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if r, err := XLSX(bytes.NewReader(data), int64(len(data))); err == nil {
			io.Copy(io.Discard, io.LimitReader(r, 1<<20))
			r.Close()
		}
	})
}

func FuzzParquet(f *testing.F) {
	var b bytes.Buffer
	testkit.Do(f, parquet.Write(&b, []row{{Age: 1, ID: "a"}}))
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		if r, err := Parquet(bytes.NewReader(data), int64(len(data))); err == nil {
			io.Copy(io.Discard, io.LimitReader(r, 1<<20))
			r.Close()
		}
	})
}
