package report

import (
	"parley/figure"
	"parley/methods/mixture/options"
)

// Attacks is what an attacker can do with what left the sites of one study.
type Attacks struct {
	attack, needs, takes, given, finds []string
}

// Add adds one: what it is called, what it needs and takes, what a study gives of that, and
// what is found.
func (t *Attacks) Add(attack, needs, takes, given, finds string) {
	t.attack, t.needs, t.takes = append(t.attack, attack), append(t.needs, needs), append(t.takes, takes)
	t.given, t.finds = append(t.given, given), append(t.finds, finds)
}

// Section says what can be found out from what left the sites in this study: what the
// sampler has added, and what comes with codes and classes.
func (t *Attacks) Section(s *options.Setup) figure.Section {
	lead := "Whoever ran this study, and whoever gets hold of what the sites sent, can try this."
	if e := s.Options.Encoder; e != nil {
		lead += " What is found are codes of rows. A code tells of its row as much as the encoder leaves in it, which is meant to be a lot."
		if e.Kind == options.EncoderSuffiAE {
			what := "the classifiers on their codes that sites trained"
			if e.Shared {
				what = "the encoder that one site trained, which all have, and the classifier on its codes"
			}
			t.Add("reading what was trained", what, "1 release", "1 release", "not bounded: weights that were trained on rows without noise may give some of them away")
		}
	}
	if s.Judged() {
		t.Add("reading the scores", "the scores of rows that sites held out", "1 release", "1 release", "not bounded: two studies that differ by one of these persons differ in these scores")
	}
	return figure.Section{ID: "attacks", Title: "What an attacker can do with it",
		Lead: lead + "\n\nThe command “parley attack " + s.Plan.Method.Name + "” mounts these attacks on simulated studies, and prints what was recovered. An attack that is not listed may find more where there is no noise; a bound on a private release holds against all.",
		Items: []figure.Item{{Table: &figure.Table{ID: "attacks", Title: "Attacks", Columns: []figure.Column{
			{Name: "attack", Text: t.attack}, {Name: "the attacker needs", Text: t.needs}, {Name: "it takes", Text: t.takes},
			{Name: "given in this study", Text: t.given}, {Name: "it finds here", Text: t.finds}}}}}}
}

// Found says what exact answers determine.
func Found(given, takes int, what, otherwise string) string {
	if given >= takes {
		return what
	}
	return otherwise
}
