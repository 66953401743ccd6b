package study_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"parley/dataset"
	"parley/internal/testkit"
	"parley/problem"
	"parley/study"
)

// methods knows two methods. Options of the first show every type there may be.
type methods struct{}

type options struct {
	Latent  int        `json:"latent"`
	Variant string     `json:"variant"`
	Rounds  uint64     `json:"rounds"`
	Step    float64    `json:"step"`
	Ridge   bool       `json:"ridge"`
	Grid    []float64  `json:"grid,omitempty"`
	Prior   *prior     `json:"prior,omitempty"`
	Layers  []layer    `json:"layers,omitempty"`
	Box     [2]float64 `json:"box"`
}

type prior struct {
	Shape float64 `json:"shape"`
}

type layer struct {
	Name  string `json:"name"`
	Width int    `json:"width"`
}

func (o *options) Check(p *study.Plan, report study.Report) {
	if o.Latent < 1 {
		report("latent", fmt.Sprintf("%d dimensions", o.Latent), "at least 1")
	}
	for i, l := range o.Layers {
		if l.Width < 1 {
			report(fmt.Sprintf("layers[%d].width", i), "no width", "")
		}
	}
	if o.Variant == "many" && len(p.Views) < 2 {
		report("variant", "needs more than one view", "plain")
	}
}

func (methods) Options(name string) (any, bool) {
	switch name {
	case "factors":
		return &options{Latent: 2, Variant: "plain", Rounds: 3, Step: 0.5}, true
	case "regression":
		return &struct{}{}, true
	}
	return nil, false
}

func (methods) Names() []string { return []string{"factors", "regression"} }

const small = `parley: 1
name: alzheimer
sites: [north, centre, south]
views:
  - name: clinic
    features: [age, male]
  - name: immune
    features:
      - {name: tau, range: [0, 12.5], unit: ng/l}
      - {name: stage, kind: category, levels: [I, II, III]}
subjects: [group]
method:
  name: factors
  latent: 6
privacy:
  protection: none
`

func parse(t *testing.T, text string) *study.Plan {
	t.Helper()
	return testkit.Get(study.Parse("plan.yaml", []byte(text), methods{}))(t)
}

func digest(t *testing.T, p *study.Plan) study.Digest {
	t.Helper()
	return testkit.Get(p.Digest())(t)
}

func TestDefaultsAreFilledIn(t *testing.T) {
	p := parse(t, small)
	if p.Seed != 1 || p.Quorum != 3 || p.Views[0].Features[1].Kind != study.Number || p.Local != nil {
		t.Errorf("got %+v", p)
	}
	if o := p.Method.Options.(*options); o.Latent != 6 || o.Rounds != 3 || o.Variant != "plain" {
		t.Errorf("options %+v", o)
	}
	p = parse(t, small+"seed: 9\nlocal: {data: data, split: {scenario: iid}}\n")
	if p.Local.Split.Seed != 9 || p.Local.Split.Scenario != "IID" {
		t.Errorf("split %+v", p.Local.Split)
	}
}

func TestUnequalSites(t *testing.T) {
	for text, want := range map[string]study.Split{
		"Unequal, by: group, rho: 0.75, kappa: -3": {Scenario: "unequal", By: "group", Seed: 1, Rho: 0.75, Kappa: -3},
		"unequal, by: group, kappa: 1":             {Scenario: "unequal", By: "group", Seed: 1, Kappa: 1},
		"unequal, by: group, scheme: C, seed: 2":   {Scenario: "unequal", By: "group", Seed: 2, Scheme: "C"},
		"unequal, by: group, rho: 0, unused: [x]":  {Scenario: "unequal", By: "group", Seed: 1, Unused: []string{"x"}},
	} {
		p := parse(t, even+"local: {data: d, split: {scenario: "+text+"}}\n")
		if !reflect.DeepEqual(*p.Local.Split, want) {
			t.Errorf("%s: got %+v", text, p.Local.Split)
		}
	}
}

