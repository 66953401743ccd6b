package dataset

import (
	"fmt"
	"maps"
	"slices"

	"parley/problem"
)

// maxFaults is how many problems of one file are listed.
const maxFaults = 20

// faults collects what is wrong with one file.
type faults struct {
	path  string
	list  problem.List
	total int
	cells map[string]int // faults of cells, by column
	// tolerant makes no fault of what single records hold: one that cannot be read is
	// passed over, and those beside it are as they would be without it.
	tolerant bool
	passed   int64 // faults that are none, since they are tolerated
}

func (f *faults) add(p problem.Problem) {
	if f.tolerant {
		f.passed++
		return
	}
	f.total++
	if len(f.list) < maxFaults {
		if p.File == "" {
			p.File = f.path
		}
		f.list.Add(p)
	}
}

// addCell adds what is wrong with one cell of a column.
func (f *faults) addCell(column string, p problem.Problem) {
	if f.cells == nil {
		f.cells = map[string]int{}
	}
	f.cells[column]++
	f.add(p)
}

// problems returns what was found, headed by the count where not all is listed.
func (f *faults) problems() problem.List {
	said := map[string]bool{}
	for i := range f.list { // the same hint once
		if p := &f.list[i]; said[p.Hint] {
			p.Hint = ""
		} else {
			said[p.Hint] = true
		}
	}
	if f.total <= maxFaults {
		return f.list
	}
	head := problem.Problem{File: f.path, What: fmt.Sprintf("%d problems; the first %d are listed", f.total, maxFaults)}
	var columns []string
	for _, column := range slices.Sorted(maps.Keys(f.cells)) {
		columns = append(columns, fmt.Sprintf("%s (%d)", column, f.cells[column]))
	}
	if len(columns) > 0 {
		head.Hint = "cells by column: " + problem.Names(columns)
	}
	return append(problem.List{head}, f.list...)
}

// gather joins the problems of several files.
func gather(all []*faults) error {
	var list problem.List
	for _, f := range all {
		list = append(list, f.problems()...)
	}
	return list.Err()
}
