// Package study reads, checks and names the plan of a study: the complete,
// immutable description of one run. People write it as YAML, which [Load]
// decodes strictly, reporting everything that is wrong together, with line and
// column. Between machines it travels as the bytes of [Plan.Encode], and their
// SHA-256, [Plan.Digest], is its name. A plan is data: it can make a site
// compute only what the site's own program offers.
//
// Where one process finds data for a simulation ([Local]) may stand in the same
// file, but is no part of the plan: it changes neither bytes nor digest.
package study

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"parley/dataset"
	"parley/internal/document"
	"parley/problem"
)

// Version is the version of the plan format that this package reads and writes.
const Version = 1

// MaxBytes limits a plan, as YAML and encoded.
const MaxBytes = document.MaxBytes

// Plan is an effective plan: every default is filled in. One that came from
// [Load], [Parse] or [Decode] has passed all checks; it must not be changed.
type Plan struct {
	Version  int      `json:"parley"`             // Version
	Name     string   `json:"name"`               // [a-z0-9][a-z0-9-]{0,39}
	Question string   `json:"question,omitempty"` // for people
	Seed     uint64   `json:"seed"`               // everything random but privacy noise is a function of it; default 1
	Sites    []string `json:"sites"`              // unique, of the form of Name
	Quorum   int      `json:"quorum"`             // sites that must stay in the study, 1 to all (the default)
	// Deadline is how long a site whose people have approved may take to answer a task, and
	// ApprovalDeadline how long people may take to approve, both while the coordinator
	// serves, before the site leaves the study; empty for ever.
	Deadline         Duration `json:"deadline,omitempty"`
	ApprovalDeadline Duration `json:"approval_deadline,omitempty"`
	// Missing are cells that stand for a measurement that was not made, in every view.
	Missing  []Code   `json:"missing,omitempty"`
	Views    []View   `json:"views"`              // their order is that of every model's parameters
	Subjects []string `json:"subjects,omitempty"` // label columns of the subjects table, which describe results
	// CompleteCases are columns of Subjects: a subject without a value there takes no part. How many
	// a site leaves out is told to nobody else.
	CompleteCases []string `json:"complete_cases,omitempty"`
	Method        Method   `json:"method"`
	Privacy       Privacy  `json:"privacy"`

	Local *Local `json:"local,omitempty" cbor:"-"` // nil if the plan is not bound to data

	of *Plan // of [Plan.Cohort]: the whole
}

// View is a named block of features measured together.
type View struct {
	Name     string    `json:"name"`              // [A-Za-z0-9][A-Za-z0-9_-]{0,39}
	Missing  []Code    `json:"missing,omitempty"` // as of the plan, in this view
	Features []Feature `json:"features"`
}

// Code is a cell that stands for a measurement that was not made, such as -9 or
// unknown. One that is a number stands for every way to write that number.
type Code = document.Cell

// The kinds of feature.
const (
	Number   = "number"   // the default
	Category = "category" // needs levels
)

// Feature is one column of a view. In YAML a number without range and unit may
// be written as its name alone.
type Feature struct {
	Name   string   `json:"name"`
	Kind   string   `json:"kind"`             // Number or Category
	Levels []string `json:"levels,omitempty"` // of a category, at least two, in the order of their codes
	// of a category: the level that one not listed counts as; without it such a cell is refused
	Other string `json:"other,omitempty"`
	// of a number: lowest and highest plausible value, known without looking at the data
	Range *[2]float64 `json:"range,omitempty"`
	Unit  string      `json:"unit,omitempty"` // of a number, for people
	// Missing are cells that stand for a missing value, as of the plan, in this feature.
	Missing []Code `json:"missing,omitempty"`
}

// Method names a method and holds its options, a pointer to a struct that the
// method defines.
type Method struct {
	Name    string
	Options any
}

// Methods knows the methods a plan may name.
type Methods interface {
	// Options returns a pointer to a new struct of the method's options with
	// every default filled in, or false if there is no such method. Fields are
	// named by their json tags; they may be bool, string, int, int64, uint64,
	// float64, and structs, slices, arrays and pointers of these. Slices and
	// pointers that are nil by default have the tag omitempty, and nothing has
	// it that is not empty by default: otherwise writing a plan and reading it
	// back would change it.
	Options(name string) (options any, ok bool)
	// Names returns the names of all methods, in the order to show them in.
	Names() []string
}

// Checker is implemented by options that demand more than the types of their
// fields say. Check reports each demand that the plan does not meet, under the key of an
// option or, as views[0].features[1], of a feature. The plan's Views, Sites and Quorum may be wrong themselves.
type Checker interface {
	Check(p *Plan, report Report)
}

// Filler is implemented by options with defaults that depend on other options,
// or on the rest of the plan, such as its privacy. Fill is called once for
// options that came from YAML, before any check, so everything in the plan may
// still be wrong; missing says whether nothing was written for a key.
type Filler interface {
	Fill(p *Plan, missing func(key string) bool)
}

// Former is implemented by options that had other keys before.
type Former = document.Former

// RangeTeller is implemented by options that know what becomes of values beyond the ranges of a
// checked plan, in words that go on after "values lie beyond the plan's range, ", such as [RangeEnds]
// and [RangeAsIs].
type RangeTeller interface {
	BeyondRange(p *Plan) string
}

// What becomes of values beyond a range.
const (
	RangeEnds = "and count as its ends"
	RangeAsIs = "and count as they are"
)

