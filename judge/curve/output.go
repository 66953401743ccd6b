package curve

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"parley/figure"
	"parley/internal/atomicfile"
	"parley/judge/trials"
)

// write leaves metrics.json, utility.csv and the report with its pictures.
func (c *Curve) write(dir string) error {
	if err := trials.WriteJSON(filepath.Join(dir, "metrics.json"), c); err != nil {
		return err
	}
	if err := atomicfile.Stream(filepath.Join(dir, "utility.csv"), c.csv); err != nil {
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
	subjects, fit := figure.Column{Name: "subjects at each site", Format: figure.Count}, figure.Column{Name: "ε"}
	measures := c.scoring.measures()
	columns := make([]figure.Column, len(measures))
	for i, m := range measures {
		columns[i] = figure.Column{Name: m.Heading, Numbers: figure.Numbers{}}
		if m.Percent {
			columns[i].Format = figure.Percent
		}
	}
	spread := figure.Column{Name: "± (" + measures[0].Heading + ")", Numbers: figure.Numbers{}}
	row := func(n int, name, of string, epsilon float64) {
		subjects.Numbers, fit.Text = append(subjects.Numbers, float64(n)), append(fit.Text, name)
		sd := math.NaN()
		for i, m := range measures {
			x := math.NaN()
			if p := c.Find(of, n, epsilon, m.Name); p != nil {
				x = p.Mean
				if i == 0 {
					sd = p.SD
				}
			}
			columns[i].Numbers = append(columns[i].Numbers, x)
		}
		spread.Numbers = append(spread.Numbers, sd)
	}
	for _, n := range c.Subjects {
		row(n, c.scoring.Baseline, c.scoring.Baseline, 0)
		for _, e := range c.Epsilons {
			row(n, strconv.FormatFloat(e, 'g', -1, 64), Private, e)
		}
		row(n, Open, Open, 0)
	}
	t := &figure.Table{ID: "utility", Title: "What each budget leaves to learn", Columns: []figure.Column{subjects, fit, columns[0], spread}}
	for i, col := range columns[1:] {
		for _, x := range col.Numbers { // what nobody measured has no column
			if !math.IsNaN(x) {
				t.Columns = append(t.Columns, columns[i+1])
				break
			}
		}
	}
	return t
}
