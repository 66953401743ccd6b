package study_test

import (
	"reflect"
	"strings"
	"testing"

	"parley/dataset"
	"parley/study"
)

func columns(names ...string) []dataset.Column {
	var c []dataset.Column
	for _, n := range names {
		c = append(c, dataset.Column{Name: n})
	}
	return c
}

func TestAgree(t *testing.T) {
	p := parse(t, small)
	clinic := dataset.View{Name: "clinic", Columns: columns("male", "age")}
	immune := dataset.View{Name: "immune", Columns: columns("stage", "tau")}
	group := columns("group")
	for name, c := range map[string]struct {
		site     string
		found    dataset.Schema
		problems string
		lacks    []string
		extra    []string
	}{
		"everything, in another order": {site: "north", found: dataset.Schema{Views: []dataset.View{immune, clinic}, Subject: group}},
		"a view is lacking":            {site: "north", found: dataset.Schema{Views: []dataset.View{clinic}, Subject: group}, lacks: []string{"immune"}},
		"columns and views to spare": {site: "south",
			found: dataset.Schema{Views: []dataset.View{{Name: "clinic", Columns: columns("age", "bmi", "male")}, {Name: "mri", Columns: columns("hippocampus")}, immune}, Subject: columns("group", "sex")},
			extra: []string{"clinic.bmi", "subjects.sex", "mri"}},
		"misspelt": {site: "centre",
			found:    dataset.Schema{Views: []dataset.View{{Name: "clinic", Columns: columns("Age", "male")}, immune}, Subject: columns("gruop")},
			problems: "view clinic: column age is missing\n  hint: did you mean Age?\nsubjects: column group is missing\n  hint: did you mean gruop?",
			extra:    []string{"clinic.Age", "subjects.gruop"}},
		"half a view": {site: "centre",
			found:    dataset.Schema{Views: []dataset.View{{Name: "clinic", Columns: columns("age")}, immune}, Subject: group},
			problems: "view clinic: column male is missing\n  hint: a site has all columns of a view or lacks the whole view"},
		"in another view": {site: "centre",
			found:    dataset.Schema{Views: []dataset.View{{Name: "clinic", Columns: columns("age")}, {Name: "immune", Columns: columns("stage", "tau", "male")}}, Subject: group},
			problems: "view clinic: column male is missing\n  hint: it was found in view immune", extra: []string{"immune.male"}},
		"nothing of the plan": {site: "nroth",
			found:    dataset.Schema{Views: []dataset.View{{Name: "mri", Columns: columns("x")}}, Subject: group},
			problems: "site nroth: not a site of the plan\n  hint: did you mean north?\nsite nroth: has none of the plan's views clinic, immune\n  hint: found: mri",
			lacks:    []string{"clinic", "immune"}, extra: []string{"mri"}},
		"nothing at all": {site: "north", found: dataset.Schema{Subject: group},
			problems: "site north: has none of the plan's views clinic, immune\n  hint: found: none", lacks: []string{"clinic", "immune"}},
		"kinds and levels": {site: "north",
			found: dataset.Schema{Views: []dataset.View{clinic, {Name: "immune", Columns: []dataset.Column{
				{Name: "tau", Kind: dataset.Category, Levels: []string{"low", "high"}},
				{Name: "stage", Kind: dataset.Category, Levels: []string{"I", "IV", "iii"}},
			}}}, Subject: group},
			problems: "view immune: tau is a category here, and a number in the plan\nview immune: level \"IV\" of stage is not in the plan\n  hint: did you mean I?\nview immune: level \"iii\" of stage is not in the plan\n  hint: did you mean III?"},
	} {
		got := study.Agree(p, c.site, c.found)
		if got.Problems.Error() != c.problems || !reflect.DeepEqual(got.Lacks, c.lacks) || !reflect.DeepEqual(got.Extra, c.extra) || got.Site != c.site {
			t.Errorf("%s: lacks %v, extra %v, problems\n%v\nwant\n%s", name, got.Lacks, got.Extra, got.Problems, c.problems)
		}
	}
}

func TestUnshared(t *testing.T) {
	p := parse(t, strings.Replace(small, "subjects:", "  - {name: mri, features: [hippocampus]}\nsubjects:", 1))
	for name, c := range map[string]struct {
		lacks map[string][]string
		want  string
	}{
		"all have all":   {nil, ""},
		"scenario K":     {map[string][]string{"centre": {"immune"}, "south": {"mri"}}, ""},
		"through clinic": {map[string][]string{"north": {"mri"}, "centre": {"immune"}, "south": {"mri"}}, "views immune and mri: no site has both; they are linked only through other views\n  hint: what they have in common rests on the model, not on data"},
		"not at all": {map[string][]string{"north": {"mri"}, "centre": {"immune", "clinic"}, "south": {"mri"}},
			"views clinic and mri: no site has both, and no chain of sites connects them\n  hint: nothing can be learnt of what they have in common\n" +
				"views immune and mri: no site has both, and no chain of sites connects them\n  hint: nothing can be learnt of what they have in common"},
	} {
		if got := study.Unshared(p, c.lacks).Error(); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, c.want)
		}
	}
}
