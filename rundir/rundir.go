// Package rundir writes what a run leaves: a directory of open files that
// people and programs can read without Parley.
//
//	plan.yaml        the effective plan, every default filled in
//	provenance.json  which program, plan and data made the results, and when
//	metrics.json     the method's numbers
//	rounds.jsonl     one line for each round: what passed, and how the fit stood
//	model/           the model, in the method's own open files
//	report.html      one page to read, with figures/ beside it
//	sites/NAME/      what that site alone may see, with its report
//
// In a directory of a run that was not finished only the first two, the
// checkpoint and the sites' stores exist.
package rundir

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"parley/engine"
	"parley/figure"
	"parley/internal/atomicfile"
	"parley/internal/version"
	"parley/method"
	"parley/privacy"
	"parley/problem"
	"parley/report"
	"parley/study"
)

// Provenance says what made the results.
type Provenance struct {
	Program     string     `json:"program"`
	Go          string     `json:"go"`
	Platform    string     `json:"platform"`
	Study       string     `json:"study"`
	Plan        string     `json:"plan_sha256"`
	Seed        uint64     `json:"seed"`
	Data        string     `json:"data_sha256"`
	Simulated   bool       `json:"simulated"` // every site in one process
	Started     time.Time  `json:"started"`
	Finished    *time.Time `json:"finished,omitempty"`
	SitesLeft   []string   `json:"sites_left,omitempty"`
	Protections []string   `json:"protections,omitempty"` // of everything that was released
}

// Dir is the directory of one run.
type Dir struct {
	path       string
	plan       *study.Plan
	provenance Provenance
}

