package dataset

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Codes for missing values are read as missing in every way to write a number, and
// nothing else is.
func TestCodesForMissingValues(t *testing.T) {
	codes := []string{"-9", "NK", "1000"}
	schema := Schema{Views: []View{{Name: "v", Columns: []Column{
		{Name: "x", Missing: codes}, {Name: "y"}, {Name: "c", Kind: Category, Levels: []string{"I", "II"}, Other: "II", Missing: codes}}}}}
	wide, long := t.TempDir(), t.TempDir()
	for path, text := range map[string]string{
		filepath.Join(wide, "subjects.csv"): "id\na\nb\nc\nd\n",
		filepath.Join(wide, "view_v.csv"):   "id,x,y,c\na,-9.0,-9,NK\nb,\"-9\",1,I\nc,NK,2,-9\nd,-9.5,1e3,x\n",
		filepath.Join(long, "long.csv"): "id,view,feature,value\na,v,x,-9.0\na,v,y,-9\na,v,c,NK\nb,v,x,1e3\nb,v,y,1\nb,v,c,I\n" +
			"c,v,x,NK\nc,v,y,2\nc,v,c,-9\nd,v,x,-9.5\nd,v,y,1e3\nd,v,c,x\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	nan := math.NaN()
	want := [][]float64{{nan, -9, nan}, {nan, 1, 0}, {nan, 2, nan}, {-9.5, 1000, 1}}
	for _, dir := range []string{wide, long} {
		d, err := Open(t.Context(), dir, Options{Schema: &schema})
		if err != nil {
			t.Fatal(err)
		}
		table, err := Collect(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		for i, row := range want {
			for j, v := range row {
				if got := table.Row(i).Views[0][j]; math.Float64bits(got) != math.Float64bits(v) {
					t.Errorf("%s: row %d, column %d: %v, want %v", dir, i, j, got, v)
				}
			}
		}
	}
}

// A subject without a value in a column that requires one takes no part, and is counted.
func TestIncompleteSubjectsTakeNoPart(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("subjects.csv", "id,dose,site\na,1,\nb,-9.0,x\nc,,x\nd,NA,x\ne,unknown,x\nf,0,x\n")
	write("view_v.csv", "id,x\na,1\nb,2\nc,3\nd,4\ne,5\nf,6\n")
	schema := Schema{Views: []View{{Name: "v", Columns: []Column{{Name: "x"}}}},
		Subject: []Column{{Name: "dose", Kind: Label, Required: true, Missing: []string{"-9", "unknown"}}, {Name: "site", Kind: Label}}}
	d, err := Open(t.Context(), dir, Options{Schema: &schema})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for row, err := range d.Rows(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, row.ID)
	}
	if got, left := strings.Join(ids, " "), fmt.Sprint(d.LeftOut()); got != "a f" || !strings.Contains(left, "subjects: without a value of dose, and therefore left out: 4") {
		t.Errorf("%q took part; %s", got, left)
	}
}
