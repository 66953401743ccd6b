package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"parley/dataset"
	"parley/engine/local"
	"parley/internal/testkit"
	"parley/study"
)

// reading are the flags that name no output, whatever the command.
var reading = setOf("account account-id adjacency by ca clone components data format key label latent listen log " +
	"metrics name outcome page plan policy protocol published reason scenario scheme site store to websocket")

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
	"parley site join --dir": "goes on in the site's own folder, keeps the policy there and refuses one of " +
		"another coordinator",
	"parley site backup --out":   "Backup begins with refusing what exists",
	"parley site serve --copies": "gets folders named for the site and the time",
}

// refusal begins a line of a story in which a command is refused; refused follows it.
var (
	refusal = regexp.MustCompile(`^(?:failure|usage|! exec) (parley .*)$`)
	refused = regexp.MustCompile(`exists already|is there already|this is a file|is not empty|holds|not the name ` +
		`of a file`)
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
		data := testkit.Get(os.ReadFile(script))(t)
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

// counted counts how often the rows of a data set are read.
type counted struct {
	dataset.Source
	reads atomic.Int64
}

func (c *counted) Rows(ctx context.Context) iter.Seq2[*dataset.Row, error] {
	return func(yield func(*dataset.Row, error) bool) {
		c.reads.Add(1)
		c.Source.Rows(ctx)(yield)
	}
}

// After the one census, rows are read at most once for each task and once to find outliers,
// and twice for the site's own report, whose second pass draws what the first has found.
func TestRowsAreReadFewTimes(t *testing.T) {
	for path, tasks := range map[string]int64{
		"alzheimer/plan.yaml": 3, // two of five tasks, as a half remembers its sums, and the outliers
		"mixture/plan.yaml":   1,
	} {
		plan := testkit.Get(study.Load("../../examples/"+path, methods))(t)
		b := testkit.Get(local.Bind(t.Context(), plan, nil))(t)
		for s, d := range b.Data {
			b.Data[s] = &counted{Source: d}
		}
		out := testkit.Get(local.Run(t.Context(), local.Config{Plan: plan, Methods: methods, Data: b.Data,
			Summaries: b.Summaries, Policy: b.Policy}))(t)
		testkit.Get(out.SiteReports(t.Context()))(t)
		for s, d := range b.Data {
			n := d.(*counted).reads.Load()
			t.Logf("%s: site %s read its rows %d times", path, s, n)
			if n > tasks+2 {
				t.Errorf("%s: site %s read its rows %d times, for %d tasks that need them and a report",
					path, s, n, tasks)
			}
		}
	}
}

func TestParseCounts(t *testing.T) {
	for text, want := range map[string][]int{
		"3": {3}, "1..4": {1, 2, 3, 4}, "2,4,6..8": {2, 4, 6, 7, 8}, "5,1..3": {1, 2, 3, 5}, "2..3,3..4": {2, 3, 4},
		" 1 , 2": {1, 2}, "7..7": {7},
	} {
		if got, err := parseCounts(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"": `"" is not a number`, "0": `"0" is not a number from 1`, "-1": "is not a number",
		"1..": `"" is not a number`, "..4": `"" is not a number`,
		"4..1": "4..1 ends before it begins", "1...3": `".3" is not a number`, "1-3": `"1-3" is not a number`,
		"1001": "from 1 to 1000", "99999999999999999999": "is not a number",
	} {
		if got, err := parseCounts(text); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "\n  hint: ") {
			t.Errorf("%q: %v, %v; want %q", text, got, err, want)
		}
	}
}

func FuzzParseCounts(f *testing.F) {
	for _, s := range []string{"1..8", "2,4,6..10", "", "1..1000", "3,,", "..", "1..2..3"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		list, err := parseCounts(s)
		if err != nil {
			return
		}
		if len(list) == 0 || !slices.IsSorted(list) || list[0] < 1 || list[len(list)-1] > maxCount ||
			len(slices.Compact(slices.Clone(list))) != len(list) {
			t.Errorf("%q: %v", s, list)
		}
	})
}

