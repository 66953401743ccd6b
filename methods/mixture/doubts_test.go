package mixture

import (
	"strings"
	"testing"

	"parley/methods/mixture/gmm"
	"parley/methods/mixture/report"
	"parley/methods/mixture/sketch"
)

// What a report begins with is about precision only where nothing else speaks against the mixture. Its
// title, which is all that the terminal shows, has the reasons.
func TestDoubtsOfPrecisionAloneAreCalledThat(t *testing.T) {
	v := &view{imprecision: 2, fit: &sketch.Fit{}}
	v.Posterior = &gmm.Posterior{}
	const notFound = "component 2 was not found: its weight may be nothing, with a probability of 3 %"
	for _, c := range []struct {
		doubts []string
		title  string // its end
		first  string
	}{
		{nil, "", "The mixture agrees with what the sites released, as far"},
		{[]string{report.Imprecise(2)}, "less precise than its rows would allow", "The mixture agrees with what the sites released, but"},
		{[]string{report.Imprecise(2), notFound}, "Do not rely on this mixture: means may be 2.0 times as uncertain as all rows themselves would leave them; component 2 was not found", "The mixture is not to be relied on"},
		{[]string{notFound}, "Do not rely on this mixture: component 2 was not found", "The mixture is not to be relied on"},
	} {
		v.Doubted = c.doubts
		title := ""
		if n := v.doubtsNote(); n != nil {
			title = n.Title
			for _, d := range c.doubts {
				if !strings.Contains(n.Text, d) {
					t.Errorf("%q does not say %q", n.Text, d)
				}
			}
		}
		if (title == "") != (c.title == "") || !strings.HasSuffix(title, c.title) {
			t.Errorf("%q: title %q, want %q", c.doubts, title, c.title)
		}
		if got := v.sure(); !strings.HasPrefix(got, c.first) {
			t.Errorf("%q: %q, want %q first", c.doubts, got, c.first)
		}
	}
}
