package fitted

import (
	"fmt"
	"math"
	"slices"

	"parley/dataset"
	"parley/method"
	"parley/methods/regression/glm"
	"parley/problem"
)

// newcomers are subjects that a model predicts, and what is odd about them.
type newcomers struct {
	columns []newColumn
	n       int
}

// newColumn is a column of the encoding as the fit had it, and what new subjects have there.
type newColumn struct {
	*glm.Column
	sd      float64 // of a number, as far as the model tells
	counted bool    // whether the fit has told the mean and sd of a number
	nobody  []bool  // of each level, whether nobody had it in the fit

	values    method.Values
	lack, far int   // subjects
	have      []int // each level
}

// halfRange is the standard deviation of a number between public ends, in halves of that range.
const halfRange = 0.5

func (m *Model) newcomers() *newcomers {
	f, at := new(newcomers), 0
	for i := range m.Encoding.Columns {
		c := newColumn{Column: &m.Encoding.Columns[i], sd: m.Encoding.Columns[i].Scale}
		if c.Bounded {
			c.sd *= halfRange
		}
		c.counted = m.Options.Scaling == glm.ScaleStandard && !m.Private
		c.nobody, c.have = make([]bool, len(c.Levels)), make([]int, len(c.Levels))
		for j, name := range c.Own() {
			if l := slices.Index(c.Levels, name); l >= 0 {
				n := m.Effects[at+j].Subjects
				c.nobody[l] = n != nil && *n == 0
			}
		}
		f.columns = append(f.columns, c)
		at += c.Width()
	}
	return f
}

// farFromMean is how many standard deviations from the mean of the fit a single value is odd.
const farFromMean = 8

// meet takes in a subject that b has read.
func (f *newcomers) meet(b *glm.Binding, row *dataset.Row) {
	f.n++
	for i := range f.columns {
		c := &f.columns[i]
		if b.Lacks(i) {
			c.lack++
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
	add(lack, "of %d subjects some lack features: %s", "a missing cell has no effect, as in the fit: they are "+
		"predicted like subjects at a number's centre, or at a category's reference, and intervals are too narrow")
	return notes
}
