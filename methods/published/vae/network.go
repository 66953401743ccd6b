package vae

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"

	"parley/internal/linalg"
	"parley/internal/nn"
)

// channel is an encoder and a decoder of some of the features. A variational autoencoder has
// one, with all of them; a multi-channel one has a channel for each view.
type channel struct {
	lo, hi           int // its features
	encoder, decoder nn.Stack
	noise            int // offset of the log variances of its features among the parameters
	at, end          int // its parameters, counted without padding
}

// network is the shape of a model: of q codes, with parameters θ as the kernels want
// them, and as they travel, without padding.
type network struct {
	latent, features, size int
	channels               []channel
	places                 []int // of the parameters that travel, in θ
}

// newNetwork returns the network of views with these numbers of features.
func newNetwork(dims []int, o *options) *network {
	n := &network{latent: o.Latent}
	widths := func(in, out int) []int {
		if o.Hidden > 0 {
			return []int{in, o.Hidden, out}
		}
		return []int{in, out}
	}
	if o.Model != multiChannel {
		all := 0
		for _, d := range dims {
			all += d
		}
		dims = []int{all}
	}
	for _, d := range dims {
		c := channel{lo: n.features, hi: n.features + d, at: len(n.places)}
		c.encoder, n.size = nn.NewStack(n.size, widths(d, 2*o.Latent)...)
		c.decoder, c.noise = nn.NewStack(n.size, widths(o.Latent, d)...)
		n.size = c.noise + d
		n.places = append(append(n.places, c.encoder.Places()...), c.decoder.Places()...)
		for j := range d {
			n.places = append(n.places, c.noise+j)
		}
		c.end = len(n.places)
		n.features += d
		n.channels = append(n.channels, c)
	}
	return n
}

// startNoise is the log variance from which the noise of every feature is learned, 0.05 in
// units of a feature's squared range, about that of one which fills its range. From the unit's
// variance, 1, the paper's step size would not come to the features' own in the paper's rounds.
const startNoise = -3

// start draws weights from N(0, 1/(3 in)), as they travel: it and the noise above were
// chosen by the errors on one data set, see docs/explanation/vae.md. Biases are 0.
func (n *network) start(rng *rand.Rand) []float64 {
	theta := make([]float64, n.size)
	gain := 1 / math.Sqrt(3)
	for _, c := range n.channels {
		c.encoder.Start(theta, gain, rng)
		c.decoder.Start(theta, gain, rng)
		for j := range c.hi - c.lo {
			theta[c.noise+j] = startNoise
		}
	}
	return n.pack(theta)
}

func (n *network) pack(theta []float64) []float64 {
	out := make([]float64, len(n.places))
	for i, at := range n.places {
		out[i] = theta[at]
	}
	return out
}

func (n *network) unpack(packed []float64) []float64 {
	theta := make([]float64, n.size)
	for i, at := range n.places {
		theta[at] = packed[i]
	}
	return theta
}

// subject is a row in the network's units, the mean in place of what was not observed.
type subject struct {
	x    []float64
	seen []bool
}

// observed says whether the subject has any feature of a channel.
func (s *subject) observed(c *channel) bool {
	return slices.Contains(s.seen[c.lo:c.hi], true)
}

// machine is a network with parameters, and the memory that batches need.
type machine struct {
	*network
	theta, grad []float64
	up, down    []*nn.Tape // of each channel's encoder and decoder
	z, gz       []float64  // codes and the gradient by them
	eps         []float64  // standard normal, padded as codes are
	precision   []float64  // e^−s for the log variances s of the noise
}

func (n *network) machine(theta []float64, batch int) *machine {
	m := &machine{network: n, theta: theta, grad: make([]float64, n.size), precision: make([]float64, n.features)}
	for _, c := range n.channels {
		m.up = append(m.up, c.encoder.NewTape(batch))
		m.down = append(m.down, c.decoder.NewTape(batch))
	}
	codes := batch * linalg.Stride(n.latent)
	m.z, m.gz, m.eps = make([]float64, codes), make([]float64, codes), make([]float64, codes)
	return m
}

// encode brings the subjects of a batch through the encoder of channel e. The output has
// means and then log variances, in rows of a stride.
func (m *machine) encode(e int, batch []subject) []float64 {
	c, up := &m.channels[e], m.up[e]
	ld := linalg.Stride(c.hi - c.lo)
	for r, s := range batch {
		copy(up.Acts[0][r*ld:], s.x[c.lo:c.hi])
	}
	c.encoder.Forward(m.theta, up, len(batch))
	return up.Output()
}

// decode brings k codes, thin rows, through the decoder of channel d.
func (m *machine) decode(d int, z []float64, k int) []float64 {
	c, down := &m.channels[d], m.down[d]
	copy(down.Acts[0], z[:k*linalg.Stride(m.latent)])
	c.decoder.Forward(m.theta, down, k)
	return down.Output()
}

// drawer draws standard normal numbers.
type drawer interface{ NormFloat64() float64 }

