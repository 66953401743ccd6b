package draft

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/dataset"
	"parley/internal/testkit"
)

// folders writes files below a new folder, each named by its path.
func folders(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		testkit.Do(t, os.MkdirAll(filepath.Dir(path), 0o777))
		testkit.Do(t, os.WriteFile(path, []byte(text), 0o666))
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
		"North Clinic/subjects.csv": rows("n", 20, "group,born,person,rare", label("a", "b"),
			func(i int) any { return 1900 + i }, func(i int) any { return fmt.Sprint("p", i) }, func(i int) any {
				if i == 0 {
					return "unique"
				}
				return "usual"
			}),
		"North Clinic/view_lab.csv": rows("n", 20, "x,y,kind,sex,grade,only", value, coded, label("u", "v"),
			label("m", "f"), label("low", "9", "high"), value),
		"south/subjects.csv": rows("s", 20, "group,born,person,rare", label("a", "b"),
			func(i int) any { return 1950 + i }, func(i int) any { return fmt.Sprint("q", i) }, label("usual")),
		"south/view_lab.csv": rows("s", 20, "x,y,kind,sex,grade", value, value, label("u", "v"), label("1", "2"),
			label("low", "high")),
		"south/view_gene.csv":  rows("s", 20, "g", func(i int) any { return i * i % 7 }),
		"south/notes.txt":      "nothing",
		".hidden/subjects.csv": "id\na\n",
	})
	d := testkit.Get(Look(t.Context(), root, Options{Name: "tried", Outcome: "group"}))(t)
	text := string(d.YAML(root))
	for _, want := range []string{
		"sites: [north-clinic, south]\n", "# north-clinic lacks the views: gene\n",
		"      - {name: \"y\", missing: [-99]}  # looks like a code", "      - x\n",
		"      - {name: sex, kind: category, levels: [\"1\", \"2\", f, m]}\n", "levels: [\"9\", high, low]}\n",
		"#   view lab, only: north-clinic has it, and south has not\n", "#   subjects, person: it has too many values",
		"subjects: [group, born, rare]\n",
		"  name: regression\n  outcome: {column: group, levels: [a, b]}\n", "    north-clinic: \"North Clinic\"\n",
		"    south: south\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if said := d.Said.Error(); strings.Count(said, "among") != 1 || !strings.Contains(said, `grade: "9" stands among`) {
		t.Errorf("got %s", said)
	}
	without := testkit.Get(Look(t.Context(), root, Options{Name: "tried"}))(t)
	if text := string(without.YAML(root)); !strings.Contains(text,
		"#   patterns:\n#     - {site: north-clinic, views: [lab]}\n") {
		t.Errorf("the patterns of a private study are missing in\n%s", text)
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
	d := testkit.Get(Look(t.Context(), root, Options{Name: "tried", Outcome: "group"}))(t)
	text := string(d.YAML(root))
	if strings.Contains(text, "secret") || !strings.Contains(text,
		"{name: stage, kind: category, levels: [I, II, other], other: other}") ||
		!strings.Contains(text, "missing: [unknown]\n") ||
		!strings.Contains(text, "      - absent  # few whole numbers: if they stand for kinds, ") ||
		!strings.Contains(text, "      - pain  # few whole numbers: ") ||
		!strings.Contains(text, "  data: \".\"\n  split: {scenario: IID}\n") {
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
		d := testkit.Get(Look(t.Context(), root, Options{Name: "tried"}))(t)
		if text := string(d.YAML(root)); strings.Contains(text, "{name: shift, missing: [-9]}") != c.want {
			t.Errorf("%s: got\n%s", name, text)
		}
	}
}

// Factors are for amounts: yes or no as 1 and 0 is pointed at, which a regression takes as it is.
func TestYesAndNoArePointedAtForFactors(t *testing.T) {
	root := folders(t, map[string]string{
		"subjects.csv": rows("n", 30, "group", label("a", "b")),
		"view_lab.csv": rows("n", 30, "x,smokes,y", value, label("0", "1"), value),
	})
	for outcome, want := range map[string]bool{"": true, "group": false} {
		d := testkit.Get(Look(t.Context(), root, Options{Name: "tried", Outcome: outcome}))(t)
		if text := string(d.YAML(root)); strings.Contains(text, "      - smokes  # few whole numbers: ") != want {
			t.Errorf("outcome %q: got\n%s", outcome, text)
		}
	}
}

