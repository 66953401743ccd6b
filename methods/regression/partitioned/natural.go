package partitioned

import (
	"context"
	"math"

	"parley/dataset"
	"parley/method"
	"parley/methods/regression/glm"
	"parley/methods/regression/halves"
	"parley/methods/regression/options"
	"parley/methods/regression/predict"
	"parley/privacy"
	"parley/privacy/account"
)

// natural is partitioned variational inference under differential privacy, the
// default: every update is one noised sum over all of the site's rows ([glm.Natural]),
// and the posterior tempers the factors by what noise they hold ([glm.NoiseAware]).
type natural struct{ halves.Product }

var _ halves.Private = natural{}

const sumNatural = "gradients of the log-likelihood"

// Cavity is false: a natural gradient is taken at q itself.
func (natural) Cavity() bool { return false }

// update is the arithmetic.
func (s natural) update() glm.Natural {
	return glm.Natural{Likelihood: s.Likelihood, Columns: s.Encoding.Width()}
}

// Protection makes every site's updates cost the plan's total together.
func (s natural) Protection(string) (*halves.Protection, error) {
	pr := s.Plan.Privacy
	p := &halves.Protection{Updates: s.Options.Rounds}
	update := account.Mechanism{Kind: account.Gaussian, Noise: 1, Rate: 1, Diameter: 2, Count: s.Options.Rounds}
	all := []account.Mechanism{update}
	if d := pr.Diagnostics; d > 0 {
		// Squares of signal over noise add up, so that these are the shares of the total.
		all = append(all, account.Mechanism{Kind: account.Gaussian, Noise: math.Sqrt((1 - d) / d / float64(s.Options.Rounds)), Rate: 1, Diameter: 2, Count: 1})
	}
	factor, err := account.Scale(all, pr.Adjacency, *pr.Total)
	if err != nil {
		return nil, err
	}
	update.Noise, update.Count = account.RoundUp(factor), 1
	p.Sum = privacy.Sum{Name: sumNatural, Unit: privacy.Unit(pr.Unit), Form: privacy.Vectors, Blocks: []int{s.update().Len()}, Bound: *s.Options.Clip, Mechanism: update}
	if len(all) > 1 {
		noise := all[1]
		noise.Noise = account.RoundUp(noise.Noise * factor)
		p.Quality = predict.Sum(noise)
	}
	return p, nil
}

// Posterior implements [halves.Variant].
func (s natural) Posterior(at *halves.State) (glm.Gaussian, error) {
	q := glm.NoiseAware(s.Prior, s.Factors(at), glm.NoiseVariance(*s.Options.Clip, s.noise(), s.Options.Rounds))
	return q, q.CheckProper(s.Weights())
}

// noise lists the multiplier of every site.
func (s natural) noise() (all []float64) {
	for _, site := range s.Plan.Sites {
		all = append(all, s.Protected[site].Sum.Mechanism.Noise)
	}
	return all
}

// Release makes the one sum, which is all of the answer.
func (s natural) Release(ctx context.Context, u *halves.Update, session *privacy.Session, b *glm.Binding) (_ any, _ []byte, err error) {
	p := s.Protected[u.Site]
	contribution := s.update().Contribution(u.Q)
	if p.Sum.Unit == privacy.WholeSite {
		_, err = session.Whole(ctx, p.Sum.Name, func(data dataset.Source, v []float64) error {
			read := s.Reader(b)
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
		_, err = session.Sum(ctx, p.Sum.Name, s.OverRows(b, contribution))
	}
	return nil, nil, err
}

// Fold moves the site's factor by a noised natural gradient at the q that it was
// sent. The noise of an honest site may be anything: no integers are refused, and
// what they lead to is cut where nobody could go on from it.
func (c natural) Fold(s *halves.State, in method.Contribution, _ glm.Gaussian) error {
	noised, err := method.OnlySum(in, sumNatural)
	if err != nil {
		return err
	}
	sum := noised.Floats(0)
	for i := range sum {
		sum[i] = glm.Clamp(sum[i], options.FactorLargest)
	}
	r := s.Sites[in.Site]
	factor := r.Factor.Unchecked()
	change, err := c.update().Change(r.From.Unchecked(), factor, c.Options.Damping, r.Folded, sum)
	if err != nil {
		return err
	}
	factor = factor.Times(change)
	for j := range factor.Eta {
		factor.Eta[j], factor.Lambda[j] = glm.Clamp(factor.Eta[j], options.FactorLargest), glm.Clamp(factor.Lambda[j], options.FactorLargest)
	}
	r.Factor = options.Pack(factor)
	return nil
}