// Open makes path the directory of a run of the plan on data with this
// fingerprint. A directory that belongs to another plan, or whose run began on
// other data, is refused and left as it is.
func Open(path string, plan *study.Plan, data string, now time.Time) (*Dir, error) {
	digest, err := plan.Digest()
	if err != nil {
		return nil, err
	}
	d := &Dir{path: path, plan: plan, provenance: Provenance{
		Program: "parley " + version.String(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Study: plan.Name, Plan: digest.String(), Seed: plan.Seed, Data: data, Simulated: true, Started: now.UTC(),
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
	foreign := func(e os.DirEntry) bool { return !atomicfile.Leftover(file, e.Name()) }
	if slices.ContainsFunc(entries, foreign) {
		return nil, problem.Problem{File: path, What: "this directory is not empty and holds no run", Hint: "choose another with --out"}
	}
	if err := d.writeJSON("provenance.json", d.provenance); err != nil {
		return nil, err
	}
	return d, d.writePlan()
}

func (d *Dir) writePlan() error {
	text, err := d.plan.YAML()
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(d.path, "plan.yaml"), text)
}

// adopt continues a run that began earlier.
func (d *Dir) adopt(file string, data []byte) error {
	var old Provenance
	if err := json.Unmarshal(data, &old); err != nil {
		return problem.Problem{File: file, What: "this is not a run's provenance: " + err.Error(), Hint: "choose another directory with --out"}
	}
	switch {
	case old.Plan != d.provenance.Plan:
		return problem.Problem{File: d.path, What: fmt.Sprintf("this directory holds a run of another plan (%.12s)", old.Plan),
			Hint: "choose another with --out"}
	case old.Data != d.provenance.Data:
		return problem.Problem{File: d.path, What: "the data have changed since this run began",
			Hint: "put the data back to continue it, or choose another directory with --out for a new run"}
	}
	d.provenance.Started = old.Started
	d.provenance.Finished = old.Finished
	return d.writePlan() // a crash may have come before it
}

// Path is where the directory is.
func (d *Dir) Path() string { return d.path }

// Write stores a finished run. Running it again replaces the files by the same.
func (d *Dir) Write(out *engine.Outcome, sites map[string]*method.Result, now time.Time) error {
	if d.provenance.Finished == nil {
		now = now.UTC()
		d.provenance.Finished = &now
	}
	d.provenance.SitesLeft = out.Left
	d.provenance.Protections = protections(out.Rounds)
	if err := d.writeResult(".", out.Result, d.sharedPage(out)); err != nil {
		return err
	}
	for _, name := range d.plan.Sites {
		if r := sites[name]; r != nil {
			if err := d.writeResult(filepath.Join("sites", name), r, d.sitePage(name, r)); err != nil {
				return fmt.Errorf("site %s: %w", name, err)
			}
		}
	}
	var rounds bytes.Buffer
	lines := json.NewEncoder(&rounds)
	for _, r := range out.Rounds {
		if err := lines.Encode(r); err != nil {
			return fmt.Errorf("writing rounds.jsonl: %w", err)
		}
	}
	if err := atomicfile.Write(filepath.Join(d.path, "rounds.jsonl"), rounds.Bytes()); err != nil {
		return err
	}
	return d.writeJSON("provenance.json", d.provenance)
}

// writeResult stores a result's files, numbers and page below sub.
func (d *Dir) writeResult(sub string, r *method.Result, page *report.Report) error {
	for _, f := range r.Files {
		if !filepath.IsLocal(f.Name) {
			return fmt.Errorf("the method named a file %q, which is not inside the results", f.Name)
		}
		path, write := filepath.Join(d.path, sub, filepath.FromSlash(f.Name)), f.Write
		if write == nil {
			write = func(w io.Writer) error {
				_, err := w.Write(f.Data)
				return err
			}
		}
		if err := atomicfile.Stream(path, write); err != nil {
			return err
		}
	}
	if r.Metrics != nil {
		if err := d.writeJSON(filepath.Join(sub, "metrics.json"), r.Metrics); err != nil {
			return err
		}
	}
	return page.WriteFiles(filepath.Join(d.path, sub))
}

func (d *Dir) writeJSON(name string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return atomicfile.Write(filepath.Join(d.path, name), append(data, '\n'))
}

// sharedPage is the report that everybody in the study may read.
func (d *Dir) sharedPage(out *engine.Outcome) *report.Report {
	page := &report.Report{Title: d.plan.Name, Subtitle: d.plan.Question, Headline: out.Result.Headline, Meta: d.meta()}
	page.Sections = append(slices.Clone(out.Result.Sections), d.privacySection(out.Rounds), exchangeSection(d.plan.Sites, out.Rounds))
	return page
}

func (d *Dir) sitePage(site string, r *method.Result) *report.Report {
	note := figure.Section{ID: "for-this-site", Title: "For this site only", Items: []figure.Item{{Note: &figure.Note{
		Title: "This page shows single subjects", Warning: true,
		Text: "It was made at " + site + " from the site's own rows and the shared model. It must not leave the site.",
	}}}}
	return &report.Report{
		Title: d.plan.Name + ", " + site, Subtitle: d.plan.Question, Headline: r.Headline, Meta: d.meta(), Local: true,
		Sections: append([]figure.Section{note}, r.Sections...),
	}
}

func (d *Dir) meta() []figure.Fact {
	return []figure.Fact{
		{Name: "Plan", Value: d.provenance.Plan[:12]},
		{Name: "Method", Value: d.plan.Method.Name},
		{Name: "Sites", Value: strings.Join(d.plan.Sites, ", ")},
		{Name: "Made by", Value: d.provenance.Program},
	}
}

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

// privacySection says in words how what was released was protected: all of it,
// where releases differ.
func (d *Dir) privacySection(rounds []engine.Round) figure.Section {
	unprotected := figure.Note{Title: "Not protected by differential privacy", Warning: true,
		Text: "No subject's row left a site, and everything that left passed the site's release gate and is listed below. " +
			"But what left is exact: no noise was added, so nobody can promise how little it tells about a single subject. " +
			"Share these results only among those who may see such statistics."}
	s := figure.Section{ID: "privacy", Title: "Privacy"}
	for _, p := range protections(rounds) {
		note := unprotected
		if p != string(privacy.Unprotected) {
			note = figure.Note{Title: "Protection: " + p}
		}
		s.Items = append(s.Items, figure.Item{Note: &note})
	}
	return s
}

// exchangeSection lists what passed between the coordinator and each site: what
// each task asks for, then how much of it there was.
func exchangeSection(sites []string, rounds []engine.Round) figure.Section {
	type key struct{ site, kind string }
	messages, bytes, declared := map[key]float64{}, map[key][2]float64{}, map[string][]privacy.Content{}
	var kinds []string
	for _, r := range rounds {
		for _, x := range r.Sites {
			if _, seen := declared[x.Kind]; !seen {
				kinds = append(kinds, x.Kind)
			}
			if len(declared[x.Kind]) == 0 { // a site that left declared nothing
				declared[x.Kind] = x.Request.Contents
			}
			k := key{x.Site, x.Kind}
			messages[k]++
			bytes[k] = [2]float64{bytes[k][0] + float64(x.Up), bytes[k][1] + float64(x.Down)}
		}
	}
	contents := figure.Table{ID: "tasks-table", Title: "What each task makes leave a site",
		Caption: "As declared before any row was read; the numbers are the most that a site with all views would send each time.",
		Columns: []figure.Column{{Name: "task"}, {Name: "what leaves"}, {Name: "numbers, at most", Format: figure.Count, Numbers: figure.Numbers{}}}}
	for _, kind := range kinds {
		for i, c := range declared[kind] {
			name := kind
			if i > 0 {
				name = ""
			}
			contents.Columns[0].Text, contents.Columns[1].Text = append(contents.Columns[0].Text, name), append(contents.Columns[1].Text, c.What)
			contents.Columns[2].Numbers = append(contents.Columns[2].Numbers, float64(c.Values))
		}
	}
	passed := figure.Table{ID: "exchange-table", Title: "Tasks and releases",
		Caption: "Every message of the study, summed over rounds. Nothing else left a site; rounds.jsonl has each release with its SHA-256.",
		Columns: []figure.Column{{Name: "site"}, {Name: "task"}, {Name: "times", Format: figure.Count, Numbers: figure.Numbers{}},
			{Name: "sent", Unit: "bytes", Format: figure.Count, Numbers: figure.Numbers{}}, {Name: "received", Unit: "bytes", Format: figure.Count, Numbers: figure.Numbers{}}}}
	for _, site := range sites {
		for _, kind := range kinds {
			k := key{site, kind}
			if messages[k] == 0 {
				continue
			}
			c := passed.Columns
			c[0].Text, c[1].Text = append(c[0].Text, site), append(c[1].Text, kind)
			for i, v := range []float64{messages[k], bytes[k][0], bytes[k][1]} {
				c[i+2].Numbers = append(c[i+2].Numbers, v)
			}
		}
	}
	return figure.Section{ID: "exchange", Title: "What passed between the sites and the coordinator",
		Items: []figure.Item{{Table: &contents}, {Table: &passed}}}
}
