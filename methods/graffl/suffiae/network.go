package suffiae

// A small dense network on internal/kernel. No well-kept Go library fits: of
// those tried, gorgonia could not be had, spago is dormant, and gomlx brings a
// hundred megabytes of source and a backend that promises portability, neither
// speed nor the same bits everywhere. What SuffiAE needs is two products, one
// activation and one optimiser. Here every number is a chain of fused
// multiply-adds in fixed order on a single goroutine, so results depend neither on
// the number of cores nor on which kernel runs.

import (
	"math"
	"math/rand/v2"

	"parley/internal/kernel"
)

// dense is one layer, x ↦ φ(Wx + b), and where its numbers are among the flat
// parameters of all layers: Wᵀ, in rows of a stride, and b as one row more. The
// padding of rows is zero, its gradient too, so that no step changes it.
type dense struct {
	in, out int
	at      int  // offset of Wᵀ in the parameters
	tanh    bool // φ: hyperbolic tangent, or nothing
}

func (l *dense) stride() int { return kernel.Stride(l.out) }
func (l *dense) size() int   { return (l.in + 1) * l.stride() }

// weights returns Wᵀ (in rows of the stride) and b.
func (l *dense) weights(theta []float64) (wt, b []float64) {
	n := l.in * l.stride()
	return theta[l.at : l.at+n], theta[l.at+n : l.at+l.size()]
}

// stack is layers that feed one another, hidden ones through tanh.
type stack []dense

// newStack makes the layers between the given widths, input first, with their
// parameters from offset at, and returns the offset after them.
func newStack(at int, widths ...int) (stack, int) {
	var s stack
	for i, out := range widths[1:] {
		l := dense{in: widths[i], out: out, at: at, tanh: i+2 < len(widths)}
		s = append(s, l)
		at += l.size()
	}
	return s, at
}

func (s stack) in() int  { return s[0].in }
func (s stack) out() int { return s[len(s)-1].out }

// start draws weights from N(0, 1/in), which keeps the variance of what passes
// through, and leaves biases at zero.
func (s stack) start(theta []float64, rng *rand.Rand) {
	for i := range s {
		l := &s[i]
		wt, _ := l.weights(theta)
		sd, ld := 1/math.Sqrt(float64(l.in)), l.stride()
		for r := range l.in {
			for c := range l.out {
				wt[r*ld+c] = sd * rng.NormFloat64()
			}
		}
	}
}

// tape holds what a batch leaves in each layer on its way up, and the gradient
// on its way down: acts[0] and grads[0] belong to the input, thin matrices of
// one row for each row of the batch.
type tape struct {
	acts, grads [][]float64
	transposed  []float64 // W of one layer
}

// newTape makes a workspace for batches of up to m rows.
func (s stack) newTape(m int) *tape {
	t := &tape{}
	width := func(n int) {
		t.acts = append(t.acts, make([]float64, m*kernel.Stride(n)))
		t.grads = append(t.grads, make([]float64, m*kernel.Stride(n)))
	}
	width(s.in())
	room := 0
	for i := range s {
		width(s[i].out)
		room = max(room, s[i].out*kernel.Stride(s[i].in))
	}
	t.transposed = make([]float64, room)
	return t
}

// output returns the activations of the last layer, slope their gradient, which
// the caller sets before backward.
func (t *tape) output() []float64 { return t.acts[len(t.acts)-1] }
func (t *tape) slope() []float64  { return t.grads[len(t.grads)-1] }

// forward carries m rows of acts[0] through all layers.
func (s stack) forward(theta []float64, t *tape, m int) {
	for i := range s {
		l := &s[i]
		wt, b := l.weights(theta)
		ld := l.stride()
		h := t.acts[i+1][:m*ld]
		for r := 0; r < len(h); r += ld {
			copy(h[r:r+ld], b)
		}
		kernel.MulAdd(h, t.acts[i], kernel.Stride(l.in), 1, wt, m, l.in, l.out)
		if l.tanh {
			for r := 0; r < len(h); r += ld {
				for c, v := range h[r : r+l.out] {
					h[r+c] = math.Tanh(v)
				}
			}
		}
	}
}

// backward takes the gradient of some function of the outputs, in slope, down
// the layers: it adds the gradient by the parameters to grad, and sets grads[0]
// if input is true.
func (s stack) backward(theta, grad []float64, t *tape, m int, input bool) {
	for i := len(s) - 1; i >= 0; i-- {
		l := &s[i]
		ld, ldIn := l.stride(), kernel.Stride(l.in)
		h, g := t.acts[i+1][:m*ld], t.grads[i+1][:m*ld]
		if l.tanh { // φ′ = 1 − φ²
			for k, v := range h {
				g[k] *= 1 - v*v
			}
		}
		gw, gb := l.weights(grad)
		kernel.MulAdd(gw, t.acts[i], 1, ldIn, g, l.in, m, l.out)
		for r := 0; r < len(g); r += ld {
			for c, v := range g[r : r+ld] {
				gb[c] += v
			}
		}
		if i == 0 && !input {
			return
		}
		wt, _ := l.weights(theta)
		w := t.transposed[:l.out*ldIn]
		clear(w)
		for r := range l.in {
			for c, v := range wt[r*ld : r*ld+l.out] {
				w[c*ldIn+r] = v
			}
		}
		below := t.grads[i][:m*ldIn]
		clear(below)
		kernel.MulAdd(below, g, ld, 1, w, m, l.out, l.in)
	}
}

// adam is the optimiser of Kingma and Ba, "Adam: a method for stochastic
// optimization" (2015), Algorithm 1, with their constants.
type adam struct {
	rate   float64
	m, v   []float64
	b1, b2 float64 // β₁ᵗ, β₂ᵗ
}

func newAdam(size int, rate float64) *adam {
	return &adam{rate: rate, m: make([]float64, size), v: make([]float64, size), b1: 1, b2: 1}
}

// ascend moves theta up along scale·grad, and clears grad.
func (a *adam) ascend(theta, grad []float64, scale float64) {
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
