package crossval

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"parley/internal/atomicfile"
	"parley/internal/version"
	"parley/problem"
)

// Settings are what an experiment's outcome depends on. Repeats and scenarios
// are not among them: more of them may be asked for later.
type Settings struct {
	Program string   `json:"program"`
	Study   string   `json:"study"`
	Plan    string   `json:"plan_sha256"`
	Data    string   `json:"data_sha256"`
	Folds   int      `json:"folds"`
	Sites   []string `json:"sites"`  // simulated, or real
	Groups  string   `json:"groups"` // the column that G and G/K divide by
	Label   string   `json:"label"`  // the column that is told apart in latent space
}

func (e *evaluation) settings() (*Settings, error) {
	digest, err := e.Plan.Digest()
	if err != nil {
		return nil, err
	}
	return &Settings{
		Program: "parley " + version.Number, Study: e.Plan.Name, Plan: digest.String(), Data: e.fingerprint,
		Folds: e.Folds, Sites: e.sites, Groups: e.groupColumn, Label: e.Label,
	}, nil
}

// differs names what another evaluation was made with, or returns "".
func (s *Settings) differs(old *Settings) string {
	for _, c := range []struct{ what, was, is string }{
		{"program", old.Program, s.Program},
		{"plan", fmt.Sprintf("%.12s", old.Plan), fmt.Sprintf("%.12s", s.Plan)},
		{"data", fmt.Sprintf("%.12s", old.Data), fmt.Sprintf("%.12s", s.Data)},
		{"folds", fmt.Sprint(old.Folds), fmt.Sprint(s.Folds)},
		{"sites", strings.Join(old.Sites, " "), strings.Join(s.Sites, " ")},
		{"column of groups", old.Groups, s.Groups},
		{"label", old.Label, s.Label},
	} {
		if c.was != c.is {
			return fmt.Sprintf("%s %s, not %s", c.what, c.was, c.is)
		}
	}
	return ""
}

// record is what came of one experiment.
type record struct {
	Scores map[string]Scores `json:"scores"`           // by fit
	Failed map[string]string `json:"failed,omitempty"` // why a fit could not be made, or not at every site
}

// store keeps records, one file each, which appear whole or not at all.
type store struct{ dir string }

// openStore makes dir the place of an evaluation with these settings. One that
// belongs to another is refused and left as it is.
func openStore(dir string, s *Settings) (*store, error) {
	file := filepath.Join(dir, "settings.json")
	data, err := os.ReadFile(file)
	if err == nil {
		var old Settings
		if err := json.Unmarshal(data, &old); err != nil {
			return nil, problem.Problem{File: file, What: "these are not an evaluation's settings: " + err.Error(), Hint: "choose another directory with --out"}
		}
		if d := s.differs(&old); d != "" {
			return nil, problem.Problem{File: dir, What: "this directory holds another evaluation: " + d,
				Hint: "choose another directory with --out, or remove this one"}
		}
		return &store{dir}, nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return nil, problem.Problem{File: dir, What: "this directory is not empty and holds no evaluation", Hint: "choose another with --out"}
	}
	return &store{dir}, writeJSON(file, s)
}

func (s *store) path(x experiment) string { return filepath.Join(s.dir, "folds", x.key()+".json") }

// has says whether the experiment is done.
func (s *store) has(x experiment) (bool, error) {
	_, err := s.get(x)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func (s *store) get(x experiment) (*record, error) {
	data, err := os.ReadFile(s.path(x))
	if err != nil {
		return nil, err
	}
	r := new(record)
	if err := json.Unmarshal(data, r); err != nil {
		return nil, problem.Problem{File: s.path(x), What: "this is not what came of an experiment: " + err.Error(), Hint: "remove the file, and it is computed again"}
	}
	return r, nil
}

func (s *store) put(x experiment, r *record) error { return writeJSON(s.path(x), r) }

func writeJSON(path string, v any) error {
	data, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return atomicfile.Write(path, append(data, '\n'))
}