// Local says where one process finds the data of all sites: either Data, which
// Split spreads over the sites, or a folder for each site. Paths are relative
// to the plan's file until [Load] resolves them.
type Local struct {
	Data  string            `json:"data,omitempty"`
	Split *Split            `json:"split,omitempty"`
	Sites map[string]string `json:"sites,omitempty"`
	// file with the policy of every site; default: that of simulations
	Policy string `json:"policy,omitempty"`
	// folder of the site stores, which several studies may share; default: in the results
	Stores string `json:"stores,omitempty"`
}

// Split says how one data set is spread over the sites of a simulation.
type Split struct {
	Scenario string `json:"scenario"`     // one of Scenarios
	By       string `json:"by,omitempty"` // column of the subjects table to stratify or divide by
	Seed     uint64 `json:"seed"`         // default: the plan's
	// Scheme, one of Schemes, or else Rho and Kappa say how far sites differ.
	// For scenario unequal only.
	Scheme string  `json:"scheme,omitempty"`
	Rho    float64 `json:"rho,omitempty"`   // in sizes: from 0, below 1
	Kappa  float64 `json:"kappa,omitempty"` // in classes: at most 1
	// Unused are levels of the column whose subjects no site is given, such as
	// rows kept for testing. For scenarios column and unequal only.
	Unused []string `json:"unused,omitempty"`
}

// Scenarios and Schemes are the names that a split may have, as evaluation
// knows them.
var (
	Scenarios = []string{"IID", "G", "K", "G/K", "column", "unequal"}
	Schemes   = []string{"A", "B", "C", "D"}
)

// Load reads and checks the plan in a YAML file. What is wrong with it comes
// back as one problem.List. Paths under local are resolved against the file.
func Load(path string, methods Methods) (*Plan, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, problem.List{{File: path, What: "there is no such file",
			Hint: "parley init FOLDER writes a plan for a folder of data"}}
	}
	if err != nil {
		return nil, fmt.Errorf("reading the plan: %w", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, problem.List{{File: path, What: "this is a folder, not a plan",
			Hint: "give a plan's file; parley init " + path + " writes one if the folder holds data"}}
	}
	b, err := io.ReadAll(io.LimitReader(f, MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("reading the plan: %w", err)
	}
	p, err := Parse(path, b, methods)
	if err != nil {
		return nil, err
	}
	if p.Local != nil {
		p.Local.resolve(filepath.Dir(path))
	}
	return p, nil
}

func (l *Local) resolve(dir string) {
	join := func(path string) string {
		if filepath.IsAbs(path) {
			return path
		}
		return filepath.Join(dir, path)
	}
	if l.Data != "" {
		l.Data = join(l.Data)
	}
	for _, path := range []*string{&l.Policy, &l.Stores} {
		if *path != "" {
			*path = join(*path)
		}
	}
	for site, path := range l.Sites {
		l.Sites[site] = join(path)
	}
}

// Parse is [Load] of bytes; name stands for the file in what is reported.
func Parse(name string, b []byte, methods Methods) (*Plan, error) {
	p := &Plan{Seed: 1}
	err := plans(methods).Decode(name, b, p,
		func(missing func(path string) bool, report func(path, what, hint string)) {
			p.fill(missing)
			check(p, methods, missing, report)
		})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// fill puts defaults where nothing was written.
func (p *Plan) fill(missing func(path string) bool) {
	p.Question = strings.TrimSpace(p.Question)
	if missing("quorum") {
		p.Quorum = len(p.Sites)
	}
	for k, v := range p.Views {
		for j := range v.Features {
			if missing(fmt.Sprintf("views[%d].features[%d].kind", k, j)) {
				v.Features[j].Kind = Number
			}
		}
	}
	p.fillSecure(missing)
	if options, ok := p.Method.Options.(Filler); ok {
		options.Fill(p, func(key string) bool { return missing("method." + key) })
	}
	if p.Local != nil && p.Local.Split != nil && missing("local.split.seed") {
		p.Local.Split.Seed = p.Seed
	}
}

// Codes returns the cells that stand for a missing value of feature j of view k:
// those of the plan, of the view and of the feature, together. It is nil for none.
func (p *Plan) Codes(k, j int) (codes []string) {
	v := &p.Views[k]
	for _, list := range [][]Code{p.Missing, v.Missing, v.Features[j].Missing} {
		for _, c := range list {
			codes = append(codes, string(c))
		}
	}
	return codes
}

// Schema returns the views and columns that the plan speaks of.
func (p *Plan) Schema() dataset.Schema {
	var s dataset.Schema
	for k, v := range p.Views {
		view := dataset.View{Name: v.Name}
		for j, f := range v.Features {
			c := dataset.Column{Name: f.Name, Kind: dataset.Number, Missing: p.Codes(k, j), Range: f.Range}
			if f.Kind == Category {
				c.Kind, c.Levels, c.Other = dataset.Category, f.Levels, f.Other
			}
			view.Columns = append(view.Columns, c)
		}
		s.Views = append(s.Views, view)
	}
	for _, name := range p.Subjects {
		c := dataset.Column{Name: name, Kind: dataset.Label}
		if slices.Contains(p.CompleteCases, name) {
			c.Required = true
			for _, code := range p.Missing {
				c.Missing = append(c.Missing, string(code))
			}
		}
		s.Subject = append(s.Subject, c)
	}
	s.Person = p.Privacy.Person
	if options, ok := p.Method.Options.(RangeTeller); ok {
		s.BeyondRange = options.BeyondRange(p)
	}
	return s
}
