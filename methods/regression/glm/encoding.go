package glm

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"parley/judge/evaluate"
)

// Fallback says what takes the place of a cell that cannot be used as it is.
type Fallback struct {
	Rule string `json:"rule"` // Refuse or Neutral
}

const (
	// Refuse, as the empty rule, makes the cell an error.
	Refuse = "refuse"
	// Neutral leaves the cell without effect: a number becomes the centre of its
	// column, a category none of its levels, which with a reference is the reference.
	Neutral = "neutral"
)

// Column declares one input of the model: a number, or a category if it has levels.
// Nothing of it is learned from rows: constants are public, or were released.
type Column struct {
	Name string `json:"name"`
	// A number x enters as (x − Centre)/Scale. Scale is positive.
	Centre float64 `json:"centre,omitempty"`
	Scale  float64 `json:"scale,omitempty"`
	// Bounded numbers are first moved to the nearest end of Centre ± Scale.
	Bounded bool `json:"bounded,omitempty"`
	// A number with knots enters by the basis of a restricted cubic spline, each function
	// from its value at Centre and over Scale.
	Knots Knots `json:"knots,omitempty"`
	// Limit, if it is not 0, bounds numbers as they enter: to −Limit … Limit.
	Limit float64 `json:"limit,omitempty"`
	// A category enters as one column of 0 and 1 for each level, but for the reference,
	// if there is one: the others are then measured against it.
	Levels    []string `json:"levels,omitempty"`
	Reference string   `json:"reference,omitempty"`

	Missing Fallback `json:"missing"` // of a cell that was not observed
	Unseen  Fallback `json:"unseen"`  // of a level that is not declared: none, as such a cell is an error
}

// FromRange declares a number by a public range: it becomes −1 … 1, and values outside are moved to the ends.
func FromRange(name string, low, high float64) Column {
	return Column{Name: name, Centre: low + (high-low)/2, Scale: (high - low) / 2, Bounded: true}
}

// Interaction names two columns whose entries are multiplied: one column of the design matrix for each pair of their
// columns, the first one's outside. A number counts from its centre, so that the weights of both columns alone are
// effects where the other is at its centre, or at none of its levels.
type Interaction [2]string

// Encoding makes design matrices from declared columns.
type Encoding struct {
	Columns      []Column      `json:"columns"`
	Interactions []Interaction `json:"interactions,omitempty"` // after the columns
	Periods      evaluate.Cuts `json:"periods,omitempty"`      // a last column for each: see [Binding.Rows]
	Intercept    bool          `json:"intercept"`              // a last column of ones
	// Offset, Weight and Cluster are columns that describe subjects: what is added to every
	// activation, what a row's log-likelihood is multiplied by, and what rows that go together have in common.
	Offset  string `json:"offset,omitempty"`
	Weight  string `json:"weight,omitempty"`
	Cluster string `json:"cluster,omitempty"`
	// WeightUnit divides weights; 0 of weights that are numbers of rows, and so whole.
	WeightUnit float64 `json:"weight_unit,omitempty"`
	// OffsetLimit, if it is not 0, bounds offsets: one beyond it is an error.
	OffsetLimit float64 `json:"offset_limit,omitempty"`
	// OffsetRange, if there is one, is where offsets count: one beyond it counts as the nearest end.
	OffsetRange *[2]float64 `json:"offset_range,omitempty"`
}

// Check reports columns that contradict themselves.
func (e *Encoding) Check() error {
	if len(e.Columns) == 0 && !e.Intercept && len(e.Periods) == 0 {
		return fmt.Errorf("no columns")
	}
	seen := map[string]bool{}
	for i := range e.Columns {
		c := &e.Columns[i]
		if c.Name == "" || seen[c.Name] {
			return fmt.Errorf("column %d: the name %q is empty or not the only one", i+1, c.Name)
		}
		seen[c.Name] = true
		if err := c.check(); err != nil {
			return fmt.Errorf("column %s: %w", c.Name, err)
		}
	}
	return e.checkTerms()
}

