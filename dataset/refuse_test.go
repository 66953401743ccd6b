package dataset

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/testkit"
	"parley/problem"
)

// folder writes files, given as name and text, into a new folder.
func folder(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		testkit.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666))
	}
	return dir
}

func zipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write([]byte(text))
	w.Close()
	return b.String()
}

// readAll opens and collects.
func readAll(path string, opts Options) (*Table, error) {
	d, err := Open(context.Background(), path, opts)
	if err != nil {
		return nil, err
	}
	return Collect(context.Background(), d)
}

// subjects is a subjects file with the given ids.
func subjects(ids ...string) string { return "id\n" + strings.Join(ids, "\n") + "\n" }

func TestRefused(t *testing.T) {
	abc := subjects("a", "b", "c")
	stage := &Schema{
		Views: []View{{Name: "v", Columns: []Column{{Name: "stage", Kind: Category, Levels: []string{"I", "II"}}}}}}
	tau := &Schema{Views: []View{{Name: "v", Columns: []Column{{Name: "p_tau"}, {Name: "age"}}}}}
	for name, c := range map[string]struct {
		files  map[string]string
		schema *Schema
		want   []string // each must be a line of the error, without the folder
	}{
		"cells that are no numbers, all of them": {
			files: map[string]string{"subjects.csv": abc, "view_v.csv": "id,x,y\na,1,high\nb,?,2\nc,3,1.5.2\n"},
			want: []string{
				`view_v.csv:2:5: subject a, feature y: "high" is not a number`,
				"  hint: write missing cells empty or as NA, or list their code in the plan, such as missing: [-9, " +
					"unknown]; a column of words has to be a category in the plan",
				`view_v.csv:3:3: subject b, feature x: "?" is not a number`,
				`view_v.csv:4:5: subject c, feature y: "1.5.2" is not a number`,
			},
		},
		"columns counted in characters": {
			files: map[string]string{"subjects.csv": subjects("ä€"), "view_v.csv": "id,x,y\nä€,1,é\n"},
			want:  []string{`view_v.csv:2:6: subject ä€, feature y: "é" is not a number`},
		},
		"infinite": {
			files: map[string]string{"subjects.csv": abc, "view_v.csv": "id,x\na,1\nb,Inf\nc,-infinity\n"},
			want: []string{`view_v.csv:3:3: subject b, feature x: "Inf" is not finite`,
				`view_v.csv:4:3: subject c, feature x: "-infinity" is not finite`},
		},
		"too large": {
			files: map[string]string{"subjects.csv": abc, "view_v.csv": "id,x\na,1e999\n"},
			want:  []string{`view_v.csv:2:3: subject a, feature x: "1e999" is too large`},
		},
		"duplicate ids": {
			files: map[string]string{"subjects.csv": subjects("a", "b", "b"), "view_v.csv": "id,x\na,1\na,2\na,3\n"},
			want: []string{
				"subjects.csv:4:1: id: b appears again (before on line 3)",
				"view_v.csv:3:1: id: a appears again (before on line 2)",
				"view_v.csv:4:1: id: a appears again (before on line 2)",
			},
		},
		"duplicate ids in a file that is not sorted": {
			files: map[string]string{"subjects.csv": abc, "view_v.csv": "id,x\nb,1\na,2\nb,3\n"},
			want:  []string{"view_v.csv:4:1: id: b appears again (before on line 2)"},
		},
		"empty id": {
			files: map[string]string{"subjects.csv": abc, "view_v.csv": "id,x\n,1\n"},
			want:  []string{"view_v.csv:2:1: id: is empty"},
		},
		"a row of means": {
			files: map[string]string{"subjects.csv": abc, "view_v.csv": "id,x\na,1\nMittelwert,2\n"},
			want:  []string{"view_v.csv:3:1: id Mittelwert: is no subject, but a row of totals or means"},
		},
		"duplicate feature in a view": {
			files: map[string]string{"subjects.csv": abc, "view_v.csv": "id,x,y,x\na,1,2,3\n"},
			want:  []string{"view_v.csv:1:8: x: is the name of columns 2 and 4"},
		},
		"duplicate feature across views": {
			files: map[string]string{"subjects.csv": abc, "view_v.csv": "id,x\na,1\n", "view_w.csv": "id,y,x\na,1,2\n"},
			want:  []string{"view_w.csv:1:6: x: is a feature of the views v and w"},
		},
		"feature without a name": {
			files: map[string]string{"subjects.csv": abc, "view_v.csv": "id,x,\na,1,2\n"},
			want: []string{"view_v.csv:2:5: subject a: 3 cells, but the header has 2",
				"  hint: name the last columns in the header, or empty them"},
		},
		"ragged rows": {
			files: map[string]string{"subjects.csv": abc, "view_v.csv": "id,x,y\na,1\nb,1,2,3\nc,1,2,3,4\n"},
			want: []string{
				"view_v.csv:2:1: subject a: 2 cells, but the header has 3",
				"view_v.csv:3:7: subject b: 4 cells, but the header has 3",
				"view_v.csv:4:7: subject c: 5 cells, but the header has 3",
				"  hint: numbers seem to have decimal commas: use decimal points",
			},
		},
		"ragged subjects": {
			files: map[string]string{"subjects.csv": "id,group\na\n", "view_v.csv": "id,x\na,1\n"},
			want:  []string{"subjects.csv:2:1: subject a: 1 cells, but the header has 2"},
		},
		"view without a feature": {
			files: map[string]string{"subjects.csv": abc, "view_v.csv": "id\na\n"},
			want:  []string{"view_v.csv:1:1: has no feature"},
		},
		"view without a row": {
			files: map[string]string{"subjects.csv": abc, "view_v.csv": "id,x\n\n"},
			want: []string{"view_v.csv: has no rows", "  hint: export it again with its rows; of a view that nobody " +
				"here has, leave the file out"},
		},
		"empty file": {
			files: map[string]string{"subjects.csv": abc, "view_v.csv": ""},
			want:  []string{"view_v.csv: is empty"},
		},
		"no header row": {
			files: map[string]string{"subjects.csv": abc, "view_v.csv": "17,1.5\n18,2\n"},
			want:  []string{"view_v.csv:1:1: no header row: the file starts with the number 17"},
		},
		"id header of another name": {
			files: map[string]string{"subjects.csv": "key\na\n", "view_v.csv": ",x\na,1\n"},
			want: []string{`subjects.csv:1:1: the first column is "key", not id`,
				"view_v.csv:1:1: the first column has no name"},
		},
		"ids that are measurements": {
			files: map[string]string{"subjects.csv": subjects("1", "2.5", "3"), "view_v.csv": "id,x\n1,1\n"},
			want: []string{"subjects.csv:3:1: id: the ids look like measurements: all are numbers and some are not " +
				"whole"},
		},
		"column that repeats the id": {
			files: map[string]string{"subjects.csv": subjects("1", "2", "3"),
				"view_v.csv": "id,x,y\n1,1,5\n2,2,6\n3,3.0,7\n"},
			want: []string{"view_v.csv:1:4: x: repeats the id in every row"},
		},
		"column that repeats an id of letters": {
			files: map[string]string{"subjects.csv": abc, "view_v.csv": "id,x\na,a\n"},
			want: []string{`view_v.csv:2:3: subject a, feature x: "a" is not a number`,
				"  hint: the column repeats the id: remove it"},
		},
		"column named like an identifier": {
			files: map[string]string{"subjects.csv": abc, "view_v.csv": "id,x,Patient_ID\na,1,7\n"},
			want:  []string{"view_v.csv:1:6: Patient_ID: is named like an identifier, not like a measurement"},
		},
		"not UTF-8": {
			files: map[string]string{"subjects.csv": "id,city\na,K\xf6ln\nb,Bonn\n", "view_v.csv": "id,x\na,1\n"},
			want:  []string{"subjects.csv:2:4: is not valid UTF-8"},
		},
		"header that is not UTF-8": {
			files: map[string]string{"subjects.csv": abc, "view_v.csv": "id,x,Gr\xf6\xdfe\na,1,2\n"},
			want:  []string{"view_v.csv:1:8: is not valid UTF-8"},
		},
		"UTF-16": {
			files: map[string]string{"subjects.csv": "\xff\xfei\x00d\x00\n\x00", "view_v.csv": "\xfe\xff\x00i\x00d",
				"view_w.csv": "i\x00d\x00\n\x00"},
			want: []string{"subjects.csv: is UTF-16, not UTF-8", "view_v.csv: is UTF-16, not UTF-8",
				"view_w.csv: is not text, or UTF-16 without a byte order mark"},
		},
		"workbook": {
			files: map[string]string{"subjects.csv": abc, "view_v.csv": "PK\x03\x04rest"},
			want:  []string{"view_v.csv: is a spreadsheet workbook or a zip archive, not CSV"},
		},
		"old workbook": {
			files: map[string]string{"subjects.csv": abc, "view_v.csv": "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"},
			want:  []string{"view_v.csv: is a workbook of Excel 97 to 2003 (.xls), not CSV"},
		},
		"Parquet under another name": {
			files: map[string]string{"subjects.csv": abc, "view_v.csv": "PAR1...."},
			want:  []string{"view_v.csv: is a Parquet file, not CSV", "  hint: let its name end in .parquet"},
		},
		"text under the name of a workbook": {
			files: map[string]string{"subjects.csv": abc, "view_v.xlsx": "id,x\na,1\n",
				"view_w.parquet": "id,y\na,1\n"},
			want: []string{"view_v.xlsx: cannot be read as an Excel workbook: zip: not a valid zip file",
				`view_w.parquet: cannot be read as Parquet: invalid magic header of parquet file: "id,y"`},
		},
		"damaged gzip": {
			files: map[string]string{"subjects.csv": abc, "view_v.csv": zipped(strings.Repeat("id,x\n", 500))[:40]},
			want:  []string{"view_v.csv: cannot be read to its end: unexpected EOF"},
		},
		"decimal commas in quotes": {
			files: map[string]string{"subjects.csv": abc, "view_v.csv": "id,x,y\na,\"1,5\",2\n"},
			want: []string{`view_v.csv:2:3: subject a, feature x: "1,5" is not a number: it has a decimal comma`,
				"  hint: use a decimal point: 1.5"},
		},
		"transposed": {
			files: map[string]string{"subjects.csv": abc, "view_v.csv": "id,a,b,c\nx,1,2,3\ny,1,2,3\n"},
			want:  []string{"view_v.csv:1:1: the table is transposed: 3 of its columns are ids of subjects"},
		},
		"transposed, with another first name": {
			files: map[string]string{"subjects.csv": abc, "view_v.csv": "gene,c,a\nx,1,2\n"},
			want:  []string{"view_v.csv:1:1: the table is transposed: 2 of its columns are ids of subjects"},
		},
		"unknown subject": {
			files: map[string]string{"subjects.csv": abc, "view_v.csv": "id,x\na,1\nbb,1\nd,2\n"},
			want: []string{"view_v.csv:3:1: subject bb: is not in subjects.csv",
				"view_v.csv:4:1: subject d: is not in subjects.csv"},
		},
		"only unknown subjects": {
			files: map[string]string{"subjects.csv": abc, "view_v.csv": "id,x\n01,1\n02,1\n"},
			want: []string{"view_v.csv: no id of this file is in subjects.csv",
				"view_v.csv:2:1: subject 01: is not in subjects.csv",
				"view_v.csv:3:1: subject 02: is not in subjects.csv"},
		},
		"unknown level": {
			files:  map[string]string{"subjects.csv": abc, "view_v.csv": "id,stage\na,I\nb,III\n"},
			schema: stage,
			want:   []string{`view_v.csv:3:3: subject b, feature stage: "III" is not a level`, "  hint: levels: I, II"},
		},
		"missing feature": {
			files:  map[string]string{"subjects.csv": abc, "view_v.csv": "id,age,ptau\na,1,2\n"},
			schema: tau,
			want: []string{"view_v.csv:1: view v: column p_tau is missing",
				"  hint: is it the column ptau?"},
		},
		"missing subject column": {
			files:  map[string]string{"subjects.csv": "id,Grp\na,x\n", "view_v.csv": "id,age,p_tau\na,1,2\n"},
			schema: &Schema{Views: tau.Views, Subject: []Column{{Name: "grp", Kind: Label}}},
			want: []string{"subjects.csv:1: subjects: column grp is missing",
				"  hint: is it the column Grp?"},
		},
		"none of the views": {
			files:  map[string]string{"subjects.csv": abc, "view_x.csv": "id,height\na,1\n"},
			schema: tau,
			want:   []string{": has none of the plan's views: v", "  hint: found x"},
		},
		"a view by another name": {
			files:  map[string]string{"subjects.csv": abc, "view_x.csv": "id,age\na,1\n"},
			schema: tau,
			want: []string{"view_x.csv: view v: there is no view_v.csv, and this file has 1 of its 2 columns",
				"  hint: rename it to view_v.csv", "  hint: if it is something else, keep it in another folder"},
		},
		"a view by another name, beside others": {
			files: map[string]string{"subjects.csv": abc, "view_w.csv": "id,y\na,1\n",
				"blood.csv": "id,age,p_tau\na,1,2\n"},
			schema: &Schema{Views: []View{tau.Views[0], {Name: "w", Columns: []Column{{Name: "y"}}}}},
			want: []string{"blood.csv: view v: there is no view_v.csv, and this file has 2 of its 2 columns",
				"  hint: rename it to view_v.csv"},
		},
		"columns of a view in another one": {
			files: map[string]string{"subjects.csv": abc, "view_w.csv": "id,y,age\na,1,2\n"},
			schema: &Schema{Views: []View{{Name: "v", Columns: []Column{{Name: "p_tau"}, {Name: "age"}, {Name: "x"}}},
				{Name: "w", Columns: []Column{{Name: "y"}}}}},
			want: []string{"view_w.csv: view v: there is no view_v.csv, and columns of it stand here: age",
				"  hint: a feature stands in one view, the same at all sites: move these to view_v.csv here, or " +
					"change the plan and the other sites"},
		},
		"a column in another view": {
			files: map[string]string{"subjects.csv": abc, "view_v.csv": "id,p_tau\na,1\n",
				"view_blood.csv": "id,age,x\na,1,2\n"},
			schema: tau,
			want: []string{"view_v.csv:1: view v: column age is missing; view_blood.csv has a column of " +
				"this name",
				"  hint: a feature stands in one view, the same at all sites: move it here, or change the plan and " +
					"the other sites"},
		},
		"a subject column in a view": {
			files:  map[string]string{"subjects.csv": abc, "view_v.csv": "id,age,p_tau,grp\na,1,2,3\n"},
			schema: &Schema{Views: tau.Views, Subject: []Column{{Name: "grp", Kind: Label}}},
			want: []string{"subjects.csv:1: subjects: column grp is missing; view_v.csv has a column of " +
				"this name"},
		},
		"many missing features": {
			files: map[string]string{"subjects.csv": abc, "view_v.csv": "id,y\na,1\n"},
			schema: &Schema{Views: []View{{Name: "v", Columns: []Column{{Name: "y"}, {Name: "crp01"}, {Name: "crp02"},
				{Name: "crp03"}, {Name: "crp04"}, {Name: "crp05"}, {Name: "crp06"},
				{Name: "crp07"}, {Name: "crp08"}, {Name: "crp09"}, {Name: "crp10"}, {Name: "crp11"},
				{Name: "crp12"}}}}},
			want: []string{"view_v.csv:1: view v: 12 columns are missing: crp01, crp02, crp03, crp04, " +
				"crp05, crp06, crp07, crp08, crp09, crp10 and 2 more"},
		},
		"quotes that do not match": {
			files: map[string]string{"subjects.csv": abc, "view_v.csv": "id,x\na,\"1\"2\nb,1\"\nc,\"3\n"},
			want: []string{
				`view_v.csv:2:1: quotes do not match: extraneous or missing " in quoted-field`,
				`view_v.csv:3:1: quotes do not match: bare " in non-quoted-field`,
				`view_v.csv:4:1: quotes do not match: extraneous or missing " in quoted-field`,
			},
		},
		"the same file twice": {
			files: map[string]string{"subjects.csv": abc, "view_v.csv": "id,x\na,1\n", "view_v.csv.gz": "id,x\na,1\n"},
			want:  []string{"view_v.csv.gz: is there twice, also as view_v.csv"},
		},
		"no subjects file": {
			files: map[string]string{"view_v.csv": "id,x\na,1\n"},
			want:  []string{": has no subjects.csv"},
		},
		"nothing there": {
			files: map[string]string{"notes.txt": "none"},
			want:  []string{": holds no views"},
		},
		"both forms": {
			files: map[string]string{"subjects.csv": abc, "view_v.csv": "id,x\na,1\n", "long.csv": longHeader +
				"\na,v,x,1\n"},
			want: []string{"long.csv: is a long table beside files of views"},
		},
		"long: cells": {
			files: map[string]string{"long.csv": longHeader + "\na,v,x,1\na,v,y,z\na,v,x,2\nb,v,x\nc,,x,1\n"},
			want: []string{
				`long.csv:3:7: subject a, feature y: "z" is not a number`,
				"long.csv:4:5: subject a, feature x: appears again (before on line 2)",
				"long.csv:5:1: subject b: 3 cells, but the header has 4",
				"long.csv:6:3: subject c, view and feature: must not be empty",
			},
		},
		"long: names": {
			files: map[string]string{"long.csv": longHeader + "\na,v,x,1\na,w,x,1\na,v,MRN,1\n"},
			want: []string{
				"long.csv:3:5: x: is a feature of the views v and w",
				"long.csv:4:5: MRN: is named like an identifier, not like a measurement",
			},
		},
		"long: unknown subject": {
			files: map[string]string{"subjects.csv": abc, "long.csv": longHeader + "\na,v,x,1\nz,v,x,1\n"},
			want:  []string{"long.csv:3:1: subject z: is not in subjects.csv"},
		},
		"long: other columns": {
			files: map[string]string{"long.csv": "sample,view,feature,value\na,v,x,1\n"},
			want: []string{"long.csv:1:1: a long table has the columns id,view,feature,value; this one starts with " +
				"sample,view,feature,value"},
		},
		"long: no subjects file": {
			files:  map[string]string{"long.csv": longHeader + "\na,v,age,1\na,v,p_tau,1\n"},
			schema: &Schema{Views: tau.Views, Subject: []Column{{Name: "grp", Kind: Label}}},
			want:   []string{": subjects: column grp is missing"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t, c.files)
			_, err := readAll(dir, Options{Schema: c.schema})
			var list problem.List
			if !errors.As(err, &list) {
				t.Fatalf("got %T %v, want a problem.List", err, err)
			}
			got := strings.ReplaceAll(strings.ReplaceAll(err.Error(), dir+string(filepath.Separator), ""), dir, "")
			lines := strings.Split(got, "\n")
			at := 0
			for _, want := range c.want {
				for at < len(lines) && lines[at] != want {
					at++
				}
				if at == len(lines) {
					t.Fatalf("missing, or not in this order:\n  %s\nin\n%s", want, got)
				}
			}
			if problems := len(list); problems != countProblems(c.want) {
				t.Errorf("%d problems, want %d:\n%s", problems, countProblems(c.want), got)
			}
		})
	}
}

