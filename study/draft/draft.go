// Package draft writes a first plan for the data in a folder: its sites, views and
// features with their types, the codes for missing values that it suspects, and a
// method with the reason for it. People read the plan and change it.
//
// A plan is public, so a draft says of the data only what a plan has to: names of
// columns, levels that at least [dataset.SmallCell] subjects have, and suspected codes.
// It takes no range from them, because the range of a private study must not depend
// on data.
package draft

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"parley/dataset"
	"parley/problem"
	"parley/study"
)

const (
	maxLevels  = 20 // of a category
	maxOutcome = 10 // levels of an outcome
	simulated  = 3  // sites over which one data set is spread
	maxFactors = 5  // of a first look
)

// absent are words, in lower case, that people write for a value that was not measured.
var absent = map[string]bool{"?": true, "-": true, "--": true, ".": true, "n/a": true, "#n/a": true, "#na": true, "n.a.": true, "nd": true, "n.d.": true, "nk": true,
	"none": true, "missing": true, "unknown": true, "not done": true, "not known": true, "not measured": true}

// Options are what a person may say beforehand.
type Options struct {
	Name    string   // of the study; from the folder if empty
	Outcome string   // column of the subjects tables to predict; "" for none
	Missing []string // codes for missing values that are known
}

// Draft is a first plan, and what led to it.
type Draft struct {
	Name     string    `json:"name"`
	Sites    []site    `json:"sites"`
	Data     string    `json:"data,omitempty"` // one data set that is spread over simulated sites
	Missing  []string  `json:"missing"`        // words and known codes, in every view
	Views    []view    `json:"views"`
	Subjects []string  `json:"subjects"`
	LeftOut  []leftOut `json:"left_out"`
	// Candidates are columns of all subjects tables that could be outcomes.
	Candidates []candidate `json:"outcome_candidates"`
	Outcome    *candidate  `json:"outcome,omitempty"`
	Method     string      `json:"method"`
	Latent     int         `json:"latent,omitempty"` // factors, of mvppca
	Reason     string      `json:"reason"`

	mayBeKinds map[string]bool // numbers by name that take a few whole values at every site
}

// site is a folder of data.
type site struct {
	Name     string   `json:"name"`
	Folder   string   `json:"folder,omitempty"` // "" if it is simulated
	Subjects int64    `json:"subjects,omitempty"`
	Lacks    []string `json:"lacks"` // views

	dir      *dataset.Dir
	profiles []dataset.ColumnProfile
}

// view is a view that some site has, with the features that all sites have that have it.
type view struct {
	Name     string          `json:"name"`
	Features []study.Feature `json:"features"`
}

// leftOut is a column that is not in the plan.
type leftOut struct {
	View   string `json:"view,omitempty"` // "" for a column of the subjects tables
	Column string `json:"column"`
	Why    string `json:"why"`
}

// candidate is a column that may be an outcome: one of a few levels, or numbers.
type candidate struct {
	Column string   `json:"column"`
	Levels []string `json:"levels,omitempty"` // none for numbers
}

// Look reads the data below a folder, which is one data set or holds one folder for
// each site, and drafts a plan. It is an error if the data cannot be read, or if
// nothing in them can be modelled.
func Look(ctx context.Context, path string, o Options) (*Draft, error) {
	d := &Draft{Name: o.Name, Missing: slices.Clone(o.Missing), Views: []view{}, Subjects: []string{}, LeftOut: []leftOut{}, Candidates: []candidate{}}
	if d.Missing == nil {
		d.Missing = []string{}
	}
	if d.Name == "" {
		full, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		d.Name = siteName(filepath.Base(full))
	}
	if !study.IsName(d.Name) {
		return nil, problem.Problem{What: fmt.Sprintf("%q cannot be the name of a study", d.Name), Hint: "--name with lower-case letters, digits and hyphens"}
	}
	if err := d.findSites(path); err != nil {
		return nil, err
	}
	var wrong problem.List
	for i := range d.Sites {
		s := &d.Sites[i]
		err := s.read(ctx)
		if list := (problem.List)(nil); errors.As(err, &list) {
			wrong = append(wrong, list...)
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", s.Folder, err)
		}
	}
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	d.findSubjects()
	if err := d.choose(o.Outcome); err != nil {
		return nil, err
	}
	d.findViews()
	if err := d.suspect(ctx); err != nil {
		return nil, err
	}
	return d, d.settle()
}

