package judge

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"parley/internal/files"
	"parley/problem"
)

// Store keeps what came of trials in a folder, one file each, which appear
// whole or not at all.
type Store[R any] struct{ dir, folder string }

// TrialSettings are what outcomes depend on.
type TrialSettings[S any] interface {
	*S
	// Differs names what an older piece of work was made with, or returns "".
	Differs(old *S) string
}

// openTrials makes or takes up the place of a piece of work.
func openTrials[R, S any, P TrialSettings[S]](w Work, s P) (*Store[R], error) {
	dir, kind := w.Dir, w.Kind
	kept := &Store[R]{dir, w.Folder}
	file := filepath.Join(dir, "settings.json")
	data, err := os.ReadFile(file)
	if err == nil {
		old := new(S)
		if err := json.Unmarshal(data, old); err != nil {
			return nil, problem.Problem{File: file, What: "these are no settings of this kind: " + err.Error(), Hint: "choose another directory with --out"}
		}
		if d := s.Differs(old); d != "" {
			return nil, problem.Problem{File: dir, What: "this directory holds another " + kind + ": " + d,
				Hint: "choose another directory with --out, or remove this one"}
		}
		return kept, nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return nil, problem.Problem{File: dir, What: "this directory is not empty and holds no " + kind, Hint: "choose another with --out"}
	}
	return kept, files.WriteJSON(file, s)
}

func (s *Store[R]) path(key string) string { return filepath.Join(s.dir, s.folder, key+".json") }

// has says whether there is an outcome that can be read.
func (s *Store[R]) has(key string) (bool, error) {
	_, err := s.Get(key)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Get reads what came of the trial of that key; it is an [os.ErrNotExist] if
// that was not run yet.
func (s *Store[R]) Get(key string) (*R, error) {
	data, err := os.ReadFile(s.path(key))
	if err != nil {
		return nil, err
	}
	r := new(R)
	if err := json.Unmarshal(data, r); err != nil {
		return nil, problem.Problem{File: s.path(key), What: "this is not what came of an experiment: " + err.Error(), Hint: "remove the file, and it is computed again"}
	}
	return r, nil
}

func (s *Store[R]) put(key string, r *R) error { return files.WriteJSON(s.path(key), r) }
