package dataset

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/internal/testkit"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sameRows says how two tables differ, bit for bit; "" if they do not.
func sameRows(a, b *Table) string {
	if fmt.Sprint(a.schema) != fmt.Sprint(b.schema) {
		return fmt.Sprintf("schema %v, want %v", a.schema, b.schema)
	}
	if len(a.rows) != len(b.rows) {
		return fmt.Sprintf("%d rows, want %d", len(a.rows), len(b.rows))
	}
	for i := range a.rows {
		x, y := &a.rows[i], &b.rows[i]
		if x.ID != y.ID || !slices.Equal(x.Subject, y.Subject) {
			return fmt.Sprintf("subject %q %q, want %q %q", x.ID, x.Subject, y.ID, y.Subject)
		}
		for k := range y.Views {
			same := func(v, w float64) bool {
				return math.Float64bits(v) == math.Float64bits(w) || math.IsNaN(v) && math.IsNaN(w)
			}
			if (x.Views[k] == nil) != (y.Views[k] == nil) || !slices.EqualFunc(x.Views[k], y.Views[k], same) {
				return fmt.Sprintf("subject %q, view %d: %v, want %v", x.ID, k, x.Views[k], y.Views[k])
			}
		}
	}
	return ""
}

func collect(t testing.TB, path string, opts Options) *Table {
	t.Helper()
	return testkit.Get(readAll(path, opts))(t)
}

// layout writes one data set in many ways, rows in the order of perm.
type layout struct {
	ids    []string
	views  []string
	names  map[string][]string
	values map[string]map[string][]string // by view and id
}

func newLayout(rng *rand.Rand, subjects int) *layout {
	l := &layout{views: []string{"clinic", "mri"}, names: map[string][]string{"clinic": {"tau", "age"},
		"mri": {"h", "a", "z"}}, values: map[string]map[string][]string{}}
	for i := range subjects {
		l.ids = append(l.ids, fmt.Sprintf("s%04d", i))
	}
	for _, v := range l.views {
		l.values[v] = map[string][]string{}
		for _, id := range l.ids {
			if rng.IntN(4) == 0 {
				continue
			}
			var cells []string
			for range l.names[v] {
				cell := fmt.Sprintf("%.*f", rng.IntN(18), 1000*rng.NormFloat64())
				if rng.IntN(10) == 0 {
					cell = ""
				}
				cells = append(cells, cell)
			}
			l.values[v][id] = cells
		}
	}
	return l
}

func (l *layout) wide(order []string) map[string]string {
	files := map[string]string{"subjects.csv": "id,site\n"}
	for _, id := range order {
		files["subjects.csv"] += id + ",site " + id[4:] + "\n"
	}
	for _, v := range l.views {
		var b strings.Builder
		b.WriteString("id," + strings.Join(l.names[v], ",") + "\n")
		for _, id := range order {
			if cells := l.values[v][id]; cells != nil {
				b.WriteString(id + "," + strings.Join(cells, ",") + "\n")
			}
		}
		files["view_"+v+".csv"] = b.String()
	}
	return files
}

func (l *layout) long(order []string) map[string]string {
	var b strings.Builder
	b.WriteString(longHeader + "\n")
	for _, id := range order {
		for _, v := range l.views {
			for j, cell := range l.values[v][id] {
				fmt.Fprintf(&b, "%s,%s,%s,%s\n", id, v, l.names[v][j], cell)
			}
		}
	}
	return map[string]string{"subjects.csv": l.wide(order)["subjects.csv"], "long.csv": b.String()}
}

func (l *layout) schema() *Schema {
	s := &Schema{Subject: []Column{{Name: "site", Kind: Label}}}
	for _, v := range l.views {
		view := View{Name: v}
		for _, n := range l.names[v] {
			view.Columns = append(view.Columns, Column{Name: n})
		}
		s.Views = append(s.Views, view)
	}
	return s
}

