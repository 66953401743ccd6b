// Package selection measures how often each rule of `parley select` finds the
// true number of factors, on data from the published synthetic generator and on data
// whose views and noise are unequal. It prints tables of counts and exits with status 1 when the recommendation
// misses on more than one seed of ten where it is promised to hold. With -released
// it chooses from what private studies on such data have released, through real
// gates and noise, which no seed repeats.
//
//	go run ./tools/measure selection [-released] [-seeds 10] [-from 3] [-to 6] [-most 8] [-settings N]
package selection

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"parley/tools/measure/flags"

	"parley/internal/cputime"
	"parley/method/judged"
	"parley/methods/mvppca"
)

// config is what the flags say.
type config struct {
	seeds, from, to int
	selection       judged.SelectConfig
}

// Run measures what the flags say; -h lists them.
func Run(ctx context.Context, args []string) error {
	set := flag.NewFlagSet("selection", flag.ContinueOnError)
	c := config{selection: judged.SelectConfig{Folds: 3, Repeats: 1, Criteria: mvppca.Method{}.Criteria()}}
	set.IntVar(&c.seeds, "seeds", 10, "data sets for each true number of factors")
	set.IntVar(&c.from, "from", 3, "smallest true number of factors")
	set.IntVar(&c.to, "to", 6, "largest true number of factors")
	most := set.Int("most", 8, "largest candidate; the smallest is 1")
	some := set.Int("settings", 0, "how many of the settings to measure, in their order; 0 for all")
	released := set.Bool("released", false, "choose from what private studies have released, in place of rows")
	if err := flags.Values(set, args); err != nil {
		return err
	}
	last := len(settings)
	if *released {
		last = len(releases)
	}
	if set.NArg() > 0 || c.seeds < 1 || c.from < 1 || c.to < c.from || *most < c.to || *some < 0 || *some > last {
		return flags.Refuse(set)
	}
	if *some == 0 {
		*some = last
	}
	for q := range *most {
		c.selection.Values = append(c.selection.Values, q+1)
	}
	run := c.rows
	if *released {
		run = c.released
	}
	return run(ctx, *some)
}

// rows chooses from rows, by every rule and in the first settings.
func (c config) rows(ctx context.Context, some int) error {
	var all []*tally
	missed := false
	for _, s := range settings[:some] {
		start := cputime.Used()
		counts, err := c.measure(ctx, s)
		if err != nil {
			return err
		}
		fmt.Printf("%s (%s): seeds of %d on which each rule gives the true number, %.0f CPU s\n\n", s.name, s.options(), c.seeds, (cputime.Used() - start).Seconds())
		counts.print(c.from, c.to)
		for _, n := range counts.right[0] {
			missed = missed || s.kept && n*10 < 9*c.seeds
		}
		all = append(all, counts)
	}
	fmt.Printf("Of %d data sets:\n\n%s", c.seeds*(c.to-c.from+1), summary(settings[:some], all))
	if missed {
		return errors.New("the recommendation misses the truth too often")
	}
	return nil
}

// options is what a plan says.
func (s setting) options() string {
	if s.scaling == "" {
		return "defaults"
	}
	return fmt.Sprintf("%s, noise: %s", s.scaling, s.noise)
}

// summary is a table of how often each rule found the true number, in Markdown.
func summary(settings []setting, all []*tally) string {
	var b strings.Builder
	b.WriteString("| |")
	for _, s := range settings {
		b.WriteString(" " + s.options())
		switch s.variance {
		case 0:
			b.WriteString(", unequal")
		case 1:
		default:
			fmt.Fprintf(&b, ", noise × %v", s.variance)
		}
		b.WriteString(" |")
	}
	b.WriteString("\n|---|" + strings.Repeat("---:|", len(settings)) + "\n")
	for i, rule := range all[0].rules {
		fmt.Fprintf(&b, "| %s |", rule)
		for _, t := range all {
			n := 0
			for _, right := range t.right[i] {
				n += right
			}
			fmt.Fprintf(&b, " %d |", n)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// tally counts, for every rule and true number of factors, the seeds on which
// the rule gives it, and lists what it gave elsewhere.
type tally struct {
	rules []string
	right [][]int
	wrong [][]int
}

func (c config) measure(ctx context.Context, s setting) (*tally, error) {
	t := &tally{}
	for q := c.from; q <= c.to; q++ {
		for seed := range c.seeds {
			out, err := choose(ctx, s, uint64(seed+1), q, c.selection)
			if err != nil {
				return nil, fmt.Errorf("%s, %d factors, seed %d: %w", s.name, q, seed+1, err)
			}
			for _, choice := range out.Choices {
				at := slices.Index(t.rules, choice.Rule)
				if at < 0 {
					at = len(t.rules)
					t.rules = append(t.rules, choice.Rule)
					t.right, t.wrong = append(t.right, make([]int, c.to-c.from+1)), append(t.wrong, nil)
				}
				if choice.Value == q {
					t.right[at][q-c.from]++
				} else {
					t.wrong[at] = append(t.wrong[at], choice.Value-q)
				}
			}
		}
	}
	return t, nil
}

func (t *tally) print(from, to int) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "rule")
	for q := from; q <= to; q++ {
		fmt.Fprintf(w, "\tq = %d", q)
	}
	fmt.Fprintln(w, "\tby how much it was wrong elsewhere")
	for i, rule := range t.rules {
		fmt.Fprint(w, rule)
		for _, n := range t.right[i] {
			fmt.Fprintf(w, "\t%d", n)
		}
		slices.Sort(t.wrong[i])
		var off []string
		for j := 0; j < len(t.wrong[i]); {
			k := j
			for k < len(t.wrong[i]) && t.wrong[i][k] == t.wrong[i][j] {
				k++
			}
			off = append(off, fmt.Sprintf("%+d (%d times)", t.wrong[i][j], k-j))
			j = k
		}
		fmt.Fprintf(w, "\t%s\n", strings.Join(off, ", "))
	}
	w.Flush()
	fmt.Println()
}
