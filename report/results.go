package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"parley/engine"
	"parley/figure"
	"parley/internal/files"
	"parley/internal/version"
	"parley/method"
	"parley/problem"
	"parley/study"
)

// provenance says what made the results.
type provenance struct {
	Program     string     `json:"program"`
	Go          string     `json:"go"`
	Platform    string     `json:"platform"`
	Study       string     `json:"study"`
	Plan        string     `json:"plan_sha256"`
	Seed        uint64     `json:"seed"`
	Simulated   bool       `json:"simulated"` // every site in one process
	Started     time.Time  `json:"started"`
	Finished    *time.Time `json:"finished,omitempty"`
	SitesLeft   []string   `json:"sites_left,omitempty"`
	Protections []string   `json:"protections,omitempty"` // of everything that was released
}

// Results is what the coordinator of a run leaves.
type Results struct {
	folder
	// Paper is what a paper would say of the method; empty if nobody said it.
	Paper      method.Paper
	plan       *study.Plan
	provenance provenance
}

// folder is where one end writes.
type folder struct{ path string }

// OpenResults makes path the directory of a run of the plan; simulated says that every
// site is in this process. A directory that belongs to another plan is refused and
// left as it is.
func OpenResults(path string, plan *study.Plan, simulated bool, now time.Time) (*Results, error) {
	digest, err := plan.Digest()
	if err != nil {
		return nil, err
	}
	d := &Results{folder: folder{path}, plan: plan, provenance: provenance{
		Program: programNow(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Study: plan.Name, Plan: digest.String(), Seed: plan.Seed, Simulated: simulated, Started: seconds(now),
	}}
	file := filepath.Join(path, "provenance.json")
	old, err := os.ReadFile(file)
	if err == nil {
		return d, d.adopt(file, old)
	}
	if !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	entries, err := os.ReadDir(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	foreign := func(e os.DirEntry) bool { return !files.Leftover(file, e.Name()) }
	if slices.ContainsFunc(entries, foreign) {
		return nil, problem.Problem{File: path, What: "this directory is not empty and holds no run",
			Hint: "choose another with --out"}
	}
	if err := d.writeJSON("provenance.json", d.provenance); err != nil {
		return nil, err
	}
	return d, d.begin()
}

// seconds is a time as results tell it: to the second, in UTC. What is finer tells
// how long single computations took.
func seconds(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }

// begin stores what an unfinished run needs: it is the last thing that happens
// before the run, so that a crash within it is followed by it again.
func (d *Results) begin() error {
	text, err := d.plan.YAML()
	if err != nil {
		return err
	}
	return files.Write(filepath.Join(d.path, "plan.yaml"), text)
}

// adopt continues a run that began earlier.
func (d *Results) adopt(file string, data []byte) error {
	var old provenance
	if err := json.Unmarshal(data, &old); err != nil {
		return problem.Problem{File: file, What: "this is not a run's provenance: " + err.Error(),
			Hint: "choose another directory with --out"}
	}
	if old.Plan != d.provenance.Plan {
		return problem.Problem{File: d.path, What: fmt.Sprintf("this directory holds a run of another plan (%.12s)",
			old.Plan),
			Hint: "choose another with --out"}
	}
	d.provenance.Started = old.Started
	d.provenance.Finished = old.Finished
	return d.begin() // a crash may have come before it
}

// Path is where the directory is.
func (d *Results) Path() string { return d.path }

// Write stores a finished run, and returns its result with what the run adds to it: which
// sites left, what protected the releases, and what passed. Running it again replaces the
// files by the same.
func (d *Results) Write(out *engine.Outcome, now time.Time) (*method.Result, error) {
	if d.provenance.Finished == nil {
		now = seconds(now)
		d.provenance.Finished = &now
	}
	d.provenance.SitesLeft = out.Left
	d.provenance.Protections = protections(out.Rounds)
	promise, err := privacyOf(d.plan, out.Rounds)
	if err != nil {
		return nil, err
	}
	protected := privacySection(promise, out.Rounds)
	r := *out.Result
	r.Sections = append(leftSection(d.plan.Sites, out.Rounds), r.Sections...)
	r.Sections = append(r.Sections, protected, exchangeSection(d.plan.Sites, out.Rounds))
	if d.Paper.Text != "" {
		r.Sections = append(r.Sections, d.paperSection(promise, out))
	}
	page := d.page(&r, out.Left)
	page.Privacy = figure.Warning{Title: protected.Items[0].Note.Title, Section: protected.ID}
	if err := d.writeResult(&r, page); err != nil {
		return nil, err
	}
	if promise != nil {
		if err := d.writeJSON("privacy.json", promise); err != nil {
			return nil, err
		}
	}
	var rounds bytes.Buffer
	lines := json.NewEncoder(&rounds)
	for _, r := range out.Rounds {
		if err := lines.Encode(r); err != nil {
			return nil, fmt.Errorf("writing rounds.jsonl: %w", err)
		}
	}
	if err := files.Write(filepath.Join(d.path, "rounds.jsonl"), rounds.Bytes()); err != nil {
		return nil, err
	}
	return &r, d.writeJSON("provenance.json", d.provenance)
}

// writeResult stores a result's files, numbers and page.
func (d folder) writeResult(r *method.Result, page *Report) error {
	for _, f := range r.Files {
		if !filepath.IsLocal(f.Name) {
			return fmt.Errorf("the method named a file %q, which is not inside the results", f.Name)
		}
		if err := files.Stream(filepath.Join(d.path, filepath.FromSlash(f.Name)), f.Stream); err != nil {
			return err
		}
	}
	if r.Metrics != nil {
		if err := d.writeJSON("metrics.json", r.Numbers()); err != nil {
			return err
		}
	}
	return page.WriteFiles(d.path)
}

func (d folder) writeJSON(name string, v any) error {
	return files.WriteJSON(filepath.Join(d.path, name), v)
}

// page is the report that everybody in the study may read.
func (d *Results) page(r *method.Result, left []string) *Report {
	page := &Report{Title: d.plan.Name, Subtitle: d.plan.Question, Headline: r.Headline, Meta: d.meta(),
		Found: r.Found, Sure: r.Sure, Sections: r.Sections}
	if d.provenance.Simulated {
		for _, site := range d.plan.Sites {
			if !slices.Contains(left, site) {
				page.SitePages = append(page.SitePages, figure.Fact{Name: site, Value: "sites/" + url.PathEscape(site) +
					"/report.html"})
			}
		}
	}
	return page
}

// leftSection says first which sites were not in the study to its end, and why, as far
// as others may know it; there is none if all were. What they had contributed before may be
// in the result, and their later answers are not.
func leftSection(sites []string, rounds []engine.Round) []figure.Section {
	var names, lines []string
	for _, r := range rounds {
		for _, x := range r.Sites {
			if x.Left != "" {
				names = append(names, x.Site)
				lines = append(lines, fmt.Sprintf("%s left in round %d: %s.", x.Site, r.Round,
					strings.TrimSuffix(x.Left, ".")))
			}
		}
	}
	if len(lines) == 0 {
		return nil
	}
	return []figure.Section{{ID: "left", Title: "Not every site is in this result to its end",
		Items: []figure.Item{{Note: &figure.Note{
			Title: fmt.Sprintf("%d of %d sites left before the end: %s", len(lines), len(sites),
				strings.Join(names, ", ")),
			Warning: true,
			Text: strings.Join(lines, "\n\n") + "\n\nWhat is said below of all sites holds for those that stayed, " +
				"and for what the others had sent before.",
		}}}}}
}

func (d *Results) meta() []figure.Fact { return meta(d.plan, d.provenance.Plan) }

func meta(p *study.Plan, digest string) []figure.Fact {
	return []figure.Fact{
		{Name: "Plan", Value: digest[:12]},
		{Name: "Method", Value: p.Method.Name},
		{Name: "Sites", Value: strings.Join(p.Sites, ", ")},
		{Name: "Made by", Value: programNow()},
	}
}

func programNow() string { return "parley " + version.String() }

func protections(rounds []engine.Round) []string {
	var names []string
	for _, r := range rounds {
		for _, x := range r.Sites {
			if p := string(x.Request.Protection); p != "" && !slices.Contains(names, p) {
				names = append(names, p)
			}
		}
	}
	slices.Sort(names)
	return names
}

// ReadModel reads a model from a results directory, its model folder, or the
// model's file itself.
func ReadModel(methods method.Registry, path string) (method.Model, error) {
	file, err := modelFile(path)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	m, err := method.OpenModel(methods, data)
	if err == nil {
		return m, nil
	}
	if p := (problem.Problem{}); errors.As(err, &p) {
		p.File = file
		return nil, p
	}
	return nil, fmt.Errorf("%s: %w", file, err)
}

// SiteModel is the folder of a site in the directory of a run that has a model of the site's
// own subjects. Sites keep these to themselves, so that there is one only where the site is.
func SiteModel(path, site string) (string, error) {
	own := SiteIn(path, site)
	if _, err := modelFile(own); err != nil || !filepath.IsLocal(site) {
		return "", problem.Problem{File: path, Where: "site " + site,
			What: "there is no model of this site's own subjects here",
			Hint: "only sites that have random intercepts make one, in their own folders: give such a folder as " +
				"MODEL, or leave the site out for subjects of a new one"}
	}
	return own, nil
}

func modelFile(path string) (string, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", problem.Problem{File: path, What: "there is no such model",
			Hint: "give a results directory, its model folder, or model.json"}
	}
	if err != nil || !info.IsDir() {
		return path, err
	}
	for _, name := range []string{"model/model.json", "model.json"} {
		file := filepath.Join(path, filepath.FromSlash(name))
		if _, err := os.Stat(file); err == nil {
			return file, nil
		}
	}
	p := problem.Problem{File: path, What: "there is no model in this directory",
		Hint: "give a results directory, its model folder, or model.json"}
	if _, err := os.Stat(filepath.Join(path, "provenance.json")); err == nil {
		p.What, p.Hint = "this run has not ended, so it has no model yet",
			"continue it with parley run and the same --out"
	}
	return "", p
}

