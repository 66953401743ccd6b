package assess

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"

	"parley/internal/linalg"
	"parley/internal/wire"
	"parley/methods/factors/ppca"
)

// Bins of the histograms that a site sends. CalibrationBins is such that the
// central interval of 90 % is bins 1 to 18: coverage needs no number of its own.
const (
	CalibrationBins  = 20
	DistributionBins = 14  // half a standard deviation each, from −3.5 to 3.5
	DistributionEnd  = 3.5 // what lies beyond counts in the outermost bins
)

// Sums says how well the other views of a site's subjects predict a
// view that they have: the only place where anybody can see what imputing it
// at a site that lacks it is worth. Counts are of single values.
type Sums struct {
	Cells   wire.Vector `cbor:"cells"`   // per view: values predicted
	Error   wire.Vector `cbor:"error"`   // Σ (value − prediction)²
	Squares wire.Vector `cbor:"squares"` // Σ (value − study mean)²
	// Calibration counts values by the probability that the prediction gave to
	// a smaller one: views × CalibrationBins.
	Calibration wire.Matrix `cbor:"calibration"`
	// Observed counts the values, and Imputed one draw from the prediction of
	// each, in standard deviations of the feature: views × DistributionBins.
	Observed wire.Matrix `cbor:"observed"`
	Imputed  wire.Matrix `cbor:"imputed"`
	// Uneven is Σ (values of a subject in their central intervals of 90 % − 0.9 times its
	// values)², over subjects, per view: how well coverage is known, though the values
	// of one subject go together.
	Uneven wire.Vector `cbor:"uneven"`
}

// NewSums returns sums of no subjects.
func NewSums(views int) *Sums {
	vector := func() wire.Vector { return make(wire.Vector, views) }
	matrix := func(bins int) wire.Matrix {
		return wire.Matrix{Rows: views, Cols: bins, Data: make([]float64, views*bins)}
	}
	return &Sums{vector(), vector(), vector(), matrix(CalibrationBins), matrix(DistributionBins),
		matrix(DistributionBins), vector()}
}

// Values is how many numbers the sums hold.
func Values(views int) int { return views * (4 + CalibrationBins + 2*DistributionBins) }

// Check says what is wrong with sums that came from elsewhere.
func (s *Sums) Check(views int) error {
	if err := ppca.Numbers("sums of views left out", views, 0, s.Cells, s.Error, s.Squares, s.Uneven); err != nil {
		return err
	}
	for i, m := range []wire.Matrix{s.Calibration, s.Observed, s.Imputed} {
		if want := []int{CalibrationBins, DistributionBins, DistributionBins}[i]; m.Rows != views || m.Cols != want ||
			len(m.Data) != views*want {
			return fmt.Errorf("histograms of views left out: %d × %d for %d views and %d bins", m.Rows,
				m.Cols, views, want)
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
				return fmt.Errorf("histograms of views left out: view %d has %v values in a histogram and %v in all", k,
					sum, n)
			}
		}
	}
	return nil
}

// Merge adds the sums of another site.
func (s *Sums) Merge(o *Sums) {
	for _, x := range [][2][]float64{{s.Cells, o.Cells}, {s.Error, o.Error}, {s.Squares, o.Squares},
		{s.Uneven, o.Uneven}, {s.Calibration.Data, o.Calibration.Data}, {s.Observed.Data, o.Observed.Data},
		{s.Imputed.Data, o.Imputed.Data}} {
		floats.Add(x[0], x[1])
	}
}

// Coverage is the share of view k's values in the central interval of 90 %.
func (s *Sums) Coverage(k int) float64 {
	in := 0.0
	for _, x := range s.Calibration.Data[k*CalibrationBins+1:][:CalibrationBins-2] {
		in += x
	}
	return in / s.Cells[k] // NaN where there is none
}

