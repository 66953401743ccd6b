package ppca

// What the tests, which are outside because package factorstest imports this one, see of
// the inside.

var (
	Weighted      = weighted
	NewCovariance = newCovariance
	NewPXEM       = newPXEM
)

// Empty is how many subjects without any value were added.
func (a *Accumulator) Empty() int { return a.empty }

func (c *covariance) Mean(i int) float64            { return c.mean[i] }
func (c *covariance) Count(i int) float64           { return c.count[i] }
func (c *covariance) Times(dst, x []float64, q int) { c.times(dst, x, q) }
func (c *covariance) Leading(rank int) (values, vectors []float64, err error) {
	total := 0.0
	for _, v := range c.variance {
		total += v
	}
	return c.leading(rank, total)
}
