package graffl

import (
	"parley/figure"
	"parley/methods/mixture"
)

// attacks is what an attacker can do with what left the sites of one study.
type attacks struct {
	attack, needs, takes, given, finds []string
}

// add adds one: what it is called, what it needs and takes, what a study gives of that, and
// what is found.
func (t *attacks) add(attack, needs, takes, given, finds string) {
	t.attack, t.needs, t.takes = append(t.attack, attack), append(t.needs, needs), append(t.takes, takes)
	t.given, t.finds = append(t.given, given), append(t.finds, finds)
}

// section says what can be found out from what left the sites in this study: what the
// method has added.
func (t *attacks) section(s *mixture.Setup) figure.Section {
	return figure.Section{ID: "attacks", Title: "What an attacker can do with it",
		Lead: "Whoever ran this study, and whoever gets hold of what the sites sent, can try this.\n\nThe command “parley attack " + s.Plan.Method.Name + "” attacks simulated studies, and prints what came of it. An attack that is not listed may find more where there is no noise; a bound on a private release holds against all.",
		Items: []figure.Item{{Table: &figure.Table{ID: "attacks", Title: "attacks", Columns: []figure.Column{
			{Name: "attack", Text: t.attack}, {Name: "the attacker needs", Text: t.needs}, {Name: "it takes", Text: t.takes},
			{Name: "given in this study", Text: t.given}, {Name: "it finds here", Text: t.finds}}}}}}
}

// found says what exact answers determine.
func found(given, takes int, what, otherwise string) string {
	if given >= takes {
		return what
	}
	return otherwise
}
