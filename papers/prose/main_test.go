package main

import (
	"slices"
	"testing"
)

func TestCount(t *testing.T) {
	var faults []string
	c := count("# A heading of five words\n\n"+
		"A site sends sums. They are\nsent once, e.g. by `parley`.\n\n"+
		"| a table | of words |\n\n"+
		"- Beside the table stands the error of who predicts the mean.\n"+
		"- Who is right is a question.\n\n"+
		"```console\n$ not prose at all\n```\n", func(kind, s string) { faults = append(faults, kind+": "+s) })
	if c.words != 5+4+7+4+11+6 {
		t.Errorf("%d words", c.words)
	}
	if c.sentences != 4 || c.within != 4+7+11+6 || c.passive != 1 || c.long != 0 {
		t.Errorf("%+v", c)
	}
	want := []string{
		"inverted: Beside the table stands the error of who predicts the mean.",
		"headless: Beside the table stands the error of who predicts the mean.",
		"headless: Who is right is a question.",
	}
	if !slices.Equal(faults, want) {
		t.Errorf("%q", faults)
	}
}

func TestPassive(t *testing.T) {
	for s, want := range map[string]bool{
		"The noise is drawn anew.": true, "Rows were never sent anywhere.": true,
		"The site draws noise.": false, "It is a red box.": false,
	} {
		if passive.MatchString(s) != want {
			t.Errorf("%q: %v", s, !want)
		}
	}
}
