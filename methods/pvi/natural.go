package pvi

import (
	"context"
	"math"

	"parley/dataset"
	"parley/method"
	"parley/method/rounds"
	"parley/methods/pvi/gvi"
	"parley/privacy"
	"parley/privacy/account"
)

// natural is partitioned variational inference under differential privacy, the
// default: every update is one noised sum over all of the site's rows ([gvi.Natural]),
// and the posterior tempers the factors by what noise they hold ([gvi.NoiseAware]).
type natural struct{ product }

const sumNatural = "gradients of the log-likelihood"

// cavity is false: a natural gradient is taken at q itself.
func (natural) cavity() bool { return false }

// update is the arithmetic.
func (s natural) update() gvi.Natural {
	return gvi.Natural{Likelihood: s.likelihood, Columns: s.encoding.Width()}
}

// protection makes every site's updates cost the plan's total together.
func (s natural) protection(string) (*protection, error) {
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
	p.sum = privacy.Sum{Name: sumNatural, Unit: privacy.Unit(pr.Unit), Form: privacy.Vectors, Blocks: []int{s.update().Len()}, Bound: *s.opts.Clip, Mechanism: update}
	if len(all) > 1 {
		noise := all[1]
		noise.Noise = account.RoundUp(noise.Noise * factor)
		p.quality = qualitySum(noise)
	}
	return p, nil
}

func (s natural) posterior(at *state) (gvi.Gaussian, error) {
	q := gvi.NoiseAware(s.prior, s.factors(at), gvi.NoiseVariance(*s.opts.Clip, s.noise(), s.opts.Rounds))
	return q, q.CheckProper(s.weights())
}

// noise lists the multiplier of every site.
func (s natural) noise() (all []float64) {
	for _, site := range s.plan.Sites {
		all = append(all, s.protected[site].sum.Mechanism.Noise)
	}
	return all
}

// release makes the one sum, which is all of the answer.
func (s natural) release(ctx context.Context, h *site, _ *updateTask, q, _ gvi.Gaussian, session *privacy.Session, b *gvi.Binding) (_ any, _ []byte, err error) {
	p := h.protected[h.name]
	contribution := s.update().Contribution(q)
	if p.sum.Unit == privacy.WholeSite {
		_, err = session.Whole(ctx, p.sum.Name, func(data dataset.Source, v []float64) error {
			read := h.reader(b)
			for row, err := range data.Rows(ctx) {
				if err != nil {
					return err
				}
				if x, y, ok := read(row); ok {
					contribution(x, y, v)
				}
			}
			return nil
		})
	} else {
		_, err = session.Sum(ctx, p.sum.Name, h.overRows(b, contribution))
	}
	return nil, nil, err
}

// fold moves the site's factor by a noised natural gradient at the q that it was
// sent. The noise of an honest site may be anything: no integers are refused, and
// what they lead to is cut where nobody could go on from it.
func (c natural) fold(s *state, in method.Contribution, _ gvi.Gaussian) error {
	noised, err := rounds.OnlySum(in, sumNatural)
	if err != nil {
		return err
	}
	sum := noised.Floats(0)
	for i := range sum {
		sum[i] = gvi.Clamp(sum[i], factorLargest)
	}
	r := s.Sites[in.Site]
	factor := r.Factor.gaussian()
	change, err := c.update().Change(r.From.gaussian(), factor, c.opts.Damping, r.Folded, sum)
	if err != nil {
		return err
	}
	factor = factor.Times(change)
	for j := range factor.Eta {
		factor.Eta[j], factor.Lambda[j] = gvi.Clamp(factor.Eta[j], factorLargest), gvi.Clamp(factor.Lambda[j], factorLargest)
	}
	r.Factor = packGaussian(factor)
	return nil
}