func TestNumbersMayBeWrittenInEveryUsualWay(t *testing.T) {
	for text, want := range map[string]float64{"3": 3, "-0.5": -0.5, "1e-6": 1e-6, "1E+3": 1000, "+2.": 2, ".5": 0.5,
		"1_000": 1000} {
		p := parse(t, strings.Replace(small, "latent: 6", "step: "+text, 1))
		if got := p.Method.Options.(*options).Step; got != want {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
}

func TestSchema(t *testing.T) {
	want := dataset.Schema{
		Views: []dataset.View{
			{Name: "clinic", Columns: []dataset.Column{{Name: "age"}, {Name: "male"}}},
			{Name: "immune", Columns: []dataset.Column{{Name: "tau", Range: &[2]float64{0, 12.5}},
				{Name: "stage", Kind: dataset.Category, Levels: []string{"I", "II", "III"}}}},
		},
		Subject: []dataset.Column{{Name: "group", Kind: dataset.Label}},
	}
	if got := parse(t, small).Schema(); !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v, want %+v", got, want)
	}
}

func TestLoadResolvesPathsAgainstTheFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "plan.yaml")
	for text, want := range map[string]*study.Local{
		"local: {data: d, split: {scenario: G, by: group, seed: 7}}\n": {
			Data: filepath.Join(dir, "d"), Split: &study.Split{Scenario: "G", By: "group", Seed: 7}},
		"local: {data: /d, split: {scenario: column, by: group, unused: [test]}}\n": {
			Data: "/d", Split: &study.Split{Scenario: "column", By: "group", Seed: 1, Unused: []string{"test"}}},
		"local: {sites: {north: n, centre: /srv/c, south: ../s}}\n": {
			Sites: map[string]string{"north": filepath.Join(dir, "n"), "centre": "/srv/c",
				"south": filepath.Join(filepath.Dir(dir), "s")}},
	} {
		testkit.Do(t, os.WriteFile(path, []byte(small+text), 0o600))
		p, err := study.Load(path, methods{})
		if err != nil || !reflect.DeepEqual(p.Local, want) {
			t.Errorf("%s: %v, %v", text, p, err)
		}
	}
	if _, err := study.Load(filepath.Join(dir, "plan.yml"), methods{}); err == nil ||
		!strings.Contains(err.Error(), "plan.yml: there is no such file") {
		t.Errorf("no file: %v", err)
	}
	if _, err := study.Load(dir, methods{}); err == nil ||
		!strings.Contains(err.Error(), "this is a folder, not a plan") {
		t.Errorf("a folder: %v", err)
	}
}

// even is the small plan with two sites.
var even = strings.Replace(small, "north, centre, south", "north, south", 1)