// CoverageError is the standard error of [Sums.Coverage], subjects taken as drawn one by
// one and the values of each as they come (the variance of a ratio of sums over clusters).
func (s *Sums) CoverageError(k int) float64 { return math.Sqrt(s.Uneven[k]) / s.Cells[k] }

// Gain is the share of the squared error of "everybody has the study's mean"
// that the prediction takes away.
func (s *Sums) Gain(k int) float64 { return 1 - s.Error[k]/s.Squares[k] }

// Predictor predicts each view of a subject from the subject's other views.
type Predictor struct {
	layout ppca.Layout
	md     *ppca.Model
	SD     []float64 // per feature, over the population

	// What depends only on which features are observed, of the subject read last.
	From   []int     // positions from[k] to from[k+1] are view k's
	OK     []bool    // view k is there and so is another
	Within []float64 // per feature: standard deviation of the prediction

	observed []int
	gram     []float64 // views × q × ld: Σ w wᵀ/ψ over what is observed of a view
	cov      []float64 // views × q × ld: covariance of the factors given the others

	b, x []float64 // of one subject, views × ld: Σ w (t − μ)/ψ, and the factors' mean given the others
	rest []float64 // scratch: q
}

// New prepares for a model of the pooled population. The sites that it
// is shown took part in it, so its noise holds what they differ by already.
func New(l ppca.Layout, p *ppca.Params) *Predictor {
	md := ppca.NewModel(l, p.Rank)
	md.Load(p)
	return newPredictor(l, md)
}

// Of prepares for the model of a predictor, such as that of one site: then the study's
// mean is that of the site.
func Of(p *ppca.Predictor) *Predictor { return newPredictor(p.Model()) }

func newPredictor(l ppca.Layout, md *ppca.Model) *Predictor {
	vector := func(n int) []float64 { return make([]float64, n) }
	views, n := l.Views(), l.Views()*md.Q*md.LD
	o := &Predictor{layout: l, md: md, SD: vector(md.D), From: make([]int, views+1), OK: make([]bool, views),
		Within: vector(md.D), gram: vector(n), cov: vector(n), b: vector(views * md.LD), x: vector(views * md.LD),
		rest: vector(md.Q)}
	for j, psi := range md.Psi {
		w := md.W[j*md.LD:][:md.Q]
		o.SD[j] = math.Sqrt(psi + floats.Dot(w, w))
	}
	return o
}

// of is the part of view k in what has q × ld numbers for each.
func (o *Predictor) of(all []float64, k int) []float64 {
	n := o.md.Q * o.md.LD
	return all[k*n:][:n]
}

// Factors returns the factors' mean given all views but k of the subject read last,
// valid until the next: q numbers, and one for each further column of the model.
func (o *Predictor) Factors(k int) []float64 { return o.x[k*o.md.LD:][:o.md.Q] }

// Prepare works out what depends only on which features are observed.
func (o *Predictor) Prepare(observed []int) error {
	q, ld, views, i := o.md.Q, o.md.LD, o.layout.Views(), 0
	o.observed = append(o.observed[:0], observed...)
	clear(o.gram)
	for k := range views {
		_, hi := o.layout.View(k)
		gram := o.of(o.gram, k)
		for o.From[k] = i; i < len(observed) && observed[i] < hi; i++ {
			w := o.md.W[observed[i]*ld:][:q]
			for a, u := range w {
				floats.AddScaled(gram[a*ld:][:q], u/o.md.Psi[observed[i]], w)
			}
		}
		o.From[k+1] = i
	}
	for k := range views {
		n := o.From[k+1] - o.From[k]
		if o.OK[k] = n > 0 && n < len(observed); !o.OK[k] {
			continue
		}
		prec, cov := make([]float64, q*ld), o.of(o.cov, k)
		for a := range q {
			prec[a*ld+a] = 1
		}
		for l := range views {
			if l != k {
				floats.Add(prec, o.of(o.gram, l))
			}
		}
		if _, ok := linalg.Cholesky(prec, q, ld); !ok {
			return ppca.ErrCollapsed
		}
		linalg.CholInverse(cov, prec, q, ld)
		for _, j := range observed[o.From[k]:o.From[k+1]] {
			w := o.md.W[j*ld:][:q]
			o.Within[j] = math.Sqrt(o.md.Psi[j] + linalg.Quadratic(cov, ld, w, w))
		}
	}
	return nil
}