// Numbers are kinds where a column is named so, and amounts where outcomes count on; what REDCap adds and postal codes
// are nothing; and of two results the one that can be good is not what is estimated.
func TestNamesTellWhatColumnsAre(t *testing.T) {
	root := folders(t, map[string]string{
		"subjects.csv": rows("n", 40, "end,falls,redcap_event_name", label("died", "survived"),
			label("0", "1", "2", "3"), label("arm", "leg")),
		"view_lab.csv": rows("n", 40, "x,race,gender_concept_id,ethnicity,lab_complete,plz,ketones", value,
			label("1", "2", "3"), label("8507", "8532"), label("1", "2", "9"), label("0", "2"),
			func(i int) any { return 10115 + 37*i }, label("-", "+", "++")),
	})
	for outcome, own := range map[string]string{"end": "column: end, levels: [survived, died]}",
		"falls": "kinds: outcome: {column: falls, levels: ["} {
		text := string(testkit.Get(Look(t.Context(), root, Options{Name: "tried", Outcome: outcome}))(t).YAML(root))
		for _, want := range []string{own, "- {name: race, kind: category, levels: [\"1\", \"2\", \"3\"]}\n",
			"- {name: gender_concept_id, kind: category, levels: [\"8507\", \"8532\"]}\n",
			"- {name: ethnicity, missing: [9]}", "levels: [\"+\", \"++\", \"-\"]}",
			"subjects, redcap_event_name: REDCap adds it", "lab_complete: REDCap adds it",
			"plz: a postal code is no amount", "subjects: [end, falls]\n"} {
			if !strings.Contains(text, want) {
				t.Errorf("outcome %s: %q is missing in\n%s", outcome, want, text)
			}
		}
	}
}

// A number that is the same for everybody at each site is that of the site, and no measurement; what is called as sites
// are can be one if sites share its values.
func TestNumbersOfSitesAreLeftOut(t *testing.T) {
	files := map[string]string{}
	for i, name := range []string{"a", "b"} {
		files[name+"/subjects.csv"] = rows(name, 30, "group", label("u", "v"))
		files[name+"/view_v.csv"] = rows(name, 30, "x,unit,clinic,centre,cohort", value, func(int) any { return i + 1 },
			label(name+"1", name+"2"), value, label("old", "new"))
	}
	d := testkit.Get(Look(t.Context(), folders(t, files), Options{Name: "tried", Outcome: "group"}))(t)
	if len(d.LeftOut) != 2 || d.LeftOut[0].Column != "clinic" || !strings.Contains(d.LeftOut[1].Why, "at a site") {
		t.Errorf("left out: %v", d.LeftOut)
	}
}

// A hospital in the one table of several becomes a column of subjects, by which the table can be split.
func TestOneTableOfSeveralSites(t *testing.T) {
	for _, name := range []string{"SITEID", "redcap_data_access_group"} {
		table := rows("n", 40, "end,x,"+name, label("u", "v"), value, label("101", "102", "103", "104"))
		root := folders(t, map[string]string{"all.csv": table})
		testkit.Get(SplitSites(root, "end"))(t)
		d := testkit.Get(Look(t.Context(), root, Options{Name: "tried", Outcome: "end", Plan: "p.yaml"}))(t)
		if said := d.Said.Error(); len(d.Subjects) != 2 || !strings.Contains(said, "--by "+name+" --plan p.yaml") {
			t.Errorf("subjects %v, said %s", d.Subjects, said)
		}
	}
	for name, is := range map[string]bool{"trial_site": true, "Krankenhaus": true, "hospital_id": true,
		"Prüfzentrum-Nr": true, "tumor_site": false, "hospital_days": false, "clinical_stage": false} {
		if dataset.NamesSites(name) != is {
			t.Errorf("%s names sites: %v", name, !is)
		}
	}
}

