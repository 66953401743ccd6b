package judge

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"parley/figure"
	"parley/internal/files"
	"parley/report"
)

// page is the curve for people.
func (c *Curve) page() *report.Report {
	page := &report.Report{
		Title: c.Study + ": what privacy leaves to learn", Subtitle: c.question, Headline: c.headline(),
		Meta: []figure.Fact{{Name: "Plan", Value: c.Plan[:12]}, {Name: "Method", Value: c.method},
			{Name: "Made by", Value: c.Program}},
	}
	page.Sections = append(page.Sections,
		figure.Section{ID: "curve", Title: c.scoring.Measures[0].Title + " against budget",
			Items: c.pictures(c.scoring.pictures)},
		figure.Section{ID: "simulation", Title: "What was simulated", Lead: c.protocol(),
			Items: []figure.Item{{Note: &figure.Note{
				Title: "A forecast and no promise", Warning: true,
				Text: "Nobody's data were read, and no privacy was spent. The subjects were drawn from the method's " +
					"own model, which real data never follow exactly: expect a real study to learn less. Compare " +
					"budgets, numbers of subjects and plans by it, not the last digit.",
			}}}})
	rest := figure.Section{ID: "more", Title: "More to look at", Items: c.pictures(c.scoring.further)}
	rest.Items = append(rest.Items, figure.Item{Table: c.table()})
	for _, n := range c.Notes {
		rest.Items = append(rest.Items, figure.Item{Note: &figure.Note{Title: "Note", Text: n}})
	}
	page.Sections = append(page.Sections, rest)
	return page
}

// headline says what the plan's own budget leaves, at every number of subjects.
func (c *Curve) headline() []figure.Fact {
	facts := []figure.Fact{{Name: fmt.Sprintf("the plan's total, δ %g, for one %s", c.Total.Delta, c.Unit),
		Value: fmt.Sprintf("ε %g", c.Total.Epsilon)}}
	for _, n := range c.Subjects {
		if p := c.Find(Private, n, c.Total.Epsilon, Gain); p != nil {
			facts = append(facts, figure.Fact{Name: "learned with " + grouped(n) + " subjects at each site",
				Value: fmt.Sprintf("%.0f %%", 100*p.Mean)})
		}
	}
	return facts
}

func (c *Curve) protocol() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s drew %d populations from the plan alone: its views, features, public ranges and %d sites, "+
		"with %.0f %% of %s being noise that nothing explains. ",
		c.method, c.Repeats, c.Sites, 100*c.Noise, c.scoring.noise)
	fmt.Fprintf(&b, "Of each population it drew the subjects of every site, and %d more who take part in no study.\n\n",
		c.Held)
	fmt.Fprintf(&b, "Each point is a whole study of such subjects, with the plan's own rounds, gates and ledgers and "+
		"a total of ε at δ = %g for one %s (%s), all else as the plan says. ", c.Total.Delta, c.Unit, c.Adjacency)
	b.WriteString("The fit is then asked about those who took no part. “Without privacy” is the same model fitted to " +
		"all subjects in one place without any noise; “" + c.scoring.Baseline +
		"” predicts the same for everybody.\n\n")
	b.WriteString(c.scoring.About + "\n\n")
	b.WriteString("Populations and subjects follow from the plan's seed. The noise does not: it is that of a real " +
		"study, from the operating system's secure source, and another simulation draws other noise.")
	return b.String()
}

// grouped is a number with its digits in groups of three.
func grouped(n int) string { return figure.Count.Text(float64(n)) }

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
	l.Series = append(l.Series, figure.Line{Name: name, X: figure.Numbers{first, last}, Y: figure.Numbers{y, y},
		Reference: true})
}

// reference is a reference with the largest number of subjects.
func (c *Curve) reference(l *figure.Lines, fit string, of picture) {
	if p := c.Find(fit, c.Subjects[len(c.Subjects)-1], 0, of.measure); p != nil {
		c.level(l, fit, of.times*(p.Mean-of.less))
	}
}

const band = "Lines are means over the simulated populations, bands reach from the best to the worst of them. "

