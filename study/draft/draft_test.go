package draft

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// folders writes files below a new folder, each named by its path.
func folders(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// rows is a table with an id and the cells that each column gives for row i.
func rows(prefix string, n int, header string, cells ...func(i int) any) string {
	var b strings.Builder
	fmt.Fprintln(&b, "id,"+header)
	for i := range n {
		fmt.Fprintf(&b, "%s%03d", prefix, i)
		for _, c := range cells {
			fmt.Fprintf(&b, ",%v", c(i))
		}
		fmt.Fprintln(&b)
	}
	return b.String()
}

func value(i int) any { return float64(i*37%19) + 0.5 }

func label(names ...string) func(int) any { return func(i int) any { return names[i%len(names)] } }

func TestLook(t *testing.T) {
	coded := func(i int) any {
		if i%5 == 0 {
			return -99
		}
		return value(i)
	}
	root := folders(t, map[string]string{
		"North Clinic/subjects.csv": rows("n", 20, "group,born,person,rare", label("a", "b"), func(i int) any { return 1900 + i }, func(i int) any { return fmt.Sprint("p", i) }, func(i int) any {
			if i == 0 {
				return "unique"
			}
			return "usual"
		}),
		"North Clinic/view_lab.csv": rows("n", 20, "x,y,kind,only", value, coded, label("u", "v"), value),
		"south/subjects.csv":        rows("s", 20, "group,born,person,rare", label("a", "b"), func(i int) any { return 1950 + i }, func(i int) any { return fmt.Sprint("q", i) }, label("usual")),
		"south/view_lab.csv":        rows("s", 20, "x,y,kind", value, value, label("u", "v")),
		"south/view_gene.csv":       rows("s", 20, "g", func(i int) any { return i * i % 7 }),
		"south/notes.txt":           "nothing",
		".hidden/subjects.csv":      "id\na\n",
	})
	d, err := Look(t.Context(), root, Options{Name: "tried", Outcome: "group"})
	if err != nil {
		t.Fatal(err)
	}
	text := string(d.YAML(root))
	for _, want := range []string{
		"sites: [north-clinic, south]\n", "# north-clinic lacks the views: gene\n", "      - {name: \"y\", missing: [-99]}  # looks like a code", "      - x\n",
		"#   view lab, only: north-clinic has it, and south has not\n", "#   subjects, person: it has too many values", "subjects: [group, born, rare]\n",
		"  name: pvi\n  outcome: {column: group, levels: [a, b]}\n", "    north-clinic: \"North Clinic\"\n", "    south: south\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	// A plan is public: nothing in it is of fewer than three subjects.
	for _, never := range []string{"unique", "p1", "1901"} {
		if strings.Contains(text, never) {
			t.Errorf("%q is in\n%s", never, text)
		}
	}
	if len(d.Candidates) != 2 || d.Candidates[1].Column != "born" || d.Candidates[1].Levels != nil {
		t.Errorf("candidates %v", d.Candidates)
	}
}

// A level that few have becomes another one, which has no name of the data's.
func TestRareLevelsAreNotNamed(t *testing.T) {
	root := folders(t, map[string]string{
		"subjects.csv": rows("n", 30, "group", label("a", "b")),
		"view_lab.csv": rows("n", 30, "x,stage,absent,pain", value, func(i int) any {
			if i == 7 {
				return "secret"
			}
			return label("I", "II")(i)
		}, label("unknown", "1", "2"), label("1", "3", "4")),
	})
	d, err := Look(t.Context(), root, Options{Name: "tried", Outcome: "group"})
	if err != nil {
		t.Fatal(err)
	}
	text := string(d.YAML(root))
	if strings.Contains(text, "secret") || !strings.Contains(text, "{name: stage, kind: category, levels: [I, II, other], other: other}") ||
		!strings.Contains(text, "missing: [unknown]\n") || !strings.Contains(text, "      - absent  # few whole numbers: if they stand for kinds, ") || !strings.Contains(text, "      - pain  # few whole numbers: ") || !strings.Contains(text, "  data: \".\"\n  split: {scenario: IID}\n") {
		t.Errorf("got\n%s", text)
	}
}

// A code that is one in several features is one wherever it is beyond all values, though
// it may be near those of another site.
func TestCodesOfOtherFeaturesAreSuspected(t *testing.T) {
	nines := func(reach int, n int) func(int) any {
		return func(i int) any {
			if i < n {
				return -9
			}
			return i%(2*reach+1) - reach
		}
	}
	ages := func(n int) func(int) any {
		return func(i int) any {
			if i < n {
				return -9
			}
			return 20 + i
		}
	}
	for name, c := range map[string]struct {
		coded int
		want  bool
	}{"alone": {0, false}, "with others": {2, true}} {
		root := folders(t, map[string]string{
			"a/subjects.csv": rows("a", 30, "group", label("u", "v")),
			"a/view_v.csv":   rows("a", 30, "shift,x,y", nines(1, 3), ages(c.coded), ages(c.coded)),
			"b/subjects.csv": rows("b", 30, "group", label("u", "v")),
			"b/view_v.csv":   rows("b", 30, "shift,x,y", nines(5, 0), ages(0), ages(0)),
		})
		d, err := Look(t.Context(), root, Options{Name: "tried"})
		if err != nil {
			t.Fatal(err)
		}
		if text := string(d.YAML(root)); strings.Contains(text, "{name: shift, missing: [-9]}") != c.want {
			t.Errorf("%s: got\n%s", name, text)
		}
	}
}

func TestLookRefused(t *testing.T) {
	good := rows("n", 10, "x,y", value, value)
	for name, c := range map[string]struct {
		files map[string]string
		o     Options
		want  string
	}{
		"nothing":           {map[string]string{"notes/readme.txt": ""}, Options{}, "holds no data, and no folder in it does"},
		"bad file":          {map[string]string{"a/subjects.csv": "id\nn000\n", "a/view_v.csv": "id;x\nn000;1\n"}, Options{}, "separated by semicolons"},
		"alike":             {map[string]string{"A/subjects.csv": "id\nn\n", "a_/subjects.csv": "id\nn\n"}, Options{}, "the site would be called a, and so would"},
		"name":              {map[string]string{"subjects.csv": rows("n", 10, "g", value), "view_v.csv": good}, Options{Name: "Not a name"}, "cannot be the name of a study"},
		"outcome":           {map[string]string{"subjects.csv": rows("n", 10, "g", label("a")), "view_v.csv": good}, Options{Name: "n", Outcome: "x"}, "x cannot be an outcome"},
		"one number":        {map[string]string{"subjects.csv": rows("n", 10, "g", value), "view_v.csv": rows("n", 10, "x,c", value, label("3"))}, Options{Name: "n"}, "at least 2 columns of numbers that vary, and there is 1"},
		"subjects everyone": {map[string]string{"subjects.csv": rows("n", 9, "g", value), "view_v.csv": good}, Options{Name: "n"}, "is not in subjects.csv"},
	} {
		if d, err := Look(t.Context(), folders(t, c.files), c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, %v", name, d, err)
		}
	}
}

// What columns are called cannot leave the comment that names them.
func TestNamesStayInTheirComment(t *testing.T) {
	d := &Draft{Method: "mvppca", LeftOut: []leftOut{{"v", "a\nb\u2028c\rd", "why"}}}
	var b strings.Builder
	d.writeLeftOut(&b)
	if got := b.String(); got != "# Columns that are not in the plan:\n#   view v, a b c d: why\n\n" {
		t.Errorf("got %q", got)
	}
}
