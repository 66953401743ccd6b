package graffl

import (
	"slices"

	"parley/methods/mixture/gmm"
)

// blocks lists coordinates that move together: one block for each component, then, of several, the
// weights and everything.
func blocks(c gmm.Coordinates) (all [][]int) {
	index := make([]int, c.Len())
	for i := range index {
		index[i] = i
	}
	for k := range c.K {
		own := slices.Clone(index[c.K-1+k*c.Dim:][:c.Dim])
		all = append(all, append(own, index[c.K-1+c.K*c.Dim+k*c.Triangle():][:c.Triangle()]...))
	}
	if c.K > 1 {
		all = append(all, index[:c.K-1], index)
	}
	return all
}

// reorder puts component order[k] of u in place k.
func reorder(c gmm.Coordinates, u []float64, order []int) {
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