// pictures draws what there are numbers for. The first of all explains itself.
func (c *Curve) pictures(of []picture) []figure.Item {
	var items []figure.Item
	for i, p := range of {
		if !c.has(p.measure) {
			continue
		}
		l := c.lines(p.measure, p.axis, p.times, p.less)
		for _, to := range p.levels {
			c.level(&l, to.name, to.at)
		}
		if p.levels == nil {
			c.reference(&l, c.scoring.Baseline, p)
			c.reference(&l, Open, p)
		}
		caption := p.caption + band
		if i == 0 && p.measure == c.scoring.Measures[0].Name {
			caption = p.caption + "A line for each number of subjects at a site. " + band +
				"Dashed: predicting " + c.scoring.Baseline + ", which needs no study; and the same model without " +
				"privacy, with " + grouped(c.Subjects[len(c.Subjects)-1]) +
				" subjects at each site. Where a line nears the latter, a larger budget buys nothing; where it is " +
				"near the former, or beyond it, the study is not worth its budget."
		}
		items = append(items, figure.Item{Figure: &figure.Figure{ID: p.id, Title: p.title, Caption: caption,
			Alt: p.text, Chart: l}})
	}
	return items
}

// has says whether a measure was made of any private fit.
func (c *Curve) has(measure string) bool {
	return slices.ContainsFunc(c.Points, func(p Point) bool { return p.Fit == Private && p.Measure == measure })
}

// write leaves metrics.json, utility.csv and the report with its pictures.
func (c *Curve) write(dir string) error {
	if err := files.WriteJSON(filepath.Join(dir, "metrics.json"), c); err != nil {
		return err
	}
	if err := files.Stream(filepath.Join(dir, "utility.csv"), c.csv); err != nil {
		return err
	}
	return c.page().WriteFiles(dir)
}

// csv writes a line for each point.
func (c *Curve) csv(to io.Writer) error {
	number := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
	w := csv.NewWriter(to)
	w.Write([]string{"fit", "subjects", "epsilon", "measure", "n", "mean", "sd", "low", "high"})
	for _, p := range c.Points {
		epsilon := ""
		if p.Fit == Private {
			epsilon = number(p.Epsilon)
		}
		w.Write([]string{p.Fit, strconv.Itoa(p.Subjects), epsilon, p.Measure, strconv.Itoa(p.N), number(p.Mean),
			number(p.SD), number(p.Low), number(p.High)})
	}
	w.Flush()
	return w.Error()
}

// Print writes the table and where it came from.
func (c *Curve) Print(w io.Writer) error {
	if err := c.table().Text(w); err != nil {
		return err
	}
	first := c.scoring.Measures[0].Heading
	var units []string
	for _, m := range c.scoring.Measures {
		if m.Unit != "" {
			units = append(units, m.Heading+" in "+m.Unit)
		}
	}
	_, err := fmt.Fprintf(w, "\nMeans of %d simulated studies each, scored on %d subjects who had no part in them.\n"+
		"Units: "+strings.Join(units, ", ")+".\n"+
		"Learned is the way of the %s from that of %s to that without privacy.\n"+
		"No data were read. The noise is drawn anew for every simulation.\n", c.Repeats, c.Held, first,
		c.scoring.Baseline)
	for _, n := range c.Notes {
		fmt.Fprintln(w, "note:", n)
	}
	return err
}

// table has a row for each budget and number of subjects, with the references.
func (c *Curve) table() *figure.Table {
	t := &figure.Table{ID: "utility", Title: "What each budget leaves to learn",
		Columns: []figure.Column{{Name: "subjects at each site", Format: figure.Count}, {Name: "ε"}}}
	measures := c.scoring.measures()
	for i, m := range measures {
		column := figure.Column{Name: m.Heading, Numbers: figure.Numbers{}}
		if m.Percent {
			column.Format = figure.Percent
		}
		if t.Columns = append(t.Columns, column); i == 0 {
			t.Columns = append(t.Columns, figure.Column{Name: "± (" + m.Heading + ")", Numbers: figure.Numbers{}})
		}
	}
	row := func(n int, name, of string, epsilon float64) {
		cells := []any{n, name}
		for i, m := range measures {
			x, sd := math.NaN(), math.NaN()
			if p := c.Find(of, n, epsilon, m.Name); p != nil {
				x, sd = p.Mean, p.SD
			}
			if cells = append(cells, x); i == 0 {
				cells = append(cells, sd)
			}
		}
		t.Add(cells...)
	}
	for _, n := range c.Subjects {
		row(n, c.scoring.Baseline, c.scoring.Baseline, 0)
		for _, e := range c.Epsilons {
			row(n, strconv.FormatFloat(e, 'g', -1, 64), Private, e)
		}
		row(n, Open, Open, 0)
	}
	fixed := 4 // of what nobody measured beside these there is no column
	t.Columns = append(t.Columns[:fixed], slices.DeleteFunc(t.Columns[fixed:], func(c figure.Column) bool {
		return !slices.ContainsFunc(c.Numbers, func(x float64) bool { return !math.IsNaN(x) })
	})...)
	return t
}
