// Package verify checks an installation against published test vectors: files of numbers
// that independent implementations computed of what studies run, with the tolerance that
// each file's description states. A site uses it to qualify the program that it was given.
package verify

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"text/tabwriter"

	"parley/internal/vectors"
	"parley/privacy/account"
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
// damaged. An error is returned if nothing was recognised.
func Run(dir fs.FS) (*Report, error) {
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
			f = run(data, head.Schema)
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

// runs are the verifications of each family of files, by how its schemas begin.
var runs = map[string]func(file []byte) ([]vectors.Check, error){
	account.VectorSchema: account.Verify,
	"fedmvppca/":         formats(factorsFormats),
}

func formats(of map[string]func([]byte, *vectors.List) error) func([]byte) ([]vectors.Check, error) {
	return func(file []byte) ([]vectors.Check, error) { return vectors.Run(file, of) }
}

func run(data []byte, schema string) (f File) {
	family, _, _ := strings.Cut(schema, "/")
	verify, known := runs[family+"/"]
	if !known {
		f.Error = "nothing in this program knows this schema"
		return f
	}
	checks, err := verify(data)
	f.OK = err == nil && vectors.List(checks).OK()
	if err != nil {
		f.Error = err.Error()
	}
	for _, c := range checks {
		f.Checks = append(f.Checks, Check{c.Entry, c.OK, c.Want, c.Got})
	}
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
