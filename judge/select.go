package judge

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"parley/figure"
	"parley/internal/files"
	"parley/internal/version"
	"parley/method"
	"parley/problem"
	"parley/report"
	"parley/study"
)

// Selection is what was chosen, from what, by what.
type Selection struct {
	Program string  `json:"program"`
	Study   string  `json:"study"`
	Plan    string  `json:"plan_sha256"`
	Seed    uint64  `json:"seed"`
	Data    string  `json:"data_sha256,omitempty"`        // of the rows that were read
	Origin  *Origin `json:"post_processing_of,omitempty"` // instead of rows, the study whose releases were read
	*method.Selection
	Warnings []string `json:"warnings"`
	Notes    []string `json:"notes"`
}

// NewSelection is the record of a selection that has not been made yet.
func NewSelection(plan *study.Plan, data string) (*Selection, error) {
	digest, err := plan.Digest()
	if err != nil {
		return nil, err
	}
	return &Selection{Program: "parley " + version.String(), Study: plan.Name, Plan: digest.String(), Seed: plan.Seed, Data: data}, nil
}

// Record is that of a selection from the study's releases.
func (s *ReleasedStudy) Record() *Selection {
	return &Selection{Program: "parley " + version.String(), Study: s.Plan.Name, Plan: s.Origin.Plan, Seed: s.Plan.Seed, Origin: &s.Origin}
}

// Set takes in what was selected.
func (r *Selection) Set(s *method.Selection) {
	r.Selection, r.Warnings, r.Notes = s, s.Warnings.Lines(), s.Notes.Lines()
}

// fileName is the record in its directory.
const fileName = "selection.json"

// Claim makes sure that nothing else is overwritten in dir: it must be new,
// empty, or hold a selection of the same plan on the same data or releases.
func (r *Selection) Claim(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	const hint = "choose another with --out"
	data, err := os.ReadFile(filepath.Join(dir, fileName))
	if errors.Is(err, os.ErrNotExist) {
		return problem.Problem{File: dir, What: "this directory is not empty and holds no selection", Hint: hint}
	}
	if err != nil {
		return err
	}
	var old Selection
	if err := json.Unmarshal(data, &old); err != nil {
		return problem.Problem{File: filepath.Join(dir, fileName), What: "this is not a selection: " + err.Error(), Hint: hint}
	}
	if old.Plan != r.Plan || old.Data != r.Data || old.released() != r.released() {
		return problem.Problem{File: dir, What: fmt.Sprintf("this directory holds a selection of another plan (%.12s) or other data", old.Plan), Hint: hint}
	}
	return nil
}

// released is the digest of the releases that were read, "" if rows were.
func (r *Selection) released() string {
	if r.Origin == nil {
		return ""
	}
	return r.Origin.Released
}

// privacySection says what protects the numbers.
func (r *Selection) privacySection() figure.Section {
	if r.Origin != nil {
		return r.Origin.section()
	}
	return figure.Section{ID: "privacy", Title: "Privacy", Items: []figure.Item{{Note: &figure.Note{
		Title: "Worked out in one process, without protection", Warning: true,
		Text: "The sites were simulated: one process read the rows of all of them. The numbers on this page are sums over subjects, but exact, without the noise of differential privacy. Share them only among those who may see such statistics.",
	}}}}
}

// Write leaves, in a directory that was claimed, the report with its pictures
// and tables, metrics.json and selection.json, which comes last.
func (r *Selection) Write(dir string, plan *study.Plan) error {
	page := &report.Report{
		Title: plan.Name + ": how many " + r.Noun, Subtitle: plan.Question, Headline: r.Result.Headline,
		Meta: []figure.Fact{{Name: "Plan", Value: r.Plan[:12]}, {Name: "Method", Value: plan.Method.Name},
			{Name: "Sites", Value: strings.Join(plan.Sites, ", ")}, {Name: "Made by", Value: r.Program}},
		Sections: append(slices.Clone(r.Result.Sections), r.privacySection()),
	}
	// What an earlier selection from other numbers left would look like a part of this one.
	for _, old := range []string{"figures", "tables"} {
		if err := os.RemoveAll(filepath.Join(dir, old)); err != nil {
			return err
		}
	}
	if err := page.WriteFiles(dir); err != nil {
		return err
	}
	if err := files.WriteJSON(filepath.Join(dir, "metrics.json"), r.Result.Metrics); err != nil {
		return err
	}
	return files.WriteJSON(filepath.Join(dir, fileName), r)
}

// Print tells people what was chosen.
func (r *Selection) Print(out io.Writer, dir string) error {
	for _, w := range r.Warnings {
		fmt.Fprintf(out, "warning: %s\n", w)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(out, "note: %s\n", n)
	}
	if len(r.Warnings)+len(r.Notes) > 0 {
		fmt.Fprintln(out)
	}
	t := r.Table
	if t == nil {
		t = &figure.Table{Columns: []figure.Column{{Name: "rule"}, {Name: r.Noun, Format: figure.Count}}}
		for _, c := range r.Choices {
			t.Add(c.Rule, c.Value)
		}
	}
	if err := t.Text(out); err != nil {
		return err
	}
	recommended := "nothing yet, for what is warned of above"
	if r.Recommended > 0 {
		recommended = fmt.Sprintf("%s: %d", r.Option, r.Recommended)
	}
	_, err := fmt.Fprintf(out, "\nrecommended: %s\n\nOpen %s\n", recommended, filepath.Join(dir, "report.html"))
	return err
}
