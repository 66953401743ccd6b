package dataset

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xuri/excelize/v2"

	"parley/internal/tabular"
	"parley/internal/testkit"
)

// asXLSX is a table of CSV cells as a workbook; numbers stay texts, as they often do.
func asXLSX(t *testing.T, table string) string {
	t.Helper()
	book := excelize.NewFile()
	defer book.Close()
	for i, line := range strings.Split(strings.TrimSpace(table), "\n") {
		cells := strings.Split(line, ",")
		at := testkit.Get(excelize.CoordinatesToCellName(1, i+1))(t)
		testkit.Do(t, book.SetSheetRow("Sheet1", at, &cells))
	}
	var b bytes.Buffer
	testkit.Do(t, book.Write(&b))
	return b.String()
}

func asParquet(t *testing.T, table string) string {
	t.Helper()
	var b bytes.Buffer
	testkit.Do(t, tabular.WriteParquet(&b, func(w io.Writer) error { _, err := io.WriteString(w, table); return err }))
	return b.String()
}

// The same tables give the same rows, whatever files they are in, sorted or not.
func TestFormatsAgree(t *testing.T) {
	const people, v, w = "id,group\nb,x\na,\nc,y z\n", "id,x,y\nc,-9,0.1\na,2.5,\n", "id,z\na,1e-300\nb,3\n"
	kinds := map[string]func(*testing.T, string) string{
		".csv": func(_ *testing.T, s string) string { return s }, ".csv.gz": func(_ *testing.T, s string) string { return zipped(s) },
		".xlsx": asXLSX, ".parquet": asParquet,
	}
	var want *Census
	for _, kind := range []string{".csv", ".csv.gz", ".xlsx", ".parquet"} {
		dir := folder(t, map[string]string{"subjects" + kind: kinds[kind](t, people), "view_v" + kind: kinds[kind](t, v), "view_w" + kind: kinds[kind](t, w)})
		d, err := Open(t.Context(), dir, Options{})
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		got, err := Count(t.Context(), d)
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		if want == nil {
			want = got
		}
		if got.Fingerprint != want.Fingerprint || got.Subjects != 3 {
			t.Errorf("%s: other rows, %d subjects", kind, got.Subjects)
		}
	}
	long := longHeader + "\na,v,x,1\nb,v,x,2\n"
	for _, kind := range []string{".xlsx", ".parquet"} {
		path := filepath.Join(t.TempDir(), "measured"+kind)
		testkit.Do(t, os.WriteFile(path, []byte(kinds[kind](t, long)), 0o666))
		d, err := Open(t.Context(), path, Options{})
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		if c, err := Count(t.Context(), d); err != nil || c.Subjects != 2 {
			t.Errorf("%s: %v, %v", kind, c, err)
		}
	}
}

// Messages name the row of the sheet.
func TestRowsOfAWorkbookAreNamed(t *testing.T) {
	dir := folder(t, map[string]string{"subjects.csv": "id\na\nb\n", "view_v.xlsx": asXLSX(t, "id,x\na,1\nb,high\n")})
	d := testkit.Get(Open(t.Context(), dir, Options{}))(t)
	if _, err := Count(t.Context(), d); err == nil || !strings.Contains(err.Error(), "view_v.xlsx:3:3: subject b, feature x: \"high\" is not a number") {
		t.Errorf("got %v", err)
	}
}
