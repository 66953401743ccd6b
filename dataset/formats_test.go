package dataset

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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
		".csv": func(_ *testing.T, s string) string { return s }, ".csv.gz": func(_ *testing.T, s string) string {
			return zipped(s)
		},
		".xlsx": asXLSX, ".parquet": asParquet,
	}
	var want *Census
	for _, kind := range []string{".csv", ".csv.gz", ".xlsx", ".parquet"} {
		dir := folder(t, map[string]string{"subjects" + kind: kinds[kind](t, people),
			"view_v" + kind: kinds[kind](t, v), "view_w" + kind: kinds[kind](t, w)})
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
	for name, rewrite := range map[string]func(string) string{ // as R, Excel and old Macs write them
		"write.csv2": func(s string) string { return strings.NewReplacer(",", ";", ".", ",").Replace(s) },
		"quoted": func(s string) string {
			return strings.NewReplacer("id", `"id"`, ",", ";", "x", `"x"`, ".", ",").Replace(s)
		},
		"tabs":       func(s string) string { return strings.ReplaceAll(s, ",", "\t") },
		"bars":       func(s string) string { return strings.ReplaceAll(s, ",", "|") },
		"returns":    func(s string) string { return strings.ReplaceAll(s, "\n", "\r") },
		"returns, ;": func(s string) string { return strings.NewReplacer("\n", "\r", ",", ";").Replace(s) },
		"sep=;": func(s string) string {
			return "sep=;\r\n" + strings.NewReplacer("\n", "\r\n", ",", ";").Replace(s)
		},
		"mark and tab": func(s string) string { return "\ufeff" + strings.ReplaceAll(s, ",", "\t") },
		"empty cells around": func(s string) string {
			return ",,\n" + strings.ReplaceAll(s, "\n", ",,\n") + ",,,\n\"\",\"\"\n ,,\n"
		},
		"padded": func(s string) string { return regexp.MustCompile(`[^,\n]+`).ReplaceAllString(s, `"$0 "`) },
	} {
		dir := folder(t, map[string]string{"subjects.csv": rewrite(people), "view_v.csv": rewrite(v),
			"view_w.csv.gz": zipped(rewrite(w))})
		d, err := Open(t.Context(), dir, Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got, err := Count(t.Context(), d); err != nil || got.Fingerprint != want.Fingerprint {
			t.Errorf("%s: other rows: %v", name, err)
		}
		if got := testkit.Get(Count(t.Context(), d.Tolerant()))(t); got.Fingerprint != want.Fingerprint {
			t.Errorf("%s: other rows, where records are tolerated", name)
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
	if _, err := Count(t.Context(), d); err == nil ||
		!strings.Contains(err.Error(), "view_v.xlsx:3:3: subject b, feature x: \"high\" is not a number") {
		t.Errorf("got %v", err)
	}
}

// small is a table of n subjects s0, s1, … with two views of one feature, the
// second for even subjects only.
func small(t testing.TB, n int) *Table {
	t.Helper()
	schema := Schema{Views: []View{{Name: "v", Columns: []Column{{Name: "x"}}},
		{Name: "w", Columns: []Column{{Name: "y"}}}}, Subject: []Column{{Name: "g", Kind: Label}}}
	var rows []Row
	for i := range n {
		row := Row{ID: fmt.Sprintf("s%d", i), Views: [][]float64{{float64(i)}, nil},
			Subject: []string{fmt.Sprint(i % 3)}}
		if i%2 == 0 {
			row.Views[1] = []float64{-float64(i)}
		}
		rows = append(rows, row)
	}
	return testkit.Get(NewTable(schema, rows))(t)
}

func ids(table *Table) string {
	var all []string
	for i := range table.Len() {
		all = append(all, table.Row(i).ID)
	}
	return strings.Join(all, " ")
}

func TestSelections(t *testing.T) {
	table := small(t, 6)
	some := table.Select(4, 0, 3)
	if got := ids(some); got != "s0 s3 s4" {
		t.Errorf("Select: %s, want s0 s3 s4", got)
	}
	byID, err := table.SelectIDs("s5", "s2")
	if err != nil || ids(byID) != "s2 s5" {
		t.Errorf("SelectIDs: %s, %v, want s2 s5", ids(byID), err)
	}
	for _, wrong := range [][]string{{"s9"}, {"s1", "s1"}} {
		if _, err := table.SelectIDs(wrong...); err == nil {
			t.Errorf("SelectIDs(%q): no error", wrong)
		}
	}
	without := some.Without(0)
	for i := range without.Len() {
		row, before := without.Row(i), some.Row(i)
		if row.Views[0] != nil || before.Views[0] == nil {
			t.Errorf("Without: row %v of %v", row, before)
		}
		if row.Views[1] != nil && &row.Views[1][0] != &before.Views[1][0] {
			t.Errorf("Without copies the values of %s", row.ID)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("Select takes an index twice")
		}
	}()
	table.Select(1, 1)
}

func TestNewTableRefuses(t *testing.T) {
	schema := Schema{
		Views: []View{{Name: "v", Columns: []Column{{Name: "x"},
			{Name: "c", Kind: Category, Levels: []string{"a", "b"}}}}}}
	for want, rows := range map[string][]Row{
		"ids must ascend":               {{ID: "b", Views: [][]float64{nil}}, {ID: "a", Views: [][]float64{nil}}},
		"0 views":                       {{ID: "a"}},
		"view v has 1 values, want 2":   {{ID: "a", Views: [][]float64{{1}}}},
		"subject a: x cannot be +Inf":   {{ID: "a", Views: [][]float64{{math.Inf(1), 0}}}},
		"subject a: c cannot be 2":      {{ID: "a", Views: [][]float64{{1, 2}}}},
		"subject a: c cannot be 0.5":    {{ID: "a", Views: [][]float64{{1, 0.5}}}},
		"1 subject columns, want 1 and": {{ID: "a", Views: [][]float64{nil}, Subject: []string{"x"}}},
	} {
		want := strings.Replace(want, "1 subject columns, want 1 and", "and 1 subject columns", 1)
		if _, err := NewTable(schema, rows); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestCollectKeepsNothingOfTheSource(t *testing.T) {
	table := small(t, 5)
	got := testkit.Get(Collect(context.Background(), table))(t)
	if diff := sameRows(got, table); diff != "" {
		t.Error(diff)
	}
	if &got.rows[0].Views[0][0] == &table.rows[0].Views[0][0] {
		t.Error("Collect shares values with its source, which may reuse them")
	}
}

func TestLabels(t *testing.T) {
	names, labels, err := Labels(context.Background(), small(t, 4), "g")
	if got := fmt.Sprint(names, labels, err); got != "[s0 s1 s2 s3] [0 1 2 0] <nil>" {
		t.Error(got)
	}
	if _, labels, _ := Labels(context.Background(), small(t, 2), ""); fmt.Sprintf("%q", labels) != `["" ""]` {
		t.Errorf("got %q without a column", labels)
	}
	if _, _, err := Labels(context.Background(), small(t, 2), "site"); err == nil ||
		!strings.Contains(err.Error(), "columns: g") {
		t.Errorf("got %v, want the columns there are", err)
	}
}

// TestReadingAllocatesOnlyIDs holds the promise that rows are reused.
func TestReadingAllocatesOnlyIDs(t *testing.T) {
	l := newLayout(rand.New(rand.NewPCG(4, 4)), 4000)
	count := func(n int) float64 {
		d := testkit.Get(Open(context.Background(), folder(t, l.wide(l.ids[:n])), Options{}))(t)
		return testing.AllocsPerRun(3, func() {
			for _, err := range d.Rows(context.Background()) {
				if err != nil {
					t.Fatal(err)
				}
			}
		})
	}
	// The id, and the label "site NNNN", which differs in every row here.
	if per := (count(4000) - count(2000)) / 2000; per > 2.1 {
		t.Errorf("%.2f allocations for each row, want 2", per)
	}
}

func TestWriteRefuses(t *testing.T) {
	ctx := context.Background()
	dir := folder(t, map[string]string{"view_old.csv": "id,x\n"})
	if err := Write(ctx, dir, small(t, 2)); err == nil || !strings.Contains(err.Error(), "is there already") {
		t.Errorf("got %v, want a refusal to mix two data sets", err)
	}
	for name, change := range map[string]func(*Table){
		`view "../v"`:            func(t *Table) { t.schema.Views[0].Name = "../v" },
		`"a\r\nb" cannot be`:     func(t *Table) { t.rows[1].Subject[0] = "a\r\nb" },
		`"\xff" cannot be`:       func(t *Table) { t.rows[1].Subject[0] = "\xff" },
		`subject "a" after "s0"`: func(t *Table) { t.rows[1].ID = "a" },
	} {
		table := small(t, 3)
		change(table)
		if err := Write(ctx, t.TempDir(), table); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want %s", err, name)
		}
	}
}

// What somebody puts into the folder in the meantime stays, and what was written
// before goes.
func TestWriteReplacesNoFileThatAppears(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	if err := Vacant(dir); err != nil {
		t.Fatalf("a folder that does not exist: %v", err)
	}
	table := small(t, 3)
	path := filepath.Join(dir, "view_"+table.Schema().Views[0].Name+".csv.gz")
	err := Split(context.Background(), table, []string{dir}, func(r *Row) (int, error) {
		if r.ID == "s0" {
			return 0, os.WriteFile(path, []byte("theirs"), 0o600)
		}
		return 0, nil
	}, nil)
	if err == nil || !strings.Contains(err.Error(), path+": is there already\n  hint: write to an empty folder") {
		t.Errorf("got %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("the folder holds %v, %v", entries, err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "theirs" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestSplit(t *testing.T) {
	table := small(t, 10)
	base := t.TempDir()
	at := func(r *Row) (int, error) {
		if r.ID == "s3" {
			return -1, nil
		}
		return int(r.ID[1]-'0') % 2, nil
	}
	testkit.Do(t, Split(context.Background(), table, []string{base + "/even", base + "/odd"}, at, [][]int{{0}, nil}))
	schema := table.Schema()
	even := collect(t, base+"/even", Options{Schema: &schema})
	odd := collect(t, base+"/odd", Options{Schema: &schema})
	if diff := sameRows(even, table.Select(0, 2, 4, 6, 8).Without(0)); diff != "" {
		t.Error(diff)
	}
	if diff := sameRows(odd, table.Select(1, 5, 7, 9)); diff != "" {
		t.Error(diff)
	}
}

// Columns of words are named with the place of the first, and the others can be described.
func TestNumbersLeavesWordsOut(t *testing.T) {
	wide := map[string]string{"subjects.csv": subjects("a", "b", "c"), "view_t.csv": "id,day\na,2020-01-01\n",
		"view_v.csv": "id,stage,x,y\nc,II,3,<5\nb,NA,2,1\na,I,1,2\n"}
	long := map[string]string{"long.csv": longHeader + "\nc,v,stage,II\nc,v,x,3\nc,v,y,<5\nb,v,x,2\nb,v,y,1\na,t,day," +
		"2020-01-01\na,v,stage,I\na,v,x,1\na,v,y,2\n"}
	for name, c := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"wide": {wide, []string{"view_t.csv:2: view t, feature day: left out: 1 of its 1",
			"view_v.csv:2: view v, feature stage: left out: 2 of its 2",
			"view_v.csv:2: view v, feature y: left out: 1 of its 3", "view t: left out: none"}},
		"long": {long, []string{"long.csv:7: view t, feature day: left out: 1 of its 1",
			"long.csv:2: view v, feature stage: left out: 2 of its 2",
			"long.csv:4: view v, feature y: left out: 1 of its 3", "view t: left out: none"}},
	} {
		dir := folder(t, c.files)
		d := testkit.Get(Open(context.Background(), dir, Options{}))(t)
		left, said, err := d.Numbers(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range said.Lines() {
			if !strings.Contains(line, c.want[i]) || len(said) != len(c.want) {
				t.Errorf("%s: %q, want %q", name, line, c.want[i])
			}
		}
		s := describe(t, left)
		if got := fmt.Sprintf("%d %d %s %d %v", s.Subjects, len(s.Views), s.Views[0].Name, len(s.Views[0].Features),
			*s.Views[0].Features[0].Moments); got != "3 1 v 1 {1 3 2 1}" {
			t.Errorf("%s: %s", name, got)
		}
	}
	dir := folder(t, map[string]string{"subjects.csv": subjects("a"), "view_v.csv": "id,x\na,one\n"})
	d := testkit.Get(Open(context.Background(), dir, Options{}))(t)
	if _, _, err := d.Numbers(context.Background()); err == nil ||
		!strings.Contains(err.Error(), "no view has a column that holds numbers only") {
		t.Errorf("got %v", err)
	}
}

// Whose a row is comes with it, through whatever is made of it, and is part of the fingerprint; nothing else of a row
// changes by it.
func TestRowsSayWhoseTheyAre(t *testing.T) {
	dir := t.TempDir()
	write := func(subjects string) {
		testkit.Do(t, os.WriteFile(filepath.Join(dir, "subjects.csv"), []byte(subjects), 0o644))
		testkit.Do(t, os.WriteFile(filepath.Join(dir, "view_a.csv"), []byte("id,x\n1,5\n2,6\n3,7\n4,8\n"), 0o644))
	}
	schema := Schema{Views: []View{{Name: "a", Columns: []Column{{Name: "x"}}}},
		Subject: []Column{{Name: "group", Kind: Label}}}
	read := func(person string) (people []string, fingerprint string) {
		t.Helper()
		schema.Person = person
		d := testkit.Get(Open(t.Context(), dir, Options{Schema: &schema}))(t)
		table := testkit.Get(Collect(t.Context(), d))(t)
		derived := Derive(table, Schema{Views: schema.Views}, func() func(*Row) *Row {
			return func(r *Row) *Row { return &Row{ID: r.ID, Views: r.Views} }
		})
		copied := filepath.Join(t.TempDir(), "copy")
		testkit.Do(t, Write(t.Context(), copied, table))
		back := testkit.Get(Open(t.Context(), copied, Options{Schema: &schema}))(t)
		for _, src := range []Source{d, table, derived, back, d.Tolerant()} {
			var own []string
			for row, err := range src.Rows(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				if len(row.Subject) > 1 || slices.Contains(row.Subject, "P7") {
					t.Errorf("the subject columns hold %q", row.Subject)
				}
				own = append(own, row.Person)
			}
			if src.Schema().Person != person || people != nil && !slices.Equal(own, people) {
				t.Errorf("%T: rows of %q by %q, want %q", src, own, src.Schema().Person, people)
			}
			people = own
		}
		return people, testkit.Get(Count(t.Context(), d))(t).Hex()
	}
	write("id,who,group\n1,P7,u\n2,,v\n3,P7,u\n4,NA,u\n")
	people, named := read("who")
	if !slices.Equal(people, []string{"P7", "", "P7", ""}) {
		t.Errorf("rows of %q", people)
	}
	none, unnamed := read("")
	if !slices.Equal(none, make([]string, 4)) || named == unnamed {
		t.Errorf("without the column rows are of %q", none)
	}
	write("id,who,group\n1,P7,u\n2,,v\n3,P8,u\n4,NA,u\n")
	if _, other := read("who"); other == named {
		t.Error("a row of somebody else has the same fingerprint")
	}
	if _, same := read(""); same != unnamed {
		t.Error("a column that nobody reads is part of the fingerprint")
	}
}

// What a number means follows from its record: points part thousands beside a decimal comma, and what may be either is
// no number. A cell with a comma, a separator or a line break stays one cell on its line.
func TestDialects(t *testing.T) {
	for text, want := range map[string]string{
		"id;x;y\na;1.012;2,5\n":                       "id,x,y\na,1012,2.5\n",
		"id;x;y\na;1.012.345,5;-0,5\n":                "id,x,y\na,1012345.5,-0.5\n",
		"id;x;y\na;1.012;2.5\n":                       "id,x,y\na,1.012,2.5\n",
		"id;x;y\na;1.012;2\n":                         "id,x,y\na,1.012 or 1012,2\n",
		"id;x;y\na;0.012;2\n":                         "id,x,y\na,0.012,2\n",
		"id;x;y\na;1,2;2.5\n":                         "id,x,y\na,\"1,2\",2.5\n",
		"id;\"x, y\"\n1,5;\"1,5\"\n":                  "id,\"x, y\"\n\"1,5\",1.5\n",
		"id;note\na;\"one;\n \"\"two\"\"\"\nb;c, d\n": "id,note\na,\"one;\n \"\"two\"\"\"\nb,\"c, d\"\n",
		"id\tx\r\na\t1\r\n":                           "id,x\na,1\n",
		"id,x;y\na,1;2\n":                             "id,x;y\na,1;2\n",
		"id;x\na;1e5\nb;1,5e-3":                       "id,x\na,1e5\nb,1.5e-3",
		"sep=;\nid;x\na;1\n":                          "\nid,x\na,1\n",
		"id;note;x\na;5\" nail;1,5\nb;\"c\"\";\";2\n": "id,note,x\na,5\" nail,1.5\nb,\"c\"\";\",2\n",
		"id,x\ra,1\rb,2":                              "id,x\na,1\nb,2",
	} {
		path := filepath.Join(t.TempDir(), "x.csv")
		testkit.Do(t, os.WriteFile(path, []byte(text), 0o600))
		r := testkit.Get(testkit.Get(newInput(path, nil, nil))(t).open(false))(t)
		if got := string(testkit.Get(io.ReadAll(r))(t)); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
		r.Close()
	}
}
