package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"parley/internal/testkit"
	"parley/papers/experiment"
	"parley/papers/quoted"
)

const (
	again  = "run: go run -C papers . report RUN, then go test -C papers . -update"
	runs   = "go run -C papers . run " // a command of the marks, up to the experiment's name
	manual = "../docs"
)

var update = flag.Bool("update", false, "write the tables of experiments' records into the pages that show them")

// recorded is what a command of the marks printed, as the documentation's record has it.
func recorded(command string) (string, error) {
	name, ok := strings.CutPrefix(command, runs)
	if !ok {
		return "", fmt.Errorf("%s runs no experiment", command)
	}
	r, err := record(filepath.Join(experimentPages, "records", name+".json"))
	if err != nil {
		return "", err
	}
	return r.Markdown(), nil
}

func record(file string) (*experiment.Record, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	r := &experiment.Record{}
	return r, json.Unmarshal(text, r)
}

// marked are the pages with marks of measurements, by their names as seen from here.
func marked(t *testing.T) map[string]*markedPage {
	t.Helper()
	names := []string{"../README.md"}
	err := filepath.WalkDir(manual, func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".md" {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	pages := map[string]*markedPage{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		p, err := parseMarks(string(text))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(p.Blocks)+len(p.Quotes) > 0 {
			pages[filepath.ToSlash(name)] = p
		}
	}
	return pages
}

// Tables of measurements, and numbers of theirs in the prose, are those of the records.
func TestMeasuredNumbersAreThoseOfTheirRecords(t *testing.T) {
	outputs := map[string]string{}
	numbers := 0
	for name, p := range marked(t) {
		for _, command := range p.Commands() {
			if outputs[command] != "" {
				continue
			}
			var err error
			if outputs[command], err = recorded(command); err != nil {
				t.Errorf("%s: %v; %s", name, err, again)
			}
		}
		if *update {
			text, err := p.Fill(outputs)
			if err == nil {
				err = os.WriteFile(name, []byte(text), 0o644)
			}
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		for _, b := range p.Blocks {
			if want, err := b.Of(outputs[b.Command]); err != nil || want != b.Text {
				t.Errorf("%s:%d: the block is not what the record says (%v); %s", name, b.Line, err, again)
			}
		}
		for _, q := range p.Quotes {
			var all []string
			for _, command := range q.Commands {
				all = append(all, outputs[command])
			}
			found, missing := q.Numbers(all...)
			if len(missing) > 0 {
				t.Errorf("%s:%d: %s is not among the numbers of %s", name, q.Line, strings.Join(missing, ", "),
					strings.Join(q.Commands, "; "))
			}
			numbers += found
		}
	}
	if numbers < 30 && !*update {
		t.Errorf("only %d numbers are quoted", numbers)
	}
}

// No record has a promise that is broken.
func TestRecordsKeepTheirPromises(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(experimentPages, "records", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d records, %v", len(files), err)
	}
	for _, file := range files {
		r := testkit.Get(record(file))(t)
		if len(r.Broken) > 0 {
			t.Errorf("%s: %s", r.Experiment, strings.Join(r.Broken, "; "))
		}
	}
}

// Numbers in the notes of experiments are those of the tables below them, but for what was
// set, what the paper says elsewhere, and what was worked out on paper.
func TestReadingsOfExperimentsAreThoseOfTheirTables(t *testing.T) {
	given := map[string][]string{
		"dppvi.md": {"0.0001", "0.25", "0.29", "10000", "1000", "0.00", "0.1", "0.3", "0.75", "0.6", "1.5",
			"0.9", "0.95"},
		"fedmvppca.md": {"4.1", "4.3", "0.01", "0.001", "0.0001", "0.00001", ".8289"},
		"graffl.md":    {"0.9524", "0.9762", "11.5", "10000", "200000"},
	}
	target := regexp.MustCompile(`\]\([^)]*\)`)
	numbers := 0
	for name, constants := range given {
		page := testkit.Get(os.ReadFile(filepath.Join(experimentPages, name)))(t)
		for _, section := range strings.Split(string(page), "\n## ")[1:] {
			title, _, _ := strings.Cut(section, "\n")
			var notes, tables []string
			for line := range strings.Lines(section) {
				switch {
				case strings.HasPrefix(line, "|"):
					tables = append(tables, line)
				case line != "\n" && !strings.HasPrefix(line, "`"+runs):
					notes = append(notes, target.ReplaceAllString(line, "]"))
				}
			}
			page := testkit.Get(parseMarks("<!-- quoted: the tables -->\n" + strings.Join(notes, "")))(t)
			found, missing := page.Quotes[0].Numbers(strings.Join(tables, ""))
			missing = slices.DeleteFunc(missing, func(x string) bool { return slices.Contains(constants, x) })
			if len(missing) > 0 {
				t.Errorf("%s, %s: %s is in none of its tables", name, title, strings.Join(missing, ", "))
			}
			numbers += found
		}
	}
	if numbers < 10 {
		t.Errorf("only %d numbers were looked at", numbers)
	}
}

// What is said to repeat is measured again, and has the same tables.
func TestRepeatedMeasurementsRepeat(t *testing.T) {
	var names []string
	for _, p := range marked(t) {
		for _, command := range p.Again {
			names = append(names, strings.TrimPrefix(command, runs))
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	for _, name := range names {
		x, err := quoted.Experiments().Find(name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := experiment.Run(t.Context(),
			experiment.Config{Experiment: x, Dir: t.TempDir(), Data: experiment.Data{Clone: ".."}})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want, err := recorded(runs + name)
		if err != nil || got.Markdown() != want {
			t.Errorf("%s has, with the record's error %v,\n%s\nand the record has\n%s", name, err, got.Markdown(), want)
		}
	}
	if len(names) == 0 {
		t.Error("nothing is said to repeat")
	}
}
