package halves

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
	"parley/privacy/masks"
)

// model is the one that the task brings; nil if there is none.
func (t *FitTask) model(set options.Setup) (*ppca.Params, error) {
	if t.Model == nil {
		return nil, nil
	}
	return t.Model, cmp.Or(t.Model.Check(set.Layout), set.CheckRank(t.Model.Rank))
}

// totalOf is the answer of all subjects to a task, of the answers of sites, as a secure sum tells it; an error if such
// a sum has no room for it.
func totalOf(set options.Setup, all []*ppca.Description, task *FitTask) (*ppca.Description, error) {
	sums, err := masks.Raw.Sum(len(all), func(i int) ([]float64, error) { return Raw(set, all[i], task) })
	if err != nil {
		return nil, err
	}
	return AnswerOf(set, sums, task)
}

// Raw is the answer to a task as numbers that add up over sites, of one set after the other.
func Raw(set options.Setup, a *ppca.Description, task *FitTask) ([]float64, error) {
	model, err := task.model(set)
	if err = cmp.Or(err, task.Scale.Check(set.Layout)); err != nil {
		return nil, err
	}
	var out []float64
	blocks, bound := a.Blocks, set.Bound(model)
	for _, features := range set.TotalSets() {
		d := len(features)
		raw := make([]float64, bound.Sums(d))
		out = append(out, raw...)
		if len(blocks) == 0 || !slices.Equal(blocks[0].Features, features) {
			continue // nobody has the set
		}
		b := &blocks[0]
		raw = out[len(out)-len(raw):]
		if raw[0] = b.N; len(blocks) == len(a.Blocks) {
			raw[1] = a.LogLik
		}
		floats.AddScaled(raw[2:2+d], b.N, b.Mean)
		copy(raw[2+d:], b.Filled)
		if rest := raw[2+2*d:]; !bound.Triangle(d) {
			if b.Products == nil { // of subjects who do not scatter
				*b = b.Along(bound.Along)
			}
			b.AboutZero(bound.Along, false)
			copy(rest[copy(rest, b.Diag):], b.Products)
		} else {
			dense := b.Dense()
			for i := range d {
				for j := i; j < d; j++ {
					rest[0], rest = dense.Scatter[i*d+j]+b.N*b.Mean[i]*b.Mean[j], rest[1:]
				}
			}
		}
		rescale(raw, task, features, bound.Triangle(d), false)
		blocks = blocks[1:]
	}
	if len(blocks) > 0 {
		return nil, fmt.Errorf("%d sets of subjects that are none of the plan's", len(blocks))
	}
	return out, nil
}

// rescale brings what the sums of a set say of each feature, or of two, into the data's own units, to a power of two,
// or back. In those of the task the coordinator could choose what the grid's step leaves of a site's sums.
func rescale(raw []float64, t *FitTask, features []int, triangle, back bool) {
	d := len(features)
	times := make([]float64, d)
	for i, j := range features {
		if times[i] = math.Exp2(math.Round(math.Log2(t.Scale.Factor[j]))); !back {
			times[i] = 1 / times[i]
		}
	}
	floats.Mul(raw[2:2+d], times)
	rest := raw[2+2*d:]
	products := rest[d:]
	for i, x := range times {
		if triangle {
			floats.Scale(x, rest[:d-i])
			floats.Mul(rest[:d-i], times[i:])
			rest = rest[d-i:]
			continue
		}
		rest[i] *= x * x
		floats.Scale(x, products[i*len(products)/d:][:len(products)/d])
	}
}

// flat is the share of a feature's squares below which what a mean leaves of them is rounding.
const flat = 1e-9

// AnswerOf is the inverse of [Raw], of all subjects, but for products with directions: these are still of
// values and not of deviations from the mean.
func AnswerOf(set options.Setup, sums []float64, task *FitTask) (*ppca.Description, error) {
	if n := set.SumNumbers(); len(sums) != n {
		return nil, fmt.Errorf("%d sums, where there are %d", len(sums), n)
	}
	out, bound := &ppca.Description{}, set.Bound(nil)
	for _, features := range set.TotalSets() {
		d := len(features)
		raw := sums[:bound.Sums(d)]
		sums = sums[len(raw):]
		rescale(raw, task, features, bound.Triangle(d), true)
		n := raw[0]
		out.LogLik += raw[1]
		if !(n >= 1) {
			continue
		}
		b := ppca.Block{Features: features, N: n, Mean: make([]float64, d), Filled: slices.Clone(raw[2+d:][:d])}
		floats.ScaleTo(b.Mean, 1/n, raw[2:][:d])
		if out.Filled += floats.Sum(b.Filled); slices.Max(b.Filled) == 0 {
			b.Filled = nil
		}
		if rest := raw[2+2*d:]; bound.Triangle(d) {
			b.Scatter = make([]float64, d*d)
			for i := range d {
				for j := i; j < d; j++ {
					x := rest[0] - n*b.Mean[i]*b.Mean[j]
					if i == j && x < flat*rest[0] {
						x = 0
					}
					b.Scatter[i*d+j], b.Scatter[j*d+i], rest = x, x, rest[1:]
				}
			}
		} else {
			b.Diag, b.Products = rest[:d], rest[d:]
		}
		out.Blocks = append(out.Blocks, b)
	}
	return out, nil
}
