package graffl

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"parley/methods/graffl/augment"
	"parley/methods/graffl/mixture"
	"parley/methods/graffl/suffiae"
)

// inputLimit is where standardised features end.
const inputLimit = 4

// appliedRun is one split of a set, in one setting.
type appliedRun struct {
	dealt
	codes     int // numbers in a code
	hidden    []int
	proposals int
	seed      uint64
	score     func(arm string, auc, f1 float64) // of one target site
	verdict   func(augment.Verdict)             // at one target site
}

// do measures every arm at every target site: those but the first.
func (a *appliedRun) do(ctx context.Context) error {
	for _, part := range []func(context.Context) error{a.features, a.ownEncoders, a.sharedEncoder} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

// features are the controls without any encoder.
func (a *appliedRun) features(context.Context) error {
	fit := func(arm string, train table, penalty float64) error {
		in, err := suffiae.FitInputs(train.rows, inputLimit)
		if err != nil {
			return err
		}
		return a.fit(arm, standardised(in, train), standardised(in, a.held), penalty)
	}
	for _, target := range a.sites[1:] {
		for _, c := range []struct {
			arm     string
			train   table
			penalty float64
		}{
			{"all rows, LR on features, C = 0.01", a.all, 100},
			{"raw site, LR on features, C = 10 000", target, 1e-4},
			{"raw site, LR on features, C = 0.01", target, 100},
		} {
			if err := fit(c.arm, c.train, c.penalty); err != nil {
				return fmt.Errorf("%s: %w", c.arm, err)
			}
		}
	}
	return nil
}

// standardised brings features to a site's units; what is missing becomes 0.
func standardised(in *suffiae.Inputs, t table) table {
	out := table{labels: t.labels}
	for _, row := range t.rows {
		x := make([]float64, len(row))
		for j, v := range row {
			if v = (v - in.Centre[j]) / in.Scale[j]; !math.IsNaN(v) {
				x[j] = min(max(v, -in.Limit), in.Limit)
			}
		}
		out.rows = append(out.rows, x)
	}
	return out
}

// fit fits a logistic regression and scores it.
func (a *appliedRun) fit(arm string, train, held table, penalty float64) error {
	c, err := augment.FitLinear(train.rows, train.labels, penalty)
	if err != nil {
		return err
	}
	return a.judge(arm, c, held)
}

func (a *appliedRun) judge(arm string, c *augment.LinearClassifier, held table) error {
	p, err := c.Probability(held.rows)
	if err != nil {
		return err
	}
	s, err := augment.ScoreClassifier(p, held.labels)
	if err == nil {
		a.score(arm, s.AUC, s.F1)
	}
	return err
}

// train trains an encoder on a table.
func (a *appliedRun) train(ctx context.Context, t table, site uint64) (*suffiae.Network, error) {
	in, err := suffiae.FitInputs(t.rows, inputLimit)
	if err != nil {
		return nil, err
	}
	o := suffiae.Defaults()
	o.Dimension, o.Hidden = a.codes, a.hidden
	return suffiae.Train(ctx, in, t.rows, t.labels, o, rand.New(rand.NewPCG(a.seed, site)))
}

func encode(n *suffiae.Network, t table) (table, error) {
	codes, err := n.Encoder.Encode(t.rows)
	return table{rows: codes, labels: t.labels}, err
}

func head(n *suffiae.Network) *augment.LinearClassifier {
	return &augment.LinearClassifier{Weights: n.Classifier.Weights.Data, Intercept: n.Classifier.Bias[0]}
}

// ownEncoders are the arms of the paper: every site trains an encoder of its own.
func (a *appliedRun) ownEncoders(ctx context.Context) error {
	var codes, held []table
	var scarce [][]float64
	var first *suffiae.Network
	for k, site := range a.sites {
		n, err := a.train(ctx, site, uint64(k))
		if err != nil {
			return err
		}
		if k == 0 {
			first = n
		}
		own, err := encode(n, site)
		if err != nil {
			return err
		}
		aside, err := encode(n, a.held)
		if err != nil {
			return err
		}
		codes, held, scarce = append(codes, own), append(held, aside), append(scarce, own.scarce())
	}
	published, err := fromAlgorithm2(scarce, a.codes, a.proposals, a.seed)
	if err != nil {
		return err
	}
	best, err := ceiling(scarce, a.codes, a.seed)
	if err != nil {
		return err
	}
	for k := 1; k < len(codes); k++ {
		if err := a.controls("own encoders", codes[k], held[k], head(first)); err != nil {
			return err
		}
		if err := a.generated("own encoders: published", published, codes[k], held[k]); err != nil {
			return err
		}
		if err := a.generated("own encoders: ceiling", best, codes[k], held[k]); err != nil {
			return err
		}
	}
	return nil
}

// controls are the arms that need no generator.
func (a *appliedRun) controls(prefix string, own, held table, other *augment.LinearClassifier) error {
	scarce, rest := own.count()
	lacking := max(0, rest-scarce)
	of := make([][]float64, 0, scarce)
	for i, row := range own.rows {
		if own.labels[i] {
			of = append(of, row)
		}
	}
	again, err := augment.Oversample(of, lacking, rand.New(rand.NewPCG(a.seed, 4)))
	if err != nil {
		return err
	}
	between, err := augment.SMOTE(of, lacking, 5, rand.New(rand.NewPCG(a.seed, 5)))
	if err != nil {
		return err
	}
	for _, c := range []struct {
		arm   string
		extra [][]float64
	}{{"raw", nil}, {"oversampling", again}, {"SMOTE", between}} {
		if err := a.fit(prefix+": "+c.arm, own.with(c.extra), held, augment.Penalty); err != nil {
			return err
		}
	}
	return a.judge(prefix+": head of the first site", other, held)
}

// with returns the table with more rows of the scarce class.
func (t table) with(extra [][]float64) table {
	out := table{append([][]float64{}, t.rows...), append([]bool{}, t.labels...)}
	for _, row := range extra {
		out.rows, out.labels = append(out.rows, row), append(out.labels, true)
	}
	return out
}

// generated is an arm that levels the classes with rows from a posterior.
func (a *appliedRun) generated(arm string, p *mixture.Posterior, own, held table) error {
	scarce, other := own.count()
	rows, err := predictive(p, max(0, other-scarce), a.seed)
	if err != nil {
		return err
	}
	return a.fit(arm, own.with(rows), held, augment.Penalty)
}

// sharedEncoder are the arms with one encoder, which the first site trains.
func (a *appliedRun) sharedEncoder(ctx context.Context) error {
	n, err := a.train(ctx, a.sites[0], 0)
	if err != nil {
		return err
	}
	held, err := encode(n, a.held)
	if err != nil {
		return err
	}
	var codes []table
	var scarce [][]float64
	for _, site := range a.sites {
		own, err := encode(n, site)
		if err != nil {
			return err
		}
		codes, scarce = append(codes, own), append(scarce, own.scarce())
	}
	const prefix = "shared encoder"
	arms := []string{"published", "ceiling"}
	var posteriors []*mixture.Posterior
	published, err := fromAlgorithm2(scarce, a.codes, a.proposals, a.seed)
	if err != nil {
		return err
	}
	best, err := ceiling(scarce, a.codes, a.seed)
	if err != nil {
		return err
	}
	posteriors = append(posteriors, published, best)
	if a.codes <= maxLandmarkCodes {
		for _, epsilon := range []float64{0, 10, 5, 1} {
			p, err := fromLandmarks(scarce, a.codes, epsilon, a.seed)
			if err != nil {
				return err
			}
			name := "landmark"
			if epsilon > 0 {
				name = fmt.Sprintf("landmark, ε = %v", epsilon)
			}
			arms, posteriors = append(arms, name), append(posteriors, p)
		}
	}
	for _, own := range codes[1:] {
		if err := a.controls(prefix, own, held, head(n)); err != nil {
			return err
		}
		for i, p := range posteriors {
			if err := a.generated(prefix+": "+arms[i], p, own, held); err != nil {
				return err
			}
			if arms[i] == "landmark" {
				if err := a.gated(prefix+": landmark, if the verdict is to keep them", p, own, held); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// maxLandmarkCodes is where landmarks are no longer tried.
const maxLandmarkCodes = 10

// gated is what the product does: synthetic rows only if they pass.
func (a *appliedRun) gated(arm string, p *mixture.Posterior, own, held table) error {
	scarce, other := own.count()
	rows, err := predictive(p, max(0, other-scarce), a.seed)
	if err != nil {
		return err
	}
	c, err := augment.Compare(own.labelled(), held.labelled(), rows, nil, a.seed)
	if err != nil {
		return err
	}
	a.verdict(c.Verdict)
	take := augment.Raw
	if c.Verdict == augment.Kept {
		take = augment.Generated
	}
	for _, r := range c.Results {
		if r.Arm == take && r.Held != nil && r.Held.AUC != nil {
			a.score(arm, *r.Held.AUC, r.Held.F1)
		}
	}
	return nil
}
