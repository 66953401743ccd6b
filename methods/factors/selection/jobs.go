package selection

import (
	"context"
	"errors"
	"runtime"
	"sync"
)

// job is a piece of work that depends on no other. It writes to places of
// its own, so that the outcome does not depend on which came first.
type job struct {
	Cost float64 // in the time of one factor of one one shot, roughly
	Do   func() error
}

// shotCost is the cost of a one shot with q factors.
func shotCost(q int) float64 { return 1 + float64(q) }

// inParallel does the jobs, as many at a time as there are processors, and reports what is done;
// report may be nil. It starts none once ctx has ended.
func inParallel(ctx context.Context, jobs []job, report func(done, of float64)) error {
	of, done := 0.0, 0.0
	for _, j := range jobs {
		of += j.Cost
	}
	errs, free := make([]error, len(jobs)), make(chan struct{}, runtime.GOMAXPROCS(0))
	var mu sync.Mutex
	var all sync.WaitGroup
	for i, j := range jobs {
		free <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		all.Go(func() {
			defer func() { <-free }()
			errs[i] = j.Do()
			mu.Lock()
			defer mu.Unlock()
			if done += j.Cost; report != nil {
				report(done, of)
			}
		})
	}
	all.Wait()
	return errors.Join(append(errs, ctx.Err())...)
}
