package main

import (
	"testing"

	"parley/papers/experiment"
	"parley/study"
)

// A plan that says nothing of them has the settings of the paper, or the table says which
// differ and why.
func TestPlansHaveThePublishedSettings(t *testing.T) {
	for _, s := range settings {
		if err := s.Check(); err != nil {
			t.Errorf("%s: %v", s.Of, err)
		}
	}
	// The check itself can fail.
	plan := func() (*study.Plan, error) {
		p := &study.Plan{}
		p.Method.Options = map[string]any{"rounds": 3, "update": map[string]any{"steps": 25}}
		return p, nil
	}
	for _, c := range []struct {
		experiment.Setting
		right bool
	}{
		{experiment.Setting{Says: "steps", Published: 25, Key: "update.steps"}, true},
		{experiment.Setting{Says: "steps", Published: 20, Key: "update.steps"}, false},
		{experiment.Setting{Says: "steps", Published: 20, Key: "update.steps", Ours: 25, Why: "it is faster"}, true},
		{experiment.Setting{Says: "steps", Published: 20, Key: "update.steps", Ours: 25}, false},
		{experiment.Setting{Says: "steps", Published: 25, Key: "update.steps", Why: "for nothing"}, false},
		{experiment.Setting{Says: "rate", Published: 1, Key: "update.rate"}, false},
		{experiment.Setting{Says: "rate", Published: 1}, false},
		{experiment.Setting{Says: "rate", Published: 1, Why: "tests say it"}, true},
		{experiment.Setting{Says: "rounds", Key: "rounds"}, false},
	} {
		if err := (experiment.Settings{Item: "Table 1", Plan: plan,
			Lines: []experiment.Setting{c.Setting}}).Check(); (err == nil) != c.right {
			t.Errorf("%+v: %v", c.Setting, err)
		}
	}
}