// findSites finds the data sets: the folder itself, or those in it.
func (d *Draft) findSites(path string) error {
	if len(dataset.Files(path)) > 0 {
		d.Data = path
		d.Sites = []site{{Name: "all", Folder: path}}
		return nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return problem.Problem{File: path, What: "this folder cannot be read", Hint: "give a folder of data, or one that holds a folder for each site"}
	}
	taken := map[string]string{}
	for _, e := range entries {
		folder := filepath.Join(path, e.Name())
		if strings.HasPrefix(e.Name(), ".") || len(dataset.Files(folder)) == 0 || !isDir(folder) {
			continue
		}
		name := siteName(e.Name())
		if !study.IsName(name) || taken[name] != "" {
			return problem.Problem{File: folder, What: "its name is not that of a site, or too much like that of " + taken[name], Hint: "name it with lower-case letters, digits and hyphens"}
		}
		taken[name] = folder
		d.Sites = append(d.Sites, site{Name: name, Folder: folder, Lacks: []string{}})
	}
	slices.SortFunc(d.Sites, func(a, b site) int { return strings.Compare(a.Name, b.Name) })
	if len(d.Sites) == 0 {
		return problem.Problem{File: path, What: "holds no data, and no folder in it does",
			Hint: "a data set is a folder with subjects.csv and one view_NAME.csv for each view, or long.csv; make one for each site"}
	}
	return nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// siteName turns the name of a folder into that of a site.
func siteName(folder string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(folder))
	return strings.Trim(name[:min(len(name), 40)], "-")
}

func (s *site) read(ctx context.Context) (err error) {
	if s.dir, err = dataset.Open(ctx, s.Folder, dataset.Options{}); err != nil {
		return err
	}
	s.profiles, err = s.dir.Profile(ctx)
	return err
}

// column is what all sites together have of a column.
type column struct {
	dataset.ColumnProfile
	sites int // that have it
	words map[string]int64
}

// columns merges the sites' profiles, in the order in which columns first appear.
func (d *Draft) columns() (all []*column) {
	at := map[[2]string]*column{}
	for i := range d.Sites {
		for _, p := range d.Sites[i].profiles {
			key := [2]string{p.View, p.Name}
			c := at[key]
			if c == nil {
				c = &column{ColumnProfile: dataset.ColumnProfile{View: p.View, Name: p.Name}, words: map[string]int64{}}
				at[key], all = c, append(all, c)
			}
			c.sites++
			c.Numbers, c.Missing, c.Commas, c.Many = c.Numbers+p.Numbers, c.Missing+p.Missing, c.Commas+p.Commas, c.Many || p.Many
			for _, w := range p.Words {
				c.words[w.Name] += w.Subjects
			}
		}
	}
	return all
}

// findSubjects lists the columns of the subjects tables that describe results: those of
// every site that have a few levels. Others may be names of people.
func (d *Draft) findSubjects() {
	for _, c := range d.columns() {
		if c.View != "" {
			continue
		}
		levels, rare := c.levels(d.Missing)
		numbers := c.Numbers > 0 && c.Numbers == c.observed()
		switch {
		case c.sites < len(d.Sites):
			d.leave(c, "some site's subjects table does not have it")
			continue
		case c.observed() == 0:
			d.leave(c, "it has no value")
			continue
		case numbers && (c.Many || len(c.words) > maxOutcome):
			d.Candidates = append(d.Candidates, candidate{Column: c.Name})
			d.Subjects = append(d.Subjects, c.Name)
			continue
		case c.Many || len(levels) > maxLevels || len(levels) == 0:
			d.leave(c, "it has too many values to describe results")
			continue
		}
		d.Subjects = append(d.Subjects, c.Name)
		if !rare && len(levels) >= 2 && len(levels) <= maxOutcome {
			d.Candidates = append(d.Candidates, candidate{c.Name, levels})
		}
	}
}

// observed counts the cells that are not missing.
func (c *column) observed() (n int64) {
	for _, count := range c.words {
		n += count
	}
	if c.View == "" { // whose words are all cells
		return n
	}
	return n + c.Numbers
}

