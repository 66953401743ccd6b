// Command selection measures how often each rule of `parley select` finds the
// true number of factors, on data from the published synthetic generator. It
// prints a table of counts and exits with status 1 when the recommendation
// misses on more than one seed of ten where it is promised to hold.
//
//	go run ./tools/selection [-seeds 10] [-from 3] [-to 6] [-most 8] [-settings N]
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"parley/method"
	"parley/mvppca"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("selection: ")
	seeds := flag.Int("seeds", 10, "data sets for each true number of factors")
	from := flag.Int("from", 3, "smallest true number of factors")
	to := flag.Int("to", 6, "largest true number of factors")
	most := flag.Int("most", 8, "largest candidate; the smallest is 1")
	some := flag.Int("settings", len(settings), "how many of the settings to measure, in their order")
	flag.Parse()
	if flag.NArg() > 0 || *seeds < 1 || *from < 1 || *to < *from || *most < *to || *some < 1 || *some > len(settings) {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	c := method.SelectConfig{Folds: 3, Repeats: 1, Criteria: mvppca.Method{}.Criteria()}
	for q := range *most {
		c.Values = append(c.Values, q+1)
	}
	missed := false
	for _, s := range settings[:*some] {
		start := time.Now()
		counts, err := measure(ctx, s, *seeds, *from, *to, c)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s (%s, noise per %s): seeds of %d on which each rule gives the true number, %.0f s\n\n", s.name, s.scaling, s.noise, *seeds, time.Since(start).Seconds())
		counts.print(*from, *to)
		for _, n := range counts.right[0] {
			missed = missed || s.kept && n*10 < 9**seeds
		}
	}
	if missed {
		log.Fatal("the recommendation misses the truth too often")
	}
}

// tally counts, for every rule and true number of factors, the seeds on which
// the rule gives it, and lists what it gave elsewhere.
type tally struct {
	rules []string
	right [][]int
	wrong [][]int
}

func measure(ctx context.Context, s setting, seeds, from, to int, c method.SelectConfig) (*tally, error) {
	t := &tally{}
	for q := from; q <= to; q++ {
		for seed := range seeds {
			out, err := choose(ctx, s, uint64(seed+1), q, c)
			if err != nil {
				return nil, fmt.Errorf("%s, %d factors, seed %d: %w", s.name, q, seed+1, err)
			}
			for _, choice := range out.Choices {
				at := slices.Index(t.rules, choice.Rule)
				if at < 0 {
					at = len(t.rules)
					t.rules = append(t.rules, choice.Rule)
					t.right, t.wrong = append(t.right, make([]int, to-from+1)), append(t.wrong, nil)
				}
				if choice.Value == q {
					t.right[at][q-from]++
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
