package judge

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"parley/figure"
	"parley/internal/files"
	"parley/internal/version"
	"parley/method"
	"parley/problem"
	"parley/report"
)

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
		return problem.Problem{File: dir, What: fmt.Sprintf("this directory holds a refit of other releases (of study %s)", old.Origin.Study), Hint: hint}
	}
	return nil
}

// Refit makes a model with another value of the option that [method.Refitter] chooses, and says
// what of the study's protection covers it.
func (s *ReleasedStudy) Refit(value int) (*method.Result, error) {
	r, err := s.Method.Refit(s.Plan, s.Released, value)
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
	p := provenance{Program: "parley " + version.String(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
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
		Title: fmt.Sprintf("%s, made again with %s: %d", s.Plan.Name, option, value), Subtitle: s.Plan.Question, Headline: r.Headline,
		Meta: []figure.Fact{{Name: "Post-processing of plan", Value: s.Origin.Plan[:12]}, {Name: "Method", Value: s.Plan.Method.Name},
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