// levels returns the words of a column that enough subjects have, without those that
// stand for missing values, and whether there are others.
func (c *column) levels(missing []string) (levels []string, rare bool) {
	for _, w := range slices.Sorted(maps.Keys(c.words)) {
		switch {
		case absent[strings.ToLower(w)] || slices.Contains(missing, w):
		case c.words[w] < dataset.SmallCell:
			rare = true
		default:
			levels = append(levels, w)
		}
	}
	return levels, rare
}

func (d *Draft) leave(c *column, why string) {
	d.LeftOut = append(d.LeftOut, leftOut{c.View, c.Name, why})
}

// choose settles the method: with an outcome a regression, else factors.
func (d *Draft) choose(outcome string) error {
	d.Method = "mvppca"
	if outcome == "" {
		return nil
	}
	d.Method = "pvi"
	var names []string
	for i, c := range d.Candidates {
		if names = append(names, c.Column); c.Column == outcome {
			d.Outcome = &d.Candidates[i]
		}
	}
	if d.Outcome == nil {
		hint := "an outcome is a column of every site's subjects table, of numbers or with 2 to 10 levels that three subjects or more have"
		if len(names) > 0 {
			hint += "; here: " + strings.Join(names, ", ")
		}
		return problem.Problem{Where: "--outcome", What: fmt.Sprintf("%s cannot be an outcome", outcome), Hint: hint}
	}
	return nil
}

// findViews lists the views with their features.
func (d *Draft) findViews() {
	having := map[string]int{} // sites
	for i := range d.Sites {
		for _, v := range d.Sites[i].dir.Schema().Views {
			having[v.Name]++
		}
	}
	owner := map[string]string{}
	for _, name := range d.Subjects {
		owner[name] = "the subjects table"
	}
	for _, c := range d.columns() {
		if c.View == "" {
			continue
		}
		f, why := d.feature(c)
		if c.sites < having[c.View] {
			why = "a site that has the view does not have it"
		} else if other := owner[c.Name]; other != "" {
			why = "it is a column of " + other + " too"
		}
		if why != "" {
			d.leave(c, why)
			continue
		}
		owner[c.Name] = "view " + c.View
		at := slices.IndexFunc(d.Views, func(v view) bool { return v.Name == c.View })
		if at < 0 {
			d.Views, at = append(d.Views, view{Name: c.View}), len(d.Views)
		}
		d.Views[at].Features = append(d.Views[at].Features, f)
	}
	slices.SortFunc(d.Views, func(a, b view) int { return strings.Compare(a.Name, b.Name) })
}

// feature says what a column is, or why it is left out.
func (d *Draft) feature(c *column) (f study.Feature, why string) {
	f = study.Feature{Name: c.Name, Kind: study.Number}
	var words int64
	for w, n := range c.words {
		switch {
		case slices.Contains(d.Missing, w):
		case absent[strings.ToLower(w)]:
			d.Missing = append(d.Missing, w)
		default:
			words += n
		}
	}
	slices.Sort(d.Missing)
	levels, rare := c.levels(d.Missing)
	switch {
	case c.Commas > 0:
		return f, "its numbers have decimal commas; write decimal points"
	case words == 0 && c.Numbers == 0 && !c.Many:
		return f, "it has no value"
	case words == 0 && !c.Many:
		return f, ""
	case c.Numbers > 0:
		return f, fmt.Sprintf("%d of its cells are words and %d are numbers; mend them, or give a word that stands for a missing value with --missing", words, c.Numbers)
	case c.Many || len(levels) > maxLevels:
		return f, "it is text with many values"
	case len(levels) < 2:
		return f, fmt.Sprintf("it is text without two values that %d subjects have", dataset.SmallCell)
	case d.Method != "pvi":
		return f, fmt.Sprintf("it is a category (%s), and %s models numbers", strings.Join(levels, ", "), d.Method)
	}
	f.Kind, f.Levels = study.Category, levels
	if rare {
		f.Other = "other"
		if !slices.Contains(levels, f.Other) {
			f.Levels = append(f.Levels, f.Other)
		}
	}
	return f, ""
}
