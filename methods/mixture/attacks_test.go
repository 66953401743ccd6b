package mixture

import (
	"fmt"
	"testing"

	"parley/method"
	"parley/study"
)

// Whatever a plan says of sums, it is its features that are attacked, in
// studies that can be run.
func TestStudiesOfTheVictimsOfAnyPlan(t *testing.T) {
	for text, privacy := range map[string]string{
		"components: 2, sketch: {frequencies: 70, scale: 0.2}": "{protection: none}",
		"components: 2":                      "{protection: none}",
		"components: 2, prior: {freedom: 9}": "{protection: none}",
	} {
		p := parsePlan(t, fmt.Sprintf("parley: 1\nname: any\nsites: [a]\nviews: [{name: v, features: [{name: x, range: [-8, 8]}, {name: y, range: [0, 1]}, {name: z, range: [0, 1]}]}]\nsubjects: [sick]\nmethod: {name: graffl, %s}\nprivacy: %s\n", text, privacy))
		given := p.Method.Options.(*Options)
		var s study.Plan
		_, err := NewAttacker(t.Context(), Method{}, nil, method.Target{Plan: p}, func(*study.Plan) (*Options, error) { return given, nil }, func(v *Victims) error {
			own, err := victimsStudy(v, NoProtection)
			if err != nil || own.Prior.Dim() != 3 || own.Prior.Nu != given.Prior.Freedom || own.Of.Count() != given.Sketch.Frequencies {
				t.Errorf("%s: %+v, %v", text, own, err)
				return nil
			}
			s = *own.Plan
			return nil
		})
		if err == nil || err.Error() != "site a has no data" || s.Privacy.Differential() || len(s.Subjects) > 0 {
			t.Errorf("%s: %v, %+v", text, err, s)
		}
	}
}
