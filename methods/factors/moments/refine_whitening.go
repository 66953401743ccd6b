package moments

import (
	"fmt"
	"math"

	"parley/internal/linalg"
	"parley/methods/factors/ppca"
)

// triangle returns the index of entry (i, j) of a symmetric n × n matrix whose
// upper triangle is stored by rows.
func triangle(i, j, n int) int {
	if i > j {
		i, j = j, i
	}
	return i*(2*n-i+1)/2 + j - i
}

// matrix returns the (p+1) × (p+1) matrix of the sums without the size, x first and the constant last.
func (m *Moments) matrix() ([]float64, error) {
	n := len(m.Scale) + 1
	if want := (n + 1) * (n + 2) / 2; len(m.Sums) != want {
		return nil, fmt.Errorf("moments have %d entries, want %d for %d features", len(m.Sums), want, n-1)
	}
	if err := ppca.Within("moments", m.Sums, largestMoment); err != nil {
		return nil, err
	}
	out := make([]float64, n*n)
	for i := range n {
		for j := range n {
			out[i*n+j] = m.Sums[triangle(i, j, n+1)]
		}
	}
	return out, nil
}

// complement makes up for missing cells in a matrix of sums through a whitening without axes, in which they were 0: of
// the sum of a feature its share is left, and of products both features'.
func (n *Whitening) complement(m []float64) {
	d := len(n.Scale) + 1
	for i, f := range n.Observed {
		for j, g := range n.Observed {
			if i != j {
				m[i*d+j] /= f * g
			}
		}
		for _, at := range []int{i*d + i, i*d + d - 1, (d-1)*d + i} {
			m[at] /= f
		}
	}
}

// noiseEdge is how large an eigenvalue of symmetric p × p noise of standard deviation
// sd beside the diagonal is.
func noiseEdge(sd float64, p int) float64 { return 2 * sd * math.Sqrt(float64(p)) }

// spike is the variance of a direction that stands out of noise alone: with
// symmetric noise of standard deviation sd beside the diagonal, an eigenvalue λ
// of a low-rank p × p matrix is seen at y = λ + p sd²/λ, if λ > sd√p, and noise
// reaches 2 sd√p by itself. It returns λ cos²(angle to the true direction) =
// √(y² − 4 p sd²), the least squares estimate along the direction seen, or 0 for
// what noise may have made; odd in y.
// Gavish and Donoho, "Optimal shrinkage of singular values", 2017.
func spike(y, sd float64, p int) float64 {
	edge := noiseEdge(sd, p)
	if math.Abs(y) <= edge { // just beyond it little is let through, so no jump needs a margin
		return 0
	}
	return math.Copysign(math.Sqrt(y*y-edge*edge), y)
}

// unshrunk returns λ itself, (y + √(y² − 4 p sd²))/2.
func unshrunk(y, sd float64, p int) float64 {
	if s := spike(y, sd, p); s != 0 {
		return (y + s) / 2
	}
	return 0
}

