package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"parley/engine"
	"parley/internal/testkit"
	"parley/method"
)

// understood says whether there is such a command, with these flags and arguments.
func understood(words []string) error {
	cmd, rest, err := commandTree().Find(words)
	if err == nil {
		err = cmd.ParseFlags(rest)
	}
	if err == nil && cmd.Args != nil {
		err = cmd.Args(cmd, cmd.Flags().Args())
	}
	if err == nil && !cmd.Runnable() {
		err = &usageError{}
	}
	return err
}

// Every command that does something shows how, in words that the program understands.
func TestExamples(t *testing.T) {
	paths := map[string]bool{}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		path := strings.TrimPrefix(c.CommandPath(), "parley ")
		paths[path] = true
		if c.Runnable() && !c.HasSubCommands() && c.Example == "" && !c.Hidden { // hidden are those that are gone
			t.Errorf("%s has no example", path)
		}
		for line := range strings.Lines(c.Example) {
			words := word.FindAllString(beyond.ReplaceAllString(strings.TrimSpace(line), ""), -1)
			if err := understood(words[1:]); err != nil || !strings.Contains(line, " parley "+path+" ") &&
				!strings.HasSuffix(line, " parley "+path) {
				t.Errorf("%s: %s: %v", path, line, err)
			}
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	for _, c := range commandTree().Commands() {
		walk(c)
	}
	for path := range examples {
		if !paths[path] {
			t.Errorf("there is no command %s", path)
		}
	}
}

// TestReferenceHasEveryCommandAndFlag holds the reference to the program: the section of
// a command, with those that it links to, names it and each of its flags.
func TestReferenceHasEveryCommandAndFlag(t *testing.T) {
	page := testkit.Get(os.ReadFile("../../docs/reference/cli.md"))(t)
	sections := map[string]string{} // by what links to them; with those below them
	for _, mark := range []string{"\n## ", "\n### "} {
		for _, s := range strings.Split(string(page), mark)[1:] {
			title, text, _ := strings.Cut(s, "\n")
			text, _, _ = strings.Cut(text, "\n## ")
			sections["#"+strings.ReplaceAll(strings.ToLower(title), " ", "-")] = text
		}
	}
	link := regexp.MustCompile(`\((#[a-z-]+)\)`)
	flags := 0
	var walk func(c *cobra.Command, text string)
	walk = func(c *cobra.Command, text string) {
		if own, ok := sections["#"+strings.ReplaceAll(c.CommandPath(), " ", "-")]; ok {
			text = own
			for _, m := range link.FindAllStringSubmatch(own, -1) {
				text += sections[m[1]]
			}
		} else if c.HasParent() && !c.Hidden && !regexp.MustCompile(`\b`+regexp.QuoteMeta(c.Name())+
			`\b`).MatchString(text) {
			t.Errorf("no section names the command %s", c.CommandPath())
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Name == "help" || f.Name == "version" {
				return
			}
			flags++
			if !regexp.MustCompile(`--` + f.Name + `\b`).MatchString(text) {
				t.Errorf("the section of %s does not name --%s", c.CommandPath(), f.Name)
			}
		})
		for _, sub := range c.Commands() {
			walk(sub, text)
		}
	}
	walk(commandTree(), string(page))
	if flags < 150 {
		t.Errorf("only %d flags were found", flags)
	}
}

// TestUnitsStartCommandsThatExist holds the files in deploy to the program.
func TestUnitsStartCommandsThatExist(t *testing.T) {
	units, err := filepath.Glob("../../deploy/*.service")
	if err != nil || len(units) != 2 {
		t.Fatalf("%v, %v", units, err)
	}
	for _, unit := range units {
		data := testkit.Get(os.ReadFile(unit))(t)
		found := 0
		for line := range strings.Lines(string(data)) {
			start, ok := strings.CutPrefix(strings.TrimSpace(line), "ExecStart=")
			if !ok {
				continue
			}
			found++
			words := strings.Fields(start)
			if filepath.Base(words[0]) != "parley" {
				t.Errorf("%s starts %s", unit, words[0])
			}
			if err := understood(words[1:]); err != nil {
				t.Errorf("%s: %s: %v", unit, start, err)
			}
		}
		if found != 1 {
			t.Errorf("%s starts %d programs", unit, found)
		}
	}
	file := testkit.Get(os.ReadFile("../../deploy/Containerfile"))(t)
	if !strings.Contains(string(file), "./cmd/parley") || !strings.Contains(string(file), `ENTRYPOINT ["/parley"]`) {
		t.Error("the container starts something else")
	}
	if understood([]string{"coordinator", "serve"}) == nil ||
		understood([]string{"site", "serve", "DIR", "--no-such-flag"}) == nil ||
		understood([]string{"site", "nothing", "DIR"}) == nil {
		t.Error("everything is understood")
	}
}

var (
	called = regexp.MustCompile(`^\$ (?:sudo -u parley )?(?:go run \./cmd/parley|bin/parley|parley) (.*)$`)
	word   = regexp.MustCompile(`"[^"]*"|\S+`)
	beyond = regexp.MustCompile(`\s+(?:[|>&<#]|\d?>|\|\|).*$`)
)

// TestDocumentsNameCommandsThatExist holds what documents tell people to type to the
// program.
func TestDocumentsNameCommandsThatExist(t *testing.T) {
	files, err := filepath.Glob("../../docs/*/*.md")
	more, err2 := filepath.Glob("../../*.md")
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	found := 0
	for _, file := range append(files, more...) {
		f := testkit.Get(os.Open(file))(t)
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			m := called.FindStringSubmatch(lines.Text())
			if m == nil || strings.Contains(m[1], `\`) || m[1] == "--version" || strings.HasPrefix(m[1], "completion") {
				continue
			}
			found++
			if err := understood(word.FindAllString(beyond.ReplaceAllString(m[1], ""), -1)); err != nil {
				t.Errorf("%s: %s: %v", file, lines.Text(), err)
			}
		}
		testkit.Do(t, lines.Err())
		f.Close()
	}
	if found < 50 {
		t.Errorf("only %d commands were found", found)
	}
}

func TestCountdownGoesByWhatWasDone(t *testing.T) {
	now := time.Unix(0, 0)
	c := countdown{now: func() time.Time { return now }, began: now}
	now = now.Add(2 * time.Second)
	for done, want := range map[float64]string{0: "", 1: " about 18s left", 4: " about 3s left", 10: " about 0s left"} {
		if got := c.text(" ", done, 10); got != want {
			t.Errorf("%v of 10: %q, want %q", done, got, want)
		}
	}
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
		said := fmt.Sprintf("%d steps: a line for about %d of them; rounds.jsonl will have every round",
			rounds, fewLines)
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