func each(files map[string]string, change func(string) string) map[string]string {
	changed := map[string]string{}
	for name, text := range files {
		changed[name] = change(text)
	}
	return changed
}

func quoteAll(text string) string {
	var lines []string
	for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		lines = append(lines, `"`+strings.ReplaceAll(line, ",", `","`)+`"`)
	}
	return strings.Join(lines, "\n")
}

func TestFormsGiveTheSameRows(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	l := newLayout(rng, 500)
	shuffled := slices.Clone(l.ids)
	rng.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	want := collect(t, folder(t, l.wide(l.ids)), Options{})
	if want.Len() != 500 {
		t.Fatalf("%d rows, want 500", want.Len())
	}
	for name, c := range map[string]struct {
		files  map[string]string
		memory int
	}{
		"gzip": {files: each(l.wide(l.ids), zipped)},
		"CRLF": {files: each(l.wide(l.ids), func(s string) string {
			return strings.ReplaceAll(s, "\n", "\r\n")
		})},
		"no last line break": {files: each(l.wide(l.ids), func(s string) string {
			return strings.TrimSuffix(s, "\n")
		})},
		"blank lines": {files: each(l.wide(l.ids), func(s string) string {
			return strings.ReplaceAll(s, "\n", "\n\n")
		})},
		"byte order mark": {files: each(l.wide(l.ids), func(s string) string { return "\ufeff" + s })},
		"spaces": {files: each(l.wide(l.ids), func(s string) string {
			return strings.ReplaceAll(s, ",", " ,\t")
		})},
		"quotes": {files: each(l.wide(l.ids), quoteAll)},
		"missing cells written NA": {files: each(l.wide(l.ids), func(s string) string {
			return strings.NewReplacer(",,", ",NA,", ",\n", ",nan\n").Replace(s)
		})},
		"not sorted":               {files: l.wide(shuffled)},
		"not sorted, gzip":         {files: each(l.wide(shuffled), zipped)},
		"not sorted, on disk":      {files: l.wide(shuffled), memory: 4000},
		"not sorted, quotes, disk": {files: each(l.wide(shuffled), quoteAll), memory: 4000},
		"long":                     {files: l.long(l.ids)},
		"long, gzip":               {files: each(l.long(l.ids), zipped)},
		"long, quotes":             {files: each(l.long(l.ids), quoteAll)},
		"long, not sorted":         {files: l.long(shuffled)},
		"long, not sorted, disk":   {files: l.long(shuffled), memory: 4000},
	} {
		t.Run(name, func(t *testing.T) {
			temp := t.TempDir()
			t.Setenv("TMPDIR", temp)
			dir := folder(t, c.files)
			// With the schema, since a long table in another order has its
			// features in another order.
			got := collect(t, dir, Options{Schema: l.schema(), sortMemory: c.memory})
			if diff := sameRows(got, want); diff != "" {
				t.Error(diff)
			}
			if left, _ := os.ReadDir(temp); len(left) > 0 {
				t.Errorf("temporary files left: %v", left)
			}
		})
	}
}