// paperSection is what the methods section of a paper can say: who took part, the model, what was promised, and what to
// cite.
func (d *Results) paperSection(promise *privacyRecord, out *engine.Outcome) figure.Section {
	took := figure.Plural(len(d.plan.Sites), "site") + " took part"
	if n := len(out.Left); n > 0 {
		took = fmt.Sprintf("%s of %d took part to the end", figure.Plural(len(d.plan.Sites)-n, "site"),
			len(d.plan.Sites))
	}
	text := fmt.Sprintf("The study was run with Parley %s (method %s; SHA-256 of its plan %.12s). %s; rows stayed at "+
		"the sites. %s", version.Number, d.plan.Method.Name, d.provenance.Plan, took, d.Paper.Text)
	if d.plan.Privacy.Secure() {
		text += " Sums over the sites were masked, so that nobody learned those of one site."
	}
	switch {
	case promise == nil:
		text += " What the sites sent had no noise: it is not protected by differential privacy."
	case promise.Holds && promise.Total != nil:
		text += fmt.Sprintf(" All that a site sent is (%s)-differentially private (%s) for one %s, by noise of the "+
			"discrete normal distribution.", pair(*promise.Total), promise.Adjacency, promise.Unit)
	}
	return figure.Section{ID: "paper", Title: "For the methods section of a paper", Items: []figure.Item{
		{Note: &figure.Note{Title: "What was done", Text: text}},
		{Note: &figure.Note{Title: "To cite", Text: strings.Join(
			append([]string{"Parley " + version.Number + ", see CITATION.cff of the source."}, d.Paper.References...),
			"\n\n")}},
	}}
}
