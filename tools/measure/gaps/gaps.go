// Package gaps measures what sites of very unequal size, whose subjects lack views and
// cells, cost the factor model: [Run] holds what sites say in one exchange and in two, with and without
// offsets of the sites, against fits to all rows in one place by another program
// (central/central.c) and against simpler rivals, on rows held out at the same sites and at
// sites that took no part; and how often the rule of a study finds the means of sites to
// differ, which may be shifted.
package gaps

import (
	"context"
	"flag"
	"fmt"
	"log"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"parley/experiment/deal"
	"parley/methods/mvppca/options"
	"parley/methods/mvppca/ppca"
	"parley/methods/mvppca/ppca/offsets"
	"parley/methods/mvppca/ppca/sitenoise"
	"parley/tools/measure/flags"
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
	every := set.Int("every", 1, "of so many rows, and of so many features of a view, one is taken: a quick run on large data")
	shifts := set.String("shifts", "0", "by how much the sites' means differ: standard deviations of what is added to every feature of a site, in those of the features")
	tries := set.Int("tries", 0, "cuts of each on which the rule for means of their own is tried too")
	source := set.String("central", "tools/measure/gaps/central/central.c", "source of the central fit, which the C compiler cc makes a program of")
	var counts, sds []float64
	err := flags.Parse(set, args, func() (err error) {
		if counts, err = flags.Numbers(*sites); err == nil {
			sds, err = flags.Numbers(*shifts)
		}
		switch {
		case err != nil:
			return err
		case *data == "":
			return fmt.Errorf("-data is missing")
		case *q < 1 || *seeds < 1 || *every < 1 || *tries < 0 || !(*cells >= 0 && *cells < 1) || slices.Min(sds) < 0:
			return fmt.Errorf("-latent, -seeds and -every are at least 1, -cells is a share, -shifts and -tries are not negative")
		}
		return nil
	})
	if err != nil {
		return err
	}
	peer, done, err := build(ctx, *source)
	if err != nil {
		return err
	}
	defer done()
	fmt.Println("| data | sites | noise | shift | seed | model | nats a row, training | held out, same sites | error | within 50 % | 90 % | 95 % | held out, other sites | error | within 50 % | 90 % | 95 % | numbers a site |")
	fmt.Println("|---|---:|---|---:|---:|---|" + strings.Repeat("---:|", 12))
	missed := 0
	for name := range strings.SplitSeq(*names, ",") {
		rows, err := deal.Open(ctx, filepath.Join(*data, name))
		if err != nil {
			return err
		}
		for _, n := range counts {
			for kind := range strings.SplitSeq(*noise, ",") {
				for _, shift := range sds {
					found := 0
					for seed := range max(*seeds, *tries) {
						c, err := newCut(ctx, rows, division{sites: int(n), every: *every, seed: uint64(seed), cells: *cells, shift: shift, perFeature: kind == "feature"})
						if err != nil {
							return fmt.Errorf("%s: %w", name, err)
						}
						at := fmt.Sprintf("%s | %v | %s | %v | %d", name, n, kind, shift, seed)
						if seed < *tries {
							differs, err := c.differs(*q)
							if err != nil {
								return fmt.Errorf("%s: %w", at, err)
							}
							if differs {
								found++
							}
						}
						if seed < *seeds {
							scores, err := c.compare(ctx, peer, *q)
							if err != nil {
								return fmt.Errorf("%s: %w", at, err)
							}
							missed += report(at, scores)
						}
					}
					if *tries > 0 {
						fmt.Printf("| %s | %v | %s | %v | | means differ in %d of %d cuts |%s\n", name, n, kind, shift, found, *tries, strings.Repeat(" |", 12))
					}
				}
			}
		}
	}
	if missed > 0 {
		return fmt.Errorf("%d of the bars are missed: two exchanges .1 nats a row in training and .5 held out behind the central fit, and with offsets .5 held out behind the central fit with site means", missed)
	}
	return nil
}

// score is what came of one way to fit, in nats for each row and units of a feature's
// standard deviation; NaN where the way gives none.
type score struct {
	name         string
	train        float64 // nats of training rows
	seen, unseen judged
	numbers      float64 // that a site sends
}

// judged is how well rows are described that a fit has not seen: nats, root mean square
// error of hidden views, shares of cells within intervals of 50, 90 and 95 %.
type judged struct {
	nats, error float64
	cover       [3]float64
}

