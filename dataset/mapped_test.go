package dataset

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/testkit"
)

// rowsIn are the rows of a folder, as text; what is wrong with them is an error unless it is tolerated.
func rowsIn(t *testing.T, d *Dir) (all []string, err error) {
	t.Helper()
	for row, err := range d.Rows(t.Context()) {
		if err != nil {
			return all, err
		}
		all = append(all, strings.TrimSpace(fmt.Sprint(row.ID, row.Person, row.Subject, row.Views)))
	}
	return all, nil
}

// A record of which nobody can tell whose it is counts for nobody, and takes nothing from those whose ids its cells
// hold.
func TestARecordWithoutItsCellsIsNobodys(t *testing.T) {
	schema := Schema{Views: []View{{Name: "v", Columns: []Column{{Name: "x"}}}}}
	const mapping = "mapping: 1\nviews:\n  - {name: v, id: PatNr, rows: last, by: visit, columns: [x]}\n"
	read := func(extra string) string {
		dir := folder(t, map[string]string{"mapping.yaml": mapping, "subjects.csv": "id\n1\n2\n",
			"view_v.csv": "visit,PatNr,x\n9,1,10\n9,2,20\n" + extra})
		return fmt.Sprint(testkit.Get(rowsIn(t, testkit.Get(Open(t.Context(), dir,
			Options{Schema: &schema, Tolerant: true}))(t)))(t))
	}
	want := read("")
	for _, bad := range []string{"1\n", "1,3,\"5\n", "1,2\n", "1,,3,5\n"} {
		if got := read(bad); got != want {
			t.Errorf("with %q: %s, not %s", bad, got, want)
		}
	}
}

// Labels, categories and persons are words, whatever they look like and whatever stands beside them.
func TestWordsOfOtherDialectsStayWords(t *testing.T) {
	schema := Schema{Person: "person", Subject: []Column{{Name: "ward", Kind: Label}},
		Views: []View{{Name: "v", Columns: []Column{{Name: "x"},
			{Name: "c", Kind: Category, Levels: []string{"1,2", "1.234"}}}}}}
	dir := folder(t, map[string]string{"subjects.csv": "id;person;ward\na;12.345;1,5\nb;12.345;1.500\n",
		"view_v.csv": "id;x;c\na;21,5;1,2\nb;21;1.234\n"})
	got := testkit.Get(rowsIn(t, testkit.Get(Open(t.Context(), dir, Options{Schema: &schema}))(t)))(t)
	if want := []string{"a12.345[1,5] [[21.5 0]]", "b12.345[1.500] [[21 1]]"}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %q, not %q", got, want)
	}
}

// Times of any length, ties that decide nothing, and means that no order changes.
func TestMappedRows(t *testing.T) {
	schema := Schema{
		Views: []View{{Name: "v", Columns: []Column{{Name: "x"},
			{Name: "c", Kind: Category, Levels: []string{"01", "02"}}}}}}
	for _, x := range []struct{ mapping, rows, want string }{
		{"{name: v, columns: [{name: x, from: born, until: 9999-12-31, unit: days}]}", "id,born,c\na,2000-01-01,01\n",
			"a[] [[2.921939e+06 0]]"},
		{"{name: v, rows: last, by: at}", "id,at,x,c\na,2024-01-01,1,01\na,2024-01-01,2,01\na,2024-02-01,3,02\n",
			"a[] [[3 1]]"},
		{"{name: v, rows: mean}", "id,x,c\na,0.1,01\na,0.2,01\na,0.3,01\n", "a[] [[0.20000000000000004 0]]"},
		{"{name: v, rows: mean}", "id,x,c\na,0.3,01\na,0.2,01\na,0.1,01\n", "a[] [[0.20000000000000004 0]]"},
	} {
		dir := folder(t, map[string]string{"mapping.yaml": "mapping: 1\nviews:\n  - " + x.mapping + "\n",
			"subjects.csv": "id\na\n", "view_v.csv": x.rows})
		got, err := rowsIn(t, testkit.Get(Open(t.Context(), dir, Options{Schema: &schema}))(t))
		if err != nil || fmt.Sprint(got) != "["+x.want+"]" {
			t.Errorf("%s: %q, %v, not %s", x.mapping, got, err, x.want)
		}
	}
}

// What a query gives at first is what an exact study is of; another order is no other answer.
func TestRowsOfAQueryAreHeldTo(t *testing.T) {
	schema := Schema{Views: []View{{Name: "v", Columns: []Column{{Name: "x"}}}}}
	dir := folder(t, map[string]string{"subjects.csv": "id\na\nb\nc\n",
		"mapping.yaml": "mapping: 1\nviews:\n  - {name: v, id: id, sql: {driver: sqlite, database: h.db, query: " +
			"\"SELECT id, x FROM v\"}}\n"})
	// A reader's lock may outlast the reading by a moment.
	db := testkit.Get(sql.Open("sqlite", filepath.Join(dir, "h.db")+"?_pragma=busy_timeout(60000)"))(t)
	defer db.Close()
	do := func(statement string) { testkit.Get(db.Exec(statement))(t) }
	do("CREATE TABLE v (id TEXT, x REAL)")
	do("INSERT INTO v VALUES ('a', 1), ('b', 2), ('c', 3)")
	strict := testkit.Get(Open(t.Context(), dir, Options{Schema: &schema}))(t)
	noised := testkit.Get(Open(t.Context(), dir, Options{Schema: &schema, Tolerant: true}))(t)
	want := testkit.Get(rowsIn(t, strict))(t)
	do("DELETE FROM v WHERE id = 'a'")
	do("INSERT INTO v VALUES ('a', 1)")
	for name, d := range map[string]*Dir{"strict": strict, "noised": noised} {
		if got, err := rowsIn(t, d); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s, in another order: %q, %v", name, got, err)
		}
	}
	do("UPDATE v SET x = 4 WHERE id = 'b'")
	if _, err := rowsIn(t, strict); err == nil ||
		!strings.Contains(err.Error(), "have changed since they were looked at") {
		t.Errorf("other rows are taken: %v", err)
	}
	if got := testkit.Get(rowsIn(t, noised))(t); len(got) != 3 {
		t.Errorf("where noise protects, other rows show: %q", got)
	}
}
