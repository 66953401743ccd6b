package ppca

// What the tests, which are outside because package factorstest imports this one, see of
// the inside.

var (
	Weighted      = weighted
	NewCovariance = newCovariance
	Fill          = completeData
)

// Empty is how many subjects without any value were added.
func (a *Accumulator) Empty() int { return a.empty }

func (c *covariance) Mean(i int) float64            { return c.mean[i] }
func (c *covariance) Count(i int) float64           { return c.count[i] }
func (c *covariance) Full() []float64               { return c.full }
func (c *covariance) Factored()                     { c.full = nil }
func (c *covariance) Times(dst, x []float64, q int) { c.times(dst, x, q) }
func (c *covariance) Leading(rank int) (values, vectors []float64, err error) {
	total := 0.0
	for _, v := range c.variance {
		total += v
	}
	return c.leading(rank, total)
}

// Analyse returns the covariance of a factor analysis, its log-likelihood and iterations.
func Analyse(l Layout, b *Block, rank int, begin *Params, o FitOptions) (cov []float64, logLik float64, iterations int, err error) {
	f, err := analyse(l, b, rank, begin, o)
	if err != nil {
		return nil, 0, 0, err
	}
	p := len(b.Features)
	cov = make([]float64, p*p)
	for i := range p {
		for j := range p {
			for a := range rank {
				cov[i*p+j] += f.W[i*f.LD+a] * f.W[j*f.LD+a]
			}
		}
		cov[i*p+i] += f.psi[i]
	}
	return cov, f.LogLik, f.Iterations, nil
}