var unjudged = judged{math.NaN(), math.NaN(), [3]float64{math.NaN(), math.NaN(), math.NaN()}}

// report writes the scores and counts the bars that are missed.
func report(at string, scores []score) (missed int) {
	by := map[string]score{}
	for _, x := range scores {
		by[x.name] = x
		fmt.Printf("| %s | %s | %s ", at, x.name, shown(x.train, 3))
		for _, j := range []judged{x.seen, x.unseen} {
			fmt.Printf("| %s | %s | %s | %s | %s ", shown(j.nats, 3), shown(j.error, 4), shown(j.cover[0], 3), shown(j.cover[1], 3), shown(j.cover[2], 3))
		}
		fmt.Printf("| %s |\n", shown(x.numbers, 0))
	}
	for _, holds := range []bool{
		by[twoExchanges].train >= by[central].train-0.1,
		by[twoExchanges].seen.nats >= by[central].seen.nats-0.5,
		by[withOffsets].seen.nats >= by[centralMeans].seen.nats-0.5,
	} {
		if !holds {
			missed++
		}
	}
	return missed
}

// shown is a number of a table, – where there is none.
func shown(x float64, decimals int) string {
	if math.IsNaN(x) {
		return "–"
	}
	return strings.Replace(strconv.FormatFloat(x, 'f', decimals, 64), "-", "−", 1)
}

const (
	central      = "central"
	centralMeans = "central, site means"
	oneExchange  = "one exchange"
	twoExchanges = "two exchanges"
	withOffsets  = "two exchanges, offsets"
	withNoise    = "two exchanges, noise of sites"
)

// elsewhere is the index of all sites that took no part.
const elsewhere = -1

// way returns what a fit says of the subjects of a site, or elsewhere.
type way func(site int) (*ppca.Predictor, error)

// same is a way that knows no sites.
func same(l ppca.Layout, p *ppca.Params) way {
	return func(int) (*ppca.Predictor, error) { return ppca.NewPredictor(l, p) }
}

// likeliest is how a study fits the model of all sites.
var likeliest = ppca.FitOptions{LeastNoise: ppca.LeastNoise}

// differs says whether the rule of a study gives the sites means of their own.
func (c *cut) differs(q int) (bool, error) {
	said, _, err := c.condensed(q)
	if err != nil {
		return false, err
	}
	filled, _, err := ppca.FitFilled(c.layout, said, q, likeliest)
	if err != nil {
		return false, err
	}
	_, o, err := offsets.Choose(c.layout, filled, q, likeliest)
	return o != nil, err
}

// condensed is what the sites say in one exchange, and how many numbers that is.
func (c *cut) condensed(q int) ([][]ppca.Block, float64, error) {
	return c.say(func(b []ppca.Block) ([]ppca.Block, error) {
		return ppca.Condense(c.layout, b, options.LocalRank(q), 0, ppca.FitOptions{Tol: 1e-6})
	})
}

// compare fits the ways and scores them.
func (c *cut) compare(ctx context.Context, peer string, q int) ([]score, error) {
	said, numbers, err := c.condensed(q)
	if err != nil {
		return nil, err
	}
	_, first, err := ppca.FitFilled(c.layout, said, q, likeliest)
	if err != nil {
		return nil, err
	}
	refilled, more, err := c.say(func(b []ppca.Block) ([]ppca.Block, error) {
		return ppca.Refill(c.layout, &first.Params, b, options.LocalRank(q), 0, ppca.FitOptions{Tol: 1e-6})
	})
	if err != nil {
		return nil, err
	}
	_, second, err := ppca.FitFilled(c.layout, refilled, q, likeliest)
	if err != nil {
		return nil, err
	}
	is := func(p *ppca.Fitted) func() (way, error) {
		return func() (way, error) { return same(c.layout, &p.Params), nil }
	}
	var scores []score
	for _, w := range []struct {
		name    string
		numbers float64
		fit     func() (way, error)
	}{
		{central, math.NaN(), func() (way, error) { return c.central(ctx, peer, q, false) }},
		{centralMeans, math.NaN(), func() (way, error) { return c.central(ctx, peer, q, true) }},
		{oneExchange, numbers, is(first)},
		{twoExchanges, numbers + more, is(second)},
		{withNoise, numbers + more, func() (way, error) { return c.ownNoise(&second.Params) }},
		{withOffsets, numbers + more, func() (way, error) { return c.offsets(refilled, &second.Params) }},
	} {
		at, err := w.fit()
		if err == nil {
			err = c.add(&scores, w.name, w.numbers, at)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", w.name, err)
		}
	}
	alone, err := c.alone(q)
	if err != nil {
		return nil, err
	}
	return append(scores, alone, c.softImpute(3*q), c.mean()), nil
}

