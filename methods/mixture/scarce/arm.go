package scarce

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"parley/internal/stats"
)

// Labelled is rows with a binary label each. True is the class of which there may be
// few.
type Labelled struct {
	Rows   [][]float64
	Labels []bool
}

// Check reports rows that are not as long as one another, entries that are not
// finite, and labels that are not as many as rows.
func (l Labelled) Check() error {
	if len(l.Rows) != len(l.Labels) {
		return fmt.Errorf("%d rows with %d labels: want as many", len(l.Rows), len(l.Labels))
	}
	return checkRows(l.Rows, l.width())
}

// width returns the number of columns; 0 if there are no rows.
func (l Labelled) width() int {
	if len(l.Rows) == 0 {
		return 0
	}
	return len(l.Rows[0])
}

func checkRows(rows [][]float64, width int) error {
	for i, row := range rows {
		if len(row) != width {
			return fmt.Errorf("row %d has %d columns, want %d", i+1, len(row), width)
		}
		for j, v := range row {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return fmt.Errorf("row %d, column %d is %v", i+1, j+1, v)
			}
		}
	}
	return nil
}

// Count returns how many labels are true, and how many are false.
func (l Labelled) Count() (scarce, other int) {
	for _, y := range l.Labels {
		if y {
			scarce++
		}
	}
	return scarce, len(l.Labels) - scarce
}

// class returns the rows of one label.
func (l Labelled) class(label bool) (rows [][]float64) {
	for i, y := range l.Labels {
		if y == label {
			rows = append(rows, l.Rows[i])
		}
	}
	return rows
}

// pick returns the rows for which a condition on their number holds.
func (l Labelled) pick(want func(i int) bool) (out Labelled) {
	for i, row := range l.Rows {
		if want(i) {
			out.Rows, out.Labels = append(out.Rows, row), append(out.Labels, l.Labels[i])
		}
	}
	return out
}

// Arm is one thing that a site may do about its scarce class.
type Arm string

// The arms, in the order of [comparison].
const (
	Raw         Arm = "raw"                       // nothing
	Oversampled Arm = "oversampling"              // rows of the class drawn again: see [Oversample]
	SMOTEd      Arm = "SMOTE"                     // between neighbours, of which there are 5: see [SMOTE]
	Generated   Arm = "synthetic rows"            // from a model of all sites
	Borrowed    Arm = "another site's classifier" // as it is: nothing is fitted here
)

// Penalty is that of the classifiers of all arms: see [FitLinear]. It is what other
// programs have by default, C = 1.
const Penalty = 1.0

const smoteNeighbours = 5

var errOneClass = errors.New("the rows have one class only")

// fit returns an arm's classifier, fitted to rows and what the arm adds to them, and
// the latter: as many rows of the scarce class as bring it level with the other.
// Generated rows are drawn without replacement: if there are too few, all.
func (a Arm) fit(rows Labelled, generated [][]float64, borrowed *LinearClassifier, rng *rand.Rand) (c *LinearClassifier, extra [][]float64, err error) {
	if a == Borrowed {
		return borrowed, nil, nil
	}
	scarce, other := rows.Count()
	lacking := max(other-scarce, 0)
	switch a {
	case Oversampled, SMOTEd:
		if scarce == 0 {
			return nil, nil, errOneClass
		}
		if a == SMOTEd {
			extra, err = SMOTE(rows.class(true), lacking, smoteNeighbours, rng)
		} else {
			extra, err = Oversample(rows.class(true), lacking, rng)
		}
	case Generated:
		for _, i := range rng.Perm(len(generated))[:min(lacking, len(generated))] {
			extra = append(extra, generated[i])
		}
	}
	if err != nil {
		return nil, nil, err
	}
	if scarce+len(extra) == 0 || other == 0 {
		return nil, nil, errOneClass
	}
	all := Labelled{Rows: append(append([][]float64{}, rows.Rows...), extra...), Labels: append([]bool{}, rows.Labels...)}
	for range extra {
		all.Labels = append(all.Labels, true)
	}
	c, err = FitLinear(all.Rows, all.Labels, Penalty)
	return c, extra, err
}

// recalibrate returns the classifier with another intercept: the one by which its mean
// probability over the rows is the share of their label true. Rows that were
// added move that share, so that without this a probability would mean nothing. The
// order of rows, and the AUC, stay. With one class there is no such intercept: nil.
func (c *LinearClassifier) recalibrate(rows Labelled) *LinearClassifier {
	scarce, other := rows.Count()
	if scarce == 0 || other == 0 {
		return nil
	}
	scores := make([]float64, len(rows.Rows))
	reach := 0.0
	for i, row := range rows.Rows {
		scores[i] = inner(row, c.Weights)
		reach = max(reach, math.Abs(scores[i]))
	}
	// The sum of probabilities rises with the intercept; at ±(reach + ln n) it is beyond
	// any number of rows that leaves one in each class.
	low, high := -reach-math.Log(float64(len(scores)))-1, reach+math.Log(float64(len(scores)))+1
	for range 100 {
		b := (low + high) / 2
		sum := 0.0
		for _, s := range scores {
			sum += stats.Logistic(s + b)
		}
		if sum < float64(scarce) {
			low = b
		} else {
			high = b
		}
	}
	return &LinearClassifier{Weights: c.Weights, Intercept: (low + high) / 2}
}
