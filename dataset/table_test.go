package dataset

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/testkit"
)

// small is a table of n subjects s0, s1, … with two views of one feature, the
// second for even subjects only.
func small(t testing.TB, n int) *Table {
	t.Helper()
	schema := Schema{Views: []View{{Name: "v", Columns: []Column{{Name: "x"}}}, {Name: "w", Columns: []Column{{Name: "y"}}}}, Subject: []Column{{Name: "g", Kind: Label}}}
	var rows []Row
	for i := range n {
		row := Row{ID: fmt.Sprintf("s%d", i), Views: [][]float64{{float64(i)}, nil}, Subject: []string{fmt.Sprint(i % 3)}}
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
	schema := Schema{Views: []View{{Name: "v", Columns: []Column{{Name: "x"}, {Name: "c", Kind: Category, Levels: []string{"a", "b"}}}}}}
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
	if _, _, err := Labels(context.Background(), small(t, 2), "site"); err == nil || !strings.Contains(err.Error(), "columns: g") {
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
