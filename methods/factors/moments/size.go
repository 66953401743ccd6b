package moments

import "math"

// Clipping takes more of large subjects than of small ones, and what it leaves of
// the scale depends on more than moments. So every subject also tells its size,
// as one more entry of t that clipping hardly touches.

// clip is the bound of p features, over the root mean square norm.
func clip(p int) float64 {
	if p <= narrow {
		return narrowClip
	}
	return wideClip
}

// room is the norm that the constant and the size leave for y.
func (n *Whitening) room() float64 {
	return math.Sqrt(1 - n.Constant*n.Constant - sizeWeight*sizeWeight)
}

// reach is r², from which on sizes are not told apart: four times the mean square
// of z that the sums before told.
func (n *Whitening) reach() float64 {
	p := len(n.Scale)
	whole, squeezed := float64(p), float64(p)
	for i, x := range n.Strength {
		whole += x
		squeezed += n.Shrinkage[i] * n.Shrinkage[i] * x
	}
	c := clip(p)
	return 4 * n.Bound * n.Bound / (c * c) * whole / squeezed
}

// sizes is a noised Σ |z|² over the subjects of one sum.
type sizes struct {
	lens     *Whitening
	sum      float64
	variance float64 // of its noise
}

// sizes reads what a sum of moments says of sizes: b s Σ min(1, |z|²/r²).
func (n *Whitening) sizes(block []float64, sd float64, pass passed) sizes {
	p := len(n.Scale)
	unit := n.reach() / (n.Constant * sizeWeight * pass.size)
	return sizes{n, unit * block[triangle(p, p+1, p+2)], unit * unit * sd * sd / 2}
}

// Prior standard deviations of what clipping made of the scale of the covariance
// beyond what is known of it, and of what it made of it in some directions alone.
const (
	narrowDoubt = 0.13
	wideDoubt   = 0.4
	shapeDoubt  = 0.1
)

// size returns by how much the covariance in T is to be multiplied for subjects
// to be as large as they say, drawn to 1 by as much as that is noise.
func (q *pooled) size(draws [][]float64) float64 {
	t, p := q.total.t, q.total.p
	d, n := p+1, max(1, q.total.count())
	var told, expected, variance float64
	noise := make([]float64, len(draws)) // in what is expected
	precision := 1/q.total.sizes[0].variance + 1/q.total.sizes[1].variance
	for _, s := range q.total.sizes {
		w := 1 / s.variance / precision
		told += w * s.sum
		variance += w * w * s.variance
		for j, h := range s.lens.Scale {
			m, f := t[j*d+p]/n, w*n*h*h
			told -= f * (m - s.lens.Centre[j]) * (m - s.lens.Centre[j])
			expected += f * (t[j*d+j]/n - m*m)
			for k, x := range draws {
				noise[k] += f * (x[j*d+j] - 2*m*x[j*d+p] + m*m*x[d*d-1]) / n
			}
		}
	}
	if !(expected > 0) { // noise alone
		return 1
	}
	own := 0.0
	for _, x := range noise {
		own += x * x / float64(len(draws))
	}
	doubt := narrowDoubt
	if p > narrow {
		doubt = wideDoubt
	}
	own = own/(expected*expected) + doubt*doubt
	variance = variance/(expected*expected) + shapeDoubt*shapeDoubt
	f := 1 + own/(own+variance)*(told/expected-1)
	// What is still open makes the subjects larger: too small is false certainty.
	return max(0.3, min(3, f)) * (1 + min(1, own*variance/(own+variance)))
}

// sized multiplies what noise in T does to the covariance by the factor that the
// covariance was multiplied by.
func (f *repaired) sized(noise []float64) []float64 {
	p := len(f.mean)
	d := p + 1
	t := make([]float64, len(noise))
	copy(t, noise)
	for i, m := range f.mean {
		for j, o := range f.mean {
			t[i*d+j] += (f.size - 1) * (noise[i*d+j] - m*noise[j*d+p] - o*noise[i*d+p] + m*o*noise[d*d-1])
		}
	}
	return t
}
