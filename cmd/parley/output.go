package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"parley/dataset"
	"parley/figure"
	"parley/internal/files"
	"parley/internal/tabular"
	"parley/method"
	"parley/problem"
	"parley/report"
)

// output is a file that a command writes for somebody. It replaces nothing
// unless that is asked for, and never what the command itself reads.
type output struct {
	path   string
	force  bool
	fixed  bool   // nothing is replaced, and there is no --force
	flag   string // that names it, if not --out
	inputs []string
}

const forceUsage = "replace files that exist"

// flags adds --out and --force.
func (o *output) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.path, "out", "", "file to write: Parquet if its name ends in .parquet, else CSV")
	cmd.Flags().BoolVar(&o.force, "force", false, forceUsage)
	cmd.MarkFlagRequired("out")
}

// check refuses what write would refuse, before there is work to be lost. The
// inputs are files that the command reads, and may not exist.
func (o *output) check(inputs ...string) error {
	o.inputs = inputs
	flag := cmp.Or(o.flag, "--out")
	if o.path == "" || os.IsPathSeparator(o.path[len(o.path)-1]) {
		return &usageError{fmt.Errorf("%s %q is not the name of a file", flag, o.path)}
	}
	if _, err := os.Lstat(o.path); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	refused := problem.Problem{File: o.path, Hint: "choose another with " + flag}
	target, err := os.Stat(o.path)
	switch {
	case errors.Is(err, fs.ErrNotExist): // a link to nothing, which is a file to be kept as any other
	case err != nil:
		return err
	case slices.ContainsFunc(inputs, func(input string) bool {
		info, err := os.Stat(input)
		return err == nil && os.SameFile(info, target)
	}):
		refused.What = "this command reads this file, and does not replace it, with --force or without"
		return refused
	case target.IsDir():
		refused.What = "this is a folder, and is not replaced by a file"
		return refused
	case !target.Mode().IsRegular():
		refused.What = "this is not a regular file, and is not replaced"
		return refused
	}
	if o.force {
		return nil
	}
	refused.What = "this file exists already, and was left as it is"
	if !o.fixed {
		refused.Hint += ", or replace this one with --force"
	}
	return refused
}

// write writes the file. Whatever has taken its name since check stays, unless
// it may be replaced.
func (o *output) write(write func(io.Writer) error) error {
	if csv := write; strings.HasSuffix(o.path, ".parquet") {
		write = func(w io.Writer) error { return tabular.WriteParquet(w, csv) }
	}
	if o.force {
		return files.Stream(o.path, write) // in place of a link, not of what it leads to
	}
	err := files.Create(o.path, write)
	if errors.Is(err, fs.ErrExist) {
		if refused := o.check(o.inputs...); refused != nil {
			return refused
		}
	}
	return err
}

// writeFiles writes files into a folder, or none of them if one is in the way.
func writeFiles(files []method.File, dir string, force bool, inputs []string) error {
	outputs := make([]output, len(files))
	for i, f := range files {
		outputs[i] = output{path: filepath.Join(dir, filepath.FromSlash(f.Name)), force: force}
		if err := outputs[i].check(inputs...); err != nil {
			return err
		}
	}
	for i, f := range files {
		if err := outputs[i].write(f.Stream); err != nil {
			return err
		}
	}
	return nil
}

// inputsOf are the files that a command with the arguments MODEL and DATA may read.
func inputsOf(a []string) []string {
	files := []string{a[0], filepath.Join(a[0], "model.json"), filepath.Join(a[0], "model", "model.json")}
	for _, data := range a[1:] {
		files = append(files, dataset.Files(data)...)
	}
	return files
}

// checkFolder refuses a folder for results whose name a file has. Whether what
// is in the folder may be added to is for whoever writes there to say.
func checkFolder(path string) error {
	if info, err := os.Stat(path); err != nil || info.IsDir() {
		return nil
	}
	return problem.Problem{File: path, What: "this is a file, and what is written is a folder",
		Hint: "choose another with --out"}
}

// form is how a command prints what it has found: for people or, with --json, for
// programs.
type form struct{ json bool }

// flag adds --json to a command, which it returns.
func (f *form) flag(cmd *cobra.Command, usage string) *cobra.Command {
	cmd.Flags().BoolVar(&f.json, "json", false, usage)
	return cmd
}

// line prints v on one line, or else what text prints.
func (f form) line(cmd *cobra.Command, v any, text func(io.Writer) error) error {
	if f.json {
		return json.NewEncoder(cmd.OutOrStdout()).Encode(v)
	}
	return text(cmd.OutOrStdout())
}

// object prints v with indentation, which people read too, or else what text prints.
func (f form) object(cmd *cobra.Command, v any, text func(io.Writer) error) error {
	if f.json {
		out := json.NewEncoder(cmd.OutOrStdout())
		out.SetIndent("", "  ")
		return out.Encode(v)
	}
	return text(cmd.OutOrStdout())
}

// printLines prints each line behind a word that says what it is.
func printLines(w io.Writer, word string, lines []string) {
	for _, l := range lines {
		fmt.Fprintln(w, word, l)
	}
}

// accountPage is a folder for an answer with its pictures, if one is asked for.
type accountPage struct{ dir string }

func (p *accountPage) flag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.dir, "out", "", "also write a page with pictures into this new or empty folder")
}

// check refuses a folder with something in it, before there is work to be lost.
func (p *accountPage) check() error {
	if p.dir == "" {
		return nil
	}
	if err := checkFolder(p.dir); err != nil {
		return err
	}
	if entries, err := os.ReadDir(p.dir); err == nil && len(entries) > 0 {
		return problem.Problem{File: p.dir, What: "this folder is not empty, and was left as it is",
			Hint: "choose another with --out"}
	}
	return nil
}

// write writes the page.
func (p *accountPage) write(title string, a *method.Account) error {
	if p.dir == "" {
		return nil
	}
	page := &report.Report{Title: title, Meta: a.Facts}
	var cautions []figure.Note
	for _, n := range a.Notes {
		cautions = append(cautions, figure.Note{Title: problem.Problem{File: n.File, Line: n.Line, Column: n.Column,
			Where: n.Where, What: n.What}.Error(), Text: n.Hint})
	}
	answer := figure.Section{ID: "answer", Title: "Pictures"}
	for i := range a.Figures {
		answer.Items = append(answer.Items, figure.Item{Figure: &a.Figures[i]})
	}
	numbers := figure.Section{ID: "numbers", Title: "Numbers"}
	for i, t := range a.Tables {
		t.ID = fmt.Sprintf("table-%d", i+1)
		numbers.Items = append(numbers.Items, figure.Item{Table: &t})
	}
	page.Sections = append(figure.Verdicts(cautions), answer, numbers)
	return page.WriteFiles(p.dir)
}