func countProblems(lines []string) int {
	n := 0
	for _, l := range lines {
		if !strings.HasPrefix(l, "  hint") {
			n++
		}
	}
	return n
}

func TestManyProblemsAreCounted(t *testing.T) {
	var ids, rows []string
	for i := range 57 {
		ids = append(ids, fmt.Sprintf("s%02d", i))
		rows = append(rows, fmt.Sprintf("s%02d,bad", i))
	}
	dir := folder(t, map[string]string{"subjects.csv": subjects(ids...), "view_v.csv": "id,x\n" +
		strings.Join(rows, "\n")})
	_, err := readAll(dir, Options{})
	var list problem.List
	if !errors.As(err, &list) || len(list) != 1+maxFaults {
		t.Fatalf("got %v, want a head and %d problems", err, maxFaults)
	}
	if want := "57 problems; the first 20 are listed"; list[0].What != want ||
		list[0].Hint != "cells by column: feature x (57)" || list[1].Line != 2 || list[20].Line != 21 {
		t.Errorf("got %v, want %q and then lines 2 to 21", list, want)
	}
}

// TestFirstOfDuplicatesStands sorts by id, and by line where ids are equal.
func TestFirstOfDuplicatesStands(t *testing.T) {
	dir := folder(t, map[string]string{"subjects.csv": subjects("a", "b"), "view_v.csv": "id,x\n" +
		strings.Repeat("b,1\na,2\n", 30)})
	for _, memory := range []int{0, 300} {
		_, err := readAll(dir, Options{sortMemory: memory})
		var list problem.List
		if !errors.As(err, &list) || len(list) != 1+maxFaults {
			t.Fatalf("got %v, want %d problems", err, 1+maxFaults)
		}
		for i, p := range list[1:] {
			if p.Line != 5+2*i || p.What != "a appears again (before on line 3)" {
				t.Errorf("memory %d: got %v, want line %d after line 3", memory, p, 5+2*i)
			}
		}
	}
}