func (c *Column) check() error {
	category := len(c.Levels) > 0
	switch {
	case category && (c.Centre != 0 || c.Scale != 0 || c.Bounded || len(c.Knots) > 0 || c.Limit != 0):
		return fmt.Errorf("has levels and constants of a number: want one of both")
	case !category && (!(c.Scale > 0) || !Finite(c.Scale) || !Finite(c.Centre)):
		return fmt.Errorf("centre %v and scale %v: want finite numbers, the scale positive (a column that is constant "+
			"cannot be scaled by its deviation)", c.Centre, c.Scale)
	case !(c.Limit >= 0) || !Finite(c.Limit):
		return fmt.Errorf("limit %v: want a number from 0", c.Limit)
	case c.Reference != "" && !slices.Contains(c.Levels, c.Reference):
		return fmt.Errorf("the reference %q is none of its levels", c.Reference)
	case c.Unseen != Fallback{}:
		return fmt.Errorf("unseen: %q: a level that is not declared is an error", c.Unseen.Rule)
	case c.Missing.Rule != "" && c.Missing.Rule != Refuse && c.Missing.Rule != Neutral:
		return fmt.Errorf("missing: unknown rule %q: want %s or %s", c.Missing.Rule, Refuse, Neutral)
	}
	if len(c.Knots) > 0 {
		if err := c.Knots.Check(); err != nil {
			return err
		}
	}
	for i, l := range c.Levels {
		if slices.Contains(c.Levels[:i], l) {
			return fmt.Errorf("level %q is declared twice", l)
		}
	}
	return nil
}

// Width returns the number of columns in the design matrix.
func (c *Column) Width() int {
	if len(c.Knots) > 0 {
		return c.Knots.Width()
	}
	if c.Reference != "" {
		return len(c.Levels) - 1
	}
	return max(1, len(c.Levels))
}

// Own returns the levels that have a column of their own, in order.
func (c *Column) Own() []string {
	if c.Reference == "" {
		return c.Levels
	}
	return slices.DeleteFunc(slices.Clone(c.Levels), func(l string) bool { return l == c.Reference })
}

// Width returns the number of columns of the design matrix.
func (e *Encoding) Width() int {
	n := e.FeatureWidth() + len(e.Periods)
	if e.Intercept {
		n++
	}
	return n
}

// FeatureWidth is how many columns of the design matrix, the first ones, belong to features: not the periods and the
// intercept, which are of everybody.
func (e *Encoding) FeatureWidth() int {
	n := 0
	for i := range e.Columns {
		n += e.Columns[i].Width()
	}
	for _, t := range e.Interactions {
		a, _ := e.find(t[0])
		b, _ := e.find(t[1])
		n += e.Columns[a].Width() * e.Columns[b].Width()
	}
	return n
}

// Code returns a category's level as the number that Encode takes: its place
// among the levels, or −1 for one that is not declared.
func (c *Column) Code(level string) float64 { return float64(slices.Index(c.Levels, level)) }

// Encode writes the row of one subject to dst, whose slices it reuses. There is a cell for every column: a number, or
// the code of a level; NaN where nothing was observed. An error quotes the cell: it is for the people of the site.
func (e *Encoding) Encode(cells []float64, dst *Row) error {
	if len(cells) != len(e.Columns) {
		return fmt.Errorf("%d cells for %d columns", len(cells), len(e.Columns))
	}
	*dst = Row{Index: dst.Index[:0], Value: dst.Value[:0], Lacks: dst.Lacks[:0]}
	at := 0
	for i, x := range cells {
		c := &e.Columns[i]
		j, v, err := c.encode(x)
		if err != nil {
			return fmt.Errorf("column %s: %w", c.Name, err)
		}
		switch {
		case math.IsNaN(x) && c.Missing.Rule == Neutral:
			for j := range c.Width() {
				dst.Lacks = append(dst.Lacks, int32(at+j))
			}
		case v != 0 && len(c.Knots) > 0:
			c.appendBasis(v, at, dst)
		case v != 0:
			dst.Index, dst.Value = append(dst.Index, int32(at+j)), append(dst.Value, v)
		}
		at += c.Width()
	}
	at = e.appendTerms(at, dst)
	if e.Intercept {
		dst.Index, dst.Value = append(dst.Index, int32(at)), append(dst.Value, 1)
	}
	return nil
}

// appendBasis adds the basis of a spline at a scaled number that is not zero.
func (c *Column) appendBasis(v float64, at int, dst *Row) {
	var here, centre [maxKnots]float64
	c.Knots.Basis(c.Centre+v*c.Scale, here[:])
	c.Knots.Basis(c.Centre, centre[:])
	for j := range c.Width() {
		if x := (here[j] - centre[j]) / c.Scale; x != 0 {
			dst.Index, dst.Value = append(dst.Index, int32(at+j)), append(dst.Value, x)
		}
	}
}

// encode returns the only entry of a cell that is not zero, or zero.
func (c *Column) encode(x float64) (j int, v float64, err error) {
	if math.IsNaN(x) {
		if c.Missing.Rule == Neutral {
			return 0, 0, nil
		}
		return 0, 0, fmt.Errorf("the value is missing; say what becomes of it under missing, such as %s", Neutral)
	}
	if len(c.Levels) == 0 {
		if c.Bounded {
			x = min(max(x, c.Centre-c.Scale), c.Centre+c.Scale)
		}
		if v = (x - c.Centre) / c.Scale; !Finite(v) {
			return 0, 0, fmt.Errorf("the value %v cannot be scaled", x)
		}
		if c.Limit > 0 {
			v = Clamp(v, c.Limit)
		}
		return 0, v, nil
	}
	if x != math.Trunc(x) || x < 0 || x >= float64(len(c.Levels)) {
		return 0, 0, fmt.Errorf("the level is not one of those declared")
	}
	switch reference := c.Code(c.Reference); {
	case c.Reference == "" || x < reference:
		return int(x), 1, nil
	case x > reference:
		return int(x) - 1, 1, nil
	}
	return 0, 0, nil // which has no column
}

