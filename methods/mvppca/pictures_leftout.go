package mvppca

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"

	"parley/internal/wire"
)

// Bins of the histograms that a site sends. calibrationBins is such that the
// central interval of 90 % is bins 1 to 18: coverage needs no number of its own.
const (
	calibrationBins  = 20
	distributionBins = 14  // half a standard deviation each, from −3.5 to 3.5
	distributionEnd  = 3.5 // what lies beyond counts in the outermost bins
)

// leftOutSums says how well the other views of a site's subjects predict a
// view that they have: the only place where anybody can see what imputing it
// at a site that lacks it is worth. Counts are of single values.
type leftOutSums struct {
	Cells   wire.Vector `cbor:"cells"`   // per view: values predicted
	Error   wire.Vector `cbor:"error"`   // Σ (value − prediction)²
	Squares wire.Vector `cbor:"squares"` // Σ (value − study mean)²
	// Calibration counts values by the probability that the prediction gave to
	// a smaller one: views × calibrationBins.
	Calibration wire.Matrix `cbor:"calibration"`
	// Observed counts the values, and Imputed one draw from the prediction of
	// each, in standard deviations of the feature: views × distributionBins.
	Observed wire.Matrix `cbor:"observed"`
	Imputed  wire.Matrix `cbor:"imputed"`
}

func newLeftOutSums(views int) *leftOutSums {
	vector := func() wire.Vector { return make(wire.Vector, views) }
	matrix := func(bins int) wire.Matrix {
		return wire.Matrix{Rows: views, Cols: bins, Data: make([]float64, views*bins)}
	}
	return &leftOutSums{vector(), vector(), vector(), matrix(calibrationBins), matrix(distributionBins), matrix(distributionBins)}
}

// leftOutValues is how many numbers the sums hold.
func leftOutValues(views int) int { return views * (3 + calibrationBins + 2*distributionBins) }

func (s *leftOutSums) check(views int) error {
	for _, v := range []wire.Vector{s.Cells, s.Error, s.Squares} {
		if len(v) != views {
			return fmt.Errorf("sums of views left out: %d for %d views", len(v), views)
		}
		if err := finite("sums of views left out", v); err != nil {
			return err
		}
		if slices.Min(v) < 0 {
			return fmt.Errorf("sums of views left out: %v is negative", slices.Min(v))
		}
	}
	for i, m := range []wire.Matrix{s.Calibration, s.Observed, s.Imputed} {
		if want := []int{calibrationBins, distributionBins, distributionBins}[i]; m.Rows != views || m.Cols != want || len(m.Data) != views*want {
			return fmt.Errorf("histograms of views left out: %d × %d for %d views and %d bins", m.Rows, m.Cols, views, want)
		}
		for k, n := range s.Cells {
			sum := 0.0
			for _, x := range m.Data[k*m.Cols:][:m.Cols] {
				if !(x >= 0) || x != math.Trunc(x) {
					return fmt.Errorf("histograms of views left out: a count is %v", x)
				}
				sum += x
			}
			if sum != n {
				return fmt.Errorf("histograms of views left out: view %d has %v values in a histogram and %v in all", k, sum, n)
			}
		}
	}
	return nil
}

// merge adds the sums of another site.
func (s *leftOutSums) merge(o *leftOutSums) {
	for _, x := range [][2][]float64{{s.Cells, o.Cells}, {s.Error, o.Error}, {s.Squares, o.Squares},
		{s.Calibration.Data, o.Calibration.Data}, {s.Observed.Data, o.Observed.Data}, {s.Imputed.Data, o.Imputed.Data}} {
		floats.Add(x[0], x[1])
	}
}

// coverage is the share of view k's values in the central interval of 90 %.
func (s *leftOutSums) coverage(k int) float64 {
	in := 0.0
	for _, x := range s.Calibration.Data[k*calibrationBins+1:][:calibrationBins-2] {
		in += x
	}
	return in / s.Cells[k] // NaN where there is none
}

// gain is the share of the squared error of "everybody has the study's mean"
// that the prediction takes away.
func (s *leftOutSums) gain(k int) float64 { return 1 - s.Error[k]/s.Squares[k] }

// leaveOut predicts each view of a subject from the subject's other views.
type leaveOut struct {
	layout Layout
	md     *model
	sd     []float64 // per feature, over the population
	whole  []float64 // views × q × ld: Σ w wᵀ/ψ over all features of a view

	// Of subjects with the same features observed, as the one before:
	observed []int
	from     []int     // positions from[k] to from[k+1] are view k's
	ok       []bool    // view k is there and so is another
	cov      []float64 // views × q × ld: covariance of the factors given the others
	within   []float64 // per feature: standard deviation of the prediction
	gram     []float64 // scratch: views × q × ld

	b, x []float64 // of one subject, views × ld: Σ w (t − μ)/ψ, and the factors' mean given the others
	rest []float64 // scratch: q
}

// newLeaveOut prepares for a model of the pooled population. The sites that it
// is shown took part in it, so its noise holds what they differ by already.
func newLeaveOut(l Layout, p *Params) *leaveOut {
	md := newModel(l, p.Rank)
	md.load(p)
	n := l.Views() * md.q * md.ld
	o := &leaveOut{
		layout: l, md: md, sd: make([]float64, md.d), whole: make([]float64, n),
		from: make([]int, l.Views()+1), ok: make([]bool, l.Views()), cov: make([]float64, n), within: make([]float64, md.d),
		gram: make([]float64, n), b: make([]float64, l.Views()*md.ld), x: make([]float64, l.Views()*md.ld), rest: make([]float64, md.q),
	}
	for k := range l.Views() {
		lo, hi := l.View(k)
		var all []int
		for j := lo; j < hi; j++ {
			if md.psi[j] > 0 {
				all = append(all, j)
			}
			w := md.w[j*md.ld:][:md.q]
			o.sd[j] = md.psi[j]
			for _, v := range w {
				o.sd[j] += v * v
			}
			o.sd[j] = math.Sqrt(o.sd[j])
		}
		o.addGram(o.gramOf(o.whole, k), all)
	}
	return o
}

