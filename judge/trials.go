package judge

import (
	"context"
	"fmt"
	"runtime"
	"sync"
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
func Complete[T Trial, R, S any, P TrialSettings[S]](ctx context.Context, w Work, settings P, all []T, conduct func(context.Context, T) (*R, error)) (*Store[R], error) {
	kept, err := openTrials[R](w, settings)
	if err != nil {
		return nil, err
	}
	return kept, runTrials(ctx, w, all, kept, conduct)
}

func runTrials[T Trial, R any](ctx context.Context, w Work, all []T, kept *Store[R], conduct func(context.Context, T) (*R, error)) error {
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
