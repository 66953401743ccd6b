// Package private measures what the private mechanism "statistics" is worth, on
// drawn data and through whole studies with real gates and noise: the error of
// describing subjects who took no part, and how often 90 % intervals hold what
// is hidden, at δ = 10⁻⁵ under add-remove, with three sites.
//
//	go run ./tools/measure private [-only TEXT] [-draws N]
//	go run ./tools/measure private -sites 3,4,34 [-set DIR] [-subjects 400,4000] [-draws N]
//	go run ./tools/measure private -plan 8,8,6 -latent 3
//
// The first form measures at three sites. The second holds studies of so many sites
// against one site that has all rows (a trusted curator), plain noised moments of every
// site, no privacy and the mean: on drawn subjects, or on the complete rows of a data
// set. The third writes a plan for parley privacy curve, with views of so many features.
//
// Errors are in parts of the range of the training rows, which stands in for the
// public one. Of paper's subjects two thirds are trained with; wide's number is
// that of the training rows. The data are a function of the draw's number; the
// noise is not, so that two runs differ by it.
package private

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"

	"parley/tools/measure/flags"

	"gonum.org/v1/gonum/stat"

	"parley/judge/evaluate"
)

// experiment is one line of the tables.
type experiment struct {
	name     string
	draw     func(*rand.Rand, int) (*data, error)
	scenario evaluate.Scenario
	subjects int
	draws    int // unless the flag says otherwise
}

var epsilons = []float64{1, 3, 10} // of every experiment

var experiments = []experiment{
	{"paper, 400", paper, evaluate.IID, 400, 10},
	{"paper, 4000", paper, evaluate.IID, 4000, 10},
	{"paper, 40000", paper, evaluate.IID, 40000, 10},
	{"paper, G, 4000", paper, evaluate.G, 4000, 10},
	{"paper, K, 4000", paper, evaluate.K, 4000, 10},
	{"paper, G/K, 4000", paper, evaluate.GK, 4000, 10},
	{"wide, 400", wide, evaluate.IID, 400, 5},
	{"wide, 2000", wide, evaluate.IID, 2000, 5},
}

// Run measures what the flags say; -h lists them.
func Run(ctx context.Context, args []string) error {
	set := flag.NewFlagSet("private", flag.ContinueOnError)
	only := set.String("only", "", "measure only what has this in its name, such as \"paper, 400\"")
	draws := set.Int("draws", 0, "data sets to draw, at least 2; by default 10, and 5 of wide")
	sizes := set.String("plan", "", "write a plan with views of so many features, with commas between, and measure nothing")
	latent := set.Int("latent", 3, "factors of that plan")
	many := set.String("sites", "", "numbers of sites to compare, with commas between")
	folder := set.String("set", "", "folder of a data set to cut into these sites")
	subjects := set.String("subjects", "400,4000", "numbers of subjects to draw for them, where there is no data set")
	if err := flags.Values(set, args); err != nil {
		return err
	}
	if *many != "" {
		return compare(ctx, os.Stdout, *many, *folder, *subjects, max(2, *draws))
	}
	if set.NArg() > 0 || *draws < 0 || *draws == 1 || *latent < 1 {
		return flags.Refuse(set)
	}
	if *sizes != "" {
		text, err := curvePlan(*sizes, *latent)
		if err != nil {
			return err
		}
		fmt.Print(text)
		return nil
	}
	var all []*measured
	for _, e := range experiments {
		if !strings.Contains(e.name, *only) {
			continue
		}
		if *draws > 0 {
			e.draws = *draws
		}
		m, err := e.run(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
		all = append(all, m)
	}
	write(os.Stdout, all)
	return nil
}

// measured is what came of an experiment.
type measured struct {
	*experiment
	private    []summary // by ε
	open, mean summary
}

// summary is the mean over draws and the standard deviation between them.
type summary struct{ error, errorSD, coverage, coverageSD float64 }

func (e *experiment) run(ctx context.Context) (*measured, error) {
	private, open, mean := make([][]score, len(epsilons)), []score{}, []score{}
	for seed := range e.draws {
		s, err := e.measure(ctx, uint64(seed))
		if err != nil {
			return nil, fmt.Errorf("draw %d: %w", seed, err)
		}
		for i, x := range s.private {
			private[i] = append(private[i], x)
		}
		open, mean = append(open, s.open), append(mean, s.mean)
	}
	m := &measured{experiment: e, open: summarise(open), mean: summarise(mean)}
	for _, x := range private {
		m.private = append(m.private, summarise(x))
	}
	return m, nil
}

func summarise(all []score) (s summary) {
	var errors, coverage []float64
	for _, x := range all {
		errors, coverage = append(errors, x.error), append(coverage, x.coverage)
	}
	var variance float64
	s.error, variance = stat.MeanVariance(errors, nil)
	s.errorSD = math.Sqrt(variance)
	s.coverage, variance = stat.MeanVariance(coverage, nil)
	s.coverageSD = math.Sqrt(variance)
	return s
}
