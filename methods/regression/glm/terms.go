package glm

import (
	"fmt"
	"slices"
)

// CheckInteraction reports an interaction, by its place, that is not of two columns, or is there twice.
func (e *Encoding) CheckInteraction(k int) error {
	t := e.Interactions[k]
	for _, name := range t {
		if i, _ := e.find(name); i < 0 {
			return fmt.Errorf("%q is not a feature", name)
		}
	}
	if t[0] == t[1] {
		return fmt.Errorf("%q is not a pair of features", t)
	}
	for _, other := range e.Interactions[:k] {
		if t == other || t[0] == other[1] && t[1] == other[0] {
			return fmt.Errorf("%q is there twice", t)
		}
	}
	return nil
}

// checkTerms reports terms that are none of the columns.
func (e *Encoding) checkTerms() error {
	for k := range e.Interactions {
		if err := e.CheckInteraction(k); err != nil {
			return fmt.Errorf("interaction %d: %w", k+1, err)
		}
	}
	if len(e.Periods) == 0 {
		return nil
	}
	if e.Intercept {
		return fmt.Errorf("an intercept beside a coefficient for each period, which says the same")
	}
	return e.Periods.Check()
}

// find returns the place of a column by its name, or −1, and where it begins in the design matrix.
func (e *Encoding) find(name string) (i, at int) {
	for i = range e.Columns {
		if e.Columns[i].Name == name {
			return i, at
		}
		at += e.Columns[i].Width()
	}
	return -1, at
}

// appendTerms adds the products of a row's first entries, for columns from at on, and returns the column after them.
func (e *Encoding) appendTerms(at int, dst *Row) int {
	entries := len(dst.Index)
	for _, t := range e.Interactions {
		a, atA := e.find(t[0])
		b, atB := e.find(t[1])
		wide, other := e.Columns[a].Width(), e.Columns[b].Width()
		for i := range entries {
			j := int(dst.Index[i]) - atA
			for k := range entries {
				if l := int(dst.Index[k]) - atB; j >= 0 && j < wide && l >= 0 && l < other {
					dst.Index = append(dst.Index, int32(at+j*other+l))
					dst.Value = append(dst.Value, dst.Value[i]*dst.Value[k])
				}
			}
		}
		at += wide * other
	}
	return at
}

// names names a column's columns of the design matrix: age, age', age” of a spline (as in
// Harrell's programs), workclass=Private.
func (c *Column) names() (names []string) {
	if len(c.Levels) == 0 {
		name := c.Name
		for range c.Width() {
			names = append(names, name)
			name += "'"
		}
	}
	for _, l := range c.Own() {
		names = append(names, c.Name+"="+l)
	}
	return names
}

// centred says whether a number's weights mean something only from its centre: where it
// enters by a spline or an interaction.
func (e *Encoding) centred(c *Column) bool {
	return len(c.Knots) > 0 || slices.ContainsFunc(e.Interactions, func(t Interaction) bool {
		return t[0] == c.Name || t[1] == c.Name
	})
}

// What the columns of the design matrix are of that stand for no feature.
const (
	PeriodGroup    = "period"
	InterceptGroup = "intercept"
)

// designColumn is a column of the design matrix: what it belongs to, and which columns of which columns of the encoding
// its entries are products of; none of a period or the intercept.
type designColumn struct {
	name, group string
	of          [][2]int
}

func (e *Encoding) layout() (all []designColumn) {
	for i := range e.Columns {
		for k, name := range e.Columns[i].names() {
			all = append(all, designColumn{name, e.Columns[i].Name, [][2]int{{i, k}}})
		}
	}
	for _, t := range e.Interactions {
		i, _ := e.find(t[0])
		j, _ := e.find(t[1])
		for k, a := range e.Columns[i].names() {
			for l, b := range e.Columns[j].names() {
				all = append(all, designColumn{a + " × " + b, t[0] + " × " + t[1], [][2]int{{i, k}, {j, l}}})
			}
		}
	}
	for _, p := range e.Periods.Names() {
		all = append(all, designColumn{"period " + p, PeriodGroup, nil})
	}
	if e.Intercept {
		all = append(all, designColumn{"intercept", InterceptGroup, nil})
	}
	return all
}

// Features names the columns of the design matrix: age, workclass=Private, age × sex=male, period (0, 30], intercept.
func (e *Encoding) Features() (names []string) {
	for _, c := range e.layout() {
		names = append(names, c.name)
	}
	return names
}

// Groups names what every column of the design matrix belongs to: a column, an
// interaction, the periods or the intercept.
func (e *Encoding) Groups() (names []string) {
	for _, c := range e.layout() {
		names = append(names, c.group)
	}
	return names
}

// Alone is by how much each column of the design matrix varies beyond what those of the same term tell,
// in units of the term's numbers: 1, but for the functions of a spline, each of which is nearly a
// combination of the others. A prior of weights that does not allow for that holds curves straight.
func (e *Encoding) Alone() (alone []float64) {
	for _, c := range e.layout() {
		x := 1.0
		for _, at := range c.of {
			if t := e.Columns[at[0]].Knots; len(t) > 0 {
				x *= t.alone()[at[1]]
			}
		}
		alone = append(alone, x)
	}
	return alone
}

// Own are the effects in the features' own units, as combinations of the weights of so many activations. Numbers of
// splines and interactions stay at their centres in that of the intercept, or of a period.
func (e *Encoding) Own(activations int) (effects []Row) {
	layout := e.layout()
	for k := range activations {
		var centres Row
		for j, c := range layout {
			at := []int32{int32(k*len(layout) + j)}
			if len(c.of) == 0 {
				effects = append(effects, Row{Index: slices.Concat(centres.Index, at),
					Value: append(slices.Clone(centres.Value), 1)})
				continue
			}
			scale := 1.0
			for _, part := range c.of {
				if own := &e.Columns[part[0]]; len(own.Levels) == 0 {
					scale *= own.Scale
					if len(c.of) == 1 && own.Centre != 0 && !e.centred(own) {
						centres.Index, centres.Value = append(centres.Index, at...),
							append(centres.Value, -own.Centre/own.Scale)
					}
				}
			}
			effects = append(effects, Row{Index: at, Value: []float64{1 / scale}})
		}
	}
	return effects
}