// A name that ends as those of ids do is one where every row has a value of its own, in a table that has numbers.
func TestIDsOfOneTable(t *testing.T) {
	for name, is := range map[string]bool{"Fallnummer": true, "USUBJID": true, "nr": true, "uric_acid": false,
		"drug": false} {
		root := folders(t, map[string]string{"all.csv": strings.Replace(
			rows("p", 20, "x,again_id,c", value, value, label("v", "w")), "id", name, 1)})
		all, said := wholeTables(root), misnamed(root, []string{"all.csv"}).What
		if found := len(all) == 1 && all[0].id == name; found != is || strings.Contains(said, "that of the ids") == is {
			t.Errorf("%s: %v, %s", name, all, said)
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
		"nothing": {map[string]string{"notes/readme.txt": ""}, Options{},
			"holds no data, and no folder in it does"},
		"bad file": {map[string]string{"a/subjects.csv": "id\nn000\n", "a/view_v.csv": "id,x\nn000,1,2\n"},
			Options{}, "3 cells, but the header has 2"},
		"alike": {map[string]string{"A/subjects.csv": "id\nn\n", "a_/subjects.csv": "id\nn\n"}, Options{},
			"the site would be called a, and so would"},
		"name": {map[string]string{"subjects.csv": rows("n", 10, "g", value), "view_v.csv": good},
			Options{Name: "Not a name"}, "cannot be the name of a study"},
		"outcome": {map[string]string{"subjects.csv": rows("n", 10, "g", label("a")), "view_v.csv": good},
			Options{Name: "n", Outcome: "x"}, "x cannot be an outcome"},
		"one number": {map[string]string{"subjects.csv": rows("n", 10, "g", value),
			"view_v.csv": rows("n", 10, "x,c", value, label("3"))}, Options{Name: "n"},
			"at least 2 columns of numbers that vary, and there is 1"},
		"subjects everyone": {map[string]string{"subjects.csv": rows("n", 9, "g", value), "view_v.csv": good},
			Options{Name: "n"}, "is not in subjects.csv"},
	} {
		if d, err := Look(t.Context(), folders(t, c.files), c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, %v", name, d, err)
		}
	}
}

// Numbers on a scale are an outcome although one subject has the last; a code among kinds makes none.
func TestCountsWithRareValuesAreAnOutcome(t *testing.T) {
	for last, kinds := range map[int]int{7: 4, 9: 2} {
		root := folders(t, map[string]string{"view_v.csv": rows("n", 41, "x,y", value, value),
			"subjects.csv": rows("n", 41, "g", func(i int) any { return i%kinds + i/40*last })})
		d, err := Look(t.Context(), root, Options{Name: "n", Outcome: "g"})
		if (err == nil) != (kinds == 4) || err == nil &&
			!strings.Contains(string(d.YAML(root)), "add: likelihood: poisson\n") {
			t.Errorf("%d kinds: %v", kinds, err)
		}
	}
}

// What columns are called cannot leave the comment that names them.
func TestNamesStayInTheirComment(t *testing.T) {
	d := &Draft{Method: "factors", LeftOut: []leftOut{{"v", "a\nb\u2028c\rd", "why"}}}
	var b strings.Builder
	d.writeLeftOut(&b)
	if got := b.String(); got != "# Columns that are not in the plan:\n#   view v, a b c d: why\n\n" {
		t.Errorf("got %q", got)
	}
}

// lab is a view of n rows for the site with the prefix.
func lab(prefix, header string, cells ...func(i int) any) string {
	return rows(prefix, 20, header, cells...)
}

// comma and others write a number as some sites do.
func comma(i int) any { return fmt.Sprintf("\"%d,%d\"", i, i%7) }

// What a site calls or writes otherwise is an error that says where and what to do, and
// no view is lost.
func TestWhatSitesWriteOtherwiseIsRefused(t *testing.T) {
	people := func(prefix string) string { return lab(prefix, "group", label("u", "v")) }
	two := func(a, b map[string]string) map[string]string {
		files := map[string]string{"a/subjects.csv": people("a"), "b/subjects.csv": people("b")}
		for name, text := range a {
			files["a/"+name] = text
		}
		for name, text := range b {
			files["b/"+name] = text
		}
		return files
	}
	one := func(name, text string) map[string]string { return map[string]string{name: text} }
	sound := one("view_lab.csv", lab("a", "crp,tau", value, value))
	with := func(suffix string) func(int) any { return func(i int) any { return fmt.Sprint(value(i), suffix) } }
	for name, c := range map[string]struct {
		files map[string]string
		o     Options
		want  []string
	}{
		"decimal commas at one site": {two(sound, one("view_lab.csv", lab("b", "crp,tau", comma, value))), Options{},
			[]string{`b/view_lab.csv:2: view lab, column crp: "0,0" has a decimal comma; so it is in 20 of 20 cells ` +
				`at b, and in none at a`, "use a decimal point: 0.0", "--leave-out crp"}},
		"units": {two(sound, one("view_lab.csv", lab("b", "crp,tau", with(" mg/l"), value))), Options{},
			[]string{"b/view_lab.csv:2: view lab, column crp: \"0.5 mg/l\" has mg/l behind the number", "write 0.5"}},
		"per cent": {two(sound, one("view_lab.csv", lab("b", "crp,tau", with("%"), with("%")))), Options{},
			[]string{"has % behind the number", "the same in 1 more column of this file: tau"}},
		"a word": {two(one("view_lab.csv", lab("a", "crp", value)),
			one("view_lab.csv", lab("b", "crp", func(i int) any {
				if i == 4 {
					return "clotted"
				}
				return value(i)
			}))), Options{},
			[]string{"view lab: no feature of it is left",
				`b/view_lab.csv:6: view lab, feature crp: left out: "clotted" is a word, and 39 cells`,
				"--missing clotted"}},
		"a space in a view's name": {two(one("view_my lab.csv", sound["view_lab.csv"]),
			one("view_my lab.csv", lab("b", "crp,tau", value, value))), Options{},
			[]string{`"my lab" cannot be the name of a view`, "/b/view_my_lab.csv"}},
		"a misspelt view": {two(sound, one("view_labb.csv", lab("b", "crp,tau", value, value))), Options{},
			[]string{"b/view_labb.csv: b has the view labb, whose columns are those of view lab at a",
				"/b/view_lab.csv"}},
		"capitals of a view": {two(sound, one("view_Lab.csv", lab("b", "il6", value))), Options{},
			[]string{"b has the view Lab, and a has the view lab"}},
		"capitals of a feature": {two(sound, one("view_lab.csv", lab("b", "CRP,tau", value, value))), Options{},
			[]string{"b/view_lab.csv: view lab: b has CRP, and a has crp", `rename the column "CRP" to "crp"`}},
		"unseen in a feature": {two(one("view_lab.csv", lab("a", "сrp,tau", value, value)),
			one("view_lab.csv", lab("b", "crp,tau", value, value))), Options{},
			[]string{"a/view_lab.csv: view lab: a has", `rename the column "\u0441rp" to "crp"`}},
		"no feature in common": {two(sound, one("view_lab.csv", lab("b", "il6,bnp", value, value))), Options{},
			[]string{"view lab: no feature of it is left", "crp and tau: a has it, and b has not"}},
		"categories alone": {two(one("view_lab.csv", lab("a", "x,y,stage", value, value, label("I"))),
			one("view_sex.csv", lab("b", "sex", label("m", "f")))), Options{},
			[]string{"view sex: no feature of it is left", "it is a category (f and m)", "--outcome COLUMN"}},
		"dates alone": {two(sound,
			one("view_visits.csv", lab("b", "day", func(i int) any { return fmt.Sprintf("2021-03-%02d", i+1) }))),
			Options{}, []string{"view visits: no feature of it is left", "it holds dates; give a number instead"}},
		"an outcome in two tongues": {map[string]string{"a/subjects.csv": lab("a", "ill", label("yes", "no")),
			"b/subjects.csv": lab("b", "ill", label("ja", "nein")), "a/view_lab.csv": sound["view_lab.csv"],
			"b/view_lab.csv": lab("b", "crp,tau", value, value)}, Options{Outcome: "ill"},
			[]string{"no other site has any of the values that stand at a, b"}},
		"a view that cannot be read": {two(sound, map[string]string{"view_lab.csv": lab("b", "crp,tau", value, value),
			"view_gene.tsv": "id\tg\n"}), Options{},
			[]string{"b/view_gene.tsv: is named as a view, and cannot be read as one", "save view_gene.tsv as CSV"}},
		"a copy of a site": {map[string]string{"a/subjects.csv": people("a"),
			"a/view_lab.csv": sound["view_lab.csv"], "a copy/subjects.csv": people("a"),
			"a copy/view_lab.csv": sound["view_lab.csv"]}, Options{}, []string{"holds the same rows as"}},
		"other names": {map[string]string{"a/subjects.csv": people("a"),
			"a/view_lab.csv": sound["view_lab.csv"], "b/patients.csv": people("b"),
			"b/lab_results.csv": lab("b", "crp", value)}, Options{},
			[]string{"it holds lab_results.csv and patients.csv", "/b/view_lab.csv", "/b/subjects.csv"}},
		"a folder too deep": {map[string]string{"a/subjects.csv": people("a"),
			"a/view_lab.csv": sound["view_lab.csv"], "b/export/subjects.csv": people("b")}, Options{},
			[]string{"b/export: holds tables, and stands one folder too deep"}},
		"data above the sites": {map[string]string{"subjects.csv": people("a"), "a/subjects.csv": people("a"),
			"a/view_lab.csv": sound["view_lab.csv"]}, Options{},
			[]string{"holds subjects.csv, and folders in it hold data too: a"}},
		"an unprintable column": {two(sound, one("view_gene.csv", lab("b", "g\t1,g2", value, value))), Options{},
			[]string{`"g\t1" cannot be the name of a column`}},
		"left out, and misspelt": {two(sound, one("view_lab.csv", lab("b", "crp,tau", value, value))),
			Options{LeaveOut: []string{"crpp"}}, []string{"no view and no column is called crpp", "did you mean crp?"}},
	} {
		c.o.Name = "tried"
		d, err := Look(t.Context(), folders(t, c.files), c.o)
		if err == nil {
			t.Errorf("%s: no error, but\n%s", name, d.YAML("."))
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q is missing in\n%v", name, want, err)
			}
		}
	}
}

