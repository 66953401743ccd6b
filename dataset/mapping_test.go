package dataset

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/testkit"
)

// What a site calls and writes otherwise becomes what the plan says: the rows are those of a site that writes as it
// does.
func TestMappingsMakeTheSameRows(t *testing.T) {
	schema := Schema{
		Subject: []Column{{Name: "relapse", Kind: Label}},
		Views: []View{{Name: "labs", Columns: []Column{{Name: "creatinine"}, {Name: "age"}, {Name: "temp"},
			{Name: "stage", Kind: Category, Levels: []string{"I", "II"}}}}},
	}
	want := countOf(t, folder(t, map[string]string{
		"subjects.csv":  "id,relapse\na,yes\nb,no\nc,\n",
		"view_labs.csv": "id,creatinine,age,temp,stage\na,1.5,10,37,I\nb,2,20,,II\nc,,30,38,\n",
	}), schema)
	if want.Subjects != 3 {
		t.Fatal(want.Subjects)
	}
	const subjects = `
subjects:
  file: Patienten.csv
  id: PatNr
  columns:
    - {name: relapse, from: Rezidiv, levels: [[ja, "yes"], [nein, "no"]], missing: [unbekannt]}
`
	const columns = `
    id: PatNr
    columns:
      - {name: creatinine, from: Krea, factor: 0.5, missing: [-9, n.d.]}
      - {name: age, from: geb, until: tag, unit: days}
      - {name: temp, from: Temp F, factor: 2, offset: -3, missing: [""]}
      - {name: stage, from: Stadium, levels: [[1, I], [2, II]]}
`
	const people = "Rezidiv;PatNr;Name\nunbekannt;c;Carl\nja;a;Anna\nnein;b;Bea\n"
	for name, files := range map[string]map[string]string{
		"names, levels, units, dates": {"mapping.yaml": "mapping: 1" + subjects +
			"views:\n  - name: labs\n    file: labor.csv" + columns, "Patienten.csv": people,
			"labor.csv": "Krea,Temp F,PatNr,geb,tag,Stadium\n-9.0,20.5,c,2020-01-01,20200131,\n3,20,a,2020-01-01," +
				"2020-01-11,1\n4,,b,2020-01-11T08:00:00,2020-01-31,2\n"},
		"one file for all": {"mapping.yaml": strings.ReplaceAll("mapping: 1"+subjects+
			"views:\n  - name: labs\n    file: Patienten.csv"+columns, "Patienten", "export"),
			"export.csv": "Rezidiv;PatNr;Name;Krea;Temp " +
				"F;geb;tag;Stadium\nunbekannt;c;Carl;n.d.;20,5;2020-01-01;2020-01-31;NA\n" +
				"ja;a;Anna;3;20;2020-01-01;2020-01-11;1\nnein;b;Bea;4;;2020-01-11;2020-01-31;2\n"},
		"the last row of each": {"mapping.yaml": "mapping: 1" + subjects + "views:\n  - name: labs\n    rows: " +
			"last\n    by: tag\n    dates: dmy\n    file: labor.csv" + columns, "Patienten.csv": people,
			"labor.csv": "PatNr,Krea,Temp " +
				"F,geb,tag,Stadium\nc,-9,20.5,1.1.2020,31.01.2020,\na,7,1,1.1.2020,10/1/2020,2\na,3,20,1.1.2020," +
				"11.1.2020,1\nb,4,,11.1.2020,31.1.2020,2\na,8,8,1.1.2020,2.1.2020,2\n"},
		"the first, by a number": {"mapping.yaml": "mapping: 1" + subjects +
			"views:\n  - name: labs\n    rows: first\n    by: visit\n    file: labor.csv" + columns,
			"Patienten.csv": people,
			"labor.csv": "PatNr,visit,Krea,Temp " +
				"F,geb,tag,Stadium\na,2,1,1,2020-01-01,2020-01-11,2\na,1,3,20,2020-01-01,2020-01-11,1\nb,1,4,," +
				"2020-01-11,2020-01-31,2\nc,5,-9,20.5,2020-01-01,2020-01-31,\n"},
		"the mean of each": {"mapping.yaml": "mapping: 1" + subjects + "views:\n  - name: labs\n    rows: mean\n    " +
			"file: labor.csv" + columns, "Patienten.csv": people,
			"labor.csv": "PatNr,Krea,Temp " +
				"F,geb,tag,Stadium\nb,4,,2020-01-11,2020-01-31,2\na,1,18,2020-01-01,2020-01-11,1\na,5,,2020-01-01," +
				"2020-01-11,1\na,-9,22,2020-01-01,2020-01-11,1\nc,,20.5,2020-01-01,2020-01-31,\n"},
		"files of the usual names": {"mapping.yaml": "mapping: 1\nsubjects: {columns: [{name: relapse, levels: [[1, " +
			"\"yes\"], [0, \"no\"]]}]}\n", "subjects.csv": "id,relapse\na,1\nb,0\nc,\n",
			"view_labs.csv": "id,creatinine,age,temp,stage\na,1.5,10,37,I\nb,2,20,,II\nc,,30,38,\n"},
	} {
		dir := folder(t, files)
		if got := countOf(t, dir, schema); got.Fingerprint != want.Fingerprint {
			t.Errorf("%s: other rows", name)
		}
		if got := testkit.Get(Open(t.Context(), dir, Options{Schema: &schema, Tolerant: true}))(t); testkit.Get(
			Count(t.Context(), got))(t).Fingerprint != want.Fingerprint {
			t.Errorf("%s: other rows, where records are tolerated", name)
		}
	}
}

