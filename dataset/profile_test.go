package dataset

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/internal/testkit"
)

// Columns of words are named with the place of the first, and the others can be described.
func TestNumbersLeavesWordsOut(t *testing.T) {
	wide := map[string]string{"subjects.csv": subjects("a", "b", "c"), "view_t.csv": "id,day\na,2020-01-01\n", "view_v.csv": "id,stage,x,y\nc,II,3,<5\nb,NA,2,1\na,I,1,2\n"}
	long := map[string]string{"long.csv": longHeader + "\nc,v,stage,II\nc,v,x,3\nc,v,y,<5\nb,v,x,2\nb,v,y,1\na,t,day,2020-01-01\na,v,stage,I\na,v,x,1\na,v,y,2\n"}
	for name, c := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"wide": {wide, []string{"view_t.csv:2: view t, feature day: left out: 1 of its 1", "view_v.csv:2: view v, feature stage: left out: 2 of its 2", "view_v.csv:2: view v, feature y: left out: 1 of its 3", "view t: left out: none"}},
		"long": {long, []string{"long.csv:7: view t, feature day: left out: 1 of its 1", "long.csv:2: view v, feature stage: left out: 2 of its 2", "long.csv:4: view v, feature y: left out: 1 of its 3", "view t: left out: none"}},
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
		if got := fmt.Sprintf("%d %d %s %d %v", s.Subjects, len(s.Views), s.Views[0].Name, len(s.Views[0].Features), *s.Views[0].Features[0].Moments); got != "3 1 v 1 {1 3 2 1}" {
			t.Errorf("%s: %s", name, got)
		}
	}
	dir := folder(t, map[string]string{"subjects.csv": subjects("a"), "view_v.csv": "id,x\na,one\n"})
	d := testkit.Get(Open(context.Background(), dir, Options{}))(t)
	if _, _, err := d.Numbers(context.Background()); err == nil || !strings.Contains(err.Error(), "no view has a column that holds numbers only") {
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
