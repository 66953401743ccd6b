// Package suffiae fits SuffiAE, the autoencoder of Hahn and Lee (GRAFFL, 2020, section 3.1): it brings rows of many
// features to codes of few numbers in which two classes lie apart, to rows and a binary label. The claim of its
// authors that codes are sufficient, or anonymous, is not made here: exact squared distances to d + 1 known points are
// a code, and a code with its decoder is a row.
package suffiae

import (
	"context"
	"fmt"
	"math/rand/v2"
	"parley/internal/nn"
)

// Options are the shape and the training of a [Network].
type Options struct {
	Dimension int   `json:"dimension"` // d, numbers in a code
	Hidden    []int `json:"hidden"`    // widths of the encoder's hidden layers, input side first; the decoder's are the same, reversed
	// Noise is α, the variance of the noise that is added to a code in training. It
	// is no privacy mechanism.
	Noise float64 `json:"noise"`
	// Reconstruction is λ, the weight of the reconstruction term: 1 as published,
	// where it is a sum over D inputs and dwarfs the classifier's; 1/D makes it
	// their mean. It is what keeps the classifier from learning its rows by heart:
	// see the measurements at [Defaults].
	Reconstruction float64 `json:"reconstruction"`
	Epochs         int     `json:"epochs"` // passes over the rows
	Batch          int     `json:"batch"`  // rows in a step of Adam
	Rate           float64 `json:"rate"`   // Adam's step size
}

// Defaults returns the options that a plan need not give. The paper says
// neither widths nor training; its experiment on ICU stays has d = 24.
//
// What codes are worth with them is in docs/experiments/graffl.md, on two data sets, and
// by experiment parley-scarce on the example of intensive care. There λ = 0.3
// does a little better than 1, and with 0.1 or less the classifier learns its rows by heart.
func Defaults() Options {
	return Options{Dimension: 5, Hidden: []int{32}, Noise: 0.05, Reconstruction: 1, Epochs: 100, Batch: 64, Rate: 0.003}
}

// Check reports options that make no sense.
func (o *Options) Check() error {
	bad := func(name string, v any, want string) error {
		return fmt.Errorf("suffiae: %s is %v: want %s", name, v, want)
	}
	switch {
	case o.Dimension < 1 || o.Dimension > maxWidth:
		return bad("dimension", o.Dimension, fmt.Sprint("1 to ", maxWidth))
	case len(o.Hidden) >= maxLayers:
		return bad("number of hidden layers", len(o.Hidden), fmt.Sprint("fewer than ", maxLayers))
	case !(o.Noise > 0 && o.Noise <= 1):
		return bad("noise", o.Noise, "a variance in (0, 1]")
	case !(o.Reconstruction >= 0 && o.Reconstruction <= 1e6):
		return bad("reconstruction", o.Reconstruction, "a weight of 0 to 1e6")
	case o.Epochs < 1 || o.Epochs > 1e6:
		return bad("epochs", o.Epochs, "1 to 1000000")
	case o.Batch < 1 || o.Batch > 1<<16:
		return bad("batch", o.Batch, "1 to 65536 rows")
	case !(o.Rate > 0 && o.Rate <= 1):
		return bad("rate", o.Rate, "a step size in (0, 1]")
	}
	for i, w := range o.Hidden {
		if w < 1 || w > maxWidth {
			return bad(fmt.Sprintf("hidden layer %d", i+1), w, fmt.Sprint("a width of 1 to ", maxWidth))
		}
	}
	return nil
}

// Objective is the three terms of SuffiAE's objective (section 3.1), sums over rows.
type Objective struct {
	Reconstruction float64 // −½ ‖x − f(z)‖², not weighted
	Classification float64 // y ln g(z) + (1 − y) ln(1 − g(z)), in nats
	KL             float64 // ½ {‖q(x)‖² + d(α − 1 − ln α)}, which is subtracted
}

// Value returns what is maximised, for the weight λ of the reconstruction.
func (o Objective) Value(reconstruction float64) float64 {
	return reconstruction*o.Reconstruction + o.Classification - o.KL
}

// Network is the trained network of section 3.1: an encoder x ↦ q(x) that
// leaves few numbers of a row, a decoder f that goes back to the row, and a
// linear classifier g of a binary label.
//
// A trained network is a function of the rows it was trained on, without noise:
// none of its parts is private. The encoder is what sites share when they
// share one; the decoder turns codes into rows and must never leave its site.
type Network struct {
	Encoder *Encoder
	// Classifier is g without its logistic function: one row of weights by code.
	Classifier Layer
	// History is the mean of a row's objective in each epoch, over batches as they
	// came, so with the weights of that moment.
	History []Objective

	net *autoencoder
}

// Train maximises the objective of section 3.1 over the weights, by
// Adam on shuffled batches, with fresh noise for every row and epoch. in brings
// the rows to the units in which the network sees and reconstructs them; see
// [FitInputs]. A label is true for y = 1.
//
// The result follows from its arguments and the state of rng to the last bit, on
// any number of cores: training runs on one goroutine. Rows of another length, no rows,
// weights that grow beyond bounds (the rate is too high), and a cancelled
// context are errors.
func Train(ctx context.Context, in *Inputs, rows [][]float64, labels []bool, o Options, rng *rand.Rand) (*Network, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	if err := in.Check(); err != nil {
		return nil, err
	}
	if len(rows) == 0 || len(rows) != len(labels) {
		return nil, fmt.Errorf("suffiae: %d rows and %d labels: want as many, and at least one", len(rows), len(labels))
	}
	width := len(in.Centre)
	x := make([]float64, len(rows)*width)
	for i, row := range rows {
		if err := in.apply(x[i*width:(i+1)*width], row); err != nil {
			return nil, fmt.Errorf("suffiae: row %d: %w", i+1, err)
		}
	}
	batch := min(o.Batch, len(rows))
	net := newAutoencoder(width, o, batch)
	for _, s := range []nn.Stack{net.encoder, net.decoder, net.classifier} {
		s.Start(net.theta, 1, rng)
	}
	order := make([]int, len(rows))
	for i := range order {
		order[i] = i
	}
	s := &Network{net: net}
	steps := nn.NewAdam(len(net.theta), o.Rate)
	for range o.Epochs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		var sum Objective
		for at := 0; at < len(order); at += batch {
			chosen := order[at:min(at+batch, len(order))]
			for r, i := range chosen {
				net.set(r, x[i*width:(i+1)*width], labels[i])
			}
			net.drawNoise(len(chosen), rng)
			sum = sum.plus(net.ascent(len(chosen)))
			steps.Ascend(net.theta, net.grad, 1/float64(len(chosen)))
		}
		n := float64(len(rows))
		s.History = append(s.History, Objective{sum.Reconstruction / n, sum.Classification / n, sum.KL / n})
	}
	s.Encoder = &Encoder{Inputs: *in, Layers: export(net.encoder, net.theta)}
	s.Classifier = export(net.classifier, net.theta)[0]
	if err := s.Encoder.Check(); err != nil {
		return nil, fmt.Errorf("suffiae: training did not converge, try a smaller rate than %v: %w", o.Rate, err)
	}
	return s, nil
}

func (o Objective) plus(p Objective) Objective {
	return Objective{o.Reconstruction + p.Reconstruction, o.Classification + p.Classification, o.KL + p.KL}
}
