package graffl

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"parley/methods/mixture/gmm"
	"parley/papers/experiment"
	"parley/papers/graffl/scarce"
	"parley/papers/graffl/suffiae"
)

// The arms, beside those of the constants of controls: what sites do with codes, of an
// encoder of their own as published, or of one that the first site trains for all.
const (
	allCodes   = "codes of all rows" // one encoder, trained on all rows, and a regression on the codes
	freeAtSite = "regression at the site, C = 10 000"
	own        = "own encoders: "
	one        = "one encoder: "
	raw        = "raw"
	again      = "oversampling"
	smote      = "SMOTE"
	elsewhere  = "another site's classifier"
	published  = "GRAFFL"       // rows from what Algorithm 2 accepts
	mixed      = "mixture"      // rows from the posterior of method mixture
	ceiling    = "best mixture" // rows from the exact posterior given all codes of the class
	gated      = mixed + ", where the verdict keeps them"
	kept       = "kept"
)

// epsilons are the totals of private sums.
var epsilons = []float64{10, 5, 1}

func private(epsilon float64) string { return fmt.Sprintf("%s, ε %v", mixed, epsilon) }

// arms are all of them, in the order of tables.
func arms() []string {
	all := []string{ridgeAllRows, pviOverSites, ridgeAtSite, freeAtSite, allCodes}
	kinds := []string{raw, again, smote, elsewhere, published, ceiling}
	for _, k := range kinds {
		all = append(all, own+k)
	}
	for _, k := range append(kinds, mixed, gated) {
		all = append(all, one+k)
	}
	for _, e := range epsilons {
		all = append(all, one+private(e))
	}
	return all
}

const (
	proposals = 200_000 // of the published algorithm
	sets      = 20      // sets of rows that are drawn from a mixture, as published
	// Sums do not tell long codes apart.
	maxSumCodes = 5
)

// trial is one split in one setting.
type trial struct {
	setting
	dealt
	proposals, sets int
	seed            uint64
	values          experiment.Values
}

// measure measures every arm in one split; quick runs make fewer proposals and rows.
func (s setting) measure(ctx context.Context, at experiment.Data, seed uint64, quick bool) (experiment.Values, error) {
	all, err := s.open(ctx, at)
	if err != nil {
		return nil, err
	}
	t := &trial{setting: s, proposals: proposals, sets: sets, seed: seed, values: experiment.Values{}}
	if quick {
		t.proposals, t.sets = 5000, 2
	}
	if t.dealt, err = s.split(all, rand.New(rand.NewPCG(seed, 0))); err != nil {
		return nil, err
	}
	return t.values, t.run(ctx)
}

