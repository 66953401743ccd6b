// Package draft writes a first plan for the data in a folder: its sites, views and
// features with their types, the codes for missing values that it suspects, and a
// method with the reason for it. People read the plan and change it.
//
// A plan is public, so a draft says of the data only what a plan has to: names of columns, levels that at least
// [dataset.SmallCell] subjects have, suspected codes, and a rounded count where it is too small for the plan. It takes
// no range from them, because the range of a private study must not depend on data.
package draft

import (
	"context"
	"errors"
	"fmt"
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
)

// absences are what people write for a value that was not measured, in any spelling.
var absences = func() map[string]bool {
	keys := map[string]bool{}
	for _, word := range []string{"", "?", "-", "--", "n/a", "#n/a", "#na", "nd", "nk", "#null!", "(null)", "<na>",
		`\n`, "#value!", "#ref!", "#div/0!", "#num!", "missing", "unknown", "not done", "not known", "not measured",
		"unbekannt", "keine angabe", "k.a.", "fehlt", "manquant", "#nv", "#wert!", "#bezug!", "#zahl!", "#name?"} {
		keys[problem.Key(word)] = true
	}
	return keys
}()

// absent says whether a word is one of them.
func absent(word string) bool { return absences[problem.Key(word)] }

// Options are what a person may say beforehand.
type Options struct {
	Name     string   // of the study; from the folder if empty
	Outcome  string   // column of the subjects tables to predict; "" for none
	Missing  []string // codes for missing values that are known
	LeaveOut []string // views and columns that the plan shall not have
	Plan     string   // where it will be written
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
	Incomplete int64       `json:"incomplete,omitempty"` // subjects without a value of the outcome
	Method     string      `json:"method"`
	Reason     string      `json:"reason"`
	// Said is what a person should know first. It may quote cells and is no part of a plan.
	Said problem.List `json:"-"`

	columns    []*column
	survival   string          // the outcome as the time until an event, if it looks like one
	tooFew     string          // why the data are few for the plan, in rounded numbers; "" if they are not
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
	census   *dataset.Census
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
	kinds  []string // that few whole numbers may stand for, which are taken for amounts
}

