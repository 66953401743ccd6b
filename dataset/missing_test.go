package dataset

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/internal/testkit"
)

// Codes for missing values are read as missing in every way to write a number, and
// nothing else is.
func TestCodesForMissingValues(t *testing.T) {
	codes := []string{"-9", "NK", "1000"}
	schema := Schema{Views: []View{{Name: "v", Columns: []Column{
		{Name: "x", Missing: codes}, {Name: "y"}, {Name: "c", Kind: Category, Levels: []string{"I", "II"}, Other: "II",
			Missing: codes}}}}}
	wide, long := t.TempDir(), t.TempDir()
	for path, text := range map[string]string{
		filepath.Join(wide, "subjects.csv"): "id\na\nb\nc\nd\n",
		filepath.Join(wide, "view_v.csv"):   "id,x,y,c\na,-9.0,-9,NK\nb,\"-9\",1,I\nc,NK,2,-9\nd,-9.5,1e3,x\n",
		filepath.Join(long, "long.csv"): "id,view,feature,value\na,v,x,-9.0\na,v,y,-9\na,v,c,NK\nb,v,x,1e3\nb,v,y,1\n" +
			"b,v,c,I\nc,v,x,NK\nc,v,y,2\nc,v,c,-9\nd,v,x,-9.5\nd,v,y,1e3\nd,v,c,x\n",
	} {
		testkit.Do(t, os.WriteFile(path, []byte(text), 0o666))
	}
	nan := math.NaN()
	want := [][]float64{{nan, -9, nan}, {nan, 1, 0}, {nan, 2, nan}, {-9.5, 1000, 1}}
	for _, dir := range []string{wide, long} {
		d := testkit.Get(Open(t.Context(), dir, Options{Schema: &schema}))(t)
		table := testkit.Get(Collect(t.Context(), d))(t)
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
		testkit.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	write("subjects.csv", "id,dose,site\na,1,\nb,-9.0,x\nc,,x\nd,NA,x\ne,unknown,x\nf,0,x\n")
	write("view_v.csv", "id,x\na,1\nb,2\nc,3\nd,4\ne,5\nf,6\n")
	schema := Schema{Views: []View{{Name: "v", Columns: []Column{{Name: "x"}}}},
		Subject: []Column{{Name: "dose", Kind: Label, Required: true, Missing: []string{"-9", "unknown"}},
			{Name: "site", Kind: Label}}}
	d := testkit.Get(Open(t.Context(), dir, Options{Schema: &schema}))(t)
	var ids []string
	for row, err := range d.Rows(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, row.ID)
	}
	if got, left := strings.Join(ids, " "), fmt.Sprint(d.LeftOut()); got != "a f" ||
		!strings.Contains(left, "subjects: without a value of dose, and therefore left out: 4") {
		t.Errorf("%q took part; %s", got, left)
	}
}

// A cell of what nobody sees is empty.
func TestUnseenCellsAreMissing(t *testing.T) {
	for cell, want := range map[string]bool{"\u00a0": true, "\u2003\u200b": true, "\ufeff": true, "—": false} {
		if IsMissing(cell) != want {
			t.Errorf("%+q is missing: %v", cell, !want)
		}
	}
}

