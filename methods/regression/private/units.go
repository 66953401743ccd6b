package private

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"parley/internal/wire"
	"parley/methods/regression/glm"
	"parley/methods/regression/options"
)

// units are what is known of where each number of the plan lies and how widely it varies, after so many of the
// histograms: the numbers' own units, and the standard deviations that noise leaves of logarithms of scales.
type units struct {
	After  int         `cbor:"after"`
	Centre wire.Vector `cbor:"centre"`
	Scale  wire.Vector `cbor:"scale"`
	Open   wire.Vector `cbor:"open"`
}

const (
	// windowReach is how many scales a second histogram reaches to either side, and more where the scale is open, but for
	// an openness of no more than mostOpen.
	windowReach, mostOpen = 8, 0.7
	// sureOf is what is added to an openness before two are averaged: laws are not exact.
	sureOf = 0.1
	// finest is the smallest scale, as a share of the public range.
	finest = 1e-5
	// unknownScale is an openness from which intervals hold less often than they say: the scale is then off by a factor
	// of 2 in many cases, and 90 % intervals held .81 to .86 of 672 simulated effects, .94 below it.
	unknownScale = 0.45
)

// learned says whether histograms tell the units.
func (c *common) learned() bool { return c.sums.histogram != nil }

// ends are those of the public range of number k of the plan.
func (c *common) ends(k int) (low, high float64) {
	column := &c.Encoding.Columns[c.Numbers()[k]]
	return column.Centre - column.Scale, column.Centre + column.Scale
}

// window is the lower end and the width of a bin of each number's next histogram.
func (c *common) window(u *units) *options.Scale {
	m := new(options.Scale)
	for k := range c.columns.numbers {
		low, high := c.ends(k)
		if u.After > 0 {
			reach := windowReach * u.Scale[k] * math.Exp(min(u.Open[k], mostOpen))
			low, high = max(low, u.Centre[k]-reach), min(high, u.Centre[k]+reach)
		}
		m.Centre, m.Scale = append(m.Centre, low), append(m.Scale, (high-low)/bins)
	}
	return m
}

// scale is what numbers are brought to after the histograms; nil where the plan says it.
func (c *common) scale(u *units) *options.Scale {
	if c.Options.Scaling == options.ScaleConstants {
		return nil
	}
	return &options.Scale{Centre: u.Centre, Scale: u.Scale}
}

// tell says what histograms over a window tell beyond what was known; counts are nil if all sites have left.
func (c *common) tell(u *units, counts *released) units {
	m, before := c.window(u), overRange
	if u.After > 0 {
		before = overWindow
	}
	if counts.Values == nil { // noise alone
		counts = &released{make(wire.Vector, bins*len(c.columns.numbers)), largest * largest}
	}
	next := units{After: u.After + 1}
	rows := max(floats.Sum(counts.Values)/float64(len(c.columns.numbers)), fewestRows)
	for k := range c.columns.numbers {
		at := everyLaw().locate(counts.Values[bins*k:][:bins], counts.Variance, rows, before, options.Farthest)
		low, high := c.ends(k)
		width := m.Scale[k] * bins
		at.centre, at.scale = m.Centre[k]+width*at.centre, width*at.scale
		if u.After > 0 {
			at = combined(located{u.Centre[k], u.Scale[k], u.Open[k]}, at, (high-low)/bins)
		}
		at.scale = max(at.scale, c.smallest(k)*(high-low))
		next.Centre = append(next.Centre, min(max(at.centre, low), high))
		next.Scale, next.Open = append(next.Scale, min(at.scale, high-low)), append(next.Open, at.open)
	}
	return next
}

// combined averages what two histograms tell of a number, by what each leaves open; the first counts only where its bins,
// so wide, are no wider than a scale.
func combined(first, second located, width float64) located {
	w1, w2 := 0.0, 1/(second.open*second.open+sureOf*sureOf)
	if first.scale > width {
		w1 = 1 / (first.open*first.open + sureOf*sureOf)
	}
	w := w1 / (w1 + w2)
	return located{w*first.centre + (1-w)*second.centre, math.Exp(w*math.Log(first.scale) + (1-w)*math.Log(second.scale)), 1 / math.Sqrt(w1+w2)}
}

// smallest is the smallest scale of number k, as a share of its range. One from a whole number to the next is taken for
// an indicator, of whose two values neither may be beyond the limit: noise hides a rare one from the histograms.
func (c *common) smallest(k int) float64 {
	if low, high := c.ends(k); low == math.Trunc(low) && high == low+1 {
		return 1. / options.Farthest
	}
	return finest
}

// check reports units that are none of the plan's, after as many histograms as it says.
func (u *units) check(c *common) error {
	many := 0
	if u.After > 0 {
		many = len(c.columns.numbers)
	}
	if u.After < 0 || u.After > histograms || u.After > 0 && !c.learned() || len(u.Centre) != many || len(u.Scale) != many || len(u.Open) != many {
		return fmt.Errorf("units of %d, %d and %d numbers after %d histograms", len(u.Centre), len(u.Scale), len(u.Open), u.After)
	}
	if slices.ContainsFunc(u.Open, func(x float64) bool { return !glm.Inside(x, 0, 10) }) {
		return fmt.Errorf("units that are open by %v", u.Open)
	}
	if many == 0 {
		return nil
	}
	_, err := c.encoding(&options.Scale{Centre: u.Centre, Scale: u.Scale}, false)
	return err
}

// encoding is what brings rows to columns: at units that a task brought, or, for a histogram, with the lower ends of
// windows as centres and bins as units. It reports those that no honest coordinator sends.
func (c *common) encoding(m *options.Scale, histogram bool) (*glm.Encoding, error) {
	e, err := c.Scaled(m)
	if err != nil || m == nil {
		return e, err
	}
	if m.Outcome != 0 || m.Mean != 0 {
		return nil, fmt.Errorf("units of an outcome that is a class")
	}
	for k, j := range c.Numbers() {
		low, high := c.ends(k)
		least, most := finest*(high-low), high-low
		if histogram {
			least, most = least/bins, most/bins
			e.Columns[j].Limit = 0
		}
		const rounding = 1e-9
		if !glm.Inside(m.Centre[k], low, high) || !glm.Inside(m.Scale[k], least*(1-rounding), most*(1+rounding)) {
			return nil, fmt.Errorf("%s, of which the plan has the range %v to %v: a centre of %v and a scale of %v", e.Columns[j].Name, low, high, m.Centre[k], m.Scale[k])
		}
	}
	return e, nil
}

// histogram writes 1 for the bin of each number that was observed, of a row whose numbers are in bins.
func (c *columns) histogram(x glm.Row, v []float64) {
	for k, j := range c.numbers {
		if slices.Contains(x.Lacks, int32(j)) {
			continue
		}
		at := 0.0 // which has no entry
		if i, there := slices.BinarySearch(x.Index, int32(j)); there {
			at = x.Value[i]
		}
		v[bins*k+int(min(max(math.Floor(at), 0), bins-1))] = 1
	}
}
