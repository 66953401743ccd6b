package assess

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"parley/internal/wire"
	"parley/methods/factors/ppca"
)

// CalibrationBins are those of the histogram that a site sends of each view, such that the
// central interval of 90 % is bins 1 to 18: coverage needs no number of its own.
const CalibrationBins = 20

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
	// Uneven is Σ (values of a subject in their central intervals of 90 % − 0.9 times its
	// values)², over subjects, per view: how well coverage is known, though the values
	// of one subject go together.
	Uneven wire.Vector `cbor:"uneven"`
}

// NewSums returns sums of no subjects.
func NewSums(views int) *Sums {
	vector := func() wire.Vector { return make(wire.Vector, views) }
	return &Sums{vector(), vector(), vector(), wire.Matrix{Rows: views, Cols: CalibrationBins,
		Data: make([]float64, views*CalibrationBins)}, vector()}
}

// Values is how many numbers the sums hold.
func Values(views int) int { return views * (4 + CalibrationBins) }

// Check says what is wrong with sums that came from elsewhere.
func (s *Sums) Check(views int) error {
	if err := ppca.Numbers("sums of views left out", views, 0, s.Cells, s.Error, s.Squares, s.Uneven); err != nil {
		return err
	}
	m := s.Calibration
	if m.Rows != views || m.Cols != CalibrationBins || len(m.Data) != views*CalibrationBins {
		return fmt.Errorf("histograms of views left out: %d × %d for %d views", m.Rows, m.Cols, views)
	}
	if err := ppca.Counts("histograms of views left out", m.Data, ppca.Largest); err != nil {
		return err
	}
	for k, n := range s.Cells {
		if sum := floats.Sum(m.Data[k*m.Cols:][:m.Cols]); sum != n {
			return fmt.Errorf("histograms of views left out: view %d has %v values in one and %v in all", k, sum, n)
		}
	}
	return nil
}

// Merge adds the sums of another site.
func (s *Sums) Merge(o *Sums) {
	for _, x := range [][2][]float64{{s.Cells, o.Cells}, {s.Error, o.Error}, {s.Squares, o.Squares},
		{s.Uneven, o.Uneven}, {s.Calibration.Data, o.Calibration.Data}} {
		floats.Add(x[0], x[1])
	}
}

// Coverage is the share of view k's values in the central interval of 90 %; NaN where there is none.
func (s *Sums) Coverage(k int) float64 {
	return floats.Sum(s.Calibration.Data[k*CalibrationBins+1:][:CalibrationBins-2]) / s.Cells[k]
}

// CoverageError is the standard error of [Sums.Coverage], subjects taken as drawn one by
// one and the values of each as they come (the variance of a ratio of sums over clusters).
func (s *Sums) CoverageError(k int) float64 { return math.Sqrt(s.Uneven[k]) / s.Cells[k] }

// Gain is the share of the squared error of "everybody has the study's mean"
// that the prediction takes away.
func (s *Sums) Gain(k int) float64 { return 1 - s.Error[k]/s.Squares[k] }

// Predictor predicts each view of a subject from the subject's other views, under a model of the population that the
// subject is of, such as that of one site: the study's mean is then that of the site.
type Predictor struct {
	*ppca.Predictor
	layout ppca.Layout
	md     *ppca.Model

	// What depends only on which features are observed, of the subject read last.
	observed []int
	from     []int             // positions from[k] to from[k+1] are view k's
	given    []*ppca.Posterior // by view: given the others; nil where it, or another, is not there
	within   [][]float64       // by view: standard deviation of the prediction of each feature that is missing then

	rest, guess []float64 // scratch
}

// Of prepares for the model of a predictor. The sites that it is shown took part in it, so its noise holds what they
// differ by already.
func Of(p *ppca.Predictor) *Predictor {
	l, md := p.Model()
	return &Predictor{Predictor: p, layout: l, md: md, from: make([]int, l.Views()+1),
		given: make([]*ppca.Posterior, l.Views()), within: make([][]float64, l.Views()), guess: make([]float64, md.D)}
}

// read works out what depends only on which features are observed.
func (o *Predictor) read(observed []int) (err error) {
	if slices.Equal(observed, o.observed) {
		return nil
	}
	o.observed = append(o.observed[:0], observed...)
	i := 0
	for k := range o.given {
		_, hi := o.layout.View(k)
		for o.from[k] = i; i < len(observed) && observed[i] < hi; i++ {
		}
		o.from[k+1], o.given[k] = i, nil
		if others := slices.Concat(observed[:o.from[k]], observed[i:]); i > o.from[k] && len(others) > 0 {
			if o.given[k], err = o.Given(others); err != nil {
				return err
			}
			o.within[k] = slices.Grow(o.within[k][:0], len(o.given[k].Missing))[:len(o.given[k].Missing)]
			o.given[k].MissingVar(o.within[k])
			for a, v := range o.within[k] {
				o.within[k][a] = math.Sqrt(v)
			}
		}
	}
	return nil
}

// others are a subject's values without those of a view, valid until the next.
func (o *Predictor) others(k int, values []float64) []float64 {
	o.rest = append(append(o.rest[:0], values[:o.from[k]]...), values[o.from[k+1]:]...)
	return o.rest
}

// Add counts one subject.
func (o *Predictor) Add(s *Sums, observed []int, values []float64) error {
	if err := o.read(observed); err != nil {
		return err
	}
	for k, given := range o.given {
		if given == nil {
			continue
		}
		given.Impute(o.guess, o.others(k, values))
		within, cells, at := 0.0, observed[o.from[k]:o.from[k+1]], 0 // of intervals, less what is expected
		failed, squares := 0.0, 0.0
		calibration := s.Calibration.Data[k*CalibrationBins:][:CalibrationBins]
		for i, value := range values[o.from[k]:o.from[k+1]] {
			j := cells[i]
			for given.Missing[at] != j {
				at++
			}
			shift, sd, off := o.guess[at]-o.md.Mu[j], o.within[k][at], value-o.md.Mu[j]
			failed += (off - shift) * (off - shift)
			squares += off * off
			bin, edge := slices.BinarySearch(quantiles[:], (off-shift)/sd)
			if edge {
				bin++
			}
			calibration[bin]++
			if within -= 0.9; bin > 0 && bin < CalibrationBins-1 {
				within++
			}
		}
		s.Cells[k] += float64(len(cells))
		s.Error[k] += failed
		s.Squares[k] += squares
		s.Uneven[k] += within * within
	}
	return nil
}

// quantiles are those of the normal distribution at the edges between the calibration bins.
var quantiles = func() (edges [CalibrationBins - 1]float64) {
	for i := range edges {
		edges[i] = math.Sqrt2 * math.Erfinv(2*float64(i+1)/CalibrationBins-1)
	}
	return edges
}()
