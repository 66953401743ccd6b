package fedmvppca

import (
	"context"
	"fmt"
	"math"
	"slices"

	"parley/dataset"
	"parley/figure"
	"parley/method"
	"parley/methods/factors/ppca"
	"parley/privacy"
	"parley/privacy/account"
	"parley/study"
)

// parameter is one of those that a view has.
type parameter uint8

const (
	ofMeans    parameter = iota // μ of the view
	ofLoadings                  // W of the view, without the columns that are zero by rule
	ofVariance                  // σ² of the view
)

func (p parameter) String() string {
	return [...]string{"means", "loadings", "noise variance"}[p]
}

// piece is one parameter of one view.
type piece struct {
	view   int
	kind   parameter
	length int
}

// read writes the part's entries of p to dst.
func (pt piece) read(l ppca.Layout, p *ppca.Params, dst []float64) {
	lo, hi := l.View(pt.view)
	switch pt.kind {
	case ofMeans:
		copy(dst, p.Mu[lo:hi])
	case ofLoadings:
		q := pt.length / (hi - lo)
		for j := range hi - lo {
			copy(dst[j*q:][:q], p.W[(lo+j)*p.Rank:])
		}
	default:
		dst[0] = p.Noise[pt.view]
	}
}

// write is the inverse of read.
func (pt piece) write(l ppca.Layout, p *ppca.Params, src []float64) {
	lo, hi := l.View(pt.view)
	switch pt.kind {
	case ofMeans:
		copy(p.Mu[lo:hi], src)
	case ofLoadings:
		q := pt.length / (hi - lo)
		for j := range hi - lo {
			copy(p.W[(lo+j)*p.Rank:][:q], src[j*q:])
		}
	default:
		p.Noise[pt.view] = src[0]
	}
}

// siteReleases is what one site releases in a private round, by the plan alone: how far its
// parameters are from the prior that the coordinator broadcast, clipped and noised.
//
// Whatever the site holds, its whole message lies in a ball, so noise on the ball's diameter
// hides the site as a whole, and any of its subjects with it: no property of one record is
// used, and the noise does not fall with their number.
//
// Lengths reach the session in units of the clip, so that every bound is 1 and requests
// follow from the plan alone. The clip follows from the broadcast prior, never from the site's own parameters.
type siteReleases struct {
	set   setup
	parts []piece
	sums  []privacy.Sum // one for each part
}

// newReleases plans the releases of a site, and calibrates their noise.
func newReleases(set setup, site string) (*siteReleases, error) {
	c := &siteReleases{set: set}
	for _, k := range set.own.Patterns.Views(set.Plan, site) {
		d := set.Layout.Dims[k]
		for _, pt := range []piece{{k, ofMeans, d}, {k, ofLoadings, d * effectiveRank(d, set.own.Latent)},
			{k, ofVariance, 1}} {
			if pt.length == 0 {
				continue
			}
			m, err := noiseOf(set, pt.kind)
			if err != nil {
				return nil, err
			}
			c.parts = append(c.parts, pt)
			c.sums = append(c.sums, wholeSite(fmt.Sprintf("change of the %s of view %s", pt.kind,
				set.Plan.Views[k].Name), pt.length, m))
		}
	}
	return c, c.calibrate()
}

func wholeSite(name string, length int, m account.Mechanism) privacy.Sum {
	m.Rate, m.Diameter, m.Count = 1, 2, 1
	return privacy.Sum{Name: name, Unit: privacy.WholeSite, Form: privacy.Vectors, Blocks: []int{length}, Bound: 1,
		Mechanism: m}
}

// noiseOf is the noise of a release in units of its clip g, whose ball has the diameter 2g: by
// Theorem 5 or 3 for a budget per release, and of one diameter where a total is still to be split.
func noiseOf(set setup, kind parameter) (account.Mechanism, error) {
	d, total := set.own.Clipping, set.Plan.Privacy.Total != nil
	part := map[parameter]gaussianPart{ofMeans: d.Mean, ofLoadings: d.Loadings}[kind]
	switch {
	case total && kind == ofVariance:
		return account.Mechanism{Kind: account.Laplace, Noise: 2}, nil
	case total:
		return account.Mechanism{Kind: account.Gaussian, Noise: 2}, nil
	case kind == ofVariance:
		return account.Mechanism{Kind: account.Laplace, Noise: 2 / d.Noise.Epsilon}, nil
	}
	factor, _, err := account.ZhaoGaussian(part.Epsilon, part.Delta)
	return account.Mechanism{Kind: account.Gaussian, Noise: 2 * factor}, err
}

// calibrate multiplies the noise of all releases of all rounds by the least
// common factor with which together they keep the plan's total.
func (c *siteReleases) calibrate() error {
	p := c.set.Plan
	if p.Privacy.Total == nil {
		return nil
	}
	var all []account.Mechanism
	for _, s := range c.sums {
		m := s.Mechanism
		if p.Privacy.Unit == study.UnitSubject { // whatever a subject does, the site stays in its ball
			m.Noise, m.Diameter = m.Noise/m.Diameter, 1
		}
		m.Count = c.set.own.Rounds
		all = append(all, m)
	}
	factor, err := account.Scale(all, p.Privacy.Adjacency, *p.Privacy.Total)
	if err != nil {
		return fmt.Errorf("splitting the plan's total over %s: %w", figure.Plural(c.set.own.Rounds, "round"), err)
	}
	for i := range c.sums {
		c.sums[i].Mechanism.Noise = account.RoundUp(c.sums[i].Mechanism.Noise * factor)
	}
	return nil
}

