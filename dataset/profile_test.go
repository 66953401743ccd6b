package dataset

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

// Columns of words are named with the place of the first, and the others can be described.
func TestNumbersLeavesWordsOut(t *testing.T) {
	wide := map[string]string{"subjects.csv": subjects("a", "b", "c"), "view_t.csv": "id,day\na,2020-01-01\n", "view_v.csv": "id,stage,x,y\nc,II,3,<5\nb,NA,2,1\na,I,1,2\n"}
	long := map[string]string{"long.csv": longHeader + "\nc,v,stage,II\nc,v,x,3\nc,v,y,<5\nb,v,x,2\nb,v,y,1\na,t,day,2020-01-01\na,v,stage,I\na,v,x,1\na,v,y,2\n"}
	for name, c := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"wide": {wide, []string{"view_t.csv:2: view t, feature day: left out: 1 of its 1", "view_v.csv:2: view v, feature stage: left out: 2 of its 2", "view_v.csv:2: view v, feature y: left out: 1 of its 3", "view t: left out: none"}},
		"long": {long, []string{"long.csv:7: view t, feature day: left out: 1 of its 1", "long.csv:2: view v, feature stage: left out: 2 of its 2", "long.csv:4: view v, feature y: left out: 1 of its 3", "view t: left out: none"}},
	} {
		dir := folder(t, c.files)
		d, err := Open(context.Background(), dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		left, said, err := d.Numbers(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range said.Lines() {
			if !strings.Contains(line, c.want[i]) || len(said) != len(c.want) {
				t.Errorf("%s: %q, want %q", name, line, c.want[i])
			}
		}
		s := describe(t, left)
		if got := fmt.Sprintf("%d %d %s %d %v", s.Subjects, len(s.Views), s.Views[0].Name, len(s.Views[0].Features), *s.Views[0].Features[0].Moments); got != "3 1 v 1 {1 3 2 1}" {
			t.Errorf("%s: %s", name, got)
		}
	}
	dir := folder(t, map[string]string{"subjects.csv": subjects("a"), "view_v.csv": "id,x\na,one\n"})
	d, err := Open(context.Background(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.Numbers(context.Background()); err == nil || !strings.Contains(err.Error(), "no view has a column that holds numbers only") {
		t.Errorf("got %v", err)
	}
}
