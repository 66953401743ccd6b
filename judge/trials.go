package judge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"parley/internal/files"
	"parley/problem"
)

// Trial is one computation, whose outcome depends on nothing but the settings
// of its [Store] and itself.
type Trial interface {
	String() string // names it for people
	Key() string    // names it for files: letters, digits, dots and hyphens
}

// Progress is how far the work is. Done counts trials, of which Stored were
// computed by an earlier run. Abreast is how many are computed at a time.
type Progress struct{ Done, Stored, Of, Abreast int }

// Work says where outcomes are kept and how they are computed.
type Work struct {
	Dir      string         // its place
	Folder   string         // of outcomes, in it
	Kind     string         // of work, in words: evaluation
	Workers  int            // how many trials to compute at a time, 0 for as many as there are processors
	Progress func(Progress) // may be nil; never called by two goroutines at a time
}

// Complete computes and keeps the outcome of every trial that is not stored yet, and returns
// those of all. A directory that holds something else, or the same with other settings, is
// refused and left as it is. The first error ends the work, once what is being computed has
// ended; so does the end of ctx.
func Complete[T Trial, R, S any, P TrialSettings[S]](ctx context.Context, w Work, settings P, all []T,
	conduct func(context.Context, T) (*R, error)) (*Store[R], error) {
	kept, err := openTrials[R](w, settings)
	if err != nil {
		return nil, err
	}
	return kept, runTrials(ctx, w, all, kept, conduct)
}

func runTrials[T Trial, R any](ctx context.Context, w Work, all []T, kept *Store[R],
	conduct func(context.Context, T) (*R, error)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	state := Progress{Of: len(all)}
	var todo []T
	for _, x := range all {
		ok, err := kept.has(x.Key())
		if err != nil {
			return err
		}
		if ok {
			state.Done, state.Stored = state.Done+1, state.Stored+1
		} else {
			todo = append(todo, x)
		}
	}
	if w.Workers == 0 {
		w.Workers = runtime.GOMAXPROCS(0)
	}
	state.Abreast = min(max(1, w.Workers), len(todo))
	report := func() {
		if w.Progress != nil {
			w.Progress(state)
		}
	}
	report()
	var mu sync.Mutex
	var running sync.WaitGroup
	next := 0
	take := func() (x T, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		if next == len(todo) || ctx.Err() != nil {
			return x, false
		}
		next++
		return todo[next-1], true
	}
	for range state.Abreast {
		running.Go(func() {
			for {
				x, ok := take()
				if !ok {
					return
				}
				r, err := conduct(ctx, x)
				if err == nil {
					err = kept.put(x.Key(), r)
				}
				if err != nil {
					cancel(fmt.Errorf("%v: %w", x, err))
					return
				}
				mu.Lock()
				state.Done++
				report()
				mu.Unlock()
			}
		})
	}
	running.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

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
			return nil, problem.Problem{File: file, What: "these are no settings of this kind: " + err.Error(),
				Hint: "choose another directory with --out"}
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
		return nil, problem.Problem{File: dir, What: "this directory is not empty and holds no " + kind,
			Hint: "choose another with --out"}
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
		return nil, problem.Problem{File: s.path(key), What: "this is not what came of an experiment: " + err.Error(),
			Hint: "remove the file, and it is computed again"}
	}
	return r, nil
}

func (s *Store[R]) put(key string, r *R) error { return files.WriteJSON(s.path(key), r) }