// TestSortSpills makes sure that the test above does sort on disk, and that
// nothing is left of it when the caller stops early.
func TestSortSpills(t *testing.T) {
	ctx := context.Background()
	l := newLayout(rand.New(rand.NewPCG(8, 8)), 300)
	slices.Reverse(l.ids)
	d := testkit.Get(Open(ctx, folder(t, l.wide(l.ids)), Options{sortMemory: 3000}))(t)
	if len(d.Warnings()) != 3 {
		t.Errorf("warnings %v, want one for each of 3 files", d.Warnings())
	}
	if small, err := Open(ctx, d.path, Options{}); err != nil || len(small.Warnings()) != 0 {
		t.Errorf("warnings %v, %v where nothing has to be written", small.Warnings(), err)
	}
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	j := testkit.Get(d.join(ctx))(t)
	if s := j.master.(*subjectCursor).src.(*sorter); len(s.runs) < 10 {
		t.Errorf("%d runs on disk, want many", len(s.runs))
	}
	testkit.Do(t, j.close())
	for row, err := range d.Rows(ctx) {
		if err != nil || row.ID != "s0000" {
			t.Errorf("first row %v, %v, want s0000", row, err)
		}
		break
	}
	if left, _ := os.ReadDir(temp); len(left) > 0 {
		t.Errorf("temporary files left: %v", left)
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := Collect(cancelled, d); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	t.Setenv("TMPDIR", filepath.Join(temp, "missing"))
	if _, err := Collect(ctx, d); err == nil || !strings.Contains(err.Error(), "parley-sort") {
		t.Errorf("got %v, want an error where no temporary file can be made", err)
	}
}

func TestSchemaOrdersColumns(t *testing.T) {
	dir := folder(t, map[string]string{
		"subjects.csv": "id,site,sex\na,X,f\nb,Y,m\nc,,f\n",
		"view_v.csv":   "id,x,stage,y\na,1,II,2\nb,,NA,\nc,,I,\n",
		"view_w.csv":   "id,z\na,1\n",
		"other.csv":    "anything",
	})
	schema := &Schema{
		Views: []View{
			{Name: "lacking", Columns: []Column{{Name: "q"}}},
			{Name: "v", Columns: []Column{{Name: "y"},
				{Name: "stage", Kind: Category, Levels: []string{"I", "II", "NA"}}}},
			{Name: "u", Columns: []Column{{Name: "zz"}}},
		},
		Subject: []Column{{Name: "sex", Kind: Label}},
	}
	d := testkit.Get(Open(context.Background(), dir, Options{Schema: schema}))(t)
	table := testkit.Get(Collect(context.Background(), d))(t)
	nan := math.NaN()
	want, err := NewTable(*schema, []Row{
		{ID: "a", Views: [][]float64{nil, {2, 1}, nil}, Subject: []string{"f"}},
		{ID: "b", Views: [][]float64{nil, {nan, 2}, nil}, Subject: []string{"m"}}, // NA is a level here
		{ID: "c", Views: [][]float64{nil, {nan, 0}, nil}, Subject: []string{"f"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := sameRows(table, want); diff != "" {
		t.Error(diff)
	}
	got := strings.ReplaceAll(d.Warnings().Error(), dir, "DIR")
	for _, want := range []string{
		"other.csv: is no part of the data set and ignored",
		"view_v.csv: view v: not in the plan and ignored: x",
		"DIR: views: not in the plan and ignored: w",
		"DIR: view u: is in the plan but not here\n  hint: is it the view w?",
		"subjects.csv: subjects: not in the plan and ignored: site",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("warnings lack %q:\n%s", want, got)
		}
	}
}

func TestRowOfEmptyCellsLacksTheView(t *testing.T) {
	dir := folder(t, map[string]string{"subjects.csv": subjects("a", "b"), "view_v.csv": "id,x,y\na,,NA\nb,,1\n"})
	table := collect(t, dir, Options{})
	if table.Row(0).Views[0] != nil || table.Row(1).Views[0] == nil {
		t.Errorf("got %v and %v, want only the second to have the view", table.Row(0), table.Row(1))
	}
}

func TestLongTableByItself(t *testing.T) {
	dir := folder(t, map[string]string{"visit1.csv": longHeader + "\nb,v,x,1\na,v,x,2\na,v,z,4\na,u,y,3\nc,v,x,\n",
		"unrelated.csv": "no data set"})
	table := collect(t, filepath.Join(dir, "visit1.csv"), Options{})
	want, err := NewTable(Schema{Views: []View{{Name: "u", Columns: []Column{{Name: "y"}}},
		{Name: "v", Columns: []Column{{Name: "x"}, {Name: "z"}}}}}, []Row{
		{ID: "a", Views: [][]float64{{3}, {2, 4}}},
		{ID: "b", Views: [][]float64{nil, {1, math.NaN()}}},
		{ID: "c", Views: [][]float64{nil, nil}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := sameRows(table, want); diff != "" {
		t.Error(diff)
	}
}

func TestLineBreaksInQuotes(t *testing.T) {
	dir := folder(t, map[string]string{"subjects.csv": "id,note\r\na,\"two\r\nlines, \"\"quoted\"\"\"\r\n\"b,c\",\" " +
		"kept \"\r\n", "view_v.csv": "id,x\na,1\n\"b,c\",?\n"})
	d := testkit.Get(Open(context.Background(), dir, Options{}))(t)
	if _, err := Collect(context.Background(), d); err == nil ||
		!strings.Contains(err.Error(), "view_v.csv:3:7: subject b,c, feature x") {
		t.Errorf("got %v, want the place in line 3", err)
	}
	os.WriteFile(filepath.Join(dir, "view_v.csv"), []byte("id,x\na,1\n\"b,c\",2\n"), 0o666)
	table := collect(t, dir, Options{})
	if got, want := fmt.Sprintf("%q", [][]string{table.Row(0).Subject, table.Row(1).Subject}),
		`[["two\nlines, \"quoted\""] ["kept"]]`; got != want || table.Row(1).ID != "b,c" {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestStopEarly leaves a compressed file long before its end, with the
// goroutine that reads ahead waiting for room; TestMain sees it if it stays.
func TestStopEarly(t *testing.T) {
	var text strings.Builder
	text.WriteString("id,x\n")
	for i := range 4 * aheadBlocks * aheadBlockSize / 10 {
		fmt.Fprintf(&text, "%07d,1\n", i)
	}
	dir := folder(t, map[string]string{"subjects.csv": zipped(subjects("0000000")),
		"view_v.csv": zipped(text.String())})
	d := testkit.Get(Open(context.Background(), dir, Options{}))(t)
	rows := 0
	for _, err := range d.Rows(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		rows++
		break
	}
	if rows != 1 {
		t.Errorf("%d rows before the stop, want 1", rows)
	}
}

func TestCancel(t *testing.T) {
	l := newLayout(rand.New(rand.NewPCG(9, 9)), 5*checkEvery)
	dir := folder(t, each(l.wide(l.ids), zipped))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	d := testkit.Get(Open(ctx, dir, Options{}))(t)
	rows := 0
	var last error
	for _, err := range d.Rows(ctx) {
		if last = err; err == nil {
			rows++
			cancel()
		}
	}
	if !errors.Is(last, context.Canceled) || rows > checkEvery {
		t.Errorf("%d rows and %v, want an early end by context.Canceled", rows, last)
	}
	for name, read := range map[string]func() error{
		"Open":     func() error { _, err := Open(ctx, dir, Options{}); return err },
		"Count":    func() error { _, err := Count(ctx, d); return err },
		"Describe": func() error { _, err := Describe(ctx, d); return err },
		"Write":    func() error { return Write(ctx, filepath.Join(dir, "copy"), d) },
	} {
		if err := read(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want context.Canceled", name, err)
		}
	}
	if left, _ := os.ReadDir(filepath.Join(dir, "copy")); len(left) > 0 {
		t.Errorf("a cancelled Write left %v", left)
	}
}

func TestChangedFile(t *testing.T) {
	dir := folder(t, map[string]string{"subjects.csv": subjects("a"), "view_v.csv": "id,x\na,1\n"})
	d := testkit.Get(Open(context.Background(), dir, Options{}))(t)
	before := testkit.Get(Count(context.Background(), d))(t)
	path := filepath.Join(dir, "view_v.csv")
	os.WriteFile(path, []byte("id,x\na,2\n"), 0o666)
	os.Chtimes(path, time.Unix(1, 0), time.Unix(1, 0))
	if _, err := Collect(context.Background(), d); err == nil ||
		!strings.Contains(err.Error(), "has changed since it was opened") {
		t.Errorf("got %v, want a refusal", err)
	}
	fingerprint := func() string {
		d := testkit.Get(Open(context.Background(), dir, Options{}))(t)
		c := testkit.Get(Count(context.Background(), d))(t)
		return c.Hex()
	}
	if after := fingerprint(); after == before.Hex() || len(after) != 64 {
		t.Errorf("fingerprint %s after %s: want another", after, before.Hex())
	}
	os.WriteFile(path, []byte("id,x\na,1\n"), 0o666)
	if again := fingerprint(); again != before.Hex() {
		t.Errorf("fingerprint %s, want %s: it depends on the content alone", again, before.Hex())
	}
}

// TestRoundTrip writes any data set and reads it back.
func TestRoundTrip(t *testing.T) {
	base := t.TempDir()
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		want := drawTable(rt)
		n++
		dir := filepath.Join(base, fmt.Sprint(n))
		testkit.Do(rt, Write(context.Background(), dir, want))
		schema := want.Schema()
		got := testkit.Get(readAll(dir, Options{Schema: &schema}))(rt)
		if diff := sameRows(got, want); diff != "" {
			rt.Fatal(diff)
		}
	})
}

func drawTable(t *rapid.T) *Table {
	schema := Schema{Subject: []Column{{Name: "note", Kind: Label}}, Views: []View{
		{Name: "a view", Columns: []Column{{Name: "x, \"y\""},
			{Name: "grade", Kind: Category, Levels: []string{"low", "high", "NA"}}}},
		{Name: "b", Columns: []Column{{Name: "z"}}},
	}}
	text := rapid.Map(rapid.StringMatching(`[a-z0-9 ",äß\n\t]{0,6}`), func(s string) string {
		return strings.Trim(s, " \t") // as cells are read
	})
	number := rapid.OneOf(rapid.Float64(), rapid.Just(math.NaN()), rapid.Just(math.Copysign(0, -1)),
		rapid.Map(rapid.IntRange(-1e6, 1e6), func(i int) float64 { return float64(i) / 1000 }))
	ids := rapid.SliceOfNDistinct(rapid.Map(text, func(s string) string { return "s" + s }), 1, 8,
		rapid.ID[string]).Draw(t, "ids")
	slices.Sort(ids)
	var rows []Row
	for i, id := range ids {
		row := Row{ID: id, Views: make([][]float64, 2), Subject: []string{text.Draw(t, "note")}}
		if i == 0 || rapid.Bool().Draw(t, "a") {
			row.Views[0] = []float64{number.Draw(t, "x"), float64(rapid.IntRange(0, 2).Draw(t, "grade"))}
		}
		if z := number.Draw(t, "z"); !math.IsNaN(z) { // a view of nothing but NaN comes back as none
			row.Views[1] = []float64{z}
		}
		rows = append(rows, row)
	}
	return testkit.Get(NewTable(schema, rows))(t)
}

// A level that is not listed counts as another where the schema says so; a missing
// cell stays missing.
func TestOtherLevels(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"subjects.csv": "id\n1\n2\n3\n",
		"view_v.csv": "id,c,x\n1,a,5\n2,new,7\n3,NA,6\n"} {
		testkit.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	schema := Schema{
		Views: []View{{Name: "v", Columns: []Column{{Name: "c", Kind: Category, Levels: []string{"a", "b"}, Other: "b"},
			{Name: "x"}}}}}
	d := testkit.Get(Open(t.Context(), dir, Options{Schema: &schema}))(t)
	var got []float64
	for row, err := range d.Rows(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, row.Views[0][0])
	}
	if len(got) != 3 || got[0] != 0 || got[1] != 1 || !math.IsNaN(got[2]) {
		t.Errorf("got %v", got)
	}
	schema.Views[0].Columns[0].Other = "c"
	if _, err := Open(t.Context(), dir, Options{Schema: &schema}); err == nil ||
		!strings.Contains(err.Error(), `"c", which is not one of its levels`) {
		t.Errorf("got %v", err)
	}
}
