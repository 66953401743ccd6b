package graffl

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"parley/methods/mixture/gmm"
)

// mode is a peak of a cloud's density.
type mode struct {
	At      []float64
	Density float64 // as a share of the highest peak's, in (0, 1]
}

const (
	modePoints = 4096 // of a cloud, thinned evenly, that its density is estimated from
	modeStarts = 8    // ascents for each mode that is wanted, at most
	modeReach  = 5    // bandwidths beyond which a kernel counts for nothing: exp(−12.5)
	modeSteps  = 1000 // of one ascent, at most
	modeGap    = 1e-7 // bandwidths that mean shift still goes from a peak
)

// modeBandwidth returns the bandwidth for the modes of the component means of parameters that Algorithm 2 accepted: h_i
// = (4/(d+4))^{1/(d+6)} n^{−1/(d+6)} s_i, the normal-scale rule for the gradient of a density, which is what a mode
// depends on (Chacón and Duong 2013). Both numbers are of one mode and known beforehand: n is the accepted parameters
// for each of the K components, as one mean of each has seen a row, and s_i² = 2 E Σ_ii, as that row lies about a Σ
// from its mode, and the mean that made it about a Σ from the row. The prior must have E Σ.
func modeBandwidth(p gmm.Prior, accepted int) ([]float64, error) {
	free := p.Nu - float64(p.Dim()) - 1 // E Σ = Ψ/free
	if !(free > 0) {
		return nil, fmt.Errorf("with ν = %v a component's covariance has no mean", p.Nu)
	}
	d := float64(p.Dim())
	n := max(float64(accepted)/float64(p.Components()), 1)
	h := make([]float64, p.Dim())
	for i := range h {
		h[i] = math.Pow(4/(d+4)/n, 1/(d+6)) * math.Sqrt(2*(p.Psi[i*len(h)+i]/free))
	}
	return h, nil
}

// modes returns the highest peaks, at most as many as are wanted, of the Gaussian kernel density of points, n × d by
// rows, with a bandwidth for each of the d features: Σᵢ exp(−½ Σ_c ((x_c − x_ic)/h_c)²). It climbs by mean shift
// (Fukunaga and Hostetler 1975) from the points where the density is highest, none of them within a bandwidth of
// another start. A cloud of more than 4096 points is thinned to about so many. Where there are fewer peaks, fewer are
// returned.
func modes(points, bandwidth []float64, wanted int) []mode {
	k := NewKernelDensity(points, bandwidth)
	density := make([]float64, k.Len())
	order := make([]int, k.Len())
	for i := range order {
		order[i] = i
		density[i] = k.At(k.row(i), nil)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(density[b], density[a]) })
	var modes []mode
	var starts [][]float64
	for _, i := range order {
		if len(starts) >= modeStarts*wanted {
			break
		}
		start := k.row(i)
		if within(start, starts, 1) || slices.ContainsFunc(modes, func(m mode) bool {
			return gmm.SquaredDistance(m.At, start) < 1
		}) {
			continue
		}
		starts = append(starts, start)
		if at, d, found := k.climb(start, modes); found {
			modes = append(modes, mode{at, d})
		}
	}
	slices.SortStableFunc(modes, func(a, b mode) int { return cmp.Compare(b.Density, a.Density) })
	modes = modes[:min(len(modes), wanted)]
	for i := range modes {
		m := &modes[i]
		for c, h := range bandwidth {
			m.At[c] *= h
		}
		if i > 0 {
			m.Density /= modes[0].Density
		}
	}
	if len(modes) > 0 {
		modes[0].Density = 1
	}
	return modes
}

func within(x []float64, others [][]float64, distance float64) bool {
	return slices.ContainsFunc(others, func(o []float64) bool { return gmm.SquaredDistance(x, o) < distance*distance })
}

// KernelDensity are points in units of the bandwidth.
type KernelDensity struct {
	dim    int
	points []float64
}

// NewKernelDensity takes points one after the other, of very many some at equal steps.
func NewKernelDensity(points, bandwidth []float64) *KernelDensity {
	k := &KernelDensity{dim: len(bandwidth)}
	n := len(points) / k.dim
	step := max(1, (n+modePoints-1)/modePoints)
	for i := 0; i < n; i += step {
		for c, h := range bandwidth {
			k.points = append(k.points, points[i*k.dim+c]/h)
		}
	}
	return k
}

// Len returns the number of points.
func (k *KernelDensity) Len() int            { return len(k.points) / k.dim }
func (k *KernelDensity) row(i int) []float64 { return k.points[i*k.dim:][:k.dim] }

// At returns Σᵢ exp(−½|x − xᵢ|²), and writes the mean of the points under these
// weights, which is where mean shift goes from x.
func (k *KernelDensity) At(x, mean []float64) (sum float64) {
	clear(mean)
	for i := range k.Len() {
		row := k.row(i)
		q := gmm.SquaredDistance(x, row)
		if q > modeReach*modeReach {
			continue
		}
		w := math.Exp(-q / 2)
		sum += w
		if mean == nil {
			continue
		}
		for c, v := range row {
			mean[c] += w * v
		}
	}
	for c := range mean {
		mean[c] /= sum
	}
	return sum
}

// climb goes from a point, which has points of the cloud near it, to the peak above. It finds none that is half a
// bandwidth from one that is known. Mean shift always goes up, but crawls over a shoulder: there its steps are
// lengthened, to half a bandwidth at most, as long as that goes up.
func (k *KernelDensity) climb(from []float64, known []mode) (at []float64, density float64, found bool) {
	at, mean := slices.Clone(from), make([]float64, k.dim)
	next, ahead := make([]float64, k.dim), make([]float64, k.dim)
	density = k.At(at, mean)
	stride := 1.0
	for range modeSteps {
		moved := math.Sqrt(gmm.SquaredDistance(at, mean))
		if moved < modeGap {
			break
		}
		stride = min(stride, max(0.5/moved, 1))
		for c := range next {
			next[c] = at[c] + stride*(mean[c]-at[c])
		}
		d := k.At(next, ahead)
		if stride > 1 && !(d > density) {
			stride = 1
			continue
		}
		at, next, mean, ahead, density, stride = next, at, ahead, mean, d, 2*stride
		if slices.ContainsFunc(known, func(m mode) bool { return gmm.SquaredDistance(m.At, at) < 0.25 }) {
			return nil, 0, false
		}
	}
	return at, density, true
}