// say makes what the sites say, and counts the numbers that one of them sends on average.
func (c *cut) say(of func([]ppca.Block) ([]ppca.Block, error)) (said [][]ppca.Block, numbers float64, err error) {
	for _, b := range c.train {
		x, err := of(b)
		if err != nil {
			return nil, 0, err
		}
		for i := range x {
			p := float64(len(x[i].Features))
			numbers += 1 + p + float64(len(x[i].Factor)+len(x[i].Diag)+len(x[i].Filled))
			if x[i].Scatter != nil {
				numbers += p * (p + 1) / 2
			}
		}
		said = append(said, x)
	}
	return said, numbers / float64(len(c.train)), nil
}

// ownNoise gives the sites noise of their own where it differs.
func (c *cut) ownNoise(p *ppca.Params) (way, error) {
	model, err := ppca.NewPredictor(c.layout, p)
	if err != nil {
		return nil, err
	}
	var said []sitenoise.Site
	for i, rows := range c.rows {
		s, x := sitenoise.NewSums(c.layout.Views()), make([]float64, model.Rank())
		for _, row := range rows {
			post, values, err := model.Subject(row, nil)
			if err != nil {
				return nil, err
			}
			post.Latent(x, values)
			s.Add(model, post, values, x)
		}
		said = append(said, sitenoise.Site{Sums: s, Patterns: ppca.Patterns(c.layout, c.train[i])})
	}
	found, err := sitenoise.Estimate(model, said)
	return func(site int) (*ppca.Predictor, error) {
		var times []float64
		if site != elsewhere && found != nil {
			for _, view := range found[site] {
				times = append(times, view.Times)
			}
		}
		own, err := sitenoise.At(c.layout, p, times)
		if err != nil {
			return nil, err
		}
		return ppca.NewPredictor(c.layout, own)
	}, err
}

func (c *cut) offsets(sites [][]ppca.Block, start *ppca.Params) (way, error) {
	var fit *ppca.Fitted
	var o *offsets.Offsets
	if _, err := ppca.FillNoise(c.layout, sites, start, func(now [][]ppca.Block, start *ppca.Params) (_ *ppca.Params, err error) {
		if fit, o, err = offsets.Fit(c.layout, now, start.Rank, start, likeliest); err != nil {
			return nil, err
		}
		return &fit.Params, nil
	}); err != nil {
		return nil, err
	}
	if !fit.Converged {
		log.Print("the fit with offsets has not converged")
	}
	return func(site int) (*ppca.Predictor, error) {
		if site == elsewhere {
			return offsets.AtSite(c.layout, &fit.Params, &offsets.Site{Mean: make([]float64, c.layout.Features()), Diag: o.NewSite})
		}
		return offsets.AtSite(c.layout, &fit.Params, &o.Sites[site])
	}, nil
}

func (c *cut) add(scores *[]score, name string, numbers float64, at way) error {
	predictors := make([]*ppca.Predictor, len(c.train))
	for i := range predictors {
		var err error
		if predictors[i], err = at(i); err != nil {
			return err
		}
	}
	newSite, err := at(elsewhere)
	if err != nil {
		return err
	}
	s := score{name: name, numbers: numbers}
	if s.train, err = nats(predictors, c.train); err != nil {
		return err
	}
	if s.seen, err = c.judge(predictors, c.test, c.held); err != nil {
		return err
	}
	s.unseen, err = c.judge([]*ppca.Predictor{newSite}, [][]ppca.Block{c.newTest}, [][][][]float64{c.newRows})
	*scores = append(*scores, s)
	return err
}

func (c *cut) judge(p []*ppca.Predictor, sites [][]ppca.Block, rows [][][][]float64) (j judged, err error) {
	if j.nats, err = nats(p, sites); err != nil {
		return j, err
	}
	err = c.hide(&j, rows, func(site int, rest [][]float64) (guess, variance []float64, err error) {
		post, values, err := p[site].Subject(rest, nil)
		if err != nil {
			return nil, nil, err
		}
		return spreadOut(c.layout, post, values)
	})
	return j, err
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
