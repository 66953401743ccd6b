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
)

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
		w.Write([]string{p.Fit, strconv.Itoa(p.Subjects), epsilon, p.Measure, strconv.Itoa(p.N), number(p.Mean), number(p.SD), number(p.Low), number(p.High)})
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
		"No data were read. The noise is drawn anew for every simulation.\n", c.Repeats, c.Held, first, c.scoring.Baseline)
	for _, n := range c.Notes {
		fmt.Fprintln(w, "note:", n)
	}
	return err
}

// table has a row for each budget and number of subjects, with the references.
func (c *Curve) table() *figure.Table {
	t := &figure.Table{ID: "utility", Title: "What each budget leaves to learn", Columns: []figure.Column{{Name: "subjects at each site", Format: figure.Count}, {Name: "ε"}}}
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