// What a person reads as a number is told from words, codes and dates.
func TestOtherwise(t *testing.T) {
	for cell, want := range map[string][2]string{
		"9,81": {"has a decimal comma", "use a decimal point: 9.81"},
		"-9,8": {"has a decimal comma", "use a decimal point: -9.8"},
		"1,234": {"has a decimal comma", "use a decimal point: 1.234, or write 1234 if the comma separates " +
			"thousands"},
		"1.234,5":     {"has a decimal comma and separators of thousands", "write 1234.5"},
		"1,234.5":     {"has separators of thousands", "write 1234.5"},
		"1.234.567":   {"has separators of thousands", "write 1234567"},
		"12 345":      {"has separators of thousands", "write 12345"},
		"12\u202f345": {"has separators of thousands", "write 12345"},
		"12'345":      {"has separators of thousands", "write 12345"},
		"5.1 mg/l":    {"has mg/l behind the number", "write 5.1"},
		"5,1 mg/l":    {"has mg/l behind the number", "write 5.1"},
		"5.1mg/dL":    {"has mg/dL behind the number", "write 5.1"},
		"12 %":        {"has % behind the number", "write 12"},
		"12%":         {"has % behind the number", "write 12"},
		"37.2 °C":     {"has °C behind the number", "write 37.2"},
		"<0.5": {"is a bound and not a value", "leave the cell empty, or agree on a number at all sites, such " +
			"as half of the limit: 0.25"},
		"< 0,5": {"is a bound and not a value", "leave the cell empty, or agree on a number at all sites, such " +
			"as half of the limit: 0.25"},
		"−5.1":      {"has a dash in place of the minus sign", "write -5.1"},
		"5.1\u00a0": {"has a space that is not a usual one", "write 5.1"},
		"５．５":       {"has other characters than digits, a sign and a point", "write 5.5"},
		"=\"037\"":  {"has other characters than digits, a sign and a point", "write 037"},
		"'37":       {"has other characters than digits, a sign and a point", "write 37"},
		"5²":        {"", ""},
		"١٢٫٥":      {"has other characters than digits, a sign and a point", "write 12.5"},
		"12·5":      {"has other characters than digits, a sign and a point", "write 12.5"},
		"12.5±0.3":  {"has ±0.3 behind the number", "write 12.5"},
		"12.5H":     {"has H behind the number", "write 12.5"},
		"＜0.5": {"is a bound and not a value", "leave the cell empty, or agree on a number at all sites, such " +
			"as half of the limit: 0.25"},
		"~12.5": {"has ~ before the number", "write 12.5"},
		">90": {"is a bound and not a value", "leave the cell empty, or agree on a number at all sites, such as the " +
			"limit: 90"},
		"13, 14":     {"", ""},
		"2a":         {"", ""},
		"3rd":        {"", ""},
		"high":       {"", ""},
		"1-3":        {"", ""},
		"2020-01-31": {"", ""},
		"31.01.2020": {"", ""},
		"1,2,3":      {"", ""},
		"1.5.2":      {"", ""},
		"12,34.5":    {"", ""},
		"12 34":      {"", ""},
		"":           {"", ""},
	} {
		if what, hint := otherwise(cell); what != want[0] || hint != want[1] {
			t.Errorf("%q: got %q, %q, want %q", cell, what, hint, want)
		}
	}
}

// Values that a site has standardised are recognised by their sums, rounded as files are; those of a
// population of mean 0 and deviation 1 are not, however many: of three features, one set of
// three million would be.
func TestStandardisedIsToldFromStandardNormal(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 11))
	sums := func(rows [][]float64) (n, mean, squares []float64) {
		for _, x := range rows {
			m, s := 0.0, 0.0
			for _, v := range x {
				m += v / float64(len(x))
			}
			for _, v := range x {
				s += (v - m) * (v - m)
			}
			n, mean, squares = append(n, float64(len(x))), append(mean, m), append(squares, s)
		}
		return n, mean, squares
	}
	for _, size := range []int{10, 300, 20000} {
		for range 20 {
			raw, by, less := make([][]float64, 3), make([][]float64, 3), make([][]float64, 3)
			for j := range raw {
				for range size {
					raw[j] = append(raw[j], r.NormFloat64())
				}
			}
			n, mean, squares := sums(raw)
			if Standardised(n, mean, squares) {
				t.Errorf("%d values of a standard normal law are called standardised", size)
			}
			for j := range raw {
				for _, x := range raw[j] {
					z := (x - mean[j]) / math.Sqrt(squares[j]/n[j])
					by[j] = append(by[j], math.Round(1000*z)/1000)
					less[j] = append(less[j], math.Round(1000*z*math.Sqrt((n[j]-1)/n[j]))/1000)
				}
			}
			for _, x := range [][][]float64{by, less} {
				if !Standardised(sums(x)) {
					t.Errorf("%d standardised values are not recognised", size)
				}
			}
			if Standardised(sums(by[:2])) {
				t.Error("two features are called standardised")
			}
		}
	}
}