// What is no error, and takes a feature out of the plan or makes it doubtful, is said.
func TestWhatIsSaidFirst(t *testing.T) {
	people := func(prefix string) string { return lab(prefix, "group,smoker", label("u", "v"), label("yes", "no")) }
	root := folders(t, map[string]string{
		"a/subjects.csv": people("a"), "a/view_lab.csv": lab("a", "crp,tau,creatinine,x1,x2,x3,x4,x5", value, value,
			value, value, value, value, value, value),
		"b/subjects.csv": lab("b", "group,smoker", label("u", "v"), label("ja", "nein")),
		"b/view_lab.csv": lab("b", "crp,tau,creatinin", value, value, value),
		"codebook.csv":   "name,meaning\n", "notes/readme.txt": "",
		"b/old/view_gene.csv": "id,g\n",
	})
	d := testkit.Get(Look(t.Context(), root, Options{Name: "tried", Outcome: "group"}))(t)
	said := strings.Join(d.Said.Lines(), "\n")
	if strings.Contains(said, "events") { // 20 for each of two weights are enough
		t.Errorf("got %s", said)
	}
	for _, want := range []string{
		"view lab: 6 columns (creatinine, x1, x2 and 3 more) are left out: a has them, and b has not\n  hint: is " +
			"creatinine the column creatinin of b?",
		"not read, since it belongs to no site: codebook.csv",
		"folders that hold no table are no sites: notes",
		"not read, since it is below the folder of a data set: view_gene.csv",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is missing in\n%s", want, said)
		}
	}
}

