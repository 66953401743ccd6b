package main

import (
	"context"
	"iter"
	"sync/atomic"
	"testing"

	"parley/dataset"
	"parley/engine/local"
	"parley/internal/testkit"
	"parley/study"
)

// counted counts how often the rows of a data set are read.
type counted struct {
	dataset.Source
	reads atomic.Int64
}

func (c *counted) Rows(ctx context.Context) iter.Seq2[*dataset.Row, error] {
	return func(yield func(*dataset.Row, error) bool) {
		c.reads.Add(1)
		c.Source.Rows(ctx)(yield)
	}
}

// After the one census, rows are read at most once for each task and once to find outliers,
// and twice for the site's own report, whose second pass draws what the first has found.
func TestRowsAreReadFewTimes(t *testing.T) {
	for path, tasks := range map[string]int64{
		"alzheimer/plan.yaml": 3, // two of five tasks, as a half remembers its sums, and the outliers
		"mixture/plan.yaml":   1,
	} {
		plan := testkit.Get(study.Load("../../examples/"+path, methods))(t)
		b := testkit.Get(local.Bind(t.Context(), plan, nil))(t)
		for s, d := range b.Data {
			b.Data[s] = &counted{Source: d}
		}
		out := testkit.Get(local.Run(t.Context(), local.Config{Plan: plan, Methods: methods, Data: b.Data, Summaries: b.Summaries, Policy: b.Policy}))(t)
		testkit.Get(out.SiteReports(t.Context()))(t)
		for s, d := range b.Data {
			n := d.(*counted).reads.Load()
			t.Logf("%s: site %s read its rows %d times", path, s, n)
			if n > tasks+2 {
				t.Errorf("%s: site %s read its rows %d times, for %d tasks that need them and a report", path, s, n, tasks)
			}
		}
	}
}
