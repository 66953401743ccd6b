package glm

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
)

// Row is one row of a design matrix, in coordinate form: Value[i] stands in
// column Index[i], all other columns are zero. Columns ascend.
type Row struct {
	Index   []int32
	Value   []float64
	Offset  float64 // is added to every activation: a term whose weight is known to be 1
	Weight  float64 // of the row's log-likelihood, positive; 0 stands for 1, a row that counts once
	Later   bool    // a later period of the subject whose row is before it
	Cluster string  // rows with the same one go together; "" of a row that is alone but for later periods
	Lacks   []int32 // the columns of features whose cell is missing and has no effect
}

// Design is a design matrix with its outcomes, kept as the entries that are not
// zero. A category in one-hot form costs one entry whatever its levels.
type Design struct {
	columns int
	start   []int // of row i in index and value; one more than rows
	index   []int32
	value   []float64
	outcome []float64
	offset  []float64
	weight  []float64
	cluster []int // of each row: see [Design.Cluster]
	named   map[string]int
	last    int // the largest of cluster
}

// NewDesign returns a matrix of the given number of columns without rows.
func NewDesign(columns int) *Design { return &Design{columns: columns, start: []int{0}} }

// Rows returns the number of rows.
func (d *Design) Rows() int { return len(d.outcome) }

// Columns returns the number of columns.
func (d *Design) Columns() int { return d.columns }

// Row returns row i. It is valid as long as the design and must not be changed.
func (d *Design) Row(i int) Row {
	lo, hi := d.start[i], d.start[i+1]
	return Row{Index: d.index[lo:hi:hi], Value: d.value[lo:hi:hi], Offset: d.offset[i], Weight: d.weight[i]}
}

// Cluster numbers the rows that go together: those of one person, unless the encoding names another column.
func (d *Design) Cluster(i int) int { return d.cluster[i] }

// Outcome returns the outcome of row i.
func (d *Design) Outcome(i int) float64 { return d.outcome[i] }

// Append adds a copy of a row with its outcome. Columns must ascend and exist,
// and values be finite, the weight not negative.
func (d *Design) Append(r Row, outcome float64) error {
	if len(r.Index) != len(r.Value) {
		return fmt.Errorf("row %d: %d columns and %d values", d.Rows(), len(r.Index), len(r.Value))
	}
	last := int32(-1)
	for i, j := range r.Index {
		if j <= last || int(j) >= d.columns {
			return fmt.Errorf("row %d: column %d after column %d, of %d columns", d.Rows(), j, last, d.columns)
		}
		if !Finite(r.Value[i]) {
			return fmt.Errorf("row %d: the value %v in column %d is not finite", d.Rows(), r.Value[i], j)
		}
		last = j
	}
	if !Finite(outcome) {
		return fmt.Errorf("row %d: the outcome %v is not finite", d.Rows(), outcome)
	}
	if !Finite(r.Offset) || !(r.Weight >= 0) || !Finite(r.Weight) {
		return fmt.Errorf("row %d: the offset %v is not finite, or the weight %v negative or not finite", d.Rows(),
			r.Offset, r.Weight)
	}
	if r.Weight == 0 {
		r.Weight = 1
	}
	d.index = append(d.index, r.Index...)
	d.value = append(d.value, r.Value...)
	d.start = append(d.start, len(d.index))
	d.outcome = append(d.outcome, outcome)
	d.offset = append(d.offset, r.Offset)
	d.weight = append(d.weight, r.Weight)
	at, known := d.named[r.Cluster]
	switch {
	case known:
	case r.Later:
		at = d.last
	default:
		d.last++
		if at = d.last; r.Cluster != "" {
			if d.named == nil {
				d.named = map[string]int{}
			}
			d.named[r.Cluster] = at
		}
	}
	d.cluster = append(d.cluster, at)
	return nil
}

// Dense is a row with an entry for every column.
func Dense(x []float64) Row {
	r := Row{Value: x}
	for j := range x {
		r.Index = append(r.Index, int32(j))
	}
	return r
}

// Activation returns mean and variance of Offset + w·x under independent weights with the given means and variances.
func (r Row) Activation(mean, variance []float64) (a, c float64) {
	a, c = r.Products(mean, variance)
	return a + r.Offset, c
}

// Products returns Σ x w and Σ x² v.
func (r Row) Products(mean, variance []float64) (a, c float64) {
	for i, j := range r.Index {
		x := r.Value[i]
		a += x * mean[j]
		c += x * x * variance[j]
	}
	return a, c
}

// Norm returns the Euclidean length of the row.
func (r Row) Norm() float64 {
	s := 0.0
	for _, x := range r.Value {
		s += x * x
	}
	return math.Sqrt(s)
}

// ErrNotConverged is wrapped by errors that say that an optimum was not reached.
var ErrNotConverged = errors.New("the optimisation did not converge")

// Finite says whether a number is neither NaN nor infinite.
func Finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// Inside says whether a number is in low … high; NaN is not.
func Inside(x, low, high float64) bool { return x >= low && x <= high }

// Clamp moves a number into ±largest, and NaN to 0.
func Clamp(x, largest float64) float64 {
	if math.IsNaN(x) {
		return 0
	}
	return min(max(x, -largest), largest)
}

// Usable takes what a factorisation warns of alone: weights whose priors differ by many
// orders of magnitude make a bad condition number, and lose no digits of each.
func Usable(err error) bool {
	_, warned := err.(mat.Condition)
	return err == nil || warned
}