// "None" among words is a level, such as no treatment, and no code for a missing value.
func TestNoneIsALevel(t *testing.T) {
	root := folders(t, map[string]string{
		"subjects.csv": rows("n", 90, "therapy", label("None", "chemo", "surgery")),
		"view_lab.csv": rows("n", 90, "x,y", value, func(i int) any { return i * i % 11 }),
	})
	d := testkit.Get(Look(t.Context(), root, Options{Name: "tried", Outcome: "therapy"}))(t)
	if plan := string(d.YAML(root)); strings.Contains(plan, "missing: [") ||
		!strings.Contains(plan, "levels: [None, chemo, surgery]") {
		t.Errorf("got\n%s", plan)
	}
}

// A column of numbers can be an outcome however many values it has.
func TestOutcomesOfManyValues(t *testing.T) {
	root := folders(t, map[string]string{
		"subjects.csv": rows("n", 300, "dose", func(i int) any { return float64(i*i%1009) / 7 }),
		"view_lab.csv": rows("n", 300, "x,y", value, func(i int) any { return i * i % 11 }),
	})
	d := testkit.Get(Look(t.Context(), root, Options{Name: "tried", Outcome: "dose"}))(t)
	if want := "outcome: {column: dose}"; !strings.Contains(string(d.YAML(root)), want) {
		t.Errorf("want %s in\n%s", want, d.YAML(root))
	}
}

