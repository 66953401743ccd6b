package utility

import (
	"fmt"
	"strconv"
	"strings"

	"parley/figure"
	"parley/report"
)

// page is the curve for people.
func (c *Curve) page() *report.Report {
	page := &report.Report{
		Title: c.Study + ": what privacy leaves to learn", Subtitle: c.question, Headline: c.headline(),
		Meta: []figure.Fact{{Name: "Plan", Value: c.Plan[:12]}, {Name: "Method", Value: c.method}, {Name: "Made by", Value: c.Program}},
	}
	page.Sections = append(page.Sections,
		figure.Section{ID: "curve", Title: "Error against budget", Items: c.errors()},
		figure.Section{ID: "simulation", Title: "What was simulated", Lead: c.protocol(), Items: []figure.Item{{Note: &figure.Note{
			Title: "A forecast and no promise", Warning: true,
			Text: "Nobody's data were read, and no privacy was spent. The subjects were drawn from the method's own model, which real data never follow exactly: expect a real study to learn less. " +
				"Compare budgets, numbers of subjects and plans by it, not the last digit.",
		}}}})
	rest := figure.Section{ID: "more", Title: "More to look at", Items: c.more()}
	rest.Items = append(rest.Items, figure.Item{Table: c.table()})
	for _, n := range c.Notes {
		rest.Items = append(rest.Items, figure.Item{Note: &figure.Note{Title: "Note", Text: n}})
	}
	page.Sections = append(page.Sections, rest)
	return page
}

// headline says what the plan's own budget leaves, at every number of subjects.
func (c *Curve) headline() []figure.Fact {
	facts := []figure.Fact{{Name: fmt.Sprintf("the plan's total, δ %g, for one %s", c.Total.Delta, c.Unit), Value: fmt.Sprintf("ε %g", c.Total.Epsilon)}}
	for _, n := range c.Subjects {
		if p := c.Find(Private, n, c.Total.Epsilon, Gain); p != nil {
			facts = append(facts, figure.Fact{Name: "learned with " + grouped(n) + " subjects at each site", Value: fmt.Sprintf("%.0f %%", 100*p.Mean)})
		}
	}
	return facts
}

func (c *Curve) protocol() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s drew %d populations from the plan alone: its views, features, public ranges and %d sites, with %.0f %% of every feature's variance being noise that nothing explains. ",
		c.method, c.Repeats, c.Sites, 100*c.Noise)
	fmt.Fprintf(&b, "Of each population it drew the subjects of every site, and %d more who take part in no study.\n\n", c.Held)
	fmt.Fprintf(&b, "Each point is a whole study of such subjects, with the plan's own rounds, gates and ledgers and a total of ε at δ = %g for one %s (%s), all else as the plan says. ", c.Total.Delta, c.Unit, c.Adjacency)
	b.WriteString("The fit is then asked about those who took no part. “Without privacy” is the same model fitted to all subjects in one place without any noise; “the mean” predicts the mean.\n\n")
	b.WriteString("Errors are mean absolute errors of describing those held out by the factors seen in them, in parts of a feature's range among them: 0.1 is a tenth of the range.\n\n")
	b.WriteString("Populations and subjects follow from the plan's seed. The noise does not: it is that of a real study, from the operating system's secure source, and another simulation draws other noise.")
	return b.String()
}

// grouped writes a number with thin spaces between thousands.
func grouped(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}

var epsilonAxis = figure.Axis{Label: "ε of the plan's total", Log: true}

// lines draws one measure of the private fits against ε.
func (c *Curve) lines(measure string, y figure.Axis, times, less float64) figure.Lines {
	l := figure.Lines{X: epsilonAxis, Y: y}
	for _, n := range c.Subjects {
		line := figure.Line{Name: grouped(n) + " a site"}
		for _, e := range c.Epsilons {
			if p := c.Find(Private, n, e, measure); p != nil {
				line.X, line.Y = append(line.X, e), append(line.Y, times*(p.Mean-less))
				line.Low, line.High = append(line.Low, times*(p.Low-less)), append(line.High, times*(p.High-less))
			}
		}
		l.Series = append(l.Series, line)
	}
	return l
}

