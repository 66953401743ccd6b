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
		apart map[string][][2]string
		want  string
	}{
		"all have all": {nil, nil, ""},
		"scenario K":   {map[string][]string{"centre": {"immune"}, "south": {"mri"}}, nil, ""},
		"through clinic": {map[string][]string{"north": {"mri"}, "centre": {"immune"}, "south": {"mri"}}, nil,
			"views immune and mri: no site has both; they are linked only through other views\n  hint: what they " +
				"have in common rests on the model, not on data"},
		"not at all": {map[string][]string{"north": {"mri"}, "centre": {"clinic", "immune"}, "south": {"mri"}}, nil,
			"views clinic and mri: no site has both, and no chain of sites connects them\n  hint: nothing can be " +
				"learnt of what they have in common\nviews immune and mri: no site has both, and no chain of sites " +
				"connects them\n  hint: nothing can be learnt of what they have in common"},
		"nobody at one site": {nil, map[string][][2]string{"north": {{"clinic", "immune"}}},
			"views clinic and immune: no subject has both at north\n  hint: are the ids written the same way in both " +
				"files there?"},
		"nobody has both": {nil, map[string][][2]string{"north": {{"clinic", "immune"}},
			"centre": {{"clinic", "immune"}}, "south": {{"clinic", "immune"}}},
			"views clinic and immune: no subject has both at any site; they are linked only through other views\n  " +
				"hint: what they have in common rests on the model, not on data; are the ids written the same way in " +
				"both files?"},
		"nobody, and the third elsewhere": {map[string][]string{"centre": {"immune"}, "south": {"immune"}},
			map[string][][2]string{"north": {{"clinic", "immune"}, {"immune", "mri"}}},
			"views clinic and immune: no subject has both at any site, and no other view connects them\n  hint: " +
				"nothing can be learnt of what they have in common; are the ids written the same way in both " +
				"files?\nviews immune and mri: no subject has both at any site, and no other view connects them\n  " +
				"hint: nothing can be learnt of what they have in common; are the ids written the same way in both " +
				"files?"},
	} {
		if got := study.Unshared(p, c.lacks, c.apart).Error(); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, c.want)
		}
	}
}
