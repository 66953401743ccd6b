package gaps

import (
	"context"
	"fmt"
	"math"

	"parley/methods/factors/between"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
)

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

const (
	central      = "central"
	centralMeans = "central, site means"
	oneExchange  = "one exchange"
	twoExchanges = "two exchanges"
	withOffsets  = "two exchanges, offsets"
	withNoise    = "two exchanges, noise of sites"
	siteAlone    = "a site alone"
	byLowRank    = "softImpute"
	byMean       = "the mean"
)

// ways are all, in the order of the table.
var ways = []string{central, centralMeans, oneExchange, twoExchanges, withNoise, withOffsets, siteAlone, byLowRank, byMean}

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
	_, o, err := between.Choose(c.layout, filled, q, likeliest)
	return o != nil, err
}

// condensed is what the sites say in one exchange, and how many numbers that is.
func (c *cut) condensed(q int) ([][]ppca.Block, float64, error) {
	return c.say(func(b []ppca.Block) ([]ppca.Block, error) {
		return ppca.Condense(c.layout, b, options.LocalRank(q), 0, ppca.FitOptions{Tol: 1e-6})
	})
}

// compare fits the ways and scores them. Without the program of the central fit, it is left
// out.
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
		{central, math.NaN(), func() (way, error) { return c.central(ctx, peer, q, false, &second.Params) }},
		{centralMeans, math.NaN(), func() (way, error) { return c.central(ctx, peer, q, true, nil) }},
		{oneExchange, numbers, is(first)},
		{twoExchanges, numbers + more, is(second)},
		{withNoise, numbers + more, func() (way, error) { return c.ownNoise(&second.Params) }},
		{withOffsets, numbers + more, func() (way, error) { return c.offsets(refilled, &second.Params) }},
	} {
		at, err := w.fit()
		if err == nil && at != nil {
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
	var said []between.SiteNoise
	for i, rows := range c.rows {
		s, x := between.NewSums(c.layout.Views()), make([]float64, model.Rank())
		for _, row := range rows {
			post, values, err := model.Subject(row, nil)
			if err != nil {
				return nil, err
			}
			post.Latent(x, values)
			s.Add(model, post, values, x)
		}
		said = append(said, between.SiteNoise{Sums: s, Patterns: ppca.Patterns(c.layout, c.train[i])})
	}
	found, err := between.Estimate(model, said)
	return func(site int) (*ppca.Predictor, error) {
		var times []float64
		if site != elsewhere && found != nil {
			for _, view := range found[site] {
				times = append(times, view.Times)
			}
		}
		own, err := between.At(c.layout, p, times)
		if err != nil {
			return nil, err
		}
		return ppca.NewPredictor(c.layout, own)
	}, err
}

func (c *cut) offsets(sites [][]ppca.Block, start *ppca.Params) (way, error) {
	var fit *ppca.Fitted
	var o *between.Offsets
	if _, err := ppca.FillNoise(c.layout, sites, start, func(now [][]ppca.Block, start *ppca.Params) (_ *ppca.Params, err error) {
		if fit, o, err = between.Fit(c.layout, now, start.Rank, start, likeliest); err != nil {
			return nil, err
		}
		return &fit.Params, nil
	}); err != nil {
		return nil, err
	}
	if !fit.Converged {
		return nil, fmt.Errorf("it has not converged")
	}
	return func(site int) (*ppca.Predictor, error) {
		if site == elsewhere {
			return between.AtSite(c.layout, &fit.Params, &between.SiteOffset{Mean: make([]float64, c.layout.Features()), Diag: o.NewSite})
		}
		return between.AtSite(c.layout, &fit.Params, &o.Sites[site])
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
