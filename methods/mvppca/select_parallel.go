package mvppca

import (
	"context"
	"runtime"
	"sync"
)

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
				if errs[i] = jobs[i].do(); errs[i] != nil {
					once.Do(func() { close(stop) })
					return
				}
				finished(jobs[i].cost)
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