func (o *leaveOut) gramOf(all []float64, k int) []float64 {
	n := o.md.q * o.md.ld
	return all[k*n:][:n]
}

func (o *leaveOut) addGram(dst []float64, features []int) {
	q, ld := o.md.q, o.md.ld
	for _, j := range features {
		w := o.md.w[j*ld:][:q]
		for a, u := range w {
			u /= o.md.psi[j]
			for c, v := range w {
				dst[a*ld+c] += u * v
			}
		}
	}
}

// mean returns the study's mean of feature j.
func (o *leaveOut) mean(j int) float64 { return o.md.mu[j] }

// noise returns the noise variance of feature j; 0 where the model lacks it.
func (o *leaveOut) noise(j int) float64 { return o.md.psi[j] }

// factors returns the factors' mean given all views but k of the subject read last:
// q numbers, valid until the next.
func (o *leaveOut) factors(k int) []float64 { return o.x[k*o.md.ld:][:o.md.q] }

// prepare works out what depends only on which features are observed.
func (o *leaveOut) prepare(observed []int) error {
	o.observed = append(o.observed[:0], observed...)
	q, ld, views, i := o.md.q, o.md.ld, o.layout.Views(), 0
	for k := range views {
		lo, hi := o.layout.View(k)
		for o.from[k] = i; i < len(observed) && observed[i] < hi; i++ {
		}
		o.from[k+1] = i
		gram := o.gramOf(o.gram, k)
		if i-o.from[k] == hi-lo {
			copy(gram, o.gramOf(o.whole, k))
		} else {
			clear(gram)
			o.addGram(gram, observed[o.from[k]:i])
		}
	}
	prec := make([]float64, q*ld)
	for k := range views {
		n := o.from[k+1] - o.from[k]
		if o.ok[k] = n > 0 && n < len(observed); !o.ok[k] {
			continue
		}
		clear(prec)
		for a := range q {
			prec[a*ld+a] = 1
		}
		for l := range views {
			if l != k {
				for i, v := range o.gramOf(o.gram, l) {
					prec[i] += v
				}
			}
		}
		if _, ok := cholesky(prec, q, ld); !ok {
			return errCollapsed
		}
		cov := o.gramOf(o.cov, k)
		cholInverse(cov, prec, q, ld)
		for _, j := range observed[o.from[k]:o.from[k+1]] {
			w := o.md.w[j*ld:][:q]
			o.within[j] = math.Sqrt(o.md.psi[j] + quadratic(cov, ld, w, w))
		}
	}
	return nil
}

// read takes in the observed values of one subject.
func (o *leaveOut) read(observed []int, values []float64) error {
	if !slices.Equal(observed, o.observed) {
		if err := o.prepare(observed); err != nil {
			return err
		}
	}
	q, ld, views := o.md.q, o.md.ld, o.layout.Views()
	clear(o.b)
	for k := range views {
		b := o.b[k*ld:][:q]
		for i := o.from[k]; i < o.from[k+1]; i++ {
			j := observed[i]
			y := (values[i] - o.md.mu[j]) / o.md.psi[j]
			for a, w := range o.md.w[j*ld:][:q] {
				b[a] += w * y
			}
		}
	}
	rest := o.rest
	for k := range views {
		if !o.ok[k] {
			continue
		}
		clear(rest)
		for l := range views {
			if l != k {
				for a, v := range o.b[l*ld:][:q] {
					rest[a] += v
				}
			}
		}
		times(o.x[k*ld:], o.gramOf(o.cov, k), ld, rest)
	}
	return nil
}

// predict returns the mean and the standard deviation of feature j of view k,
// observed, given the other views of the subject read last.
func (o *leaveOut) predict(k, j int) (mean, sd float64) {
	mean = o.md.mu[j]
	for a, w := range o.md.w[j*o.md.ld:][:o.md.q] {
		mean += w * o.x[k*o.md.ld+a]
	}
	return mean, o.within[j]
}

// add counts one subject. rng draws the imputed values.
func (o *leaveOut) add(s *leftOutSums, observed []int, values []float64, rng *rand.Rand) error {
	if err := o.read(observed, values); err != nil {
		return err
	}
	for k := range o.layout.Views() {
		if !o.ok[k] {
			continue
		}
		for i := o.from[k]; i < o.from[k+1]; i++ {
			j := observed[i]
			mean, sd := o.predict(k, j)
			s.Cells[k]++
			s.Error[k] += (values[i] - mean) * (values[i] - mean)
			s.Squares[k] += (values[i] - o.md.mu[j]) * (values[i] - o.md.mu[j])
			p := math.Erfc((mean-values[i])/(sd*math.Sqrt2)) / 2
			s.Calibration.Data[k*calibrationBins+min(int(p*calibrationBins), calibrationBins-1)]++
			s.Observed.Data[k*distributionBins+distributionBin((values[i]-o.md.mu[j])/o.sd[j])]++
			s.Imputed.Data[k*distributionBins+distributionBin((mean+sd*rng.NormFloat64()-o.md.mu[j])/o.sd[j])]++
		}
	}
	return nil
}

// distributionBin returns the bin of z, a number of standard deviations.
func distributionBin(z float64) int {
	z = min(max(z, -distributionEnd), distributionEnd)
	return min(int((z+distributionEnd)*distributionBins/(2*distributionEnd)), distributionBins-1)
}
