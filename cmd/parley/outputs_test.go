package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// reading are the flags that name no output, whatever the command.
var reading = setOf("account account-id adjacency by ca clone components data format key label latent listen log metrics name outcome page plan policy protocol published reason scenario scheme site store to websocket")

func setOf(s string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(s) {
		set[w] = true
	}
	return set
}

// kept says why a flag that names an output needs no story of its own.
var kept = map[string]string{
	"parley site join --receipts": "is kept up by the site while it serves",
	"parley site join --dir":      "goes on in the site's own folder, keeps the policy there and refuses one of another coordinator",
	"parley site backup --out":    "Backup begins with refusing what exists",
}

// refusal begins a line of a story in which a command is refused; refused follows it.
var (
	refusal = regexp.MustCompile(`^(?:failure|usage|! exec) (parley .*)$`)
	refused = regexp.MustCompile(`exists already|is there already|this is a file|is not empty|holds|not the name of a file`)
)

// Every flag of every command either names no output, or a story shows that the command
// replaces nothing under it. A command that is added cannot forget.
func TestNoCommandReplacesWhatIsThere(t *testing.T) {
	scripts, err := filepath.Glob("testdata/script*/*.txt*")
	if err != nil || len(scripts) < 10 {
		t.Fatal(err, len(scripts))
	}
	shown := map[string]bool{} // by command and flag
	for _, script := range scripts {
		data, err := os.ReadFile(script)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(data), "\n")
		for i, line := range lines[:len(lines)-1] {
			m := refusal.FindStringSubmatch(line)
			if m == nil || !strings.HasPrefix(lines[i+1], "stderr") || !refused.MatchString(lines[i+1]) {
				continue
			}
			args := word.FindAllString(m[1], -1)[1:]
			cmd, _, err := commandTree().Find(args)
			if err != nil {
				continue
			}
			for _, a := range args {
				if name, ok := strings.CutPrefix(a, "--"); ok {
					shown[cmd.CommandPath()+" --"+name] = true
				}
			}
		}
	}
	var walk func(*cobra.Command)
	found := 0
	walk = func(c *cobra.Command) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			key := c.CommandPath() + " --" + f.Name
			if f.Value.Type() != "string" || reading[f.Name] {
				return
			}
			if found++; !shown[key] && kept[key] == "" {
				t.Errorf("%s: no story shows that it replaces nothing; write one in outputs.txt", key)
			}
		})
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(commandTree())
	if found < 15 {
		t.Errorf("only %d outputs were found", found)
	}
}
