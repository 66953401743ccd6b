// Package nn is small dense networks on internal/linalg, with tanh between layers, their
// gradients and two optimisers. No well-kept Go library fits: of
// those tried, gorgonia could not be had, spago is dormant, and gomlx brings a
// hundred megabytes of source and a backend that promises portability, neither
// speed nor the same bits everywhere. Here every number is a chain of fused
// multiply-adds in fixed order on a single goroutine, so results depend neither on
// the number of cores nor on which kernel runs.
//
// Lengths are the caller's duty; a wrong one panics.
package nn

import (
	"math"
	"math/rand/v2"

	"parley/internal/linalg"
)

// Dense is one layer, x ↦ φ(Wx + b), and where its numbers are among the flat
// parameters of all layers: Wᵀ, in rows of a stride, and b as one row more. The
// padding of rows is zero, its gradient too, so that no step changes it.
type Dense struct {
	In, Out int
	At      int  // offset of Wᵀ in the parameters
	Tanh    bool // φ: hyperbolic tangent, or nothing
}

// Stride is how far apart the rows of Wᵀ are.
func (l *Dense) Stride() int { return linalg.Stride(l.Out) }
func (l *Dense) size() int   { return (l.In + 1) * l.Stride() }

// Weights returns Wᵀ (in rows of the stride) and b.
func (l *Dense) Weights(theta []float64) (wt, b []float64) {
	n := l.In * l.Stride()
	return theta[l.At : l.At+n], theta[l.At+n : l.At+l.size()]
}

// Stack is layers that feed one another, hidden ones through tanh.
type Stack []Dense

// NewStack makes the layers between the given widths, input first, with their
// parameters from offset at, and returns the offset after them.
func NewStack(at int, widths ...int) (Stack, int) {
	var s Stack
	for i, out := range widths[1:] {
		l := Dense{In: widths[i], Out: out, At: at, Tanh: i+2 < len(widths)}
		s = append(s, l)
		at += l.size()
	}
	return s, at
}

// In and Out are the widths of input and output.
func (s Stack) In() int  { return s[0].In }
func (s Stack) Out() int { return s[len(s)-1].Out }

// Places lists where the weights and biases are in the flat parameters, without padding:
// layer by layer the rows of Wᵀ, then b.
func (s Stack) Places() (at []int) {
	for i := range s {
		l := &s[i]
		for r := range l.In + 1 {
			for c := range l.Out {
				at = append(at, l.At+r*l.Stride()+c)
			}
		}
	}
	return at
}

// Start draws weights from N(0, gain²/in), and leaves biases at zero. A gain of 1 keeps the
// variance of what passes through.
func (s Stack) Start(theta []float64, gain float64, rng *rand.Rand) {
	for i := range s {
		l := &s[i]
		wt, _ := l.Weights(theta)
		sd, ld := gain/math.Sqrt(float64(l.In)), l.Stride()
		for r := range l.In {
			for c := range l.Out {
				wt[r*ld+c] = sd * rng.NormFloat64()
			}
		}
	}
}

// Tape holds what a batch leaves in each layer on its way up, and the gradient
// on its way down: acts[0] and grads[0] belong to the input, thin matrices of
// one row for each row of the batch.
type Tape struct {
	Acts, Grads [][]float64
	transposed  []float64 // W of one layer
}

// NewTape makes a workspace for batches of up to m rows.
func (s Stack) NewTape(m int) *Tape {
	t := &Tape{}
	width := func(n int) {
		t.Acts = append(t.Acts, make([]float64, m*linalg.Stride(n)))
		t.Grads = append(t.Grads, make([]float64, m*linalg.Stride(n)))
	}
	width(s.In())
	room := 0
	for i := range s {
		width(s[i].Out)
		room = max(room, s[i].Out*linalg.Stride(s[i].In))
	}
	t.transposed = make([]float64, room)
	return t
}

// Output returns the activations of the last layer, and Slope their gradient, which
// the caller sets before backward.
func (t *Tape) Output() []float64 { return t.Acts[len(t.Acts)-1] }
func (t *Tape) Slope() []float64  { return t.Grads[len(t.Grads)-1] }

// Forward carries m rows of acts[0] through all layers.
func (s Stack) Forward(theta []float64, t *Tape, m int) {
	for i := range s {
		l := &s[i]
		wt, b := l.Weights(theta)
		ld := l.Stride()
		h := t.Acts[i+1][:m*ld]
		for r := 0; r < len(h); r += ld {
			copy(h[r:r+ld], b)
		}
		linalg.MulAdd(h, t.Acts[i], linalg.Stride(l.In), 1, wt, m, l.In, l.Out)
		if l.Tanh {
			for r := 0; r < len(h); r += ld {
				for c, v := range h[r : r+l.Out] {
					h[r+c] = math.Tanh(v)
				}
			}
		}
	}
}

// Backward takes the gradient of some function of the outputs, in slope, down
// the layers: it adds the gradient by the parameters to grad, and sets grads[0]
// if input is true.
func (s Stack) Backward(theta, grad []float64, t *Tape, m int, input bool) {
	for i := len(s) - 1; i >= 0; i-- {
		l := &s[i]
		ld, ldIn := l.Stride(), linalg.Stride(l.In)
		h, g := t.Acts[i+1][:m*ld], t.Grads[i+1][:m*ld]
		if l.Tanh { // φ′ = 1 − φ²
			for k, v := range h {
				g[k] *= 1 - v*v
			}
		}
		gw, gb := l.Weights(grad)
		linalg.MulAdd(gw, t.Acts[i], 1, ldIn, g, l.In, m, l.Out)
		for r := 0; r < len(g); r += ld {
			for c, v := range g[r : r+ld] {
				gb[c] += v
			}
		}
		if i == 0 && !input {
			return
		}
		wt, _ := l.Weights(theta)
		w := t.transposed[:l.Out*ldIn]
		clear(w)
		for r := range l.In {
			for c, v := range wt[r*ld : r*ld+l.Out] {
				w[c*ldIn+r] = v
			}
		}
		below := t.Grads[i][:m*ldIn]
		clear(below)
		linalg.MulAdd(below, g, ld, 1, w, m, l.Out, l.In)
	}
}

// adam is the optimiser of Kingma and Ba, "Adam: a method for stochastic
// optimization" (2015), Algorithm 1, with their constants.
type adam struct {
	rate   float64
	m, v   []float64
	b1, b2 float64 // β₁ᵗ, β₂ᵗ
}

// NewAdam is the optimiser before its first step, for so many parameters, with the step size.
func NewAdam(size int, rate float64) *adam {
	return &adam{rate: rate, m: make([]float64, size), v: make([]float64, size), b1: 1, b2: 1}
}

// Ascend moves theta up along scale·grad, and clears grad.
func (a *adam) Ascend(theta, grad []float64, scale float64) {
	const beta1, beta2, tiny = 0.9, 0.999, 1e-8
	a.b1 *= beta1
	a.b2 *= beta2
	rate, root := a.rate/(1-a.b1), 1/math.Sqrt(1-a.b2)
	m, v, grad := a.m[:len(theta)], a.v[:len(theta)], grad[:len(theta)]
	for i, g := range grad {
		g *= scale
		grad[i] = 0
		m[i] += (1 - beta1) * (g - m[i])
		v[i] += (1 - beta2) * (g*g - v[i])
		theta[i] += rate * m[i] / (root*math.Sqrt(v[i]) + tiny)
	}
}