// run measures every arm at every target.
func (t *trial) run(ctx context.Context) error {
	for _, part := range []func(context.Context) error{t.features, t.ownEncoders, t.oneEncoder} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

// features are the arms without any encoder, and that of all rows.
func (t *trial) features(ctx context.Context) error {
	for _, site := range t.sites[t.targets:] {
		class, rest := site.Count()
		t.values["ratio"] = append(t.values["ratio"], float64(rest)/float64(class))
		for _, c := range []struct {
			arm     string
			train   scarce.Labelled
			penalty float64
		}{{ridgeAllRows, t.all, ridgePenalty}, {freeAtSite, site, 1e-4}, {ridgeAtSite, site, ridgePenalty}} {
			p, err := ridge(c.train, t.held.Rows, c.penalty)
			if err == nil {
				err = t.judge(c.arm, p)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", c.arm, err)
			}
		}
	}
	p, err := overSites(ctx, t.sites, t.held.Rows, t.seed)
	if err != nil {
		return err
	}
	for range t.sites[t.targets:] {
		if err := t.judge(pviOverSites, p); err != nil {
			return err
		}
	}
	n, err := t.train(ctx, t.all, uint64(len(t.sites)))
	if err != nil {
		return err
	}
	c, err := t.encode(n, t.all)
	if err != nil {
		return err
	}
	return t.fit(allCodes, c, nil)
}

// coded are the codes of a site's rows, and of the held ones by the same encoder.
type coded struct {
	scarce.Labelled
	held [][]float64
	head *scarce.LinearClassifier // that the encoder was trained with
}

func (t *trial) train(ctx context.Context, of scarce.Labelled, site uint64) (*suffiae.Network, error) {
	in, err := suffiae.FitInputs(of.Rows, inputLimit)
	if err != nil {
		return nil, err
	}
	o := suffiae.Defaults()
	o.Dimension = t.codes
	return suffiae.Train(ctx, in, of.Rows, of.Labels, o, rand.New(rand.NewPCG(t.seed, site)))
}

func (t *trial) encode(n *suffiae.Network, of scarce.Labelled) (c coded, err error) {
	c.head = &scarce.LinearClassifier{}
	c.head.Weights, c.head.Intercept = n.Classifier()
	c.Labels = of.Labels
	if c.Rows, err = n.Encode(of.Rows); err == nil {
		c.held, err = n.Encode(t.held.Rows)
	}
	return c, err
}

// fit scores a regression on a site's codes and each of several sets of more of the class.
func (t *trial) fit(arm string, c coded, extra ...[][]float64) error {
	var all []map[string]float64
	for _, rows := range extra {
		train := c.With(rows)
		m, err := scarce.FitLinear(train.Rows, train.Labels, scarce.Penalty)
		if err != nil {
			return fmt.Errorf("%s: %w", arm, err)
		}
		p, err := m.Probability(c.held)
		if err != nil {
			return err
		}
		s, err := scores(p, t.held.Labels)
		if err != nil {
			return err
		}
		all = append(all, s)
	}
	t.put(arm, all...)
	return nil
}

// ownEncoders are the arms of the paper: every site trains an encoder of its own.
func (t *trial) ownEncoders(ctx context.Context) error {
	var codes []coded
	for k, site := range t.sites {
		n, err := t.train(ctx, site, uint64(k))
		if err != nil {
			return err
		}
		c, err := t.encode(n, site)
		if err != nil {
			return err
		}
		codes = append(codes, c)
	}
	return t.helped(own, codes, t.targets)
}

// oneEncoder are the arms with one encoder, which the first site trains.
func (t *trial) oneEncoder(ctx context.Context) error {
	n, err := t.train(ctx, t.sites[0], 0)
	if err != nil {
		return err
	}
	var codes []coded
	for _, site := range t.sites {
		c, err := t.encode(n, site)
		if err != nil {
			return err
		}
		codes = append(codes, c)
	}
	targets := max(t.targets, 1)
	if err := t.helped(one, codes, targets); err != nil || t.codes > maxSumCodes {
		return err
	}
	for _, epsilon := range append([]float64{0}, epsilons...) {
		p, err := fromSums(ofClass(codes), t.codes, epsilon, t.seed)
		if err != nil {
			return err
		}
		arm := one + mixed
		if epsilon > 0 {
			arm = one + private(epsilon)
		}
		for _, c := range codes[targets:] {
			if err := t.generated(arm, p, c); err != nil {
				return err
			}
			if epsilon > 0 {
				continue
			}
			if err := t.gated(p, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// helped are the arms of both kinds of encoders.
func (t *trial) helped(prefix string, codes []coded, targets int) error {
	algorithm2, err := fromAlgorithm2(ofClass(codes), t.codes, t.proposals, t.seed)
	if err != nil {
		return err
	}
	best, err := fromAll(ofClass(codes), t.codes, t.seed)
	if err != nil {
		return err
	}
	for k, c := range codes {
		if k < targets {
			continue
		}
		of := c.Scarce()
		copies, err := scarce.Oversample(of, c.lacking(), rand.New(rand.NewPCG(t.seed, 4)))
		if err != nil {
			return err
		}
		between, err := smoted(of, c.lacking(), 5, rand.New(rand.NewPCG(t.seed, 5)))
		if err != nil {
			return err
		}
		for _, a := range []struct {
			arm   string
			extra [][]float64
		}{{raw, nil}, {again, copies}, {smote, between}} {
			if err := t.fit(prefix+a.arm, c, a.extra); err != nil {
				return err
			}
		}
		// The next site's: of sites without shortage, if there are any.
		p, err := codes[(k+1)%max(targets, 3)].head.Probability(c.held)
		if err != nil {
			return err
		}
		if err := t.judge(prefix+elsewhere, p); err != nil {
			return err
		}
		if err := t.generated(prefix+published, algorithm2, c); err != nil {
			return err
		}
		if err := t.generated(prefix+ceiling, best, c); err != nil {
			return err
		}
	}
	return nil
}

// lacking is how many rows of the class would level it with the other.
func (c coded) lacking() int {
	scarce, other := c.Count()
	return max(0, other-scarce)
}

// ofClass returns the codes of the class, one after the other, of each site.
func ofClass(codes []coded) (sites [][]float64) {
	for _, c := range codes {
		sites = append(sites, slices.Concat(c.Scarce()...))
	}
	return sites
}

// generated is an arm that levels the classes with rows from a posterior.
func (t *trial) generated(arm string, p *gmm.Posterior, c coded) error {
	var extra [][][]float64
	for i := range t.sets {
		rows, err := predictive(p, c.lacking(), t.seed+uint64(i)<<32)
		if err != nil {
			return err
		}
		extra = append(extra, rows)
	}
	return t.fit(arm, c, extra...)
}

// gated is what the product does: synthetic rows only if they pass.
func (t *trial) gated(p *gmm.Posterior, c coded) error {
	rows, err := predictive(p, c.lacking(), t.seed)
	if err != nil {
		return err
	}
	m, keep, err := scarce.Keep(c.Labelled, rows, t.seed)
	if err != nil {
		return err
	}
	keeps := 0.0
	if keep {
		keeps = 1
	}
	t.values[kept] = append(t.values[kept], keeps)
	probability, err := m.Probability(c.held)
	if err != nil {
		return err
	}
	return t.judge(one+gated, probability)
}
