package judge

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"parley/figure"
	"parley/method"
	"parley/problem"
	"parley/study"
)

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
		return nil, problem.Problem{File: dir, What: "this directory holds no results", Hint: "the results of parley run"}
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
		return nil, problem.Problem{File: filepath.Join(dir, "plan.yaml"), What: fmt.Sprintf("this is not the plan of these results, whose digest is %.12s", claimed)}
	case provenance.Finished == nil:
		return nil, problem.Problem{File: dir, What: "this run has not ended", Hint: "continue it with parley run and the same --out"}
	}
	if err := s.releases(dir, methods); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(s.Released)
	s.Origin.Study, s.Origin.Plan, s.Origin.Seed, s.Origin.Released = s.Plan.Name, digest.String(), s.Plan.Seed, hex.EncodeToString(sum[:])
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
		return problem.Problem{File: dir, What: fmt.Sprintf("nothing else can be made of what sites release to method %s", s.Plan.Method.Name)}
	}
	s.Method = able
	name, err := able.ReleasedFile(s.Plan)
	if err != nil {
		return InFile(dir, err)
	}
	if s.Released, err = os.ReadFile(filepath.Join(dir, filepath.FromSlash(name))); errors.Is(err, fs.ErrNotExist) {
		return problem.Problem{File: filepath.Join(dir, filepath.FromSlash(name)), What: "what the sites released is not here", Hint: "the whole results directory of the study, run by a version that keeps it"}
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
	for _, line := range o.Guarantee {
		lines = append(lines, "nothing is added to "+line+", as no site was asked again, and no row was read")
	}
	return lines
}

// section says what post-processing of the study's releases is covered by.
func (o *Origin) section() figure.Section {
	note := figure.Note{Title: "Post-processing: no further cost",
		Text: fmt.Sprintf("No row was read for this page, and no site was asked. All of it was computed from what the sites of study %s (plan %.12s, ended %s) had released, "+
			"with the noise that was in it. Whatever is computed from protected releases is as protected as they are: the guarantee of that study covers this page too, however many like it are made.\n\nThat guarantee: %s.",
			o.Study, o.Plan, o.Finished.UTC().Format("2006-01-02 15:04 UTC"), strings.Join(o.Guarantee, "; "))}
	if o.Exact {
		note = figure.Note{Title: "Made without asking the sites again",
			Text: fmt.Sprintf("No row was read for this page. All of it was computed from what the sites of study %s (plan %.12s, ended %s) had released, without noise. It is as little protected as that study's own report.",
				o.Study, o.Plan, o.Finished.UTC().Format("2006-01-02 15:04 UTC"))}
	}
	items := []figure.Item{{Note: &note}}
	if len(o.Broken) > 0 {
		items = slices.Insert(items, 0, figure.Item{Note: &figure.Note{Title: "The study itself has no guarantee", Warning: true,
			Text: "This page costs nothing more, but what the sites released is not protected as the plan says: " + strings.Join(o.Broken, "; ") + "."}})
	}
	return figure.Section{ID: "privacy", Title: "Privacy", Items: items}
}