// level adds a horizontal line to compare with.
func (c *Curve) level(l *figure.Lines, name string, y float64) {
	first, last := c.Epsilons[0], c.Epsilons[len(c.Epsilons)-1]
	l.Series = append(l.Series, figure.Line{Name: name, X: figure.Numbers{first, last}, Y: figure.Numbers{y, y}, Reference: true})
}

// reference is a reference with the largest number of subjects.
func (c *Curve) reference(l *figure.Lines, fit, measure string) {
	if p := c.Find(fit, c.Subjects[len(c.Subjects)-1], 0, measure); p != nil {
		c.level(l, fit, p.Mean)
	}
}

const band = "Lines are means over the simulated populations, bands reach from the best to the worst of them. "

func (c *Curve) errors() []figure.Item {
	l := c.lines(Error, figure.Axis{Label: "mean absolute error (parts of a feature's range)", Log: true}, 1, 0)
	c.reference(&l, Mean, Error)
	c.reference(&l, Open, Error)
	items := []figure.Item{{Figure: &figure.Figure{ID: "error", Title: "Error on subjects who took no part",
		Caption: "Lower is better; both axes are logarithmic. A line for each number of subjects at a site. " + band +
			"Dashed: predicting the mean, which needs no study; and the same model without privacy, with " + grouped(c.Subjects[len(c.Subjects)-1]) + " subjects at each site. Where a line nears the lower one, a larger budget buys nothing; where it is near or above the upper one, the study is not worth its budget.",
		Alt: "Error of private studies against ε, one line for each number of subjects, between the error of the mean and that without privacy.", Chart: l}}}
	if c.has(Gain) {
		l := c.lines(Gain, figure.Axis{Label: "learned, of what there is to learn (%)"}, 100, 0)
		c.level(&l, Mean, 0)
		c.level(&l, Open, 100)
		items = append(items, figure.Item{Figure: &figure.Figure{ID: "learned", Title: "How much of it is learned",
			Caption: "The same as a share: 0 is no better than predicting the mean, 100 as good as without privacy with as many subjects. " + band,
			Alt:     "Share of what can be learned that private studies learn, against ε, one line for each number of subjects.", Chart: l}})
	}
	return items
}

func (c *Curve) more() []figure.Item {
	var items []figure.Item
	if c.has(ErrorHidden) {
		l := c.lines(ErrorHidden, figure.Axis{Label: "mean absolute error (parts of a feature's range)", Log: true}, 1, 0)
		c.reference(&l, Mean, ErrorHidden)
		c.reference(&l, Open, ErrorHidden)
		items = append(items, figure.Item{Figure: &figure.Figure{ID: "hidden", Title: "Filling in a view that was hidden",
			Caption: "Each view was hidden in turn from those held out, and predicted from their other views. Lower is better. " + band,
			Alt:     "Error of hidden views against ε, one line for each number of subjects.", Chart: l}})
	}
	if c.has(Coverage) {
		l := c.lines(Coverage, figure.Axis{Label: fmt.Sprintf("coverage − %.0f %%, in percentage points", 100*Level)}, 100, Level)
		c.level(&l, "as promised", 0)
		items = append(items, figure.Item{Figure: &figure.Figure{ID: "coverage", Title: fmt.Sprintf("Do the %.0f %% intervals hold what they promise?", 100*Level),
			Caption: fmt.Sprintf("Of all hidden values, %.0f in 100 should lie inside their predictive intervals. Below zero the intervals promise too much, above it they are too wide. ", 100*Level) + band,
			Alt:     "Coverage of predictive intervals against ε as the difference from the level, one line for each number of subjects.", Chart: l}})
	}
	return items
}

// has says whether a measure was made of any private fit.
func (c *Curve) has(measure string) bool {
	for _, p := range c.Points {
		if p.Fit == Private && p.Measure == measure {
			return true
		}
	}
	return false
}
