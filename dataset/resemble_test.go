package dataset

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
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

// planned has the views clinic, genes, visit1, visit2 and mri; every feature is
// named after its view.
var planned = func() *Schema {
	s := new(Schema)
	for _, name := range []string{"clinic", "genes", "visit1", "visit2", "mri"} {
		s.Views = append(s.Views, View{Name: name, Columns: []Column{{Name: name + "_x"}}})
	}
	return s
}()

// A site that has genes and lacks clinic is asked about whatever may be clinic.
func TestFileThatResemblesAPlannedViewIsRefused(t *testing.T) {
	for _, name := range []string{
		"view_Clinic.csv", "VIEW_CLINIC.CSV", "View_clinic.csv", "view_clinic.CSV", "view_clinic.Csv.gz",
		"view_CLINIC.csv.gz",
		"view_clinic.tsv", "view_clinic.txt", "view_clinic.XLSX", "view_clinic.xls", "view_clinic.ods",
		"view_Clinic.parquet", "view_clinic.gz", "view_clinic", "view_clinic.csv.zip",
		"clinic.csv", "clinic.xlsx", "Clinic.csv.gz", "viewclinic.csv", "viewClinic.csv", "view-clinic.csv",
		"view clinic.csv", "view.clinic.csv", "views_clinic.csv", "clinic_view.csv", "data_clinic.csv",
		"south-clinic.tsv",
		"view_clinic (1).csv", "Copy of view_clinic.csv", "view_clinic_final.csv", "view_clinic.csv.bak",
		"view_clinic.csv~", "view_clinic.csv.csv", "view_clinic.2024.csv",
		"view_clinc.csv", "view_cilnic.csv", "view_clinics.csv", "clinc.csv", "viewclinc.tsv",
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t, map[string]string{"subjects.csv": subjects("a"), "view_genes.csv": "id,genes_x\na,1\n",
				name: "id,clinic_x\na,1\n"})
			_, err := Open(context.Background(), dir, Options{Schema: planned})
			want := filepath.Join(dir, name) + ": view clinic: there is no view_clinic.csv, and this file looks as " +
				"if it were meant to be it\n  hint: "
			if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Count(err.Error(), "view clinic:") != 1 {
				t.Errorf("got %v", err)
			}
			// Where the view is as well, that is a note at most.
			write(t, dir, "view_clinic.csv", "id,clinic_x\na,1\n")
			if d, err := Open(context.Background(), dir, Options{Schema: planned}); err != nil {
				t.Errorf("with view_clinic.csv: %v", err)
			} else if !strings.Contains(d.Warnings().Error(), "ignored") {
				t.Errorf("with view_clinic.csv: not mentioned: %v", d.Warnings())
			}
		})
	}
}

// A site may lack a view, and have what is no view.
func TestFileThatResemblesNoPlannedViewIsNotRefused(t *testing.T) {
	for name, mentioned := range map[string]bool{
		"README.txt": false, "plan.yaml": false, "clinic.md": false, "clinic.pdf": false, ".view_clinic.csv.swp": false,
		"~$view_clinic.xlsx": false, ".~lock.view_clinic.csv#": false,
		"view_clinic.pdf": true, "view_sleep.csv": true, "view_sleep.xlsx": true, "sleep.tsv": true, "scores.csv": true,
		"visits.csv":      true,
		"view_visit3.csv": true, "view_mra.csv": true, "view_mr.csv": true, // no slips of the pen
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t, map[string]string{"subjects.csv": subjects("a"), "view_genes.csv": "id,genes_x\na,1\n",
				name: "id,x\na,1\n"})
			d := testkit.Get(Open(context.Background(), dir, Options{Schema: planned}))(t)
			if got := len(d.Warnings()) > 0; got != mentioned {
				t.Errorf("got the warnings %v", d.Warnings())
			}
		})
	}
	dir := folder(t, map[string]string{"subjects.csv": subjects("a"), "view_genes.csv": "id,genes_x\na,1\n"})
	testkit.Do(t, os.Mkdir(filepath.Join(dir, "clinic"), 0o777))
	if d, err := Open(context.Background(), dir, Options{Schema: planned}); err != nil || len(d.Warnings()) > 0 {
		t.Errorf("a folder named like a view: %v, %v", err, d.Warnings())
	}
}

