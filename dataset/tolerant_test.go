package dataset

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Whatever a record holds, a tolerant data set opens, and its other rows are as they would be
// without it: in every form of file, sorted or not, and also where it is the only one.
func TestWhatARecordHoldsShowsInNothingElse(t *testing.T) {
	schema := Schema{Subject: []Column{{Name: "sex", Kind: Label}}, Views: []View{{Name: "v", Columns: []Column{{Name: "x"}, {Name: "c", Kind: Category, Levels: []string{"I", "II"}}}}}}
	rows := func(dir string) (all []string, left string) {
		d, err := Open(t.Context(), dir, Options{Schema: &schema, Tolerant: true})
		if err != nil {
			t.Fatal(err)
		}
		for row, err := range d.Rows(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, fmt.Sprint(row.ID, row.Subject, row.Views))
		}
		return all, fmt.Sprint(d.LeftOut())
	}
	write := func(files map[string][]string) string {
		dir := t.TempDir()
		for name, lines := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	wide := map[string][]string{"subjects.csv": {"id,sex", "a,f", "b,m", "c,f"}, "view_v.csv": {"id,x,c", "a,1,I", "c,3,II"}}
	long := map[string][]string{"subjects.csv": wide["subjects.csv"], "long.csv": {"id,view,feature,value", "a,v,x,1", "a,v,c,I", "c,v,x,3", "c,v,c,II"}}
	for name, x := range map[string]struct {
		files map[string][]string
		file  string
		bad   string
	}{
		"text for a number":       {wide, "view_v.csv", "b,tall,I"},
		"a level that is none":    {wide, "view_v.csv", "b,2,III"},
		"too few cells":           {wide, "view_v.csv", "b,2"},
		"too many cells":          {wide, "view_v.csv", "b,2,I,4"},
		"a decimal comma":         {wide, "view_v.csv", "b,2,5,I"},
		"no id":                   {wide, "view_v.csv", ",2,I"},
		"an id that is nobody's":  {wide, "view_v.csv", "x,2,I"},
		"an id written otherwise": {wide, "view_v.csv", "0A,2,I"},
		"an id that comes again":  {wide, "view_v.csv", "c,2,I"},
		"a bare quote":            {wide, "view_v.csv", `b,2"3,I`},
		"an open quote":           {wide, "view_v.csv", `b,"2,I`},
		"a quote within":          {wide, "view_v.csv", `"b",2,"I`},
		"no UTF-8":                {wide, "view_v.csv", "b,2,\xff"},
		"the subject again":       {wide, "subjects.csv", "c,m"},
		"the subject cut off":     {wide, "subjects.csv", "d"},
		"unknown to the plan":     {long, "long.csv", "b,v,height,3"},
		"no number, long":         {long, "long.csv", "b,v,x,tall"},
		"short, long":             {long, "long.csv", "b,v,x"},
	} {
		want, left := rows(write(x.files))
		if left != "" || len(want) != 3 {
			t.Fatalf("%s: clean rows: %q %q", name, want, left)
		}
		for _, at := range []int{len(x.files[x.file]), 1} { // in its place as well as first, where the file is not sorted
			dirty := map[string][]string{}
			for file, lines := range x.files {
				dirty[file] = slices.Clone(lines)
			}
			dirty[x.file] = slices.Insert(dirty[x.file], at, x.bad)
			got, left := rows(write(dirty))
			want := slices.Clone(want)
			switch name { // of two records with one id neither counts: they may be two people's
			case "an id that comes again":
				want[2] = "c[f] [[]]"
			case "the subject again":
				want = want[:2]
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s at line %d:\n%q, want\n%q", name, at+1, got, want)
			}
			if name != "unknown to the plan" && !strings.Contains(left, "count as nothing: ") {
				t.Errorf("%s: left out: %q", name, left)
			}
		}
	}
	// Quotes join no lines: with one that stands open, another would else take in whoever is between.
	one := map[string][]string{"subjects.csv": {"id,sex", `y,"f`, "a,f", "b,m", "c,f"}, "view_v.csv": wide["view_v.csv"]}
	two := map[string][]string{"subjects.csv": append(slices.Clone(one["subjects.csv"]), `z,"m`), "view_v.csv": wide["view_v.csv"]}
	got, _ := rows(write(one))
	if more, _ := rows(write(two)); len(got) != 3 || !slices.Equal(got, more) {
		t.Errorf("beside an open quote: %q, beside two: %q", got, more)
	}
	// The first bytes of a file say how it is written, but not those of rows.
	if _, err := Open(t.Context(), write(map[string][]string{"subjects.csv": {"id", "\x00"}, "view_v.csv": {"id,x,c"}}), Options{Schema: &Schema{Views: schema.Views}, Tolerant: true}); err != nil {
		t.Error(err)
	}
	none, _ := rows(write(map[string][]string{"subjects.csv": {"id,sex"}, "view_v.csv": {"id,x,c"}}))
	if none != nil {
		t.Errorf("rows of empty files: %q", none)
	}
}