func countOf(t *testing.T, path string, schema Schema) *Census {
	t.Helper()
	d := testkit.Get(Open(t.Context(), path, Options{Schema: &schema}))(t)
	for _, w := range d.Warnings() {
		if !strings.Contains(w.What, "not in the plan and ignored") {
			t.Error(w)
		}
	}
	return testkit.Get(Count(t.Context(), d))(t)
}

// What a mapping says wrongly is named with its line and key, and what it does not say of the data is not guessed.
func TestMappingsRefused(t *testing.T) {
	const data = "PatNr,Krea,sex,day\na,1,w,2020-01-02\nb,2,m,2020-01-03\n"
	view := func(text string) string {
		return "mapping: 1\nviews:\n  - name: v\n    file: lab.csv\n    id: PatNr\n" + text
	}
	for want, c := range map[string][2]string{
		"mapping.yaml:1:1: mapping: version 0 of the mapping format is unknown": {"views: []\n", data},
		"mapping.yaml:6:5: views.colums: unknown key\n  hint: did you mean columns?": {view("    colums: []\n"),
			data},
		"mapping.yaml:6:24: views.columns.factor: 0 cannot be a factor": {
			view("    columns: [{factor: 0, name: x, from: Krea}]\n"), data},
		"mixes levels, a factor and dates": {
			view("    columns: [{name: x, factor: 2, levels: [[a, b]]}]\n"), data},
		`"w" stands there twice`: {
			view("    columns: [{name: x, levels: [[w, f], [w, m]]}]\n"), data},
		"views.by: the column that orders a person's rows is for rows: first and rows: last": {view("    rows: last\n"),
			data},
		`views.rows: "most" is not known`: {view("    rows: most\n"),
			data},
		`views.dates: "german" is not known`: {
			view("    dates: german\n"), data},
		`views.columns.unit: "" is no unit of a time between dates`: {
			view("    columns: [{name: x, from: day, until: 2024-01-01}]\n"), data},
		"there is no file": {strings.ReplaceAll(view(""), "lab.csv", "nowhere.csv"), data},
		"the mapping's column x names the column krea, which is not here\n  hint: is it the column Krea?": {
			view("    columns: [{name: x, from: krea}]\n"), data},
		"the mapping's id names the column Pat, which is not here": {
			strings.ReplaceAll(view(""), "PatNr", "Pat"), data},
		`lab.csv:3: subject b, column s: "m" is none of the mapping's levels`: {
			view("    columns: [{name: s, from: sex, levels: [[w, f]]}]\n"), data},
		`it is written differently than "M" there`: {
			view("    columns: [{name: s, from: sex, levels: [[w, f], [M, x]]}]\n"), data},
		`lab.csv:2: subject a, column x: "w" is not a number`: {
			view("    columns: [{name: x, from: sex, factor: 2}]\n"), data},
		`lab.csv:2: subject a, column x: "1" is no date`: {
			view("    columns: [{name: x, from: Krea, until: day, unit: days}]\n"), data},
		`lab.csv:3: subject a, column day: two rows have "2020-01-02", so that neither is the last`: {
			view("    rows: last\n    by: day\n"), strings.ReplaceAll(data, "b,2,m,2020-01-03", "a,2,m,2020-01-02")},
		`"m" stands beside other words of the same person`: {
			view("    rows: mean\n"), strings.ReplaceAll(data, "b,", "a,")},
		`column sex: "w" is neither a date nor a number`: {
			view("    rows: first\n    by: sex\n"), data},
		"lab.csv:3: subject b: 3 cells, but the header has 4": {
			view("    columns: [{name: x, from: Krea}]\n"), "PatNr,Krea,sex,day\na,1,w,2\nb,1,2\n"},
		"a appears again (before on line 2)": {view(""),
			strings.ReplaceAll(data, "b,", "a,")},
		"subjects.name: the subjects have no name": {
			"mapping: 1\nsubjects: {name: x}\n", data},
	} {
		dir := folder(t, map[string]string{"subjects.csv": "id\na\nb\n", "mapping.yaml": c[0], "lab.csv": c[1],
			"view_w.csv": "id,z\na,1\n"})
		schema := Schema{Views: []View{{Name: "v", Columns: []Column{{Name: "x"}}},
			{Name: "w", Columns: []Column{{Name: "z"}}}}}
		if strings.Contains(c[0], "name: s,") {
			schema.Views[0].Columns = []Column{{Name: "s", Kind: Category, Levels: []string{"f", "m", "x"}}}
		}
		if strings.Contains(c[0], "id: PatNr") && !strings.Contains(c[0], "name:") || strings.Contains(c[0], "rows:") ||
			strings.HasSuffix(c[0], "id: PatNr\n") {
			schema.Views[0].Columns = []Column{{Name: "Krea"},
				{Name: "sex", Kind: Category, Levels: []string{"m", "w"}}}
		}
		d, err := Open(t.Context(), dir, Options{Schema: &schema})
		if err == nil {
			_, err = Count(t.Context(), d)
		}
		if got := fmt.Sprint(err); !strings.Contains(got, want) {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}

// The fingerprint of a mapping is that of its text, and there is none without one.
func TestMappingHasAFingerprint(t *testing.T) {
	dir := folder(t, map[string]string{"subjects.csv": "id\na\nb\n", "view_v.csv": "id,x\na,1\nb,2\n"})
	open := func() string { return testkit.Get(Open(t.Context(), dir, Options{}))(t).Mapping() }
	if open() != "" {
		t.Error("a fingerprint of no mapping")
	}
	seen := map[string]bool{}
	for _, text := range []string{"mapping: 1\n", "mapping: 1\nviews: [{name: v, columns: [{name: x, factor: 2}]}]\n"} {
		testkit.Do(t, os.WriteFile(filepath.Join(dir, MappingFile), []byte(text), 0o600))
		seen[open()] = true
	}
	if len(seen) != 2 || seen[""] {
		t.Error(seen)
	}
}

// A first mapping has what differs in spelling alone, and asks about the rest; it reads as a mapping, and the site's
// rows by it are those of the plan.
func TestMappingsAreProposed(t *testing.T) {
	schema := Schema{
		Subject: []Column{{Name: "relapse", Kind: Label}, {Name: "centre", Kind: Label}},
		Views: []View{{Name: "labs", Columns: []Column{{Name: "hb_a1c"}, {Name: "creatinine"},
			{Name: "stage", Kind: Category, Levels: []string{"early", "late"}},
			{Name: "sex", Kind: Category, Levels: []string{"f", "m"}}}},
			{Name: "mri", Columns: []Column{{Name: "volume"}}},
			{Name: "genes", Columns: []Column{{Name: "g1"}, {Name: "g2"}}}},
	}
	dir := folder(t, map[string]string{
		"subjects.csv":       "id,Relapse\na,yes\nb,no\n",
		"view_Labs.csv":      "id,HbA1c,creatinin,Stage,sex\na,1,2,Early,1\nb,2,3,spät,2\n",
		"view_mri.csv":       "id,volume\na,1\nb,2\n",
		"view_sequences.csv": "id,G1,g2\na,1\u00a0,3\nb,2,4\n",
	})
	got := testkit.Get(ProposeMapping(t.Context(), dir, schema))(t)
	want := `mapping: 1
subjects:
    columns:
      - {name: "relapse", from: "Relapse"}
      # - {name: "centre", from: ...}  # nothing here has a name like it
views:
  - name: labs
    file: "view_Labs.csv"
    id: id
    columns:
      - {name: "hb_a1c", from: "HbA1c"}
      # - {name: "creatinine", from: "creatinin"}  # is it this column?
      - {name: "stage", from: "Stage", levels: [["Early", "early"], ["spät", "?"]]}  # what does ? stand for? Levels: early, late
      - {name: "sex"}  # its cells are numbers here: levels: [[1, ...], [2, ...]], of f, m
  - name: genes
    file: "view_sequences.csv"
    id: id
    columns:
      - {name: "g1", from: "G1"}
`
	if _, text, _ := strings.Cut(got, "multiplies.\n"); text != want {
		t.Fatalf("got\n%s\nwant\n%s", text, want)
	}
	right := strings.NewReplacer(`      # - {name: "creatinine", from: "creatinin"}  # is it this column?`,
		`      - {name: "creatinine", from: "creatinin"}`, `"?"`, "late", `{name: "sex"}`,
		`{name: "sex", levels: [[1, m], [2, f]]}`).Replace(got)
	testkit.Do(t, os.WriteFile(filepath.Join(dir, MappingFile), []byte(strings.ReplaceAll(right, "from: ...", "")),
		0o600))
	schema.Subject = schema.Subject[:1]
	plain := folder(t, map[string]string{"subjects.csv": "id,relapse\na,yes\nb,no\n",
		"view_labs.csv": "id,hb_a1c,creatinine,stage,sex\na,1,2,early,m\nb,2,3,late,f\n",
		"view_mri.csv":  "id,volume\na,1\nb,2\n", "view_genes.csv": "id,g1,g2\na,1,3\nb,2,4\n"})
	testkit.Do(t, os.WriteFile(filepath.Join(dir, "view_sequences.csv"), []byte("id,G1,g2\na,1,3\nb,2,4\n"), 0o600))
	if a, b := countOf(t, dir, schema), countOf(t, plain, schema); a.Fingerprint != b.Fingerprint {
		t.Error("other rows")
	}
	if text := testkit.Get(ProposeMapping(t.Context(), plain, schema))(t); text != "" {
		t.Errorf("nothing to map, but\n%s", text)
	}
}
