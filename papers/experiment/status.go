package experiment

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"parley/figure"
	"parley/internal/files"
	"parley/problem"
)

// How far a table or figure of a paper is repeated.
const (
	Whole   = "●" // as it was published, or as closely as open data allow, and checked
	Partly  = "◐" // in part, or with other data
	Missing = "○" // its data cannot be had
)

// Status is how far a table or figure is repeated.
type Status struct {
	Paper, Item string
	Mark        string
	By          []string // experiments; none of a diagram and of what cannot be repeated
	Why         string   // a sentence
}

// ReadStatus reads a table below the name of each paper: items, marks, reasons, and experiments.
func ReadStatus(page string) (all []Status) {
	paper := ""
	for line := range strings.Lines(page) {
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		switch name, heading := strings.CutPrefix(line, "## "); {
		case heading:
			paper = strings.TrimSpace(name)
		case len(cells) > 2 && cells[0] != "item":
			all = append(all, Status{paper, cells[0], cells[1], strings.Fields(strings.Join(cells[3:], "")), cells[2]})
		}
	}
	return all
}

// StatusPage is the name of the page with a line for each table and figure of the papers.
const StatusPage = "status.md"

// StatusTables are what the page has: how far all is repeated, paper by paper, and the published
// settings beside those of plans.
func StatusTables(all []Status, settings []Settings, experiments List) (tables []figure.Table, err error) {
	var marks []figure.Table
	for _, s := range all {
		if !slices.Contains([]string{Whole, Partly, Missing}, s.Mark) || s.Why == "" ||
			s.Mark == Missing && len(s.By) > 0 {
			return nil, problem.Problem{Where: s.Paper + ", " + s.Item,
				Hint: "●, ◐ or ○ with a reason; ○ has no experiment",
				What: fmt.Sprintf("the mark %q with %d experiments and reason %q", s.Mark, len(s.By), s.Why)}
		}
		if n := len(marks); n == 0 || marks[n-1].Title != s.Paper {
			marks = append(marks, figure.Table{ID: Slug(s.Paper), Title: s.Paper,
				Columns: figure.TextColumns("item", "", "reason", "section")})
		}
		var links []string
		for _, name := range s.By {
			x, err := experiments.Find(name)
			if err != nil {
				return nil, err
			}
			links = append(links, fmt.Sprintf("[%s](%s.md#%s)", x.Item, x.Paper, anchor(x.Item)))
		}
		marks[len(marks)-1].Add(s.Item, s.Mark, s.Why, strings.Join(links, ", "))
	}
	for _, s := range settings {
		marks = append(marks, s.Table())
	}
	return marks, nil
}

// WriteStatus writes the page into a folder.
func WriteStatus(dir string, all []Status, settings []Settings, experiments List) error {
	tables, err := StatusTables(all, settings, experiments)
	if err != nil {
		return err
	}
	r := &Record{Conclusion: Conclusion{Tables: tables}}
	page := "# Every table and figure of the papers\n\n" +
		Whole + " repeated as published, or as closely as open data allow, and checked; " + Partly +
		" in part, or with other data; " + Missing + " not, because its data cannot be had. " +
		"Below are the settings that the papers give, beside the defaults of plans, " +
		"which a test holds to them.\n" + r.Markdown()
	return files.Write(filepath.Join(dir, StatusPage), []byte(page))
}
