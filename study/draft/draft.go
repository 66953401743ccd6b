// Package draft writes a first plan for the data in a folder: its sites, views and
// features with their types, the codes for missing values that it suspects, and a
// method with the reason for it. People read the plan and change it.
//
// A plan is public, so a draft says of the data only what a plan has to: names of
// columns, levels that at least [dataset.SmallCell] subjects have, suspected codes, and
// a rounded count where it is too small for the plan. It takes no range from them, because the range of a private study must not depend
// on data.
package draft

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"parley/dataset"
	"parley/problem"
	"parley/study"
)

const (
	maxLevels  = 20 // of a category
	maxOutcome = 10 // levels of an outcome
	simulated  = 3  // sites over which one data set is spread
)

// absent are words, in lower case, that people write for a value that was not measured.
var absent = map[string]bool{"?": true, "-": true, "--": true, ".": true, "n/a": true, "#n/a": true, "#na": true, "n.a.": true, "nd": true, "n.d.": true, "nk": true,
	"missing": true, "unknown": true, "not done": true, "not known": true, "not measured": true}

// Options are what a person may say beforehand.
type Options struct {
	Name     string   // of the study; from the folder if empty
	Outcome  string   // column of the subjects tables to predict; "" for none
	Missing  []string // codes for missing values that are known
	LeaveOut []string // views and columns that the plan shall not have
}

// Draft is a first plan, and what led to it.
type Draft struct {
	Name     string    `json:"name"`
	Sites    []site    `json:"sites"`
	Data     string    `json:"data,omitempty"` // one data set that is spread over simulated sites
	Missing  []string  `json:"missing"`        // words and known codes, in every view
	Views    []view    `json:"views"`
	Subjects []string  `json:"subjects"`
	LeftOut  []leftOut `json:"left_out"`
	// Candidates are columns of all subjects tables that could be outcomes.
	Candidates []candidate `json:"outcome_candidates"`
	Outcome    *candidate  `json:"outcome,omitempty"`
	Incomplete int64       `json:"incomplete,omitempty"` // subjects without a value of the outcome
	Method     string      `json:"method"`
	Reason     string      `json:"reason"`
	// Said is what a person should know first. It may quote cells and is no part of a plan.
	Said problem.List `json:"-"`

	columns    []*column
	survival   string          // the outcome as the time until an event, if it looks like one
	tooFew     string          // why the data are few for the plan, in rounded numbers; "" if they are not
	mayBeKinds map[string]bool // numbers by name that take a few whole values at every site
}

// site is a folder of data.
type site struct {
	Name     string   `json:"name"`
	Folder   string   `json:"folder,omitempty"` // "" if it is simulated
	Subjects int64    `json:"subjects,omitempty"`
	Lacks    []string `json:"lacks"` // views

	dir      *dataset.Dir
	profiles []dataset.ColumnProfile
	census   *dataset.Census
}

// view is a view that some site has, with the features that all sites have that have it.
type view struct {
	Name     string          `json:"name"`
	Features []study.Feature `json:"features"`
}

// leftOut is a column that is not in the plan.
type leftOut struct {
	View   string `json:"view,omitempty"` // "" for a column of the subjects tables
	Column string `json:"column"`
	Why    string `json:"why"`
}

// candidate is a column that may be an outcome: one of a few levels, or numbers.
type candidate struct {
	Column string   `json:"column"`
	Levels []string `json:"levels,omitempty"` // none for numbers
}

// Look reads the data below a folder, which is one data set or holds one folder for
// each site, and drafts a plan. It is an error if the data cannot be read, or if
// nothing in them can be modelled.
func Look(ctx context.Context, path string, o Options) (*Draft, error) {
	d := &Draft{Name: o.Name, Missing: slices.Clone(o.Missing), Views: []view{}, Subjects: []string{}, LeftOut: []leftOut{}, Candidates: []candidate{}}
	if d.Missing == nil {
		d.Missing = []string{}
	}
	if d.Name == "" {
		full, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		d.Name = siteName(filepath.Base(full))
	}
	if !study.IsName(d.Name) {
		return nil, problem.Problem{What: fmt.Sprintf("%q cannot be the name of a study", d.Name), Hint: "--name with lower-case letters, digits and hyphens"}
	}
	if err := d.findSites(path); err != nil {
		return nil, err
	}
	var wrong problem.List
	for i := range d.Sites {
		s := &d.Sites[i]
		wrong = append(wrong, unread(s.Folder)...)
		err := s.read(ctx)
		if list := (problem.List)(nil); errors.As(err, &list) {
			wrong = append(wrong, list...)
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", s.Folder, err)
		}
	}
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	if err := d.leaveOut(o.LeaveOut); err != nil {
		return nil, err
	}
	d.mergeColumns()
	d.respelt()
	if err := d.differ().Err(); err != nil {
		return nil, err
	}
	d.findSubjects()
	if err := d.choose(o.Outcome); err != nil {
		return nil, err
	}
	d.findViews()
	if wrong = d.lostViews(); len(wrong) == 0 { // else a site may have none of the views
		if err := d.suspect(ctx); err != nil {
			return nil, err
		}
		wrong = d.lostViews()
	}
	if len(wrong) == 0 {
		wrong = append(d.compareLevels(), d.sameRows()...)
	}
	if len(wrong) == 0 {
		wrong = d.settle()
	}
	if len(wrong) > 0 { // what was said before is why
		return nil, append(wrong, d.Said...).Err()
	}
	return d, nil
}

func (s *site) read(ctx context.Context) (err error) {
	if s.dir, err = dataset.Open(ctx, s.Folder, dataset.Options{}); err != nil {
		return err
	}
	s.profiles, err = s.dir.Profile(ctx)
	return err
}