// RefineWhitening turns the noised coarse sums of all sites together into the whitening of the
// fine ones. The coarse whitening has no axes, so that y = z.
func (r PatternSums) RefineWhitening() (Whitening, error) {
	n, sd := &r.Coarse, r.Coarse.SD
	p := len(n.Scale)
	m, err := n.matrix()
	if err != nil {
		return Whitening{}, err
	}
	n.complement(m)
	if len(n.Shrinkage) > 0 || !(sd > 0 && sd <= ppca.Largest) {
		return Whitening{}, fmt.Errorf("a coarse sum through a whitening with axes, or with noise %v", sd)
	}
	b2 := n.Constant * n.Constant
	countVar := sd * sd / (b2 * b2)
	count := (r.Count/r.CountVar + m[(p+1)*(p+1)-1]/b2/countVar) / (1/r.CountVar + 1/countVar)
	countSD := 1 / math.Sqrt(1/r.CountVar+1/countVar)
	count = max(count, 1, countSD)
	unit := n.Bound * n.Bound / (n.room() * n.room()) / count // of an entry of m, in z
	out := Whitening{Views: n.Views, Scale: n.Scale, Centre: make([]float64, p), Observed: n.Observed}
	// The mean, shrunk towards the overview's (James and Stein).
	toMean := n.Bound / n.room() / n.Constant / count
	size := 0.0
	mean := make([]float64, p)
	for j := range mean {
		mean[j] = m[j*(p+1)+p] * toMean
		size += mean[j] * mean[j]
	}
	noise := sd * sd / 2 * toMean * toMean
	keep := max(0, 1-noise*float64(p)/max(size, 1e-300))
	for j := range mean {
		mean[j] *= keep
		// A centre beyond the range helps nobody.
		out.Centre[j] = max(-0.5, min(0.5, n.Centre[j]+mean[j]/n.Scale[j]))
		mean[j] = (out.Centre[j] - n.Centre[j]) * n.Scale[j]
	}
	cov := make([]float64, p*p)
	trace := 0.0
	for i := range p {
		for j := range p {
			cov[i*p+j] = m[i*(p+1)+j]*unit - mean[i]*mean[j]
		}
		trace += m[i*(p+1)+i] * unit
	}
	// By the scale of the views, which the overview told, it is p: what noise says
	// else is not to be followed, or the bound is one that clips everybody.
	wide := float64(p)
	known := traceDoubt * traceDoubt * wide / (traceDoubt*traceDoubt*wide + sd*sd*unit*unit +
		wide*countSD*countSD/count/count)
	trace = wide + known*(trace-wide)
	// The mean square about the centre, which is off by what noise is left in it.
	total := trace + keep*noise*float64(p) - max(0, size-noise*float64(p))
	off := sd / math.Sqrt2 * unit
	// Nor is it below what noise may have taken off it.
	least := math.Sqrt((1-known)*traceDoubt*traceDoubt*wide*wide + 2*wide*noise*noise + 4*keep*size*noise)
	total = max(min(total, wide), min(least, wide), 0.01*wide)
	e := linalg.NewEigen(p)
	if !e.Factorise(cov, p) {
		return Whitening{}, fmt.Errorf("the eigenvalues of the coarse moments did not converge")
	}
	rest := total
	var strength []float64
	for i := range min(p/2, maxAxes) {
		x := unshrunk(e.Values[p-1-i], off, p)
		if !(x > 0) { // noise far out can make all of them negative
			break
		}
		strength = append(strength, x)
		rest -= x
	}
	// Trace and eigenvalues are both noised: something is always left.
	rest = max(rest, min(off*math.Sqrt(2*float64(p)), total), 0.02*total)
	k := len(strength)
	size = rest
	floor := rest / float64(p)
	for i, x := range strength {
		q := min(1, math.Sqrt(rest/float64(k)/x))
		size += q * q * x
		out.Shrinkage = append(out.Shrinkage, q)
		out.Strength = append(out.Strength, x/floor)
		for j := range p {
			out.Axes = append(out.Axes, e.Vectors[j*p+p-1-i])
		}
	}
	out.Bound = clip(p) * math.Sqrt(size)
	out.Constant = fineConstant(float64(k) + newDirections)
	return out, nil
}

// traceDoubt is the prior standard deviation of the mean square of z, over what the
// scale of the views makes it.
const traceDoubt = 0.3

// newDirections are those allowed for that were not seen yet and are sought too.
const newDirections = 5

// maxAxes bounds what a whitening squeezes.
const maxAxes = 30

// fineConstant is b for q directions of equal weight. The error of the mean falls
// with b and that of the directions rises: with β = b²/(1 − b²) the sum of their
// squares is proportional to (1 + β)² (1/β + 2q²), and least where
// 4q²β² + β − 1 = 0.
func fineConstant(q float64) float64 {
	beta := (-1 + math.Sqrt(1+16*q*q)) / (8 * q * q)
	return math.Sqrt(beta / (1 + beta))
}

// SubjectsToSee returns how many subjects each of so many sites needs for a direction that holds a share of the
// variance of p features to stand out of the noise of all sites together, at the Gaussian DP parameter μ of the three
// sums, if nothing is squeezed. With n subjects at each of C sites, the sums leave noise of standard deviation s √C c²
// p/(r² C n) beside the diagonal of the covariance, for the bound c and the room r of a whitening, and 2 √p times that
// in its eigenvalues; the direction's is share · p.
func SubjectsToSee(p, sites int, share, mu float64) float64 {
	precision := 0.0
	for _, of := range []struct{ share, constant float64 }{{shareCoarse, coarseConstant},
		{shareFine, fineConstant(newDirections)}} {
		room := 1 - of.constant*of.constant - sizeWeight*sizeWeight
		precision += of.share * room * room
	}
	c := clip(p)
	sd := c * c * float64(p) / (mu * math.Sqrt(2*precision))
	return noiseEdge(sd, p) / (share * float64(p) * math.Sqrt(float64(sites)))
}
