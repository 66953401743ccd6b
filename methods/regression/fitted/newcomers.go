package fitted

import (
	"fmt"
	"math"
	"slices"

	"parley/dataset"
	"parley/method"
	"parley/methods/regression/glm"
	"parley/methods/regression/predict"
	"parley/problem"
)

// newcomers are subjects that a model predicts: what they lack is replaced by all that it may be,
// and what is odd about them is counted.
type newcomers struct {
	columns []newColumn
	n       int
}

// newColumn is a column of the encoding as the fit had it, and what new subjects have there.
type newColumn struct {
	*glm.Column
	sd      float64   // of a number, as far as the model tells
	counted bool      // whether the fit has told the mean and sd of a number, or shares of levels
	cells   []float64 // what a missing cell may be, with the probabilities shares
	shares  []float64
	nobody  []bool // of each level, whether nobody had it in the fit

	values    method.Values
	lack, far int   // subjects
	have      []int // each level
}

// halfRange is the standard deviation of a number between public ends, in halves of that range.
const halfRange = 0.5

// straight and bent are the values that a normal number may have: two give its variance where its
// effect is straight, and seven that of a spline, nearly.
var (
	straight = glm.GaussHermite(2)
	bent     = glm.GaussHermite(7)
)

func (m *Model) newcomers() *newcomers {
	f := new(newcomers)
	rows := 0.0
	for _, s := range m.Sites {
		rows += float64(s.Rows)
	}
	at := 0
	for i := range m.Encoding.Columns {
		c := newColumn{Column: &m.Encoding.Columns[i], sd: m.Encoding.Columns[i].Scale}
		if len(c.Levels) > 0 {
			c.levels(m.Effects[at:at+c.Width()], rows, len(m.Encoding.Periods) > 0)
		} else {
			if c.Bounded {
				c.sd *= halfRange
			}
			c.counted = m.Options.Scaling == glm.ScaleStandard && !m.Private
			rule := straight
			if len(c.Knots) > 0 {
				rule = bent
			}
			for k, z := range rule.Nodes {
				c.cells, c.shares = append(c.cells, c.Centre+z*c.sd), append(c.shares, rule.Weights[k])
			}
		}
		f.columns = append(f.columns, c)
		at += c.Width()
	}
	return f
}

// levels finds shares of levels by the effects of those that have one. The reference has the rest of
// so many rows, with the cells that the fit lacked and took for it; it is not known of periods.
// Without counts all levels are as frequent.
func (c *newColumn) levels(effects []outcomeEffect, rows float64, periods bool) {
	counts, sum := make([]float64, len(c.Levels)), 0.0
	c.nobody, c.have = make([]bool, len(counts)), make([]int, len(counts))
	known := !(periods && c.Reference != "")
	for l, name := range c.Levels {
		c.cells = append(c.cells, float64(l))
		if name == c.Reference {
			continue
		}
		n := effects[0].Subjects
		effects = effects[1:]
		if n == nil {
			known = false
			continue
		}
		counts[l], c.nobody[l] = *n, *n == 0
		sum += *n
	}
	if c.Reference != "" {
		rest := max(rows-sum, 0)
		counts[int(c.Code(c.Reference))] = rest
		sum += rest
	}
	if c.counted = known && sum > 0; !c.counted {
		counts, sum = slices.Repeat([]float64{1}, len(counts)), float64(len(counts))
	}
	for _, n := range counts {
		c.shares = append(c.shares, n/sum)
	}
}

// farFromMean is how many standard deviations from the mean of the fit a single value is odd.
const farFromMean = 8

// meet takes in a subject that b has read as x, and makes p predict it for all that it may be.
func (f *newcomers) meet(b *glm.Binding, row *dataset.Row, x glm.Row, p *predict.Predictor) error {
	f.n++
	p.Complete()
	for i := range f.columns {
		c := &f.columns[i]
		if b.Lacks(i) {
			c.lack++
			if err := c.spread(b, i, x, p); err != nil {
				return err
			}
			continue
		}
		if len(c.Levels) > 0 {
			if l := b.Level(row, i); l >= 0 {
				c.have[l]++
			}
		} else if v := b.Cell(row, i); !math.IsNaN(v) {
			c.values.Add(v)
			if math.Abs(v-c.Centre) > farFromMean*c.sd {
				c.far++
			}
		}
	}
	return nil
}

// spread makes p predict a subject without a cell in the column.
func (c *newColumn) spread(b *glm.Binding, column int, x glm.Row, p *predict.Predictor) error {
	others := make([]glm.Row, len(c.cells))
	for k, cell := range c.cells {
		if err := b.With(column, cell, &others[k]); err != nil {
			return err
		}
		others[k].Offset = x.Offset
	}
	p.Lacks(x, others, c.shares, len(c.Levels) > 0 && !c.counted)
	return nil
}

// notes say what is odd about the subjects. They hold means of many, and nobody's value.
func (f *newcomers) notes() (notes method.Notes) {
	var lack, odd, far, never []string
	for i := range f.columns {
		c := &f.columns[i]
		if c.lack > 0 {
			lack = append(lack, fmt.Sprintf("%s (%d)", c.Name, c.lack))
		}
		for l, n := range c.have {
			if n > 0 && c.nobody[l] {
				never = append(never, fmt.Sprintf("%s=%s (%d)", c.Name, c.Levels[l], n))
			}
		}
		v := &c.values
		few := c.far > 0 && 2*c.far < int(v.N) // who are told by their number
		if !few && c.counted && v.N >= method.EnoughValues && v.Squares > 0 && v.Odd(c.Centre, c.sd) {
			odd = append(odd, method.CompareMeans(c.Name, v.Mean, c.Centre, c.sd))
		} else if c.far > 0 {
			far = append(far, fmt.Sprintf("%s (%d, in the fit %.4g ± %.3g)", c.Name, c.far, c.Centre, c.sd))
		}
	}
	add := func(names []string, what, hint string) {
		if len(names) > 0 {
			notes.Add(problem.Problem{Where: "data", What: fmt.Sprintf(what, f.n, problem.Names(names)), Hint: hint})
		}
	}
	add(odd, "of %d subjects some features are far from all subjects of the fit: %s",
		"are they in the units of the fit? check units, codes for missing values and mixed-up columns")
	add(far, fmt.Sprintf("of %%d subjects some have values more than %d standard deviations from the mean of the fit: "+
		"%%s", farFromMean), "check units and codes for missing values; if these values are right, few or none "+
		"of the fit are like these subjects")
	add(never, "of %d subjects some have levels that nobody had in the fit: %s",
		"the prior alone speaks of such a level")
	add(lack, "of %d subjects some lack features: %s", "predictions average over what these features may be, each by "+
		"itself; where features go together, intervals are too wide for some subjects and too narrow for others")
	return notes
}
