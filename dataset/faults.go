package dataset

import (
	"fmt"

	"parley/problem"
)

// maxFaults is how many problems of one file are listed.
const maxFaults = 20

// faults collects what is wrong with one file.
type faults struct {
	path  string
	list  problem.List
	total int
	// tolerant leaves out what single cells hold: a record with a bad cell is
	// passed over, and those beside it are as they would be without it.
	tolerant bool
}

func (f *faults) add(p problem.Problem) {
	f.total++
	if len(f.list) < maxFaults {
		p.File = f.path
		f.list.Add(p)
	}
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
