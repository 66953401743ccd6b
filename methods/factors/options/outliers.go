package options

import (
	"context"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"parley/dataset"
	"parley/internal/stats"
	"parley/methods/factors/ppca"
)

// falseOutliers is the probability that a study of normally distributed values leaves
// out any subject's view, over all its sites and views.
const falseOutliers = 0.01

// Outliers tells which subjects of a site are so far from its others in a view that hardly anything but an error or
// another kind of subject explains it. A subject's distance is the mean of z² over its values, z from the feature's
// median in median absolute deviations. Of normal values its upper tail is heaviest for a constant and a multiple of χ²
// with one degree of freedom, which the median and the upper quartile give. Outlying is beyond the quantile that one
// subject of n passes with probability chance/n. Nearly a quarter of the subjects can be outliers without hiding each
// other.
type Outliers struct {
	// Found lists them, as far as [Outliers.Without] has been read.
	Found []Outlier

	read           int       // rows that Found covers
	centre, spread []float64 // by feature
	limit          []float64 // by view: of the distance
	dims           []int
}

// Outlier is a subject with the views, by number, in which it is one.
type Outlier struct {
	ID    string
	Views []int
}

// sampledValues bounds what [findOutliers] keeps of the rows: of more, an even selection.
const sampledValues = 1 << 21

// findOutliers reads a site's rows. Chance is the probability that normally distributed
// values of a view have any outlier.
func findOutliers(ctx context.Context, l ppca.Layout, data dataset.Source, chance float64) (*Outliers, error) {
	d := l.Features()
	most, every, seen := 2*max(100, sampledValues/d/2), 1, 0
	var kept []float64 // d values of each row, NaN where it has none
	for row, err := range data.Rows(ctx) {
		if err != nil {
			return nil, err
		}
		if seen++; (seen-1)%every != 0 {
			continue
		}
		if len(kept) == most*d { // every second is enough from here on
			for i := range most / 2 {
				copy(kept[i*d:][:d], kept[2*i*d:])
			}
			kept, every = kept[:most/2*d], 2*every
		}
		for k, v := range row.Views {
			if v == nil {
				v = slices.Repeat([]float64{math.NaN()}, l.Dims[k])
			}
			kept = append(kept, v...)
		}
	}
	o := &Outliers{centre: make([]float64, d), spread: make([]float64, d), limit: make([]float64, l.Views()),
		dims: l.Dims}
	values := make([]float64, 0, len(kept)/d)
	for j := range d {
		values = values[:0]
		for i := j; i < len(kept); i += d {
			if !math.IsNaN(kept[i]) {
				values = append(values, kept[i])
			}
		}
		o.centre[j], o.spread[j] = middle(values)
	}
	for k := range o.limit {
		lo, hi := l.View(k)
		values = values[:0]
		for i := 0; i < len(kept); i += d {
			if y := o.distance(k, kept[i+lo:i+hi]); !math.IsNaN(y) {
				values = append(values, y)
			}
		}
		o.limit[k] = farthest(values, chance/float64(every))
	}
	return o, nil
}

// middle returns the median of some values, and the median of how far those that differ
// from it do so, in standard deviations of a normal law; 0 and 0 of no values. Values
// that are equal to the median say nothing of how far the others lie: most values of a
// count or a yes or no may be.
func middle(values []float64) (centre, spread float64) {
	if len(values) == 0 {
		return 0, 0
	}
	centre = stats.Median(values)
	var off []float64
	for _, x := range values {
		if x != centre {
			off = append(off, math.Abs(x-centre))
		}
	}
	if len(off) == 0 {
		return centre, 0
	}
	return centre, 1.4826 * stats.Median(off)
}

// farthest is the distance that is beyond all of so many with probability 1 − chance.
func farthest(distances []float64, chance float64) float64 {
	n := float64(len(distances))
	if n == 0 {
		return math.Inf(1)
	}
	typical := stats.Median(distances)
	gap := stats.Quantile(distances, 0.75) - typical
	if !(gap > 0) {
		return math.Inf(1) // half of the subjects are alike, or there are no others
	}
	// The median and the upper quartile of χ² with one degree of freedom, z².
	const half, three = 0.4549364231195725, 1.3233036969314661
	// Both are known from n subjects only: t² takes the place of z².
	t := distuv.StudentsT{Sigma: 1, Nu: n / 2}.Quantile(1 - chance/n/2)
	return typical + gap*(t*t-half)/(three-half)
}

// distance is the mean z² of a subject's values of view k; NaN where there is none.
func (o *Outliers) distance(k int, values []float64) float64 {
	lo := 0
	for _, d := range o.dims[:k] {
		lo += d
	}
	sum, n := 0.0, 0.0
	for i, x := range values {
		if math.IsNaN(x) {
			continue
		}
		n++
		if s := o.spread[lo+i]; s > 0 {
			z := (x - o.centre[lo+i]) / s
			sum += z * z
		}
	}
	return sum / n
}

// of lists the views in which a subject is an outlier. Values that no measurement can
// have are for [ppca.Read] to refuse.
func (o *Outliers) of(views [][]float64) (out []int) {
	for k, v := range views {
		if v != nil && o.distance(k, v) > o.limit[k] && !slices.ContainsFunc(v, ppca.BeyondMeasure) {
			out = append(out, k)
		}
	}
	return out
}

// Without is the data as if the outliers had not been measured: a subject lacks the views
// in which it is one.
// Of no outliers (nil), it is the data.
func (o *Outliers) Without(data dataset.Source) dataset.Source {
	if o == nil {
		return data
	}
	return dataset.Derive(data, data.Schema(), func() func(*dataset.Row) *dataset.Row {
		at := -1
		return func(row *dataset.Row) *dataset.Row {
			at++
			return o.strip(row, at)
		}
	})
}

// strip is a row, the at-th, without the views in which the subject is an outlier.
func (o *Outliers) strip(row *dataset.Row, at int) *dataset.Row {
	out := o.of(row.Views)
	if at >= o.read {
		if o.read++; len(out) > 0 {
			o.Found = append(o.Found, Outlier{row.ID, out})
		}
	}
	if len(out) == 0 {
		return row
	}
	copied := *row
	copied.Views = slices.Clone(row.Views)
	for _, k := range out {
		copied.Views[k] = nil
	}
	return &copied
}

// Excluded returns the outliers that a plan's model does not describe, of a site's rows;
// nil where the plan keeps them.
func Excluded(ctx context.Context, set Setup, data dataset.Source) (*Outliers, error) {
	if set.Options.Outliers != excludeOutliers {
		return nil, nil
	}
	return findOutliers(ctx, set.Layout, data, falseOutliers/float64(len(set.Plan.Whole().Sites)*set.Layout.Views()))
}
