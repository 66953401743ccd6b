package moments

import "math"

// Clipping takes more of large subjects than of small ones, and what it leaves of
// the scale depends on more than moments. So every subject also tells its size,
// as one more entry of t that clipping hardly touches.

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

// passed is how clipping acts on a sum of moments: along each axis of the fine
// lens, and in all other directions, the square root of the share of the
// variance that is left, and the shares of the mean and of the sizes.
type passed struct {
	axes []float64
	rest float64
	mean float64
	size float64
}

// clear says that nothing was clipped.
func unclipped(k int) passed {
	out := passed{axes: make([]float64, k), rest: 1, mean: 1, size: 1}
	for i := range out.axes {
		out.axes[i] = 1
	}
	return out
}
