package assess

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"parley/internal/wire"
	"parley/methods/factors/ppca"
)

// Sums says how well the other views of a site's subjects predict a
// view that they have: the only place where anybody can see what imputing it
// at a site that lacks it is worth. All vectors are by view; counts are of single values.
type Sums struct {
	Cells   wire.Vector `cbor:"cells"`   // values predicted
	Error   wire.Vector `cbor:"error"`   // Σ (value − prediction)²
	Squares wire.Vector `cbor:"squares"` // Σ (value − study mean)²
	Inside  wire.Vector `cbor:"inside"`  // values in their central intervals of 90 %
	// Uneven is Σ (values of a subject in their intervals − 0.9 times its
	// values)², over subjects: how well coverage is known, though the values
	// of one subject go together.
	Uneven wire.Vector `cbor:"uneven"`
	// Varied is Σ (what the prediction takes away of the squares of a subject)²: how well that is known.
	Varied wire.Vector `cbor:"varied"`
}

// NewSums returns sums of no subjects.
func NewSums(views int) *Sums {
	vector := func() wire.Vector { return make(wire.Vector, views) }
	return &Sums{vector(), vector(), vector(), vector(), vector(), vector()}
}

// Values is how many numbers the sums hold.
func Values(views int) int { return 6 * views }

func (s *Sums) lists() [][]float64 {
	return [][]float64{s.Cells, s.Error, s.Squares, s.Inside, s.Uneven, s.Varied}
}

// Check says what is wrong with sums that came from elsewhere.
func (s *Sums) Check(views int) error {
	if err := cmp.Or(ppca.Numbers("sums of views left out", views, 0, s.lists()...),
		ppca.Counts("values of views left out", slices.Concat(s.Cells, s.Inside), ppca.Largest)); err != nil {
		return err
	}
	for k, n := range s.Cells {
		if s.Inside[k] > n {
			return fmt.Errorf("view %d left out: %v values in their intervals, of %v", k, s.Inside[k], n)
		}
	}
	return nil
}

// Merge adds the sums of another site.
func (s *Sums) Merge(o *Sums) {
	for i, x := range s.lists() {
		floats.Add(x, o.lists()[i])
	}
}

// Coverage is the share of view k's values in the central interval of 90 %; NaN where there is none.
func (s *Sums) Coverage(k int) float64 { return s.Inside[k] / s.Cells[k] }

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
		cells, at := observed[o.from[k]:o.from[k+1]], 0
		failed, squares, inside := 0.0, 0.0, 0.0
		for i, value := range values[o.from[k]:o.from[k+1]] {
			j := cells[i]
			for given.Missing[at] != j {
				at++
			}
			shift, sd, off := o.guess[at]-o.md.Mu[j], o.within[k][at], value-o.md.Mu[j]
			failed += (off - shift) * (off - shift)
			squares += off * off
			if math.Abs(off-shift) <= normal95*sd {
				inside++
			}
		}
		n := float64(len(cells))
		s.Cells[k] += n
		s.Error[k] += failed
		s.Squares[k] += squares
		s.Inside[k] += inside
		s.Uneven[k] += (inside - 0.9*n) * (inside - 0.9*n)
		s.Varied[k] += (squares - failed) * (squares - failed)
	}
	return nil
}