// A planned view is never taken for another, however alike the two are.
func TestPlannedViewIsNoSlipForAnother(t *testing.T) {
	schema := &Schema{}
	for _, name := range []string{"labs", "labs_blood", "lab", "protein", "proteins"} {
		schema.Views = append(schema.Views, View{Name: name, Columns: []Column{{Name: name + "_x"}}})
	}
	for _, v := range schema.Views {
		dir := folder(t, map[string]string{"subjects.csv": subjects("a"), "view_" + v.Name + ".csv": "id," + v.Name +
			"_x\na,1\n"})
		if _, err := Open(context.Background(), dir, Options{Schema: schema}); err != nil {
			t.Errorf("only %s: %v", v.Name, err)
		}
	}
	// A misspelling is that of the nearest, even if one that is here comes first.
	for name, want := range map[string]string{"view_protiens.csv": "view proteins: there is no",
		"view_protien.csv": ""} {
		dir := folder(t, map[string]string{"subjects.csv": subjects("a"), "view_protein.csv": "id,protein_x\na,1\n",
			name: "id,x\na,1\n"})
		if _, err := Open(context.Background(), dir, Options{Schema: schema}); (err != nil) != (want != "") ||
			err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	// A copy of one that is here is not mistaken for one that is not.
	dir := folder(t, map[string]string{"subjects.csv": subjects("a"), "view_labs_blood.csv": "id,labs_blood_x\na,1\n",
		"labs-blood.xlsx": ""})
	if _, err := Open(context.Background(), dir, Options{Schema: schema}); err != nil {
		t.Error(err)
	}
}

func TestHintsOfMisnamedFiles(t *testing.T) {
	for name, want := range map[string]string{
		"view_Clinic.csv":    "rename it to view_clinic.csv",
		"view_clinic.CSV.gz": "rename it to view_clinic.csv.gz",
		"view_Clinic.xlsx":   "rename it to view_clinic.xlsx",
		"view_clinic.ods":    "save it as CSV in UTF-8, with commas and decimal points, and name that view_clinic.csv",
	} {
		dir := folder(t, map[string]string{"subjects.csv": subjects("a"), name: "id,clinic_x\na,1\n"})
		_, err := Open(context.Background(), dir, Options{Schema: planned})
		want = fmt.Sprintf("%s: view clinic: there is no view_clinic.csv, and this file looks as if it were meant to "+
			"be it\n  hint: %s\n  hint: if it is something else, keep it in another folder",
			filepath.Join(dir, name), want)
		if err == nil || err.Error() != want { // and not that the folder holds no views
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

func TestFileThatResemblesSubjects(t *testing.T) {
	for _, name := range []string{"Subjects.csv", "subjects.CSV", "subjects.tsv", "subjects.XLSX", "subject.csv",
		"subjcets.csv", "my subjects.csv", "SUBJECTS.csv.gz"} {
		for form, files := range map[string]map[string]string{
			"wide": {"view_genes.csv": "id,genes_x\na,1\n"}, "long": {"long.csv": longHeader + "\na,genes,genes_x,1\n"},
		} {
			for _, schema := range []*Schema{planned, nil} {
				dir := folder(t, files)
				write(t, dir, name, subjects("a"))
				_, err := Open(context.Background(), dir, Options{Schema: schema})
				want := filepath.Join(dir, name) + ": subjects: there is no subjects.csv, and this file looks as if " +
					"it were meant to be it\n  hint: "
				if err == nil || !strings.HasPrefix(err.Error(), want) ||
					strings.Contains(err.Error(), "has no subjects.csv") {
					t.Errorf("%s, %s: got %v", name, form, err)
				}
				write(t, dir, "subjects.csv", subjects("a"))
				if d, err := Open(context.Background(), dir, Options{Schema: schema}); err != nil ||
					!strings.Contains(d.Warnings().Error(), name+": is no part of the data set and ignored") {
					t.Errorf("%s, %s, with subjects.csv: %v, %v", name, form, err, d)
				}
			}
		}
	}
	// A long table by itself may lie in a folder of all sorts.
	dir := folder(t, map[string]string{"all subjects.csv": longHeader + "\na,genes,genes_x,1\n",
		"Subjects.csv": subjects("a")})
	d, err := Open(context.Background(), filepath.Join(dir, "all subjects.csv"), Options{})
	if err != nil || len(d.Warnings()) != 1 ||
		!strings.Contains(d.Warnings().Error(), "Subjects.csv: subjects: there is no subjects.csv") {
		t.Errorf("got %v, %v", err, d)
	}
}

func TestLookAlikesWithoutAPlan(t *testing.T) {
	dir := folder(t, map[string]string{"subjects.csv": subjects("a"), "view_genes.csv": "id,x\na,1\n",
		"view_clinic.tsv": "", "view_genes.xlsx": "", "genes.txt": "", "mri.parquet": "", "notes.txt": ""})
	d := testkit.Get(Open(context.Background(), dir, Options{}))(t)
	got := d.Warnings().Error()
	for _, name := range []string{"view_clinic.tsv", "view_genes.xlsx", "genes.txt", "mri.parquet"} {
		if !strings.Contains(got, name+": is no part of the data set and ignored\n  hint: a view is one file: "+
			"view_NAME.csv, view_NAME.xlsx or view_NAME.parquet") {
			t.Errorf("%s is not mentioned:\n%s", name, got)
		}
	}
	if strings.Contains(got, "notes.txt") {
		t.Errorf("notes are mentioned:\n%s", got)
	}
	dir = folder(t, map[string]string{"subjects.csv": subjects("a"), "view_clinic.tsv": "", "mri.ods": "",
		"README.md": ""})
	if _, err := Open(context.Background(), dir, Options{}); err == nil ||
		!strings.Contains(err.Error(), "holds no views\n") ||
		!strings.HasSuffix(err.Error(), "\n  hint: found mri.ods, view_clinic.tsv") {
		t.Errorf("got %v", err)
	}
}

func TestViewsOfLongTablesThatResemblePlannedOnes(t *testing.T) {
	for name, refused := range map[string]bool{"Clinic": true, "clinc": true, "view_clinic": true, "sleep": false,
		"visit3": false} {
		feature := "clinic_x"
		if !refused {
			feature = "hours"
		}
		dir := folder(t, map[string]string{"long.csv": longHeader + "\na,genes,genes_x,1\na," + name + "," +
			feature + ",1\n"})
		_, err := Open(context.Background(), dir, Options{Schema: planned})
		if got := err != nil && strings.Contains(err.Error(), ": view clinic: is not here, and the view "+name+
			" looks as if it were meant to be it\n  hint: "); got != refused || !refused && err != nil {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// A view of a long table that is named otherwise is recognised by its features.
func TestViewsOfLongTablesWithPlannedFeatures(t *testing.T) {
	dir := folder(t, map[string]string{"long.csv": longHeader + "\na,genes,genes_x,1\na,sleep,clinic_x,1\n"})
	_, err := Open(context.Background(), dir, Options{Schema: planned})
	if err == nil || !strings.Contains(err.Error(), ": view clinic: is not here, and features of it stand in the view "+
		"sleep: clinic_x\n  hint: name the view of these rows as the plan does") {
		t.Errorf("got %v", err)
	}
}

func TestFiles(t *testing.T) {
	dir := folder(t, map[string]string{"subjects.csv": "", "view_b.csv.gz": "", "view_a.csv": "", "view_c.xlsx": "",
		"view_c.tsv": "", "scores.csv": ""})
	if got, want := fmt.Sprint(Files(dir)), fmt.Sprint([]string{filepath.Join(dir, "subjects.csv"),
		filepath.Join(dir, "view_a.csv"), filepath.Join(dir, "view_b.csv.gz"),
		filepath.Join(dir, "view_c.xlsx")}); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	long := filepath.Join(dir, "scores.csv")
	if got, want := fmt.Sprint(Files(long)),
		fmt.Sprint([]string{filepath.Join(dir, "subjects.csv"), long}); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := Files(filepath.Join(dir, "nowhere")); got != nil {
		t.Errorf("got %v", got)
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	testkit.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666))
}

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
	// the last are spellings of Go alone
	case err != nil || math.IsInf(want, 0) || math.IsNaN(want) || strings.ContainsAny(cell, "xX_"):
		if ok {
			t.Errorf("parseNumber(%q) = %v, want a refusal (ParseFloat: %v, %v)", cell, v, want, err)
		}
	case !ok || math.Float64bits(v) != math.Float64bits(want):
		t.Errorf("parseNumber(%q) = %v, %v, want %v", cell, v, ok, want)
	}
}

var numberSeeds = []string{"", "0", "-0", "+1", "-", ".", "5.", ".5", "-.5e3", "1e400", "9007199254740992",
	"9007199254740993", "9999999999999999999",
	"18446744073709551616", "0.0000000000000000000001", "0.30000000000000004", "123456789012345678.9",
	"1.7976931348623157e308", "5e-324",
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
	for _, s := range []string{"id,x\na,1\n", "\"a\nb\",2\r\n\r\nc, d ", "a,\"b\"\"c\"\n", "a\"b\n\"", "\"\n\n\"",
		"\"a\r\r\n", "\"\"\r\r", "a,\"b\r\"\r\n", ",\n,\n", "\"a\" \n", " \"a\"\n"} {
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
			if strings.Trim(strings.Join(row, ""), "\"") != "" { // a row of empty cells is none
				want, wantLines = append(want, row), append(wantLines, line)
			}
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
	for _, s := range []string{"id,x\na,1\nb,2\nc,3\n", "id,x,y\nc,1,\nb,NA,2\na,,\n", "id;x\na;1,5\n",
		"id,\"x\ny\"\na,\"1\"\n", "\xff\xfe", "id,x\na,1e9\na,2\n", "x,a,b\n1,2,3"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		table := readFuzzed(t, "view_v.csv", text, map[string]string{"subjects.csv": subjects("a", "b", "c")})
		if table == nil || bytes.HasPrefix(text, []byte{0x1f, 0x8b}) ||
			!dialectOf(bytes.TrimPrefix(text, []byte("\ufeff"))).usual() {
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
	for _, s := range []string{"a,v,x,1\na,v,y,2\nb,w,z,3\n", "b,v,x,1\na,v,x,\n", "a,v,x,1\na,v,x,1\n", "a,v,x\n",
		"a,\"v\nw\",\"x\",1\n", "a,,x,1", "a,v,x,one"} {
		f.Add([]byte(longHeader + "\n" + s))
	}
	f.Fuzz(func(t *testing.T, text []byte) { readFuzzed(t, "long.csv", text, nil) })
}