// ascent returns the sum over a batch of the evidence lower bounds, with one draw
// of each code, and adds its gradient to grad. The bound of a subject is that of Antelmi et al. 2019,
// equation 6, over the channels E that it has features of:
//
//	L = 1/|E| Σ_{e∈E} ( E_{q(z|x_e)} Σ_d log p(x_d|z) − KL(q(z|x_e) ‖ N(0, I)) ),
//
// where log p leaves out what was not observed. Of one channel it is the usual bound of
// Kingma and Welling.
func (m *machine) ascent(batch []subject, draws drawer) float64 {
	q, ld, lo2 := m.latent, linalg.Stride(m.latent), linalg.Stride(2*m.latent)
	for _, c := range m.channels {
		for j := range c.hi - c.lo {
			m.precision[c.lo+j] = math.Exp(-m.theta[c.noise+j])
		}
	}
	share := make([]float64, len(batch)) // 1/|E|
	for r := range batch {
		n := 0.0
		for e := range m.channels {
			if batch[r].observed(&m.channels[e]) {
				n++
			}
		}
		share[r] = 1 / max(n, 1)
	}
	bound := 0.0
	weight := make([]float64, len(batch))
	for e := range m.channels {
		c := &m.channels[e]
		code := m.encode(e, batch)
		for r := range batch {
			weight[r] = 0
			if batch[r].observed(c) {
				weight[r] = share[r]
			}
			for a := range q {
				m.eps[r*ld+a] = draws.NormFloat64()
				m.z[r*ld+a] = code[r*lo2+a] + math.Exp(code[r*lo2+q+a]/2)*m.eps[r*ld+a]
			}
		}
		gz := m.gz[:len(batch)*ld]
		clear(gz)
		for d := range m.channels {
			bound += m.likelihood(d, batch, weight)
			for i, g := range m.down[d].Grads[0][:len(gz)] {
				gz[i] += g
			}
		}
		slope := m.up[e].Slope()
		for r, w := range weight {
			for a := range q {
				mean, lv, g := code[r*lo2+a], code[r*lo2+q+a], gz[r*ld+a]
				v := math.Exp(lv)
				bound -= w * (v + mean*mean - 1 - lv) / 2
				slope[r*lo2+a] = g - w*mean
				slope[r*lo2+q+a] = g*math.Exp(lv/2)*m.eps[r*ld+a]/2 + w*(1-v)/2
			}
		}
		c.encoder.Backward(m.theta, m.grad, m.up[e], len(batch), false)
	}
	return bound
}

// likelihood returns Σ_r w_r log p(x_rd|z_r) of channel d, and takes its gradient down the
// decoder.
func (m *machine) likelihood(d int, batch []subject, weight []float64) (sum float64) {
	c := &m.channels[d]
	f, slope := m.decode(d, m.z, len(batch)), m.down[d].Slope()
	ld := linalg.Stride(c.hi - c.lo)
	for r, s := range batch {
		w := weight[r]
		for j := range c.hi - c.lo {
			slope[r*ld+j] = 0
			if w == 0 || !s.seen[c.lo+j] {
				continue
			}
			e, p := s.x[c.lo+j]-f[r*ld+j], m.precision[c.lo+j]
			sum -= w * (math.Log(2*math.Pi) + m.theta[c.noise+j] + e*e*p) / 2
			slope[r*ld+j] = w * e * p
			m.grad[c.noise+j] += w * (e*e*p - 1) / 2
		}
	}
	c.decoder.Backward(m.theta, m.grad, m.down[d], len(batch), true)
	return sum
}

// fit takes a number of epochs from the packed parameters on, and returns where they end, and the mean
// negative bound over the last epoch. Every step ascends the mean bound of a batch,
// less λ/2 of the squared distance from where it began (Li et al. 2020, "Federated
// optimization in heterogeneous networks", equation 2).
func (n *network) fit(ctx context.Context, o *options, packed []float64, subjects []subject, epochs int,
	rng *rand.Rand) (out []float64, loss float64, err error) {
	if len(subjects) == 0 {
		return packed, 0, nil
	}
	batch := len(subjects)
	if o.Batch > 0 {
		batch = min(o.Batch, batch)
	}
	first := n.unpack(packed)
	m := n.machine(n.unpack(packed), batch)
	adam := nn.NewAdam(n.size, o.LearningRate)
	for range epochs {
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		loss = 0
		if batch < len(subjects) {
			rng.Shuffle(len(subjects), func(i, j int) { subjects[i], subjects[j] = subjects[j], subjects[i] })
		}
		for at := 0; at < len(subjects); at += batch {
			part := subjects[at:min(at+batch, len(subjects))]
			loss -= m.ascent(part, rng)
			k := float64(len(part))
			if o.Proximal > 0 {
				for i, x := range m.theta {
					m.grad[i] -= o.Proximal * k * (x - first[i])
				}
			}
			if o.Optimiser == optimiserAdam {
				adam.Ascend(m.theta, m.grad, 1/k)
				continue
			}
			for i, g := range m.grad {
				m.theta[i] += o.LearningRate / k * g
			}
			clear(m.grad)
		}
	}
	out, loss = n.pack(m.theta), loss/float64(len(subjects))
	if !bounded(out, largestWeight) || !(math.Abs(loss) <= largestLoss) {
		return nil, 0, errDiverged
	}
	return out, loss, nil
}

// What honest training stays below.
const (
	largestWeight = 1e6
	largestLoss   = 1e100
)

var errDiverged = errors.New("training has diverged\n  hint: a smaller learning_rate")

func bounded(v []float64, limit float64) bool {
	return !slices.ContainsFunc(v, func(x float64) bool { return !(math.Abs(x) <= limit) })
}
