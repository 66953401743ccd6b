package gmm

import (
	"math"
	"slices"
)

// Block is coordinates that move together: the weights, one component, everything.
type Block struct {
	Coords    []int // indices into u
	Component int   // its number; All or None
}

// All is a block that touches every component, none one that touches no component.
const (
	All  = -1
	None = -2
)

// Blocks lists the blocks of u: one for each component, then, of several, the weights and
// everything.
func (c Coordinates) Blocks() (blocks []Block) {
	index := make([]int, c.Len())
	for i := range index {
		index[i] = i
	}
	for k := range c.K {
		own := slices.Clone(index[c.K-1+k*c.Dim:][:c.Dim])
		blocks = append(blocks, Block{append(own, index[c.K-1+c.K*c.Dim+k*c.Triangle():][:c.Triangle()]...), k})
	}
	if c.K > 1 {
		blocks = append(blocks, Block{index[:c.K-1], None}, Block{index, All})
	}
	return blocks
}

// Reorder puts component order[k] of u in place k.
func (c Coordinates) Reorder(u []float64, order []int) {
	old := slices.Clone(u)
	logit := func(k int) float64 {
		if k < c.K-1 {
			return old[k]
		}
		return 0
	}
	covs := c.K - 1 + c.K*c.Dim
	for k, j := range order {
		if k < c.K-1 {
			u[k] = logit(j) - logit(order[c.K-1])
		}
		copy(u[c.K-1+k*c.Dim:][:c.Dim], old[c.K-1+j*c.Dim:])
		copy(u[covs+k*c.Triangle():][:c.Triangle()], old[covs+j*c.Triangle():])
	}
}

// Jacobian is ln of the derivative of component k with respect to its part of u.
func (c Coordinates) Jacobian(u []float64, k int) float64 {
	s, at := float64(c.Dim)*math.Ln2, c.K-1+c.K*c.Dim+k*c.Triangle()
	for i := range c.Dim {
		s += float64(c.Dim-i+1) * u[at+i]
		at += i + 1
	}
	return s
}