// refusals are edits of the small plan, and what the first problem must say.
var refusals = []struct{ old, new, want string }{
	// Syntax.
	{"latent: 6", "latent: [6", `plan.yaml:15:1: not YAML: ',' or ']' must be specified`},
	{"name: alzheimer", "name: alz: heimer", `plan.yaml:2:7: not YAML: mapping value is not allowed in this context`},
	{small, "", "plan.yaml:1:1: the plan is empty\n  hint: a plan begins with: parley: 1"},
	{small, "# nothing\n", "plan.yaml:1:1: the plan is empty"},
	{small, "- a\n", "plan.yaml:1:1: a list where keys with values are expected\n  hint: write key: value"},
	{small, small + "---\nparley: 1\n", "plan.yaml:17:1: a second document\n  hint: a file holds one plan"},
	{small, small + strings.Repeat("#", study.MaxBytes), "plan.yaml: larger than 1048576 bytes"},
	{"latent: 6", "latent: \xff", "plan.yaml:14: not UTF-8 text\n  hint: save the file in the encoding UTF-8"},
	{"latent: 6", "latent: " + strings.Repeat("[", 20), "plan.yaml:14:27: nested too deeply"},
	{"- name: clinic", strings.Repeat("- ", 20) + "name: clinic", "plan.yaml:5:35: nested too deeply"},
	{"[north, centre, south]", "&s [north, centre, south]", "plan.yaml:3:8: anchors, aliases, merge keys, tags and " +
		"directives are not used in plans (&)\n  hint: write the value out"},
	{"latent: 6", "latent: !!int 6", "plan.yaml:14:11: anchors, aliases, merge keys, tags"},
	{"latent: 6", "<<: {latent: 6}", "plan.yaml:14:3: anchors, aliases, merge keys, tags"},
	// Keys and types.
	{"sites:", "sties:", "plan.yaml:1:1: sites: missing\n  hint: the names of the sites"},
	{"sites:", "sties:", "plan.yaml:3:1: sties: unknown key\n  hint: did you mean sites?"},
	{"subjects:", "unheard:", "plan.yaml:11:1: unheard: unknown key\n  hint: valid here: parley, name, question, " +
		"seed, sites, quorum, deadline, approval_deadline, missing, views, subjects, complete_cases, method, " +
		"privacy, local"},
	{"latent: 6", "latnet: 6", "plan.yaml:14:3: method.latnet: unknown key\n  hint: did you mean latent?"},
	{"latent: 6", "latent: six", `plan.yaml:14:11: method.latent: "six" where a whole number is expected`},
	{"latent: 6", "latent: 6.5", "plan.yaml:14:11: method.latent: 6.5 where a whole number is expected"},
	{"latent: 6", "latent: 0x6", "plan.yaml:14:11: method.latent: 0x6 where a whole number is expected"},
	{"latent: 6", "latent: 99999999999999999999", `plan.yaml:14:11: method.latent: "99999999999999999999" where a ` +
		`whole number is expected`},
	{"latent: 6", "latent:", "plan.yaml:14:3: method.latent: has no value\n  hint: give it one, or leave the key out"},
	{"latent: 6", "latent: {a: 1}", "plan.yaml:14:3: method.latent: keys with values where a whole number is expected"},
	{"latent: 6", "latent: 6\n  latent: 7", "plan.yaml:15:3: method.latent: stands here a second time\n  hint: the " +
		"first is on line 14"},
	{"latent: 6", "step: .inf", "plan.yaml:14:9: method.step: .inf where a number is expected"},
	{"latent: 6", "step: 1e999", `plan.yaml:14:9: method.step: "1e999" where a number is expected`},
	{"latent: 6", "ridge: 1", "plan.yaml:14:10: method.ridge: 1 where true or false is expected"},
	{"latent: 6", "rounds: -1", "plan.yaml:14:11: method.rounds: -1 where a whole number from 0 to 2⁶⁴−1 is expected"},
	{"latent: 6", "step: \"1\"", `plan.yaml:14:9: method.step: "1" where a number is expected`},
	{"latent: 6", "prior: {shpe: 1}", "plan.yaml:14:11: method.prior.shpe: unknown key\n  hint: did you mean shape?"},
	{"latent: 6", "box: [1]", "plan.yaml:14:3: method.box: 1 entries where 2 are expected"},
	{"latent: 6", "7: 6", `plan.yaml:14:3: method: "7" cannot be a key`},
	{"latent: 6", "a.b: 6", `plan.yaml:14:3: method: "a.b" cannot be a key`},
	{"name: alzheimer", "name: 7", "plan.yaml:2:7: name: 7 where text is expected\n  hint: to mean the text, write " +
		"it in quotes: \"7\""},
	{"[north, centre, south]", "north", `plan.yaml:3:8: sites: "north" where a list is expected`},
	{"name: clinic\n    features: [age, male]", "clinic", `plan.yaml:5:5: views: "clinic" where keys with values are ` +
		`expected`},
	// Versions and names.
	{"parley: 1", "parley: 2", "plan.yaml:1:9: parley: version 2 of the plan format is unknown\n  hint: this program " +
		"reads version 1"},
	{"parley: 1\n", "", "plan.yaml:1:1: parley: missing\n  hint: the version of the plan format: parley: 1"},
	{"name: alzheimer", "name: Alzheimer", `plan.yaml:2:7: name: "Alzheimer" cannot be a name` +
		"\n  hint: lower-case letters"},
	{"name: alzheimer\n", "", "plan.yaml:1:1: name: missing\n  hint: a short name"},
	{"name: alzheimer", "name: a\nquestion: \"a\\u202eb\"", `plan.yaml:3:11: question: "a\u202eb" has characters ` +
		`that cannot be printed`},
	// Sites.
	{"centre", "north", "plan.yaml:3:16: sites: site north is named twice\n  hint: the first is site 1 of the list"},
	{"centre", "the centre", `plan.yaml:3:16: sites: "the centre" cannot be a name`},
	{"[north, centre, south]", "[]", "plan.yaml:3:1: sites: 0 sites\n  hint: from 1 to 1000"},
	{"sites: ", "quorum: 4\nsites: ", "plan.yaml:3:9: quorum: 4 contributions cannot come from 3 sites\n  hint: from " +
		"1 to 3"},
	{"sites: ", "quorum: 0\nsites: ", "plan.yaml:3:9: quorum: 0 contributions cannot come from 3 sites"},
	// Views and features.
	{"views:", "view:", "plan.yaml:1:1: views: missing"},
	{"- name: clinic\n    features", "- features", "plan.yaml:5:5: views.name: missing\n  hint: letters, digits"},
	{"name: clinic", "name: Immune", "plan.yaml:7:11: views.name: view immune is named twice\n  hint: the first is " +
		"view 1 of the list"},
	{"name: clinic", "name: the clinic", `plan.yaml:5:11: views.name: "the clinic" cannot be a name`},
	{"features: [age, male]", "features: []", "plan.yaml:6:5: views.features: no features\n  hint: a view has at " +
		"least one"},
	{"    features: [age, male]\n", "", "plan.yaml:5:5: views.features: missing\n  hint: a list of the columns of " +
		"the view"},
	{"male", "tau", "plan.yaml:9:9: views.features: feature tau is named twice\n  hint: the first is in view clinic"},
	{"[group]", "[age]", "plan.yaml:11:12: subjects: column age is named twice\n  hint: the first is in view clinic"},
	{"[group]", "[id]", "plan.yaml:11:12: subjects: id names the subjects and cannot be a column"},
	{"male", "id", "plan.yaml:6:21: views.features: id names the subjects and cannot be a feature"},
	{"male", `""`, "plan.yaml:6:21: views.features: has no name"},
	{"male", `" m"`, `plan.yaml:6:21: views.features: " m" begins or ends with a space`},
	{"male", strings.Repeat("m", 201), `plan.yaml:6:21: views.features: longer than 200 bytes`},
	{"male", "7", "plan.yaml:6:21: views.features: 7 where a name is expected\n  hint: to mean the name, write it in " +
		"quotes: \"7\""},
	{"[0, 12.5]", "[12.5, 0]", "plan.yaml:9:21: views.features.range: 12.5 is not below 0\n  hint: the lowest and " +
		"the highest"},
	{"[0, 12.5]", "[5, high]", `plan.yaml:9:32: views.features.range: "high" where a number is expected`},
	{"range: [0, 12.5]", "levels: [a, b]", "plan.yaml:9:21: views.features.levels: a number has no levels\n  hint: " +
		"for one of a list of values: kind: category"},
	{"kind: category", "kind: categroy", `plan.yaml:10:29: views.features.kind: unknown kind "categroy"` +
		"\n  hint: number or category"},
	{"[I, II, III]", "[I]", "plan.yaml:10:39: views.features.levels: 1 levels\n  hint: a category names at least two"},
	{"[I, II, III]", "[I, II, I]", "plan.yaml:10:55: views.features.levels: level I is named twice\n  hint: the " +
		"first is level 1"},
	{"[I, II, III]", "[I, II], range: [0, 1]", "plan.yaml:10:56: views.features.range: a category has no range"},
	{"[I, II, III]", "[I, II], unit: m", "plan.yaml:10:62: views.features.unit: a category has no unit"},
	// Method.
	{"method:\n  name: factors\n  latent: 6\n", "", "plan.yaml:1:1: method: missing\n  hint: a method with its " +
		"options, such as name: factors or name: regression"},
	{"  name: factors\n", "", "plan.yaml:12:1: method.name: missing\n  hint: valid here: factors, regression"},
	{"factors", "factor", `plan.yaml:13:9: method.name: unknown method "factor"` + "\n  hint: did you mean factors?"},
	{"factors", "mvppca", `plan.yaml:13:9: method.name: unknown method "mvppca"` +
		"\n  hint: name: factors, or fed-mv-ppca as it was published"},
	{"factors", "bayes", `plan.yaml:13:9: method.name: unknown method "bayes"` + "\n  hint: valid here: factors, regression"},
	{"latent: 6", "latent: 0", "plan.yaml:14:11: method.latent: 0 dimensions\n  hint: at least 1"},
	{"latent: 6", "layers:\n    - {name: a, width: 3}\n    - {name: b, width: 0}",
		"plan.yaml:16:24: method.layers.width: no width"},
	{"    features: [age, male]\n", "    features: [{name: age, other: a}, male]\n",
		"plan.yaml:6:35: views.features.other: a number has no levels"},
	{"    features: [age, male]\n", "    features: [{name: age, kind: category, levels: [a, b], other: c}, male]\n",
		"plan.yaml:6:67: views.features.other: \"c\" is not one of the levels"},
	// Privacy.
	{"privacy:\n  protection: none\n", "", "plan.yaml:1:1: privacy: missing\n  hint: how releases are protected has " +
		"no default"},
	{"protection: none", "protection: dp", `plan.yaml:16:15: privacy.protection: unknown protection "dp"` +
		"\n  hint: did you mean differential?"},
	{"protection: none", "epsilon: 1", "plan.yaml:15:1: privacy.protection: missing\n  hint: protection: " +
		"differential, with unit"},
	// Local.
	{small, small + "local: {}\n", "plan.yaml:17:1: local: names no data\n  hint: data and split, or a folder for " +
		"each site under sites"},
	{small, small + "local: {data: d}\n", "plan.yaml:17:1: local.split: missing\n  hint: how the data are spread"},
	{small, small + "local: {split: {scenario: IID}}\n", "plan.yaml:17:1: local.data: missing"},
	{small, small + "local: {data: '', split: {scenario: IID}}\n", "plan.yaml:17:15: local.data: empty"},
	{small, small + "local: {data: d, split: {by: group}}\n",
		"plan.yaml:17:18: local.split.scenario: missing\n  hint: one of IID, G, K, G/K, column"},
	{small, small + "local: {data: d, split: {scenario: H}}\n",
		`plan.yaml:17:36: local.split.scenario: unknown scenario "H"` + "\n  hint: one of IID, G, K, G/K, column"},
	{small, small + "local: {data: d, split: {scenario: K}}\n",
		"plan.yaml:17:36: local.split.scenario: K takes the second and the third view away from some sites, but " +
			"there are 2 views\n  hint: IID or G"},
	{small, small + "local: {data: d, split: {scenario: G}}\n",
		"plan.yaml:17:18: local.split.by: missing\n  hint: a column of the subjects table, which scenario G goes by"},
	{small, small + "local: {data: d, split: {scenario: column, by: group, seed: 1}}\n",
		"plan.yaml:17:61: local.split.seed: has no effect"},
	{small, small + "local: {data: d, split: {scenario: G, by: group, unused: [test]}}\n",
		"plan.yaml:17:50: local.split.unused: means nothing here\n  hint: scenario: column"},
	{small, small + "local: {data: d, split: {scenario: column, by: group, unused: [test, north]}}\n",
		"plan.yaml:17:70: local.split.unused: north is a site of the plan"},
	{small, small + "local: {data: d, split: {scenario: G, by: group, rho: 0.5}}\n",
		"plan.yaml:17:55: local.split.rho: means nothing here\n  hint: scenario: unequal"},
	{small, small + "local: {data: d, split: {scenario: IID, scheme: A, kappa: 0}}\n",
		"plan.yaml:17:59: local.split.kappa: means nothing here"},
	{small, small + "local: {data: d, split: {scenario: unequal, by: group, scheme: A}}\n",
		"plan.yaml:17:36: local.split.scenario: unequal makes half of the sites small and half large, but there are " +
			"3\n  hint: an even number"},
	{small, even + "local: {data: d, split: {scenario: unequal, rho: 0.5}}\n",
		"plan.yaml:17:18: local.split.by: missing\n  hint: a column of the subjects table, which scenario unequal " +
			"goes by"},
	{small, even + "local: {data: d, split: {scenario: unequal, by: group}}\n",
		"plan.yaml:17:18: local.split: does not say how far sites differ\n  hint: rho and kappa"},
	{small, even + "local: {data: d, split: {scenario: unequal, by: group, scheme: E}}\n",
		`plan.yaml:17:64: local.split.scheme: unknown scheme "E"` + "\n  hint: one of A, B, C, D"},
	{small, even + "local: {data: d, split: {scenario: unequal, by: group, scheme: A, rho: 0}}\n",
		"plan.yaml:17:64: local.split.scheme: stands beside rho or kappa\n  hint: either"},
	{small, even + "local: {data: d, split: {scenario: unequal, by: group, rho: 1}}\n",
		"plan.yaml:17:61: local.split.rho: 1 is out of range\n  hint: from 0"},
	{small, even + "local: {data: d, split: {scenario: unequal, by: group, rho: -0.1}}\n",
		"plan.yaml:17:61: local.split.rho: -0.1 is out of range"},
	{small, even + "local: {data: d, split: {scenario: unequal, by: group, rho: 0.5, kappa: 1.1}}\n",
		"plan.yaml:17:73: local.split.kappa: 1.1 is out of range\n  hint: at most 1"},
	{small, small + "local: {data: d, sites: {north: n, centre: c, south: s}}\n",
		"plan.yaml:17:18: local.sites: stands beside data or split\n  hint: either data and split, or sites"},
	{small, small + "local: {sites: {north: n, centre: c}}\n", "plan.yaml:17:9: local.sites: no folder for site south"},
	{small, small + "local:\n  sites: {north: n, centre: c, south: s, sout: t}\n",
		"plan.yaml:18:48: local.sites.sout: not a site of the plan\n  hint: did you mean south?"},
	{small, small + "local: {sites: {north: n, centre: c, south: ''}}\n", "plan.yaml:17:45: local.sites.south: empty"},
}