// Read takes in the observed values of one subject.
func (o *Predictor) Read(observed []int, values []float64) error {
	if !slices.Equal(observed, o.observed) {
		if err := o.Prepare(observed); err != nil {
			return err
		}
	}
	q, ld, views := o.md.Q, o.md.LD, o.layout.Views()
	clear(o.b)
	for k := range views {
		b := o.b[k*ld:][:q]
		for i := o.From[k]; i < o.From[k+1]; i++ {
			j := observed[i]
			y := (values[i] - o.md.Mu[j]) / o.md.Psi[j]
			for a, w := range o.md.W[j*ld:][:q] {
				b[a] += w * y
			}
		}
	}
	rest := o.rest
	for k := range views {
		if !o.OK[k] {
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
		linalg.Times(o.x[k*ld:], o.of(o.cov, k), ld, rest)
	}
	return nil
}

// Add counts one subject. rng draws the imputed values.
func (o *Predictor) Add(s *Sums, observed []int, values []float64, rng *rand.Rand) error {
	if err := o.Read(observed, values); err != nil {
		return err
	}
	for k := range o.layout.Views() {
		if !o.OK[k] {
			continue
		}
		within, cells := 0.0, observed[o.From[k]:o.From[k+1]] // of intervals, less what is expected
		failed, squares, x := 0.0, 0.0, o.x[k*o.md.LD:][:o.md.Q]
		calibration := s.Calibration.Data[k*CalibrationBins:][:CalibrationBins]
		seen, drawn := s.Observed.Data[k*DistributionBins:][:DistributionBins],
			s.Imputed.Data[k*DistributionBins:][:DistributionBins]
		for i, value := range values[o.From[k]:o.From[k+1]] {
			j := cells[i]
			shift, sd, off := 0.0, o.Within[j], value-o.md.Mu[j]
			for a, w := range o.md.W[j*o.md.LD:][:len(x)] {
				shift += w * x[a]
			}
			failed += (off - shift) * (off - shift)
			squares += off * off
			bin := calibrationBin((off - shift) / sd)
			calibration[bin]++
			if within -= 0.9; bin > 0 && bin < CalibrationBins-1 {
				within++
			}
			seen[distributionBin(off/o.SD[j])]++
			drawn[distributionBin((shift+sd*rng.NormFloat64())/o.SD[j])]++
		}
		s.Cells[k] += float64(len(cells))
		s.Error[k] += failed
		s.Squares[k] += squares
		s.Uneven[k] += within * within
	}
	return nil
}

// quantiles are those of the normal distribution at the edges between the calibration bins.
var quantiles = normalQuantiles()

func normalQuantiles() (edges [CalibrationBins - 1]float64) {
	for i := range edges {
		edges[i] = math.Sqrt2 * math.Erfinv(2*float64(i+1)/CalibrationBins-1)
	}
	return edges
}

// calibrationBin returns the bin of the probability of less than z under the standard normal
// distribution.
func calibrationBin(z float64) int {
	bin, at := slices.BinarySearch(quantiles[:], z)
	if at {
		bin++
	}
	return bin
}

// distributionBin returns the bin of z, a number of standard deviations.
func distributionBin(z float64) int {
	if !(z > -DistributionEnd) {
		return 0
	}
	if z >= DistributionEnd {
		return DistributionBins - 1
	}
	return min(int((z+DistributionEnd)*(DistributionBins/(2*DistributionEnd))), DistributionBins-1)
}