// A site that has standardised a view is named beside one that has not.
func TestAStandardisedViewIsDoubted(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 12))
	site := func(own bool) *Summary {
		x := make([][]float64, 40)
		for i := range x {
			x[i] = []float64{50 + 8*r.NormFloat64(), 120 + 15*r.NormFloat64(), r.NormFloat64()}
		}
		var rows []Row
		for i := range x {
			values := append([]float64(nil), x[i]...)
			for j := range values {
				mean, squares := 0.0, 0.0
				for k := range x {
					mean += x[k][j] / float64(len(x))
				}
				for k := range x {
					squares += (x[k][j] - mean) * (x[k][j] - mean)
				}
				if own {
					values[j] = (values[j] - mean) / math.Sqrt(squares/float64(len(x)-1))
				}
			}
			rows = append(rows, Row{ID: fmt.Sprintf("s%04d", i), Views: [][]float64{values}})
		}
		table := testkit.Get(
			NewTable(Schema{Views: []View{{Name: "v", Columns: []Column{{Name: "a"}, {Name: "b"}, {Name: "c"}}}}},
				rows))(t)
		return describe(t, table)
	}
	const says = "every feature has a mean of 0 and a standard deviation of 1 at south, and elsewhere not"
	for _, own := range []bool{false, true} {
		got := fmt.Sprint(Others{Sites: []string{"north", "south"},
			Summaries: []*Summary{site(false), site(own)}}.Doubts())
		if strings.Contains(got, says) != own {
			t.Errorf("standardised: %t; %s", own, got)
		}
	}
}

// Whatever a record holds, a tolerant data set opens, and its other rows are as they would be
// without it: in every form of file, sorted or not, and also where it is the only one.
func TestWhatARecordHoldsShowsInNothingElse(t *testing.T) {
	schema := Schema{Subject: []Column{{Name: "sex", Kind: Label}},
		Views: []View{{Name: "v", Columns: []Column{{Name: "x"},
			{Name: "c", Kind: Category, Levels: []string{"I", "II"}}}}}}
	rows := func(dir string) (all []string, left string) {
		d := testkit.Get(Open(t.Context(), dir, Options{Schema: &schema, Tolerant: true}))(t)
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
			testkit.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(strings.Join(lines, "\n")+"\n"), 0o600))
		}
		return dir
	}
	wide := map[string][]string{"subjects.csv": {"id,sex", "a,f", "b,m", "c,f"},
		"view_v.csv": {"id,x,c", "a,1,I", "c,3,II"}}
	long := map[string][]string{"subjects.csv": wide["subjects.csv"], "long.csv": {"id,view,feature,value", "a,v,x,1",
		"a,v,c,I", "c,v,x,3", "c,v,c,II"}}
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
		// in its place as well as first, where the file is not sorted
		for _, at := range []int{len(x.files[x.file]), 1} {
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
	one := map[string][]string{"subjects.csv": {"id,sex", `y,"f`, "a,f", "b,m", "c,f"},
		"view_v.csv": wide["view_v.csv"]}
	two := map[string][]string{"subjects.csv": append(slices.Clone(one["subjects.csv"]), `z,"m`),
		"view_v.csv": wide["view_v.csv"]}
	got, _ := rows(write(one))
	if more, _ := rows(write(two)); len(got) != 3 || !slices.Equal(got, more) {
		t.Errorf("beside an open quote: %q, beside two: %q", got, more)
	}
	// The first bytes of a file say how it is written, but not those of rows.
	if _, err := Open(t.Context(), write(map[string][]string{"subjects.csv": {"id", "\x00"}, "view_v.csv": {"id,x,c"}}),
		Options{Schema: &Schema{Views: schema.Views}, Tolerant: true}); err != nil {
		t.Error(err)
	}
	none, _ := rows(write(map[string][]string{"subjects.csv": {"id,sex"}, "view_v.csv": {"id,x,c"}}))
	if none != nil {
		t.Errorf("rows of empty files: %q", none)
	}
}