func TestRefusals(t *testing.T) {
	for _, r := range refusals {
		if !strings.Contains(small, r.old) {
			t.Fatalf("%q is not in the plan", r.old)
		}
		text := strings.Replace(small, r.old, r.new, 1)
		_, err := study.Parse("plan.yaml", []byte(text), methods{})
		var list problem.List
		if !errors.As(err, &list) {
			t.Errorf("%.60q: got %v, want %s", r.new, err, r.want)
			continue
		}
		found := false
		for _, p := range list {
			found = found || strings.HasPrefix(p.Error(), r.want)
		}
		if !found {
			t.Errorf("%.60q: got\n%v\nwant\n%s", r.new, err, r.want)
		}
	}
}

func TestAllProblemsAreReportedTogetherAndOnce(t *testing.T) {
	text := strings.NewReplacer("sites: [north, centre, south]", "sites: north", "[0, 12.5]", "[1, 0]", "latent: 6",
		"latnet: 6", "none", "dp", "name: alzheimer", "name: 7").Replace(small)
	_, err := study.Parse("plan.yaml", []byte(text), methods{})
	var list problem.List
	if !errors.As(err, &list) {
		t.Fatal(err)
	}
	var got []string
	for _, p := range list {
		got = append(got, fmt.Sprintf("%d %s", p.Line, p.Where))
	}
	want := "2 name, 3 sites, 9 views.features.range, 14 method.latnet, 16 privacy.protection"
	if s := strings.Join(got, ", "); s != want {
		t.Fatalf("got %s, want %s", s, want)
	}
}

func TestMethodsMayCheckAgainstTheRestOfThePlan(t *testing.T) {
	one := strings.Replace(small, small[strings.Index(small, "  - name: immune"):strings.Index(small, "subjects")], "",
		1)
	if _, err := study.Parse("plan.yaml", []byte(strings.Replace(one, "latent: 6", "variant: many", 1)),
		methods{}); err == nil ||
		!strings.HasPrefix(err.Error(), "plan.yaml:10:12: method.variant: needs more than one view\n  hint: plain") {
		t.Fatal(err)
	}
}
