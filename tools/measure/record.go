package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"parley/internal/atomicfile"
	"parley/internal/version"
	"parley/tools/measure/flags"
	"parley/tools/measure/measured"
)

const docs = "docs"

// record runs the commands that marks of pages name, and keeps what they print. Then it
// writes what the records hold into every page that shows it.
func record(ctx context.Context, args []string) error {
	set := flag.NewFlagSet("-record", flag.ContinueOnError)
	data := set.String("data", "", "the folder that commands call DIR")
	if err := flags.Values(set, args); err != nil {
		return err
	}
	done := map[string]bool{}
	for _, name := range set.Args() {
		page, err := read(name)
		if err != nil {
			return err
		}
		for _, command := range page.Commands() {
			if done[command] || !strings.HasPrefix(command, measured.Program) {
				continue // an experiment keeps a record of its own
			}
			done[command] = true
			if err := run(ctx, command, *data); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return fill()
}

func read(name string) (*measured.Page, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	page, err := measured.Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return page, nil
}

// run measures, and keeps the record.
func run(ctx context.Context, command, data string) error {
	words := strings.Fields(strings.TrimPrefix(command, measured.Program))
	if i := slices.Index(words, "DIR"); i >= 0 {
		if data == "" {
			return fmt.Errorf("%s wants a folder: -record -data FOLDER", command)
		}
		words[i] = data
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	log.Printf("%s …", command)
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, self, words...)
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	commit, err := exec.CommandContext(ctx, "git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return fmt.Errorf("asking git for the commit: %w", err)
	}
	r := measured.Record{Command: command, Version: version.Number + "+" + strings.TrimSpace(string(commit))}
	if exec.CommandContext(ctx, "git", "diff", "--quiet", "HEAD", "--", "*.go").Run() != nil {
		r.Version += ".modified"
	}
	start := time.Now()
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	r.Seconds, r.Output = time.Since(start).Seconds(), out.String()
	return r.Write(docs)
}

// fill writes what records hold into all pages that show it. Commands without a record stay
// as they are.
func fill() error {
	pages := []string{"README.md"}
	err := filepath.WalkDir(docs, func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".md" {
			pages = append(pages, path)
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, name := range pages {
		page, err := read(name)
		if err != nil {
			return err
		}
		outputs := map[string]string{}
		for _, command := range page.Commands() {
			output, err := measured.Read(docs, command)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			if err == nil {
				outputs[command] = output
			}
		}
		text, err := page.Fill(outputs)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := atomicfile.Write(name, []byte(text)); err != nil {
			return err
		}
	}
	return nil
}
