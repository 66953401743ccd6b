package pvi

import (
	"fmt"
	"math"

	"parley/privacy"
	"parley/privacy/account"
	"parley/problem"
)

// protection is what one site releases under differential privacy: so many updates
// of one kind of noised sum, and perhaps one more for the report.
type protection struct {
	updates   int
	sum       privacy.Sum  // of one update
	quality   *privacy.Sum // how well outcomes are predicted; nil if nothing is spent on it
	published *published   // nil where updates are noised natural gradients
}

const (
	sumNatural   = "gradients of the log-likelihood"
	sumPublished = "gradients of the local free energy"
	sumQuality   = "how well outcomes are predicted"
)

// protect works out what the sites release, if the plan is private.
func (s *setup) protect(sites []string) error {
	if !s.plan.Privacy.Differential() {
		return nil
	}
	s.protected = map[string]*protection{}
	for _, site := range sites {
		p, err := s.protection(site)
		if err != nil {
			return fmt.Errorf("site %s: %w", site, err)
		}
		s.protected[site] = p
	}
	return nil
}

func (s *setup) protection(site string) (*protection, error) {
	if s.opts.Variant == VariantPublished {
		return s.publishedProtection(site)
	}
	pr := s.plan.Privacy
	p := &protection{updates: s.opts.Rounds}
	update := account.Mechanism{Kind: account.Gaussian, Noise: 1, Rate: 1, Diameter: 2, Count: s.opts.Rounds}
	all := []account.Mechanism{update}
	if d := pr.Diagnostics; d > 0 {
		// Squares of signal over noise add up, so that these are the shares of the total.
		all = append(all, account.Mechanism{Kind: account.Gaussian, Noise: math.Sqrt((1 - d) / d / float64(s.opts.Rounds)), Rate: 1, Diameter: 2, Count: 1})
	}
	factor, err := account.Scale(all, pr.Adjacency, *pr.Total)
	if err != nil {
		return nil, err
	}
	update.Noise, update.Count = account.RoundUp(factor), 1
	p.sum = privacy.Sum{Name: sumNatural, Unit: privacy.Unit(pr.Unit), Form: privacy.Vectors, Blocks: []int{s.natural().length()}, Bound: *s.opts.Clip, Mechanism: update}
	if len(all) > 1 {
		noise := all[1]
		noise.Noise = account.RoundUp(noise.Noise * factor)
		p.quality = qualitySum(noise)
	}
	return p, nil
}

// publishedProtection has the noise of the paper, and as many updates as its
// accountant allows.
func (s *setup) publishedProtection(site string) (*protection, error) {
	o, pr := s.opts.Published, s.plan.Privacy
	total := *pr.Total
	p := &protection{published: &published{likelihood: s.likelihood, columns: s.encoding.Width(), rows: s.opts.rowsOf(site),
		options: publishedOptions{Noise: o.Noise, Bound: *s.opts.Clip, Steps: o.Steps, BatchShare: o.BatchShare, Draws: o.Draws, LearningRate: o.LearningRate, Damping: s.opts.Damping}}}
	if d := pr.Diagnostics; d > 0 {
		m := account.Mechanism{Kind: account.Gaussian, Noise: 1, Rate: 1, Diameter: 2, Count: 1}
		factor, err := account.Scale([]account.Mechanism{m}, pr.Adjacency, account.Budget{Epsilon: d * total.Epsilon, Delta: d * total.Delta})
		if err != nil {
			return nil, err
		}
		m.Noise = account.RoundUp(factor)
		p.quality = qualitySum(m)
		total = account.Budget{Epsilon: (1 - d) * total.Epsilon, Delta: (1 - d) * total.Delta}
	}
	m := p.published.mechanism()
	n, err := paperUpdates(m, total)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, problem.Problem{Where: "privacy.total", What: fmt.Sprintf("the published accountant allows %d rows not a single update at (ε %v, δ %v)", s.opts.rowsOf(site), total.Epsilon, total.Delta),
			Hint: "a larger total, more published.noise, or variant: partitioned"}
	}
	p.updates = min(n, s.opts.Rounds*len(s.plan.Sites))
	p.sum = privacy.Sum{Name: sumPublished, Unit: privacy.Subject, Form: privacy.Vectors, Blocks: []int{2 * s.weights()}, Bound: *s.opts.Clip, Kept: true, Mechanism: m}
	return p, nil
}

// qualitySum declares the sum of [qualityEntries].
func qualitySum(m account.Mechanism) *privacy.Sum {
	return &privacy.Sum{Name: sumQuality, Unit: privacy.Subject, Form: privacy.Vectors, Blocks: []int{qualityLength}, Bound: qualityBound, Mechanism: m}
}

// natural is the update under differential privacy.
func (s *setup) natural() natural { return natural{s.likelihood, s.encoding.Width()} }

// noise lists the multiplier of every site.
func (s *setup) noise() (all []float64) {
	for _, site := range s.plan.Sites {
		all = append(all, s.protected[site].sum.Mechanism.Noise)
	}
	return all
}
