package study_test

import (
	"strings"
	"testing"

	"parley/study"
)

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
