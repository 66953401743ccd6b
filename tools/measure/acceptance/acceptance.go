// Package acceptance measures what the project promises of Fed-mv-PPCA, on the
// data sets that the promises name, through the real engine. It prints one
// table and exits with status 1 when a promise is broken.
//
//	go run ./tools/measure acceptance [-data DIR] sd|adcsf|mfeat|spread|dp|example|bytes|all
//
// DIR holds the folders adcsf, mfeat, sd and splits. Neither spread nor example
// needs it.
package acceptance

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"parley/tools/measure/flags"
)

// config is what the flags say.
type config struct {
	data    string
	repeats int // of the stored splits; 0 for each promise's own number
	seeds   int
}

// promise is one thing to measure.
type promise struct {
	name    string
	measure func(context.Context, config) ([]row, error)
}

var promises = []promise{
	{"sd", func(ctx context.Context, c config) ([]row, error) {
		return synthetic(ctx, c.data, []int{1, 2, 3}, []int{3, 6})
	}},
	{"adcsf", func(ctx context.Context, c config) ([]row, error) {
		return adcsf(ctx, filepath.Join(c.data, "adcsf"), filepath.Join(c.data, "splits", "adcsf.csv.gz"), c.repeatsOr(10))
	}},
	{"mfeat", func(ctx context.Context, c config) ([]row, error) { return mfeat(ctx, c.data, c.repeatsOr(3)) }},
	{"spread", func(ctx context.Context, c config) ([]row, error) { return spread(ctx, c.seeds, []int{3, 6}) }},
	{"dp", func(ctx context.Context, c config) ([]row, error) { return privateRounds(ctx, c.data) }},
	{"example", func(ctx context.Context, _ config) ([]row, error) { return example(ctx) }},
	{"bytes", func(ctx context.Context, c config) ([]row, error) { return bytesSent(ctx, c.data) }},
}

func (c config) repeatsOr(n int) int {
	if c.repeats > 0 {
		return c.repeats
	}
	return n
}

// Run measures what the flags say; -h lists them.
func Run(ctx context.Context, args []string) error {
	set := flag.NewFlagSet("acceptance", flag.ContinueOnError)
	var c config
	set.StringVar(&c.data, "data", "../shared/data", "folder with the data sets")
	set.IntVar(&c.repeats, "repeats", 0, "repeats of the stored splits, at most 10; 0 means 10 for adcsf and 3 for mfeat")
	set.IntVar(&c.seeds, "seeds", 20, "data sets for each case of spread")
	asJSON := set.Bool("json", false, "print JSON instead of a table")
	names := []string{"all"}
	for _, p := range promises {
		names = append(names, p.name)
	}
	set.Usage = func() {
		fmt.Fprintf(set.Output(), "usage: acceptance [flags] %s\n", strings.Join(names, "|"))
		set.PrintDefaults()
	}
	if err := flags.Values(set, args); err != nil {
		return err
	}
	if set.NArg() != 1 || !slices.Contains(names, set.Arg(0)) || c.repeats < 0 || c.repeats > 10 || c.seeds < 1 {
		return flags.Refuse(set)
	}
	var rows []row
	for _, p := range promises {
		if set.Arg(0) != "all" && set.Arg(0) != p.name {
			continue
		}
		start := time.Now()
		r, err := p.measure(ctx, c)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		rows = append(rows, r...)
		log.Printf("%s took %.1f s", p.name, time.Since(start).Seconds())
	}
	write := writeTable
	if *asJSON {
		write = writeJSON
	}
	if err := write(os.Stdout, rows); err != nil {
		return err
	}
	if bad := missed(rows); len(bad) > 0 {
		return fmt.Errorf("%d of %d rows miss their bar", len(bad), len(rows))
	}
	return nil
}