// Few events for the weights are said before all else, and in the plan in rounded numbers.
func TestFewEvents(t *testing.T) {
	root := folders(t, map[string]string{
		"subjects.csv": rows("n", 30, "dead,age", func(i int) any { return label("no", "no", "yes")(i) },
			func(i int) any { return 40 + i }),
		"view_lab.csv": rows("n", 30, "x,y,stage", value, func(i int) any { return i * i % 11 },
			label("I", "II", "III")),
	})
	for outcome, want := range map[string][2]string{
		"dead": {"there are 10 events (dead: yes) for 4 weights, which is few",
			"# Few data: at most 10 events (dead: yes) for 4 weights."},
		"age": {"there are 30 values of age for 4 weights, which is few",
			"# Few data: at most 30 values of age for 4 weights."},
	} {
		d := testkit.Get(Look(t.Context(), root, Options{Name: "tried", Outcome: outcome}))(t)
		if len(d.Said) == 0 || !strings.Contains(d.Said[0].What, want[0]) ||
			!strings.Contains(string(d.YAML(root)), want[1]) {
			t.Errorf("%s: got %v and\n%s", outcome, d.Said, d.YAML(root))
		}
	}
}

// Times until an event that not everybody had are no numbers like others.
func TestTimesUntilAnEventAreSuspected(t *testing.T) {
	for column, want := range map[string]string{
		"relapsed": `outcome: {column: months, event: relapsed, levels: ["0", "1"], cuts: [END OF EACH PERIOD]}`,
		"status":   `outcome: {column: months, event: status, levels: ["0", "1"], cuts: [END OF EACH PERIOD]}`,
		"censored": `outcome: {column: months, event: censored, levels: ["1", "0"], cuts: [END OF EACH PERIOD]}`,
		"died_of": `outcome: {column: months, event: died_of, levels: ["NO EVENT", EVENT], cuts: [END OF EACH ` +
			`PERIOD]}`,
		"group": "",
	} {
		kinds := 2
		if column == "died_of" {
			kinds = 3
		}
		subjects, view := "id,months,"+column+"\n", "id,x\n"
		for i := range 60 {
			subjects += fmt.Sprintf("s%02d,%d.5,%d\n", i, 1+i*7%50, i%kinds)
			view += fmt.Sprintf("s%02d,%d\n", i, i*i%97)
		}
		dir := t.TempDir()
		for name, text := range map[string]string{"subjects.csv": subjects, "view_v.csv": view} {
			testkit.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
		}
		d := testkit.Get(Look(t.Context(), dir, Options{Name: "tried", Outcome: "months"}))(t)
		said := len(d.Said) > 0 && strings.Contains(d.Said[0].Hint, want) &&
			strings.Contains(string(d.YAML(dir)), "#   "+want+"\n")
		if want == "" {
			said = !strings.Contains(string(d.YAML(dir)), "event")
		}
		if !said {
			t.Errorf("%s: %v\n%s", column, d.Said, d.YAML(dir))
		}
	}
}
