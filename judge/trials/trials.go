// Package trials works through many independent computations, several at a
// time, and keeps what came of each as soon as it is known, so that a long
// piece of work that was stopped goes on where it was.
//
// It knows nothing of what is computed: a trial is any value with a name, and
// what came of it is any value that JSON can hold.
package trials

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

// Run computes and keeps the outcome of every trial that is not stored yet.
// Workers is how many to compute at a time, 0 for as many as there are
// processors. The first error ends the work, once what is being computed has
// ended; so does the end of ctx. Progress may be nil, and is never called by
// two goroutines at a time.
func Run[T Trial, R any](ctx context.Context, all []T, kept *Store[R], workers int, conduct func(context.Context, T) (*R, error), progress func(Progress)) error {
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
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	state.Abreast = min(max(1, workers), len(todo))
	report := func() {
		if progress != nil {
			progress(state)
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

// Work says where outcomes are kept and how they are computed.
type Work struct {
	Dir, Folder, Kind string         // see [Open]
	Workers           int            // see [Run]
	Progress          func(Progress) // see [Run]
}

// Complete opens the place of a piece of work, computes what is missing there, and
// returns what came of all trials: [Open] and [Run].
func Complete[T Trial, R, S any, P Settings[S]](ctx context.Context, w Work, settings P, all []T, conduct func(context.Context, T) (*R, error)) (*Store[R], error) {
	kept, err := Open[R](w.Dir, w.Folder, w.Kind, settings)
	if err != nil {
		return nil, err
	}
	return kept, Run(ctx, all, kept, w.Workers, conduct, w.Progress)
}
