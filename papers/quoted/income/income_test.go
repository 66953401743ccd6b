package income

import (
	"math"
	"os"
	"strings"
	"testing"

	"parley/method"
	"parley/methods/published/dppvi"
	"parley/methods/regression"
	"parley/study"
)

// Every study of the example is a plan, and those without privacy have none.
func TestExampleStudiesArePlans(t *testing.T) {
	text, err := os.ReadFile("../../../examples/income/plan.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range exampleStudies {
		changed, err := with(string(text), s.lines)
		if err != nil {
			t.Fatal(s.name, err)
		}
		p, err := study.Parse(s.name, []byte(changed), method.Registry{regression.Method{}, dppvi.Method{}})
		if err != nil {
			t.Fatal(s.name, err)
		}
		if p.Privacy.Differential() != s.private {
			t.Errorf("%s: privacy %+v", s.name, p.Privacy)
		}
	}
	if _, err := with("a b a", []string{"a", "c"}); err == nil || !strings.Contains(err.Error(), "2 times") {
		t.Errorf("a line that is there twice: %v", err)
	}
}

func TestWhatIntervalsHold(t *testing.T) {
	truth := fit{mean: []float64{0, 0, 0, 0}}
	f := fit{mean: []float64{0, 1.6, 1.7, -1.7}, sd: []float64{1, 1, 1, 2}}
	if got := holds(f, truth); got != 0.75 {
		t.Errorf("%v of the intervals hold, want 0.75", got)
	}
	// Means 1 and 3: standard deviation √2, in stated ones of 1 and √7, whose root mean square is 2.
	got := between([]fit{{mean: []float64{1}, sd: []float64{1}}, {mean: []float64{3}, sd: []float64{math.Sqrt(7)}}})
	if math.Abs(got[0]-math.Sqrt2/2) > 1e-15 {
		t.Errorf("spread %v, want %v", got[0], math.Sqrt2/2)
	}
	names := []string{"a", "b"}
	text := weight([]fit{{names: names, mean: []float64{1, 3}, sd: []float64{1, 1}},
		{names: names, mean: []float64{2, 3}, sd: []float64{1, 1}}}, names)
	if text != "−2.00 to −1.00" {
		t.Errorf("%q", text)
	}
	if text := weight([]fit{truth}, []string{"c"}); text != "no weight c" {
		t.Errorf("a weight that is not there: %q", text)
	}
}
