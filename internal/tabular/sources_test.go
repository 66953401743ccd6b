package tabular_test

import (
	"compress/gzip"
	"database/sql"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/xuri/excelize/v2"

	"parley/dataset"
	"parley/internal/tabular"
	"parley/internal/testkit"
)

// rowsOfAll is the table that all sources hold: 4000 rows, as testdata/make.py made them.
func rowsOfAll(t *testing.T) (text string, rows [][]string) {
	t.Helper()
	text = string(unpacked(t, "rows.csv.gz"))
	return text, testkit.Get(csv.NewReader(strings.NewReader(text)).ReadAll())(t)
}

func unpacked(t *testing.T, name string) []byte {
	t.Helper()
	f := testkit.Get(os.Open(filepath.Join("testdata", name)))(t)
	defer f.Close()
	return testkit.Get(io.ReadAll(testkit.Get(gzip.NewReader(f))(t)))(t)
}

// typed is a cell of the table as databases and workbooks store it.
func typed(t *testing.T, column, cell string) any {
	switch {
	case cell == "":
		return nil
	case column == "crp" || column == "age" || column == "dose":
		return testkit.Get(strconv.ParseFloat(cell, 64))(t)
	case column == "born":
		return testkit.Get(time.Parse(time.DateOnly, cell))(t)
	}
	return cell
}

func parquetOf(t *testing.T, table string) string {
	t.Helper()
	var b strings.Builder
	testkit.Do(t, tabular.WriteParquet(&b, func(w io.Writer) error { _, err := io.WriteString(w, table); return err }))
	return b.String()
}

func workbookOf(t *testing.T, rows [][]string) string {
	t.Helper()
	book := excelize.NewFile()
	defer book.Close()
	day := testkit.Get(book.NewStyle(&excelize.Style{NumFmt: 14}))(t)
	w := testkit.Get(book.NewStreamWriter("Sheet1"))(t)
	for i, row := range rows {
		var cells []any
		for j, cell := range row {
			v := any(cell)
			if i > 0 {
				if v = typed(t, rows[0][j], cell); rows[0][j] == "born" {
					v = excelize.Cell{StyleID: day, Value: v}
				}
			}
			cells = append(cells, v)
		}
		testkit.Do(t, w.SetRow(fmt.Sprintf("A%d", i+1), cells))
	}
	testkit.Do(t, w.Flush())
	return testkit.Get(book.WriteToBuffer())(t).String()
}

// fill puts the table into a database, in another order.
func fill(t *testing.T, driver, connection, types string, rows [][]string) {
	t.Helper()
	db := testkit.Get(sql.Open(driver, connection))(t)
	defer db.Close()
	testkit.Get(db.Exec("create table lab (" + types + ")"))(t)
	tx := testkit.Get(db.Begin())(t)
	for i := range rows[1:] {
		var values []any
		for j, cell := range rows[1+i*7%4000] {
			v := typed(t, rows[0][j], cell)
			if day, ok := v.(time.Time); ok && driver == "sqlite" {
				v = day.Format(time.DateOnly)
			}
			values = append(values, v)
		}
		testkit.Get(tx.Exec("insert into lab values ($1, $2, $3, $4, $5, $6)", values...))(t)
	}
	testkit.Do(t, tx.Commit())
}

// The same 4000 rows, from files of every format and from databases, are the same rows: one fingerprint, and so one
// approval and one model.
func TestAllSourcesGiveTheSameRows(t *testing.T) {
	text, rows := rowsOfAll(t)
	if len(rows) != 4001 {
		t.Fatal(len(rows))
	}
	dir := t.TempDir()
	put := func(name, content string) {
		testkit.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	put("semicolons.csv", strings.NewReplacer(",", ";", ".", ",").Replace(text))
	put("plain.csv", text)
	put("book.xlsx", workbookOf(t, rows))
	put("columns.parquet", parquetOf(t, text))
	put("stata.dta", string(unpacked(t, "rows.dta.gz")))
	put("spss.sav", string(unpacked(t, "rows.sav.gz")))
	put("sas.xpt", string(unpacked(t, "rows.xpt.gz")))
	connection, _ := postgres(t)
	t.Setenv("HOSPITAL", connection)
	fill(t, "pgx", connection, "id text, crp double precision, age smallint, dose numeric(9, 2), stage text, born date",
		rows)
	fill(t, "sqlite", filepath.Join(dir, "lite.db"), "id text, crp real, age integer, dose real, stage text, born text",
		rows)

	schema := dataset.Schema{
		Subject: []dataset.Column{{Name: "stage", Kind: dataset.Label}},
		Views: []dataset.View{{Name: "lab", Columns: []dataset.Column{{Name: "crp"}, {Name: "age"}, {Name: "dose"},
			{Name: "days"}}}},
	}
	want := ""
	for _, source := range []string{"file: plain.csv", "file: semicolons.csv", "file: book.xlsx",
		"file: columns.parquet", "file: stata.dta", "file: sas.xpt", "file: spss.sav",
		"sql: {driver: postgres, environment: HOSPITAL, query: select * from lab}",
		"sql: {driver: sqlite, database: lite.db, query: \"select id, crp, age, dose, stage, born from lab\"}"} {
		put(dataset.MappingFile, fmt.Sprintf("mapping: 1\nsubjects: {%s, id: id}\nviews:\n  - name: lab\n    %[1]s\n  "+
			"  id: id\n    columns: [crp, age, dose, {name: days, from: born, until: 2024-01-01, unit: days}]\n",
			source))
		if strings.HasPrefix(source, "file") { // which serves two tables, so that each names its columns
			put(dataset.MappingFile, strings.Replace(
				string(testkit.Get(os.ReadFile(filepath.Join(dir, dataset.MappingFile)))(t)), "id: id}",
				"id: id, columns: [stage]}", 1))
		}
		d := testkit.Get(dataset.Open(t.Context(), dir, dataset.Options{Schema: &schema}))(t)
		c := testkit.Get(dataset.Count(t.Context(), d))(t)
		if want == "" {
			want = c.Hex()
		}
		if c.Hex() != want || c.Subjects != 4000 {
			t.Errorf("%s: other rows, %d", source, c.Subjects)
		}
	}
	if _, err := tabular.Stata(nil, 0); err == nil {
		t.Error("nothing is a data set")
	}
}
