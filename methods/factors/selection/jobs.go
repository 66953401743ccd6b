package selection

import (
	"context"
	"runtime"
	"sync"
)

// job is a piece of work that depends on no other of its stage. It writes to places of
// its own, so that the outcome does not depend on which came first.
type job struct {
	Cost float64 // in the time of one factor of one one shot, roughly
	Do   func() error
}

// shotCost is the cost of a one shot with q factors.
func shotCost(q int) float64 { return 1 + float64(q) }

// progress returns what takes in the cost of each job that is done, and reports how far
// all stages together are; report may be nil.
func progress(report func(done, of float64), stages ...[]job) func(cost float64) {
	of, done := 0.0, 0.0
	for _, jobs := range stages {
		for _, j := range jobs {
			of += j.Cost
		}
	}
	var mu sync.Mutex
	return func(cost float64) {
		mu.Lock()
		defer mu.Unlock()
		done += cost
		if report != nil {
			report(done, of)
		}
	}
}

// inParallel does the jobs, as many at a time as there are processors, and
// returns the error of the first job in order that failed. It waits for jobs
// under way, and starts none after an error or once ctx has ended.
func inParallel(ctx context.Context, jobs []job, finished func(cost float64)) error {
	errs := make([]error, len(jobs))
	next := make(chan int)
	stop := make(chan struct{})
	var once sync.Once
	var wait sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(jobs)) {
		wait.Go(func() {
			for i := range next {
				if errs[i] = jobs[i].Do(); errs[i] != nil {
					once.Do(func() { close(stop) })
					return
				}
				finished(jobs[i].Cost)
			}
		})
	}
	func() {
		defer close(next)
		for i := range jobs {
			select {
			case next <- i:
			case <-stop:
				return
			case <-ctx.Done():
				return
			}
		}
	}()
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}
