package main

import (
	"bufio"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"parley/internal/testkit"
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
		if c.Runnable() && !c.HasSubCommands() && c.Example == "" {
			t.Errorf("%s has no example", path)
		}
		for line := range strings.Lines(c.Example) {
			words := word.FindAllString(beyond.ReplaceAllString(strings.TrimSpace(line), ""), -1)
			if err := understood(words[1:]); err != nil || !strings.Contains(line, " parley "+path+" ") && !strings.HasSuffix(line, " parley "+path) {
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
		} else if c.HasParent() && !regexp.MustCompile(`\b`+regexp.QuoteMeta(c.Name())+`\b`).MatchString(text) {
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
	if understood([]string{"coordinator", "serve"}) == nil || understood([]string{"site", "serve", "DIR", "--no-such-flag"}) == nil || understood([]string{"site", "nothing", "DIR"}) == nil {
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