// Look reads the data below a folder, which is one data set or holds one folder for
// each site, and drafts a plan. It is an error if the data cannot be read, or if
// nothing in them can be modelled.
func Look(ctx context.Context, path string, o Options) (*Draft, error) {
	d := &Draft{Name: o.Name, Missing: append([]string{}, o.Missing...), Views: []view{}, Subjects: []string{},
		LeftOut: []leftOut{}, Candidates: []candidate{}}
	if d.Name == "" {
		full, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		d.Name = siteName(filepath.Base(full))
	}
	if !study.IsName(d.Name) {
		return nil, problem.Problem{What: fmt.Sprintf("%q cannot be the name of a study", d.Name),
			Hint: "--name with lower-case letters, digits and hyphens"}
	}
	if err := d.findSites(path); err != nil {
		return nil, err
	}
	var wrong problem.List
	for i := range d.Sites {
		s := &d.Sites[i]
		wrong = append(wrong, unread(s.Folder)...)
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
	if err := d.leaveOut(o.LeaveOut); err != nil {
		return nil, err
	}
	d.mergeColumns()
	if err := d.differ().Err(); err != nil {
		return nil, d.differing(ctx, o.Outcome, err)
	}
	d.findSubjects(o)
	if err := d.choose(o.Outcome); err != nil {
		if d.lacking(o.Outcome) {
			err = d.differing(ctx, o.Outcome, err)
		}
		return nil, err
	}
	d.findViews()
	if wrong = d.lostViews(); len(wrong) == 0 { // else a site may have none of the views
		if err := d.suspect(ctx); err != nil {
			return nil, err
		}
		wrong = d.lostViews()
	}
	if len(wrong) > 0 { // what was said before is why
		return nil, d.differing(ctx, o.Outcome, append(wrong, d.Said...).Err())
	}
	if wrong = append(d.compareLevels(), d.sameRows()...); len(wrong) == 0 {
		wrong = d.settle()
	}
	if len(wrong) > 0 {
		return nil, append(wrong, d.Said...).Err()
	}
	return d, nil
}

func (s *site) read(ctx context.Context) (err error) {
	if s.dir, err = dataset.Open(ctx, s.Folder, dataset.Options{}); err != nil {
		return err
	}
	s.profiles, err = s.dir.Profile(ctx)
	return err
}

// YAML returns the plan with comments. Paths of data are written as relative to the
// folder of the plan where they can be.
func (d *Draft) YAML(folder string) []byte {
	var w strings.Builder
	fmt.Fprintf(&w, "# A first plan, made from the data. Read it, change what is wrong, and then run\n#   parley plan "+
		"check --data PLAN\n#   parley run PLAN\n")
	fmt.Fprintf(&w, "parley: %d\nname: %s\n# question: What do you want to know? It stands at the head of the "+
		"report.\n\n", study.Version, study.Quote(d.Name))
	d.writeSites(&w)
	if len(d.Missing) > 0 {
		fmt.Fprintf(&w, "# Cells that stand for a value that was not measured, beside empty ones, NA, NaN and "+
			"null.\nmissing: %s\n\n", flow(d.Missing, code))
	}
	w.WriteString("views:\n")
	for _, v := range d.Views {
		d.writeView(&w, &v)
	}
	w.WriteString("\n")
	d.writeLeftOut(&w)
	if len(d.Subjects) > 0 {
		fmt.Fprintf(&w, "# Columns of the subjects tables that describe results; they are never features.\nsubjects: "+
			"%s\n\n", flow(d.Subjects, study.Quote))
	}
	if d.Incomplete > 0 {
		fmt.Fprintf(&w, "# %s without a value of %s: they take no part.\ncomplete_cases: %s\n\n",
			plural(d.Incomplete, "subject"), oneLine(d.Outcome.Column), flow([]string{d.Outcome.Column}, study.Quote))
	}
	d.writeMethod(&w)
	whom := "every feature"
	if d.Outcome != nil && len(d.Outcome.Levels) == 0 {
		whom = "the outcome and " + whom
	}
	w.WriteString("# Without protection what a site releases is exact, and can tell of single people. For\n# " +
		"differential privacy give " + whom + " a range that is known without looking at the data, and:\n#   " +
		"privacy: {protection: differential, unit: subject, adjacency: add-remove, total: {epsilon: 3, delta: " +
		"1e-5}}\n" + d.patterns() +
		"privacy: {protection: none}\n\n")
	d.writeLocal(&w, folder)
	return []byte(w.String())
}

// patterns are the sets of views that a private plan of factors has to state, because subjects who lack others count
// for nothing; "" where no site lacks a view.
func (d *Draft) patterns() string {
	var lines strings.Builder
	for _, s := range d.Sites {
		var has []string
		for _, v := range d.Views {
			if !slices.Contains(s.Lacks, v.Name) {
				has = append(has, v.Name)
			}
		}
		if len(s.Lacks) > 0 && len(has) > 0 {
			fmt.Fprintf(&lines, "#     - {site: %s, views: %s}\n", s.Name, flow(has, study.Quote))
		}
	}
	if lines.Len() == 0 || d.Outcome != nil {
		return ""
	}
	return "# and, since some sites lack views, let method say who has which:\n#   patterns:\n" + lines.String()
}

func (d *Draft) writeSites(w *strings.Builder) {
	var names []string
	for _, s := range d.Sites {
		names = append(names, s.Name)
	}
	if d.Data != "" {
		w.WriteString("# One data set was found: its subjects are spread over simulated sites, under local.\n")
	}
	fmt.Fprintf(w, "sites: %s\n", flow(names, study.Quote))
	for _, s := range d.Sites {
		if len(s.Lacks) > 0 {
			fmt.Fprintf(w, "# %s lacks the views: %s\n", s.Name, strings.Join(s.Lacks, ", "))
		}
	}
	w.WriteString("\n")
}

func (d *Draft) writeView(w *strings.Builder, v *view) {
	fmt.Fprintf(w, "  - name: %s\n    features:\n", study.Quote(v.Name))
	for _, f := range v.Features {
		parts := []string{"name: " + study.Quote(f.Name)}
		if f.Kind == study.Category {
			parts = append(parts, "kind: category", "levels: "+flow(f.Levels, study.Quote))
		}
		if f.Other != "" {
			parts = append(parts, "other: "+study.Quote(f.Other))
		}
		note := ""
		if len(f.Missing) > 0 {
			parts = append(parts, "missing: "+flow(f.Missing, func(c study.Code) string { return code(string(c)) }))
			note = "  # looks like a code for a missing value; take it out if it was measured"
		}
		if f.Kind == study.Number && d.mayBeKinds[f.Name] {
			note += "  # few whole numbers: if they stand for kinds, as a sex of 1 or 2, " + d.asKind()
		}
		if len(parts) == 1 {
			fmt.Fprintf(w, "      - %s%s\n", study.Quote(f.Name), note)
			continue
		}
		fmt.Fprintf(w, "      - {%s}%s\n", strings.Join(parts, ", "), note)
	}
}

// asKind is what to do with a category that is written in numbers.
func (d *Draft) asKind() string {
	if d.Method == "regression" {
		return "add kind: category and levels: [...]"
	}
	return "take it out: " + d.Method + " models amounts"
}

func (d *Draft) writeLeftOut(w *strings.Builder) {
	if len(d.LeftOut) > 0 {
		w.WriteString("# Columns that are not in the plan:\n")
	}
	for _, l := range d.LeftOut {
		where := "subjects"
		if l.View != "" {
			where = "view " + l.View
		}
		fmt.Fprintf(w, "#   %s, %s: %s\n", where, oneLine(l.Column), oneLine(l.Why))
	}
	if len(d.LeftOut) > 0 {
		w.WriteString("\n")
	}
}

func (d *Draft) writeMethod(w *strings.Builder) {
	fmt.Fprintf(w, "# %s.\n", oneLine(d.Reason))
	if d.tooFew != "" {
		fmt.Fprintf(w, "# %s\n", strings.ReplaceAll(d.tooFew, "\n", "\n# "))
	}
	if d.survival != "" {
		fmt.Fprintf(w, "# If this is the time until an event that not everybody had:\n#   %s\n", oneLine(d.survival))
	}
	if d.Outcome != nil {
		if len(d.Outcome.Levels) == 0 && d.survival == "" {
			w.WriteString("# If it counts something, such as visits, add: likelihood: poisson\n")
		}
		outcome := "column: " + study.Quote(d.Outcome.Column)
		if kinds := d.Outcome.kinds; len(kinds) > 0 {
			fmt.Fprintf(w, "# If its numbers stand for kinds: outcome: {%s, levels: %s}\n", outcome,
				flow(kinds, study.Quote))
		}
		if len(d.Outcome.Levels) > 0 {
			outcome += ", levels: " + flow(d.Outcome.Levels, study.Quote)
		}
		if n := len(d.Outcome.Levels); n == 2 {
			fmt.Fprintf(w, "# What is estimated is how probable the second level is: %s\n",
				oneLine(d.Outcome.Levels[1]))
		}
		fmt.Fprintf(w, "method:\n  name: %s\n  outcome: {%s}\n\n", d.Method, outcome)
		return
	}
	var names []string
	for _, c := range d.Candidates {
		names = append(names, oneLine(c.Column))
	}
	if len(names) > 0 {
		fmt.Fprintf(w, "# To predict one of these columns instead, begin again with --outcome: %s.\n", few(names))
	}
	fmt.Fprintf(w, "method:\n  name: %s\n  latent: select  # as many factors as the data support, or a number\n\n",
		d.Method)
}

func (d *Draft) writeLocal(w *strings.Builder, folder string) {
	w.WriteString("# Where this computer finds the data. It is no part of the plan that sites see.\nlocal:\n")
	if d.Data != "" {
		fmt.Fprintf(w, "  data: %s\n  split: {scenario: IID}\n", study.Quote(relative(folder, d.Data)))
		return
	}
	w.WriteString("  sites:\n")
	for _, s := range d.Sites {
		fmt.Fprintf(w, "    %s: %s\n", study.Quote(s.Name), study.Quote(relative(folder, s.Folder)))
	}
}

// relative returns the path as seen from a folder, or as it is if there is no such way.
func relative(folder, path string) string {
	from, err := filepath.Abs(folder)
	to, err2 := filepath.Abs(path)
	if err != nil || err2 != nil {
		return filepath.ToSlash(path)
	}
	short, err := filepath.Rel(from, to)
	if err != nil {
		return filepath.ToSlash(to)
	}
	return filepath.ToSlash(short)
}

// flow is a list in one line.
func flow[T any](list []T, write func(T) string) string {
	parts := make([]string, len(list))
	for i, x := range list {
		parts[i] = write(x)
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// code writes a code for missing values: a number as it is, anything else as text.
func code(s string) string {
	if strings.Trim(s, "-0123456789") == "" && strings.Trim(s, "-") != "" {
		return s
	}
	return study.Quote(s)
}

// oneLine keeps what comes from the data inside its comment.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool {
		return r < ' ' || r == 0x7f || r == 0x85 ||
			r == 0x2028 || r == 0x2029
	}), " ")
}
