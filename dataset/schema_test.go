package dataset

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"parley/internal/testkit"
)

// Whose a row is comes with it, through whatever is made of it, and is part of the fingerprint; nothing else of a row
// changes by it.
func TestRowsSayWhoseTheyAre(t *testing.T) {
	dir := t.TempDir()
	write := func(subjects string) {
		testkit.Do(t, os.WriteFile(filepath.Join(dir, "subjects.csv"), []byte(subjects), 0o644))
		testkit.Do(t, os.WriteFile(filepath.Join(dir, "view_a.csv"), []byte("id,x\n1,5\n2,6\n3,7\n4,8\n"), 0o644))
	}
	schema := Schema{Views: []View{{Name: "a", Columns: []Column{{Name: "x"}}}}, Subject: []Column{{Name: "group", Kind: Label}}}
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
