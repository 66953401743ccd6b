package problem_test

import (
	"errors"
	"fmt"
	"testing"

	"parley/problem"
)

func ExampleList() {
	var l problem.List
	l.Add(problem.Problem{File: "plan.yaml", Line: 7, Column: 3, Where: "method.latnet", What: "unknown key",
		Hint: "did you mean latent?"})
	l.Add(problem.Problem{File: "plan.yaml", Line: 2, Where: "name", What: "missing"})
	fmt.Println(l.Err())
	// Output:
	// plan.yaml:2: name: missing
	// plan.yaml:7:3: method.latnet: unknown key
	//   hint: did you mean latent?
}

func TestEmptyListIsNoError(t *testing.T) {
	if err := (problem.List{}).Err(); err != nil {
		t.Fatalf("an empty list is an error: %v", err)
	}
}

func TestProblemsCanBeFoundInAList(t *testing.T) {
	l := problem.List{{What: "first"}, {What: "second", Line: 4}}
	var p problem.Problem
	if err := fmt.Errorf("checking: %w", l.Err()); !errors.As(err, &p) || p.What != "first" {
		t.Fatalf("got %+v", p)
	}
}

// Spellings that are one: each of a row has the key of the first.
func TestSpellingsHaveOneKey(t *testing.T) {
	for _, row := range [][]string{
		{"no", "NO", " no ", "no\u200b", "n\u00ado", "\ufeffno", "nо", "ｎｏ", "n\u2060o", "no\ufe0f", "νo"},
		{"Müller", "Mu\u0308ller", "MÜLLER"}, {"Straße", "STRASSE"}, {"Βάρος", "βάρος"}, {"Вес", "вес", "BEC"},
		{"hb_a1c", "HbA1c", "hb.a1c", "Hb A1c", "hb\u00a0a1c", "hb-a1c"}, {"fi", "ﬁ"}, {"1.5", "1.5 "},
		{"10-20", "10–20"}, {"A-", "A−"}, {"x_1", "x.1", "x 1"},
	} {
		for _, s := range row[1:] {
			if Key := problem.Key; Key(s) != Key(row[0]) {
				t.Errorf("%+q has the key %+q, and %+q has %+q", s, Key(s), row[0], Key(row[0]))
			}
		}
	}
	for _, pair := range [][2]string{{"1.5", "15"}, {"A-", "A"}, {"A+", "A-"}, {"-1", "1"}, {"<20", ">20"}, {"I", "II"},
		{"prä", "pre"}, {"10-20", "1020"}, {"m", "w"}} {
		if problem.Key(pair[0]) == problem.Key(pair[1]) {
			t.Errorf("%q and %q have one key", pair[0], pair[1])
		}
	}
}

// Only what people cannot tell apart is confusable: capitals can be meant, as of alleles.
func TestConfusable(t *testing.T) {
	for pair, want := range map[[2]string]bool{{"no", "no\u200b"}: true, {"no", "nо"}: true, {"Aa", "aa"}: false,
		{"a b", "a_b"}: false, {"a b", "a\u00a0b"}: true, {"no", "no"}: false, {"no", "yes"}: false} {
		if problem.Confusable(pair[0], pair[1]) != want {
			t.Errorf("%+q: not %v", pair, want)
		}
	}
}