// Effect is what the posterior says of one feature, in the feature's own units.
type Effect struct {
	Feature string `json:"feature"`
	// Of the change in activation per unit of a number, or by a level.
	Mean float64 `json:"mean"`
	SD   float64 `json:"sd"`
}

// Effects takes the scaling of numbers out of weights, of all activations one after the other. The intercept, if there
// is one, and the periods become the activation where numbers are 0 instead of at their centres: see [Encoding.Own].
func (e *Encoding) Effects(q Normal) (all []Effect) {
	names := e.Features()
	for j, own := range e.Own(len(q.Mean) / len(names)) {
		mean, variance := q.Activation(own, 0)
		all = append(all, Effect{names[j%len(names)], mean, math.Sqrt(variance)})
	}
	return all
}

// Knots are those of a restricted cubic spline t₁ < … < t_k, k ≥ 3: cubic between knots, straight outside, with
// continuous second derivatives (Harrell, Regression Modeling Strategies, 2nd ed., equation 2.25). Knots are public:
// quantiles of the literature, not of the sites' rows.
type Knots []float64

// maxKnots is more than Harrell has a use for; beyond it a spline fits noise.
const maxKnots = 10

// Check reports knots that are too few or too many, do not ascend, or are not finite.
func (t Knots) Check() error {
	if len(t) < 3 || len(t) > maxKnots {
		return fmt.Errorf("%d knots: want 3 to %d", len(t), maxKnots)
	}
	for i, x := range t {
		if !Finite(x) || i > 0 && !(x > t[i-1]) {
			return fmt.Errorf("knot %v in place %d: want finite numbers that ascend", x, i+1)
		}
	}
	return nil
}

// Width returns the number of basis functions, k − 1.
func (t Knots) Width() int { return len(t) - 1 }

// Basis sets dst, of length Width, to the basis at x: x itself, and for j = 1 … k − 2
//
//	[(x−t_j)₊³ − (x−t_{k−1})₊³ (t_k−t_j)/(t_k−t_{k−1}) + (x−t_k)₊³ (t_{k−1}−t_j)/(t_k−t_{k−1})] / (t_k−t₁)²,
//
// which has the unit of x.
func (t Knots) Basis(x float64, dst []float64) {
	k := len(t)
	last, before := t[k-1], t[k-2]
	span, gap := last-t[0], last-before
	cube := func(knot float64) float64 { // over span³, which keeps far knots finite
		u := max(x-knot, 0) / span
		return u * u * u
	}
	dst[0] = x
	for j := range k - 2 {
		if x >= last { // the cubes cancel: the same straight line in its own form
			dst[j+1] = (before - t[j]) * (last - t[j]) / (span * span) * (3*x - last - before - t[j])
			continue
		}
		dst[j+1] = span * (cube(t[j]) - cube(before)*((last-t[j])/gap))
	}
}

// perInterval is how many values stand for those between two knots; leastAlone is for knots whose
// functions hardly differ, so that the prior of their weights stays one that can be calculated with.
const (
	perInterval = 64
	leastAlone  = 1e-8
)

// alone is by how much each basis function varies beyond what the others tell, by the variance of x:
// 1/[C⁻¹]_jj/C₁₁ of the basis' covariance C, where as many values lie between any two neighbouring knots,
// as with knots that are quantiles.
func (t Knots) alone() []float64 {
	width := t.Width()
	n := perInterval * width
	columns := mat.NewDense(n, width, nil)
	for i := range n {
		k, share := i/perInterval, (float64(i%perInterval)+0.5)/perInterval
		values := columns.RawRowView(i)
		t.Basis(t[k]+share*(t[k+1]-t[k]), values)
		values[0] -= t[0]
	}
	var covariance, inverse mat.SymDense
	stat.CovarianceMatrix(&covariance, columns, nil)
	var chol mat.Cholesky
	alone := slices.Repeat([]float64{leastAlone}, width)
	if !chol.Factorize(&covariance) || !Usable(chol.InverseTo(&inverse)) { // some say the same
		return alone
	}
	for j := range alone {
		alone[j] = max(1/(inverse.At(j, j)*covariance.At(0, 0)), leastAlone)
	}
	return alone
}