// request is what a site asks its gate for in a private round.
func (c *siteReleases) request() privacy.Request {
	r := privacy.Request{Protection: privacy.Differential, Sums: c.sums}
	for _, s := range c.sums {
		r.Contents = append(r.Contents, privacy.Content{What: s.Name + ", clipped and noised", Values: s.Blocks[0]})
	}
	return r
}

// radius is the clip of a part, in scaled units: the constant times the
// standard deviation of the part's prior, as published. An inverse-gamma law
// with α ≤ 2 has none; the prior's noise variance itself then stands for it.
// Where a prior has no spread left the clip is 0: nothing of the site is then
// released, and it says what the prior says.
func (c *siteReleases) radius(prior *Prior, pt piece) float64 {
	d := c.set.own.Clipping
	switch pt.kind {
	case ofMeans:
		return d.Mean.Constant * math.Sqrt(prior.VarMu[pt.view])
	case ofLoadings:
		return d.Loadings.Constant * math.Sqrt(prior.VarW[pt.view])
	}
	v := InverseGammaVariance(prior.Alpha[pt.view], prior.Beta[pt.view])
	if math.IsInf(v, 1) {
		return d.Noise.Constant * prior.Noise[pt.view]
	}
	return d.Noise.Constant * math.Sqrt(v)
}

// change writes what the session is to clip and noise for sum i: how far a
// site's parameters are from the prior, in units of the clip. What a site does
// not describe, because nobody there has it, has not moved.
func (c *siteReleases) change(prior *Prior, own *ppca.Params, i int, dst []float64) {
	pt := c.parts[i]
	unit := c.radius(prior, pt)
	if own.Noise[pt.view] == 0 || unit == 0 {
		clear(dst)
		return
	}
	at := make([]float64, pt.length)
	pt.read(c.set.Layout, &prior.Params, at)
	pt.read(c.set.Layout, own, dst)
	for i := range dst {
		dst[i] = (dst[i] - at[i]) / unit
	}
}

// bySite is what every site releases in a round.
type bySite map[string]*siteReleases

// newBySite plans the releases of every site. Sites that hold the same views release the same.
func newBySite(set setup) (bySite, error) {
	all, same := bySite{}, bySite{}
	for _, site := range set.Plan.Sites {
		key := fmt.Sprint(set.own.Patterns.Views(set.Plan, site))
		if same[key] == nil {
			c, err := newReleases(set, site)
			if err != nil {
				return nil, err
			}
			same[key] = c
		}
		all[site] = same[key]
	}
	return all, nil
}

// noisedAnswer is a site's noised change in one round, as the coordinator keeps it.
type noisedAnswer struct {
	Sums []privacy.Noised `cbor:"sums"` // in the order in which they were declared
}

// check holds an answer against what its site was asked for.
func (a *noisedAnswer) check(c *siteReleases) error {
	if len(a.Sums) != len(c.sums) {
		return fmt.Errorf("%d noised sums where %d were declared", len(a.Sums), len(c.sums))
	}
	for i := range a.Sums {
		if err := a.Sums[i].Check(c.sums[i]); err != nil {
			return err
		}
		if err := ppca.Finite(c.sums[i].Name, a.Sums[i].Floats(0)); err != nil {
			return err
		}
	}
	return nil
}

// receive takes the noised sums of a private round from an answer, checked.
func (c *siteReleases) receive(a method.Contribution) (*noisedAnswer, error) {
	x := new(noisedAnswer)
	for _, declared := range c.sums {
		sum, err := method.OnlySum(a, declared.Name)
		if err != nil {
			return nil, err
		}
		x.Sums = append(x.Sums, *sum)
	}
	return x, x.check(c)
}

// release answers a private round around a prior of all the plan's features. The site's
// own parameters are fitted once, for the first sum that needs them. Whether that succeeds
// depends on the rows, so failure must not show: the session then releases noise alone.
func (c *siteReleases) release(ctx context.Context, s *privacy.Session, prior *Prior,
	fit func(dataset.Source) (*ppca.Params, error)) error {
	var own *ppca.Params
	var failed error
	for i, sum := range c.sums {
		_, err := s.Whole(ctx, sum.Name, func(data dataset.Source, v []float64) error {
			if own == nil && failed == nil {
				own, failed = fit(data)
			}
			if failed == nil {
				c.change(prior, own, i, v)
			}
			return failed
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// held returns of a subject's views those that the plan says the site holds,
// and of these the ones that were observed whole: a view with a missing value
// counts as not there, since the iteration knows no single missing cells.
func (c *siteReleases) held(views [][]float64) [][]float64 {
	out := make([][]float64, len(views))
	for _, pt := range c.parts {
		if k := pt.view; k < len(views) && !slices.ContainsFunc(views[k], func(x float64) bool {
			return math.IsNaN(x) || math.IsInf(x, 0)
		}) {
			out[k] = views[k]
		}
	}
	return out
}
