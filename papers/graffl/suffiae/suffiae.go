// Package suffiae fits SuffiAE, the autoencoder of Hahn and Lee (GRAFFL, 2020, section 3.1): it brings rows of many
// features to codes of few numbers in which two classes lie apart, to rows and a binary label. The claim of its
// authors that codes are sufficient, or anonymous, is not made here: exact squared distances to d + 1 known points are
// a code, and a code with its decoder is a row.
package suffiae

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"parley/internal/nn"
)

// Options are the shape and the training of a [Network].
type Options struct {
	Dimension int   // d, numbers in a code
	Hidden    []int // widths of the encoder's hidden layers, input side first; the decoder's are these, reversed
	// Noise is α, the variance of the noise that is added to a code in training. It
	// is no privacy mechanism.
	Noise float64
	// Reconstruction is λ, the weight of the reconstruction term: 1 as published,
	// where it is a sum over D inputs and dwarfs the classifier's; 1/D makes it
	// their mean. It keeps the classifier from learning its rows by heart.
	Reconstruction float64
	Epochs, Batch  int     // passes over the rows, and rows in a step of Adam
	Rate           float64 // Adam's step size
}

// Defaults returns the options of the experiments. The paper says neither widths nor training;
// its experiment on ICU stays has d = 24.
func Defaults() Options {
	return Options{Dimension: 5, Hidden: []int{32}, Noise: 0.05, Reconstruction: 1, Epochs: 100, Batch: 64, Rate: 0.003}
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
// linear classifier g of a binary label. None of its parts is private.
type Network struct {
	inputs Inputs
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
func Train(ctx context.Context, in *Inputs, rows [][]float64, labels []bool, o Options,
	rng *rand.Rand) (*Network, error) {
	if len(rows) == 0 || len(rows) != len(labels) {
		return nil, fmt.Errorf("suffiae: %d rows and %d labels: want as many, and at least one", len(rows), len(labels))
	}
	x := make([][]float64, len(rows))
	for i, row := range rows {
		var err error
		if x[i], err = in.Apply(row); err != nil {
			return nil, fmt.Errorf("row %d: %w", i+1, err)
		}
	}
	batch := min(o.Batch, len(rows))
	net := newAutoencoder(len(in.Centre), o, batch)
	for _, s := range []nn.Stack{net.encoder, net.decoder, net.classifier} {
		s.Start(net.theta, 1, rng)
	}
	order := make([]int, len(rows))
	for i := range order {
		order[i] = i
	}
	s := &Network{inputs: *in, net: net}
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
				net.set(r, x[i], labels[i])
			}
			net.drawNoise(len(chosen), rng)
			sum = sum.plus(net.ascent(len(chosen)))
			steps.Ascend(net.theta, net.grad, 1/float64(len(chosen)))
		}
		n := float64(len(rows))
		s.History = append(s.History, Objective{sum.Reconstruction / n, sum.Classification / n, sum.KL / n})
	}
	if slices.ContainsFunc(net.theta, func(w float64) bool { return !(math.Abs(w) <= 1e6) }) {
		return nil, fmt.Errorf("suffiae: training did not converge: try a smaller rate than %v", o.Rate)
	}
	return s, nil
}

// Classifier returns g without its logistic function: the weights of a code, and the intercept.
func (n *Network) Classifier() (weights []float64, intercept float64) {
	l := &n.net.classifier[0]
	w, b := l.Weights(n.net.theta)
	for j := range l.In {
		weights = append(weights, w[j*l.Stride()])
	}
	return weights, b[0]
}

func (o Objective) plus(p Objective) Objective {
	return Objective{o.Reconstruction + p.Reconstruction, o.Classification + p.Classification, o.KL + p.KL}
}
