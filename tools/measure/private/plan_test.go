package private

import (
	"strings"
	"testing"

	"parley/study"
)

func TestPlansOfCurves(t *testing.T) {
	text, err := curvePlan("8,8,6", 3)
	if err != nil {
		t.Fatal(err)
	}
	p, err := study.Parse("plan", []byte(text), methods)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Views) != 3 || len(p.Views[2].Features) != 6 || len(p.Sites) != 3 || p.Privacy.Total.Delta != delta {
		t.Errorf("the plan is\n%s", text)
	}
	for sizes, want := range map[string]string{"8,": "no number", "0": "no number", "1": "latent"} {
		if _, err := curvePlan(sizes, 3); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", sizes, err)
		}
	}
}
