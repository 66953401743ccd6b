package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"parley/engine"
	"parley/internal/testkit"
	"parley/method"
)

// The end that is told never moves away, and once it has passed nothing is told.
func TestCountdownNeverRises(t *testing.T) {
	now := time.Unix(0, 0)
	c := countdown{now: func() time.Time { return now }, began: now}
	for _, s := range []struct {
		wait time.Duration // before the step
		done float64       // of 10
		want string
	}{
		{0, 0, ""},
		{2 * time.Second, 1, " about 18s left"},
		{20 * time.Second, 2, ""}, // two of ten took 22 s: 88 more, and 18 were told
		{time.Second, 9, ""},      // fast now, but later than was told
		{0, 10, " about 0s left"},
	} {
		now = now.Add(s.wait)
		if got := c.text(" ", s.done, 10); got != s.want {
			t.Errorf("after %v, %v of 10: %q, want %q", now.Sub(time.Unix(0, 0)), s.done, got, s.want)
		}
	}
	c = countdown{now: c.now, began: now}
	last := time.Hour
	for done := 1.0; done <= 10; done++ {
		now = now.Add(time.Duration(11-done) * time.Second) // faster and faster
		var left time.Duration
		if _, err := fmt.Sscanf(c.text("", done, 10), "about %v left", (*told)(&left)); err != nil {
			t.Fatal(err)
		}
		if left > last {
			t.Errorf("%v left after %v", left, last)
		}
		last = left
	}
	if last != 0 {
		t.Errorf("%v left at the end", last)
	}
}

// told scans a duration.
type told time.Duration

func (d *told) Scan(s fmt.ScanState, _ rune) error {
	text, err := s.Token(true, nil)
	if err == nil {
		var x time.Duration
		x, err = time.ParseDuration(string(text))
		*d = told(x)
	}
	return err
}

// watch shows rounds that each bring a study on by step, the last two of them
// without progress, and returns the lines.
func watch(rounds, step int) []string {
	var out bytes.Buffer
	cmd := &cobra.Command{}
	cmd.SetErr(&out)
	show := newProgress(cmd)
	for i := 1; i <= rounds+2; i++ {
		round := &engine.Round{Round: i, Sites: []engine.Exchange{{Kind: "update", Up: 7}}, Info: method.Info{}}
		show.event(engine.Event{Progress: min(i, rounds) * step, Of: rounds * step, Round: round})
	}
	show.close()
	return strings.Split(strings.TrimSpace(out.String()), "\n")
}

func TestShortStudiesHaveALineForEachRound(t *testing.T) {
	for _, rounds := range []int{1, 100, manySteps} {
		lines := watch(rounds, 1)
		if len(lines) != rounds+2 || lines[0] != "round 1: update; 1 site sent 7 bytes" {
			t.Errorf("%d rounds: %d lines, the first %q", rounds, len(lines), lines[0])
		}
	}
}

func TestLongStudiesHaveAboutAHundredLines(t *testing.T) {
	for _, rounds := range []int{manySteps + 1, 1000, 9999, 10_000} {
		lines := watch(rounds, 1)
		if n := len(lines); n < fewLines/2 || n > fewLines+3 {
			t.Errorf("%d rounds: %d lines", rounds, n)
		}
		said := fmt.Sprintf("%d steps: a line for about %d of them; rounds.jsonl will have every round", rounds, fewLines)
		if lines[0] != said {
			t.Errorf("%d rounds: the first line is %q, want %q", rounds, lines[0], said)
		}
		for i, round := range map[int]int{1: 1, len(lines) - 1: rounds} {
			if want := fmt.Sprintf("round %d: ", round); !strings.HasPrefix(lines[i], want) {
				t.Errorf("%d rounds: line %d is %q, want %q", rounds, i, lines[i], want)
			}
		}
	}
	// Few rounds of many steps each.
	if lines := watch(50, 1000); len(lines) != 51 {
		t.Errorf("50 rounds of 1000 steps: %d lines", len(lines))
	}
}

func tree() *cobra.Command {
	run := func(*cobra.Command, []string) {}
	root := &cobra.Command{Use: "tool", Short: "Does things", Version: "1.2", Long: "First.\n\n.Second \\ line"}
	work := &cobra.Command{Use: "work FILE", Short: "Work on a file", Run: run, Example: "  tool work a.csv"}
	work.Flags().String("out", "", "folder for the results")
	root.AddCommand(work, &cobra.Command{Use: "secret", Hidden: true, Run: run})
	return root
}

func TestEveryCommandThatIsShownHasAPage(t *testing.T) {
	folder := t.TempDir()
	testkit.Do(t, writeManual(tree(), folder))
	names := testkit.Get(filepath.Glob(filepath.Join(folder, "*")))(t)
	want := []string{filepath.Join(folder, "tool-work.1"), filepath.Join(folder, "tool.1")}
	if !slices.Equal(names, want) {
		t.Errorf("pages %v, want %v", names, want)
	}
	if err := writeManual(tree(), folder); !errors.Is(err, fs.ErrExist) {
		t.Errorf("pages were written again: %v", err)
	}
	got := testkit.Get(os.ReadFile(want[0]))(t)
	if want := `.TH "TOOL\-WORK" 1 "" "tool 1.2" "User Commands"
.SH NAME
tool\-work \- Work on a file
.SH SYNOPSIS
.nf
tool work FILE [flags]
.fi
.SH OPTIONS
.nf
  \-h, \-\-help         help for work
      \-\-out string   folder for the results
.fi
.SH EXAMPLES
.nf
  tool work a.csv
.fi
.SH SEE ALSO
.BR tool (1)
`; string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestTextIsNotReadAsRequests(t *testing.T) {
	if got, want := escape(".TH a\\b\n'c"), "\\&.TH a\\(rsb\n\\&'c"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestAFolderThatDoesNotExistIsAnError(t *testing.T) {
	if err := writeManual(tree(), filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("no error")
	}
}
