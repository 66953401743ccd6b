package suffiae

import (
	"math"
	"math/rand/v2"
	"slices"

	"parley/internal/linalg"
	"parley/internal/nn"
	"parley/papers/internal/logistic"
)

// autoencoder is the three networks of SuffiAE and a batch that is passed
// through them.
type autoencoder struct {
	encoder, decoder, classifier nn.Stack
	reconstruction               float64 // λ
	alpha                        float64 // α

	theta, grad []float64 // parameters of all three, and a gradient by them
	up          *nn.Tape  // of the encoder; holds the batch's rows
	back, aside *nn.Tape  // of decoder and classifier, which share the noisy codes
	label       []bool
	noise       []float64 // z − q(x), padded as codes are
}

// newAutoencoder makes the networks for rows of a width, all weights zero, and
// memory for batches of up to m rows.
func newAutoencoder(width int, o Options, m int) *autoencoder {
	a := &autoencoder{reconstruction: o.Reconstruction, alpha: o.Noise}
	hidden := slices.Clone(o.Hidden)
	at := 0
	a.encoder, at = nn.NewStack(at, slices.Concat([]int{width}, hidden, []int{o.Dimension})...)
	slices.Reverse(hidden)
	a.decoder, at = nn.NewStack(at, slices.Concat([]int{o.Dimension}, hidden, []int{width})...)
	a.classifier, at = nn.NewStack(at, o.Dimension, 1)
	a.theta, a.grad = make([]float64, at), make([]float64, at)
	a.up, a.back, a.aside = a.encoder.NewTape(m), a.decoder.NewTape(m), a.classifier.NewTape(m)
	a.aside.Acts[0] = a.back.Acts[0]
	a.label = make([]bool, m)
	a.noise = make([]float64, len(a.back.Acts[0]))
	return a
}

// set puts a row, in the network's units, and its label into the batch.
func (a *autoencoder) set(r int, x []float64, label bool) {
	copy(a.up.Acts[0][r*linalg.Stride(len(x)):], x)
	a.label[r] = label
}

// drawNoise draws the batch's noise from N(0, αI).
func (a *autoencoder) drawNoise(m int, rng *rand.Rand) {
	d, sd := a.encoder.Out(), math.Sqrt(a.alpha)
	for at := 0; at < m*linalg.Stride(d); at += linalg.Stride(d) {
		for j := range d {
			a.noise[at+j] = sd * rng.NormFloat64()
		}
	}
}

// ascent returns the objective of the first m rows of the batch, with the noise
// as it is, and adds its gradient by all parameters to grad.
func (a *autoencoder) ascent(m int) Objective {
	d, ld := a.encoder.Out(), linalg.Stride(a.encoder.Out())
	a.encoder.Forward(a.theta, a.up, m)
	mean, z := a.up.Output()[:m*ld], a.back.Acts[0][:m*ld]
	var o Objective
	for i, q := range mean {
		o.KL += q * q
		z[i] = q + a.noise[i]
	}
	o.KL = (o.KL + float64(m*d)*(a.alpha-1-math.Log(a.alpha))) / 2

	a.decoder.Forward(a.theta, a.back, m)
	x, g := a.up.Acts[0], a.back.Slope()
	for i, f := range a.back.Output()[:m*linalg.Stride(a.decoder.Out())] {
		e := x[i] - f // padding is zero in both
		o.Reconstruction -= e * e / 2
		g[i] = a.reconstruction * e
	}
	a.decoder.Backward(a.theta, a.grad, a.back, m, true)

	a.classifier.Forward(a.theta, a.aside, m)
	s, h := a.aside.Output(), a.aside.Slope()
	for r := range m {
		at := r * linalg.Stride(1)
		h[at] = -logistic.Sigma(s[at])
		if a.label[r] {
			h[at]++
			o.Classification += logistic.LogSigma(s[at])
		} else {
			o.Classification += logistic.LogSigma(-s[at])
		}
	}
	a.classifier.Backward(a.theta, a.grad, a.aside, m, true)

	down, byDecoder, byClassifier := a.up.Slope(), a.back.Grads[0], a.aside.Grads[0]
	for i, q := range mean {
		down[i] = byDecoder[i] + byClassifier[i] - q
	}
	a.encoder.Backward(a.theta, a.grad, a.up, m, false)
	return o
}
