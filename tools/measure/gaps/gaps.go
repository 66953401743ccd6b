// Package gaps measures what sites of very unequal size, whose subjects lack views and
// cells, cost the factor model: [Run] holds what sites say in one exchange against one fit
// to all rows, with and without offsets of the sites, on rows held out at the same sites.
package gaps

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"parley/methods/mvppca/ppca"
	"parley/methods/mvppca/ppca/offsets"
	"parley/tools/measure/flags"
	"parley/tools/measure/protocol"
)

// Run is the measurement's command line.
func Run(ctx context.Context, args []string) error {
	set := flag.NewFlagSet("gaps", flag.ContinueOnError)
	data := set.String("data", "", "folder of the data sets (each a folder of CSV files)")
	names := set.String("sets", "adcsf,brca,pseudo-adni,mfeat", "data sets")
	sites := set.String("sites", "5,15,34", "numbers of sites")
	noise := set.String("noise", "view,feature", "view, feature, or both")
	q := set.Int("latent", 5, "factors")
	seeds := set.Int("seeds", 1, "cuts of each")
	cells := set.Float64("cells", 0.02, "share of single cells that are missing")
	var counts []float64
	err := flags.Parse(set, args, func() (err error) {
		counts, err = flags.Numbers(*sites)
		switch {
		case *data == "":
			return fmt.Errorf("-data is missing")
		case *q < 1 || *seeds < 1 || !(*cells >= 0 && *cells < 1):
			return fmt.Errorf("-latent and -seeds are at least 1, -cells is a share")
		}
		return err
	})
	if err != nil {
		return err
	}
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "set\tsites\tnoise\tseed\tmodel\ttraining\theld out\terror of hidden views\tcover .9\tnumbers a site")
	missed := 0
	for name := range strings.SplitSeq(*names, ",") {
		rows, err := protocol.Open(ctx, filepath.Join(*data, name))
		if err != nil {
			return err
		}
		for _, n := range counts {
			for kind := range strings.SplitSeq(*noise, ",") {
				for seed := range *seeds {
					c, err := newCut(ctx, rows, int(n), uint64(seed), *cells, kind == "feature")
					if err != nil {
						return fmt.Errorf("%s: %w", name, err)
					}
					scores, err := c.compare(*q)
					if err != nil {
						return fmt.Errorf("%s, %v sites, noise per %s, seed %d: %w", name, n, kind, seed, err)
					}
					missed += report(out, fmt.Sprintf("%s\t%v\t%s\t%d", name, n, kind, seed), scores)
					out.Flush()
				}
			}
		}
	}
	if missed > 0 {
		return fmt.Errorf("%d of the bars are missed: .1 nats a row in training and .5 held out behind one fit to all rows, and .5 held out behind it with offsets", missed)
	}
	return nil
}

// score is what came of one way to fit, in nats for each row and units of a feature's
// standard deviation.
type score struct {
	name          string
	train, held   float64
	hidden, cover float64
	numbers       float64
}

// report writes the scores and counts the bars that are missed: the second is held
// against the first, and the fourth against the third.
func report(out io.Writer, at string, s []score) (missed int) {
	for _, x := range s {
		fmt.Fprintf(out, "%s\t%s\t%.3f\t%.3f\t%.4f\t%.3f\t%.0f\n", at, x.name, x.train, x.held, x.hidden, x.cover, x.numbers)
	}
	for _, bar := range []struct{ ok bool }{{s[1].train >= s[0].train-0.1}, {s[1].held >= s[0].held-0.5}, {s[3].held >= s[2].held-0.5}} {
		if !bar.ok {
			missed++
		}
	}
	return missed
}

// compare fits the ways and scores them.
func (c *cut) compare(q int) ([]score, error) {
	l := c.layout
	var said, all []ppca.Block
	var saidBySite [][]ppca.Block
	numbers := 0.0
	for _, b := range c.train {
		x, err := ppca.Condense(l, b, 4*q, 0, ppca.FitOptions{Tol: 1e-6})
		if err != nil {
			return nil, err
		}
		for i := range x {
			p := float64(len(x[i].Features))
			numbers += (1 + p + float64(len(x[i].Factor)+len(x[i].Diag))) / float64(len(c.train))
			if x[i].Scatter != nil {
				numbers += p * (p + 1) / 2 / float64(len(c.train))
			}
		}
		saidBySite, said, all = append(saidBySite, x), append(said, x...), append(all, b...)
	}
	var scores []score
	add := func(name string, numbers float64, at func(site int) (*ppca.Predictor, error)) error {
		s := score{name: name, numbers: numbers}
		predictors := make([]*ppca.Predictor, len(c.train))
		for i := range predictors {
			var err error
			if predictors[i], err = at(i); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		var err error
		if s.train, err = nats(predictors, c.train); err != nil {
			return err
		}
		if s.held, err = nats(predictors, c.test); err != nil {
			return err
		}
		s.hidden, s.cover, err = c.hide(predictors)
		scores = append(scores, s)
		return err
	}
	pooled := func(name string, numbers float64, blocks []ppca.Block) error {
		fit, err := ppca.Fit(l, ppca.Merge(blocks), q, nil, ppca.FitOptions{})
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		p, err := ppca.NewPredictor(l, &fit.Params)
		return errorsFirst(err, func() error {
			return add(name, numbers, func(int) (*ppca.Predictor, error) { return p, nil })
		})
	}
	mixed := func(name string, numbers float64, sites [][]ppca.Block) error {
		fit, o, err := offsets.Fit(l, sites, q, nil, ppca.FitOptions{})
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if !fit.Converged {
			log.Printf("%s has not converged", name)
		}
		return add(name, numbers, func(i int) (*ppca.Predictor, error) { return offsets.AtSite(l, &fit.Params, &o.Sites[i]) })
	}
	for _, step := range []func() error{
		func() error { return pooled("all rows", math.NaN(), all) },
		func() error { return pooled("one exchange", numbers, slices.Clone(said)) },
		func() error { return mixed("all rows, offsets", math.NaN(), c.train) },
		func() error { return mixed("one exchange, offsets", numbers, saidBySite) },
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	scores = append(scores, score{name: "the mean", train: math.NaN(), held: math.NaN(), hidden: c.spread(), cover: math.NaN(), numbers: math.NaN()})
	return scores, nil
}

func errorsFirst(err error, then func() error) error {
	if err != nil {
		return err
	}
	return then()
}

// nats is the mean log-likelihood of a row.
func nats(p []*ppca.Predictor, sites [][]ppca.Block) (float64, error) {
	total, rows := 0.0, 0.0
	for i, b := range sites {
		if len(b) == 0 {
			continue
		}
		t, n, err := p[i].LogLik(b)
		if err != nil {
			return 0, err
		}
		total, rows = total+t, rows+n
	}
	return total / rows, nil
}
