package judge

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

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
	return &Selection{Program: "parley " + version.String(), Study: plan.Name, Plan: digest.String(), Seed: plan.Seed,
		Data: data}, nil
}

// Record is that of a selection from the study's releases.
func (s *ReleasedStudy) Record() *Selection {
	return &Selection{Program: "parley " + version.String(), Study: s.Plan.Name, Plan: s.Origin.Plan, Seed: s.Plan.Seed,
		Origin: &s.Origin}
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
		return problem.Problem{File: filepath.Join(dir, fileName), What: "this is not a selection: " +
			err.Error(), Hint: hint}
	}
	if old.Plan != r.Plan || old.Data != r.Data || old.released() != r.released() {
		return problem.Problem{File: dir, What: fmt.Sprintf("this directory holds a selection of another plan (%.12s) "+
			"or other data", old.Plan), Hint: hint}
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
		Text: "The sites were simulated: one process read the rows of all of them. The numbers on this page are sums " +
			"over subjects, but exact, without the noise of differential privacy. Share them only among those who " +
			"may see such statistics.",
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

// provenance says of a model that was made of another study's releases what
// made it. It is no run's provenance, so that no run continues in its directory.
type provenance struct {
	Program  string    `json:"program"`
	Go       string    `json:"go"`
	Platform string    `json:"platform"`
	Option   string    `json:"option"` // of the plan: what differs from the study's own model
	Value    int       `json:"value"`
	Made     time.Time `json:"made"`
	Origin   Origin    `json:"post_processing_of"`
}

// ClaimRefit makes sure that nothing else is overwritten in dir: it must be new,
// empty, or hold a refit of the same releases.
func (s *ReleasedStudy) ClaimRefit(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	const hint = "choose another with --out"
	data, err := os.ReadFile(filepath.Join(dir, "provenance.json"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var old struct {
		Origin *Origin `json:"post_processing_of"`
	}
	if err != nil || json.Unmarshal(data, &old) != nil || old.Origin == nil {
		return problem.Problem{File: dir, What: "this directory is not empty and holds no refit", Hint: hint}
	}
	if old.Origin.Released != s.Origin.Released {
		return problem.Problem{File: dir, What: fmt.Sprintf("this directory holds a refit of other releases (of study "+
			"%s)", old.Origin.Study), Hint: hint}
	}
	return nil
}

// Refit makes a model with another value of the option that [method.Refitter] chooses, and says
// what of the study's protection covers it.
func (s *ReleasedStudy) Refit(value int) (*method.Result, error) {
	r, err := s.Method.Refit(method.HalfPlan(s.Plan), s.Released, value)
	if err != nil {
		return nil, err
	}
	r.Sections = append(r.Sections, s.Origin.section())
	return r, nil
}

// WriteRefit leaves in a claimed directory what a run leaves, as far as it makes
// sense: plan.yaml (the study's), the result's files, metrics.json, report.html
// with its pictures and tables, and last provenance.json.
func (s *ReleasedStudy) WriteRefit(dir string, value int, r *method.Result, now time.Time) error {
	option := s.Method.Chooses()
	p := provenance{Program: "parley " + version.String(), Go: runtime.Version(), Platform: runtime.GOOS + "/" +
		runtime.GOARCH,
		Option: option, Value: value, Made: now.UTC(), Origin: s.Origin}
	for _, old := range []string{"figures", "tables"} { // another value may have had other pictures
		if err := os.RemoveAll(filepath.Join(dir, old)); err != nil {
			return err
		}
	}
	plan, err := s.Plan.YAML()
	if err != nil {
		return err
	}
	if err := files.Write(filepath.Join(dir, "plan.yaml"), plan); err != nil {
		return err
	}
	for _, f := range r.Files {
		if !filepath.IsLocal(f.Name) {
			return fmt.Errorf("the method named a file %q, which is not inside the results", f.Name)
		}
		if err := files.Stream(filepath.Join(dir, filepath.FromSlash(f.Name)), f.Stream); err != nil {
			return err
		}
	}
	page := &report.Report{
		Title: fmt.Sprintf("%s, made again with %s: %d", s.Plan.Name, option, value), Subtitle: s.Plan.Question,
		Headline: r.Headline,
		Meta: []figure.Fact{{Name: "Post-processing of plan", Value: s.Origin.Plan[:12]},
			{Name: "Method", Value: s.Plan.Method.Name},
			{Name: "Sites", Value: strings.Join(s.Plan.Sites, ", ")}, {Name: "Made by", Value: p.Program}},
		Found: r.Found, Sure: r.Sure, Sections: r.Sections,
	}
	if err := page.WriteFiles(dir); err != nil {
		return err
	}
	if err := files.WriteJSON(filepath.Join(dir, "metrics.json"), r.Numbers()); err != nil {
		return err
	}
	return files.WriteJSON(filepath.Join(dir, "provenance.json"), p)
}

// ReleasedStudy is a study that has ended, as far as more can be made of what its sites released.
type ReleasedStudy struct {
	Plan     *study.Plan
	Method   method.Refitter
	Released []byte // content of the file that keeps the releases
	Origin   Origin
}

// Origin names the study that something is post-processing of, and its guarantee.
type Origin struct {
	Study     string    `json:"study"`
	Plan      string    `json:"plan_sha256"`
	Seed      uint64    `json:"seed"`
	Released  string    `json:"released_sha256"`
	Finished  time.Time `json:"finished"`
	Guarantee []string  `json:"guarantee"`        // of the study, in words
	Exact     bool      `json:"exact,omitempty"`  // it has no differential privacy
	Broken    []string  `json:"broken,omitempty"` // why the study itself does not keep it
	Left      []string  `json:"sites_left,omitempty"`
}

// OpenStudy reads the results of a study, or of a refit, which keeps the
// same releases. What is wrong comes back as a problem.
func OpenStudy(dir string, methods method.Registry) (*ReleasedStudy, error) {
	file := filepath.Join(dir, "provenance.json")
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, problem.Problem{File: dir, What: "this directory holds no results",
			Hint: "the results of parley run"}
	}
	if err != nil {
		return nil, err
	}
	var provenance struct {
		Plan     string     `json:"plan_sha256"`
		Finished *time.Time `json:"finished"`
		Left     []string   `json:"sites_left"`
		Origin   *Origin    `json:"post_processing_of"`
	}
	if err := json.Unmarshal(data, &provenance); err != nil {
		return nil, problem.Problem{File: file, What: "this is not a run's provenance: " + err.Error()}
	}
	s := &ReleasedStudy{}
	if s.Plan, err = study.Load(filepath.Join(dir, "plan.yaml"), methods); err != nil {
		return nil, err
	}
	digest, err := s.Plan.Digest()
	if err != nil {
		return nil, err
	}
	claimed := provenance.Plan
	if o := provenance.Origin; o != nil {
		claimed, provenance.Finished, provenance.Left, s.Origin.Broken = o.Plan, &o.Finished, o.Left, o.Broken
	}
	switch {
	case claimed != digest.String():
		return nil, problem.Problem{File: filepath.Join(dir, "plan.yaml"),
			What: fmt.Sprintf("this is not the plan of these results, whose digest is %.12s", claimed)}
	case provenance.Finished == nil:
		return nil, problem.Problem{File: dir, What: "this run has not ended",
			Hint: "continue it with parley run and the same --out"}
	}
	if err := s.releases(dir, methods); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(s.Released)
	s.Origin.Study, s.Origin.Plan, s.Origin.Seed, s.Origin.Released = s.Plan.Name, digest.String(), s.Plan.Seed,
		hex.EncodeToString(sum[:])
	s.Origin.Finished, s.Origin.Left = *provenance.Finished, provenance.Left
	cost, err := methods.Cost(s.Plan)
	if err != nil {
		return nil, err
	}
	s.Origin.Guarantee = cost.Lines()
	if s.Origin.Exact = !s.Plan.Privacy.Differential(); s.Origin.Exact {
		return s, nil
	}
	return s, s.judged(filepath.Join(dir, "privacy.json"))
}

// releases reads what the sites released.
func (s *ReleasedStudy) releases(dir string, methods method.Registry) error {
	m, _ := methods.Lookup(s.Plan.Method.Name)
	able, ok := m.(method.Refitter)
	if !ok {
		return problem.Problem{File: dir, What: fmt.Sprintf("nothing else can be made of what sites release to "+
			"method %s", s.Plan.Method.Name)}
	}
	s.Method = able
	name, err := able.ReleasedFile(s.Plan)
	if err != nil {
		return InFile(dir, err)
	}
	if s.Released, err = os.ReadFile(filepath.Join(dir, filepath.FromSlash(name))); errors.Is(err, fs.ErrNotExist) {
		return problem.Problem{File: filepath.Join(dir, filepath.FromSlash(name)),
			What: "what the sites released is not here", Hint: "the whole results directory of the study, run by a " +
				"version that keeps it"}
	}
	return err
}

// judged reads whether the study kept what it promised, where that is recorded.
func (s *ReleasedStudy) judged(file string) error {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var privacy struct {
		Holds  *bool    `json:"holds"`
		Broken []string `json:"broken"`
	}
	if err := json.Unmarshal(data, &privacy); err != nil || privacy.Holds == nil {
		return problem.Problem{File: file, What: "this does not say whether the study's guarantee holds"}
	}
	s.Origin.Broken = privacy.Broken
	if !*privacy.Holds && len(s.Origin.Broken) == 0 {
		s.Origin.Broken = []string{"the study promised no total"}
	}
	return nil
}

// InFile names the file of a problem that has none.
func InFile(file string, err error) error {
	if p := (problem.Problem{}); errors.As(err, &p) && p.File == "" {
		p.File = file
		return p
	}
	return err
}

// Lines say to people what more that is made of the releases costs, and why.
func (o *Origin) Lines() (lines []string) {
	if o.Exact {
		return []string{"no site was asked again, and no row was read; what the sites released has no noise"}
	}
	for i, line := range o.Guarantee { // the promise, and then what it rests on
		if i == 0 {
			line = "nothing is added to " + line + ", as no site was asked again, and no row was read"
		}
		lines = append(lines, line)
	}
	return lines
}

// section says what post-processing of the study's releases is covered by.
func (o *Origin) section() figure.Section {
	note := figure.Note{Title: "Post-processing: no further cost",
		Text: fmt.Sprintf("No row was read for this page, and no site was asked. All of it was computed from what the "+
			"sites of study %s (plan %.12s, ended %s) had released, with the noise that was in it. Whatever is "+
			"computed from protected releases is as protected as they are: the guarantee of that study covers this "+
			"page too, however many like it are made.\n\nThat guarantee: %s.",
			o.Study, o.Plan, o.Finished.UTC().Format("2006-01-02 15:04 UTC"), strings.Join(o.Guarantee, "; "))}
	if o.Exact {
		note = figure.Note{Title: "Made without asking the sites again",
			Text: fmt.Sprintf("No row was read for this page. All of it was computed from what the sites of study %s "+
				"(plan %.12s, ended %s) had released, without noise. It is as little protected as that study's own "+
				"report.",
				o.Study, o.Plan, o.Finished.UTC().Format("2006-01-02 15:04 UTC"))}
	}
	items := []figure.Item{{Note: &note}}
	if len(o.Broken) > 0 {
		items = slices.Insert(items, 0, figure.Item{Note: &figure.Note{Title: "The study itself has no guarantee",
			Warning: true,
			Text: "This page costs nothing more, but what the sites released is not protected as the plan says: " +
				strings.Join(o.Broken, "; ") + "."}})
	}
	return figure.Section{ID: "privacy", Title: "Privacy", Items: items}
}