func TestTooLargeToSort(t *testing.T) {
	dir := folder(t, map[string]string{"subjects.csv": subjects("b", "a"), "view_v.csv": "id,x\na,1\n"})
	_, err := readAll(dir, Options{maxUnsorted: 1})
	if err == nil || !strings.Contains(err.Error(), "too large to be sorted here") ||
		!strings.Contains(err.Error(), "LC_ALL=C sort -t, -k1,1") {
		t.Fatalf("got %v, want a refusal that says how to sort", err)
	}
}

func TestNoRowAfterAFault(t *testing.T) {
	dir := folder(t, map[string]string{"subjects.csv": subjects("a", "b", "c"), "view_v.csv": "id,x\na,1\nb,?\nc,3\n"})
	d := testkit.Get(Open(context.Background(), dir, Options{}))(t)
	var ids []string
	errs := 0
	for row, err := range d.Rows(context.Background()) {
		if err != nil {
			errs++
			continue
		}
		ids = append(ids, row.ID)
	}
	if fmt.Sprint(ids) != "[a]" || errs != 1 {
		t.Errorf("got rows %v and %d errors, want a alone and one error", ids, errs)
	}
}

func TestSchemaRefused(t *testing.T) {
	dir := folder(t, map[string]string{"subjects.csv": subjects("a"), "view_v.csv": "id,x\na,1\n"})
	for want, views := range map[string][]View{
		"has no columns":   {{Name: "v"}},
		"neither a number": {{Name: "v", Columns: []Column{{Name: "x", Kind: Label}}}},
		"has no levels":    {{Name: "v", Columns: []Column{{Name: "x", Kind: Category}}}},
		"of the views v and w": {{Name: "v", Columns: []Column{{Name: "x"}}},
			{Name: "w", Columns: []Column{{Name: "x"}}}},
	} {
		if _, err := Open(context.Background(), dir, Options{Schema: &Schema{Views: views}}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
