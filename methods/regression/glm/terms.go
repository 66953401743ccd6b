package glm

import (
	"fmt"
	"slices"
)

// checkTerms reports terms that are none of the columns.
func (e *Encoding) checkTerms() error {
	for i, t := range e.Interactions {
		for _, name := range t {
			if e.column(name) < 0 {
				return fmt.Errorf("interaction %d: there is no column %q", i+1, name)
			}
		}
		if t[0] == t[1] {
			return fmt.Errorf("interaction %d: %q with itself", i+1, t[0])
		}
		for _, other := range e.Interactions[:i] {
			if t == other || t[0] == other[1] && t[1] == other[0] {
				return fmt.Errorf("interaction %d: %q and %q are there twice", i+1, t[0], t[1])
			}
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

// column returns the place of a column by its name, or −1.
func (e *Encoding) column(name string) int {
	return slices.IndexFunc(e.Columns, func(c Column) bool { return c.Name == name })
}

// pair returns both columns of an interaction, and where they begin in the design matrix.
func (e *Encoding) pair(t Interaction) (a, b *Column, atA, atB int) {
	at := 0
	for i := range e.Columns {
		c := &e.Columns[i]
		switch c.Name {
		case t[0]:
			a, atA = c, at
		case t[1]:
			b, atB = c, at
		}
		at += c.Width()
	}
	return a, b, atA, atB
}

// appendTerms adds the products of a row's first entries, for columns from at on, and
// returns the column after them.
func (e *Encoding) appendTerms(at int, dst *Row) int {
	entries := len(dst.Index)
	for _, t := range e.Interactions {
		a, b, atA, atB := e.pair(t)
		for i := range entries {
			j := int(dst.Index[i]) - atA
			if j < 0 || j >= a.Width() {
				continue
			}
			for k := range entries {
				if l := int(dst.Index[k]) - atB; l >= 0 && l < b.Width() {
					dst.Index = append(dst.Index, int32(at+j*b.Width()+l))
					dst.Value = append(dst.Value, dst.Value[i]*dst.Value[k])
				}
			}
		}
		at += a.Width() * b.Width()
	}
	return at
}

// Person calls yield with the rows of one subject: the row that Encode made of it, or with
// periods one for each that it was seen in, with its column, and outcome +1 in the period
// of an event. Rows are valid until the next one.
func (e *Encoding) Person(x *Row, periods int, failed bool, yield func(x Row, y float64) error) error {
	first := int32(e.Width() - len(e.Periods))
	for k := range periods {
		r, y := *x, -1.0
		r.Later = k > 0
		r.Index, r.Value = append(x.Index, first+int32(k)), append(x.Value, 1)
		if failed && k == periods-1 {
			y = 1
		}
		if err := yield(r, y); err != nil {
			return err
		}
	}
	return nil
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

// scale is what a weight is divided by to be in the column's own unit.
func (c *Column) scale() float64 {
	if len(c.Levels) > 0 {
		return 1
	}
	return c.Scale
}

// centred says whether a number's weights mean something only from its centre: where it
// enters by a spline or an interaction.
func (e *Encoding) centred(c *Column) bool {
	return len(c.Knots) > 0 || slices.ContainsFunc(e.Interactions, func(t Interaction) bool { return t[0] == c.Name || t[1] == c.Name })
}

// termNames names the columns of the design matrix after those of single columns, but for
// the intercept.
func (e *Encoding) termNames() (names []string) {
	for _, t := range e.Interactions {
		a, b, _, _ := e.pair(t)
		for _, m := range a.names() {
			for _, n := range b.names() {
				names = append(names, m+" × "+n)
			}
		}
	}
	return names
}

// Alone is by how much each column of the design matrix varies beyond what those of the same term tell,
// in units of the term's numbers: 1, but for the functions of a spline, each of which is nearly a
// combination of the others. A prior of weights that does not allow for that holds curves straight.
func (e *Encoding) Alone() []float64 {
	of := func(c *Column) []float64 {
		if len(c.Knots) > 0 {
			return c.Knots.alone()
		}
		return slices.Repeat([]float64{1}, c.Width())
	}
	var alone []float64
	for i := range e.Columns {
		alone = append(alone, of(&e.Columns[i])...)
	}
	for _, t := range e.Interactions {
		a, b, _, _ := e.pair(t)
		for _, x := range of(a) {
			for _, y := range of(b) {
				alone = append(alone, x*y)
			}
		}
	}
	return append(alone, slices.Repeat([]float64{1}, e.Width()-len(alone))...)
}

// What the columns of the design matrix are of that stand for no feature.
const (
	PeriodGroup    = "period"
	InterceptGroup = "intercept"
)

// Groups names what every column of the design matrix belongs to: a column, an
// interaction, the periods or the intercept.
func (e *Encoding) Groups() (names []string) {
	for i := range e.Columns {
		for range e.Columns[i].Width() {
			names = append(names, e.Columns[i].Name)
		}
	}
	for _, t := range e.Interactions {
		a, b, _, _ := e.pair(t)
		for range a.Width() * b.Width() {
			names = append(names, a.Name+" × "+b.Name)
		}
	}
	for range e.Periods {
		names = append(names, PeriodGroup)
	}
	if e.Intercept {
		names = append(names, InterceptGroup)
	}
	return names
}