// The time that is left is that of the rest at the speed so far.
func TestShareTellsWhatIsLeft(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(0, 0)
	cmd := &cobra.Command{}
	cmd.SetErr(&out)
	show := newProgress(cmd)
	share := show.share(func() time.Time { return now })
	for i := range 10 {
		now = now.Add(2 * time.Second)
		share(float64(i+1)*0.5, 5)
	}
	show.close()
	got := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(got) != 10 || got[0] != "10 % fitted; about 18s left" || got[4] != "50 % fitted; about 10s left" ||
		got[9] != "100 % fitted; about 0s left" {
		t.Errorf("%q", got)
	}
}

// Every method says of its plans what becomes of values beyond the plan's ranges.
func TestEveryMethodSaysWhatBecomesOfValuesBeyondARange(t *testing.T) {
	const (
		open    = "{protection: none}"
		private = "{protection: differential, unit: subject, adjacency: add-remove, total: {epsilon: 3, delta: 1e-5}}"
		class   = "name: regression, outcome: {column: group, levels: [control, case]}"
	)
	said := map[string]bool{}
	for _, c := range []struct{ method, privacy, want string }{
		{"name: factors, latent: 1", open, study.RangeAsIs},
		{"name: factors, latent: 1, scaling: range", open, study.RangeAsIs},
		{"name: factors, latent: 1", private, study.RangeEnds},
		{"name: fed-mv-ppca, latent: 1, rounds: 3", private, study.RangeAsIs},
		{class, open, study.RangeAsIs},
		{class + ", scaling: range", open, study.RangeEnds},
		{class, private, "and count within 4 scales"},
		{class + ", scaling: constants, constants: [{feature: age, centre: 50, scale: 20}, {feature: weight, centre: " +
			"90, scale: 30}, {feature: score, centre: 5, scale: 2}]", private, "and count within 4 scales"},
		{"name: dp-pvi, outcome: {column: group, levels: [control, case]}", open, study.RangeAsIs},
		{"name: mixture, components: 2", private, study.RangeAsIs},
		{"name: graffl-abc, components: 2", open, study.RangeAsIs},
		{"name: vae, model: linear, latent: 1", open, study.RangeAsIs},
	} {
		name, _, _ := strings.Cut(strings.TrimPrefix(c.method, "name: "), ",")
		said[name] = true
		text := "parley: 1\nname: small\nsites: [north, south, east]\n" +
			"views: [{name: clinic, features: [{name: age, range: [0, 100]}, {name: weight, range: [0, 200]}, {name: " +
			"score, range: [0, 9]}]}]\nsubjects: [group]\nmethod: {" + c.method + "}\nprivacy: " + c.privacy + "\n"
		plan, err := study.Parse("plan.yaml", []byte(text), methods)
		if err != nil {
			t.Errorf("%s: %v", c.method, err)
			continue
		}
		if got := plan.Schema().BeyondRange; !strings.HasPrefix(got, c.want) {
			t.Errorf("%s, %s: %q, want %q", c.method, c.privacy, got, c.want)
		}
	}
	for _, name := range methods.Names() {
		if !said[name] {
			t.Errorf("%s was not asked", name)
		}
	}
}

func TestAsk(t *testing.T) {
	for answer, want := range map[string]bool{"y\n": true, "Yes \n": true, "\n": false, "n\n": false, "": false,
		"yesterday\n": false} {
		if got, err := ask(t.Context(), strings.NewReader(answer), io.Discard, "Well?"); got != want || err != nil {
			t.Errorf("%q is taken for %v (%v)", answer, got, err)
		}
	}
}

// A person who is asked can leave with one Ctrl-C, and has decided nothing.
func TestAskIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	silent, w := io.Pipe()
	defer w.Close()
	if yes, err := ask(ctx, silent, io.Discard, "Well?"); yes || !errors.Is(err, context.Canceled) {
		t.Errorf("it is taken for %v (%v)", yes, err)
	}
}
