// Package conformance checks an installation against published test vectors:
// files of numbers that independent implementations computed. A site uses it
// to qualify the program that it was given: [Run] with [Known].
package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"text/tabwriter"

	"parley/dataset"
	"parley/engine/local"
	"parley/internal/vectors"
	"parley/method"
	"parley/privacy/account"
	"parley/study"
)

// Report is the agreement of every file of a folder.
type Report struct {
	OK    bool   `json:"ok"` // everything agrees, and there was something
	Files []File `json:"files"`
}

// File is the agreement of one file.
type File struct {
	Name   string  `json:"name"`
	Schema string  `json:"schema"`
	OK     bool    `json:"ok"`
	Error  string  `json:"error,omitempty"` // why the file could not be run
	Checks []Check `json:"checks,omitempty"`
}

// Check is the agreement of one entry.
type Check struct {
	Entry string `json:"entry"`
	OK    bool   `json:"ok"`
	Want  string `json:"want"` // the value, or the element that differs most
	Got   string `json:"got"`
}

// Run runs every file in the top folder of dir that is JSON with a schema.
// Other files are passed over. A file whose schema is not known, in its name
// or in its version, does not agree, and neither does a .json file that is
// damaged. See [Means] for what files may need. An error is returned if
// nothing was recognised.
func Run(dir fs.FS, verifiers []method.Verifier, means method.Means) (*Report, error) {
	entries, err := fs.ReadDir(dir, ".")
	if err != nil {
		return nil, err
	}
	r := &Report{OK: true}
	for _, e := range entries {
		if path.Ext(e.Name()) != ".json" {
			continue
		}
		data, err := fs.ReadFile(dir, e.Name())
		if err != nil {
			return nil, err
		}
		var head struct {
			Schema string `json:"schema"`
		}
		var f File
		switch err := json.Unmarshal(data, &head); {
		case !json.Valid(data):
			f.Error = "this is not JSON: " + err.Error() // it may have been a vector
		case err != nil || head.Schema == "":
			continue
		default:
			f = run(data, head.Schema, verifiers, means)
		}
		f.Name, f.Schema = e.Name(), head.Schema
		r.Files = append(r.Files, f)
		r.OK = r.OK && f.OK
	}
	if len(r.Files) == 0 {
		return nil, fmt.Errorf("no test vectors here: no .json file has a \"schema\"")
	}
	return r, nil
}

func run(data []byte, schema string, verifiers []method.Verifier, means method.Means) (f File) {
	for _, v := range verifiers {
		if !strings.HasPrefix(schema, v.SchemaPrefix()) {
			continue
		}
		checks, err := v.Verify(data, means)
		f.OK = err == nil && vectors.List(checks).OK()
		if err != nil {
			f.Error = err.Error()
		}
		for _, c := range checks {
			f.Checks = append(f.Checks, Check{c.Entry, c.OK, c.Want, c.Got})
		}
		return f
	}
	f.Error = "nothing in this program knows this schema"
	return f
}

// Print writes a table of agreement, a line for each file, and below it
// everything that does not agree.
func (r *Report) Print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "file\tschema\tentries\tagree\t")
	for _, f := range r.Files {
		agree := 0
		for _, c := range f.Checks {
			if c.OK {
				agree++
			}
		}
		verdict := "agrees"
		if !f.OK {
			verdict = "DISAGREES"
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%s\n", f.Name, f.Schema, len(f.Checks), agree, verdict)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, f := range r.Files {
		if f.OK {
			continue
		}
		if _, err := fmt.Fprintf(w, "\n%s\n", f.Name); err != nil {
			return err
		}
		if f.Error != "" {
			fmt.Fprintf(w, "  %s\n", f.Error)
		}
		for _, c := range f.Checks {
			if !c.OK {
				fmt.Fprintf(w, "  %s: want %s, got %s\n", c.Entry, c.Want, c.Got)
			}
		}
	}
	return nil
}

// Known is every family of test vectors that a program with these methods knows:
// the accountant's, and those of each method that has any.
func Known(methods method.Registry) []method.Verifier {
	list := []method.Verifier{accountant{}}
	for _, m := range methods {
		if v, ok := m.(method.Verifier); ok {
			list = append(list, v)
		}
	}
	return list
}

// Means are what the files of Known may need: data that open opens, and studies of
// these methods in memory.
func Means(methods method.Registry, open vectors.Opener) method.Means {
	return method.Means{Open: open, Run: func(p *study.Plan, rows map[string]dataset.Source) (*method.Result, error) {
		out, err := local.Run(context.Background(), local.Config{Plan: p, Methods: methods, Data: rows})
		if err != nil {
			return nil, err
		}
		return out.Result, nil
	}}
}

// accountant runs the vectors of package account, which need no data.
type accountant struct{}

func (accountant) SchemaPrefix() string { return account.VectorSchema }

func (accountant) Verify(file []byte, _ method.Means) ([]vectors.Check, error) {
	return account.Verify(file)
}
