package evaluate

import "math"

// Bin compares probabilities within one tenth of [0, 1] with what happened.
type Bin struct {
	Rows     int     `json:"rows"`
	Expected float64 `json:"expected"` // mean probability; 0 without rows
	Observed float64 `json:"observed"` // share of what they were given to that happened; 0 without rows
}

// Calibration is expected against observed frequency, in ten bins of equal width.
// Of two classes the probability is that of the second, of more classes that of the
// most probable one.
type Calibration [10]Bin

// Add counts a probability, between 0 and 1, and whether what it was given to
// happened.
func (c *Calibration) Add(p float64, happened bool) {
	one := Bin{Rows: 1, Expected: p}
	if happened {
		one.Observed = 1
	}
	c[min(max(int(p*float64(len(c))), 0), len(c)-1)].add(one)
}

// Merge adds the rows of another calibration.
func (c *Calibration) Merge(o *Calibration) {
	for i := range c {
		c[i].add(o[i])
	}
}

func (b *Bin) add(o Bin) {
	if o.Rows == 0 {
		return
	}
	b.Rows += o.Rows
	share := float64(o.Rows) / float64(b.Rows)
	b.Expected += share * (o.Expected - b.Expected)
	b.Observed += share * (o.Observed - b.Observed)
}

// Error returns the expected calibration error: the mean over rows of
// |expected − observed| of their bins, between 0 and 1.
func (c *Calibration) Error() float64 {
	sum, rows := 0.0, 0
	for _, b := range c {
		sum += float64(b.Rows) * math.Abs(b.Expected-b.Observed)
		rows += b.Rows
	}
	if rows == 0 {
		return 0
	}
	return sum / float64(rows)
}

// Points returns expected and observed frequencies, NaN for bins without rows.
func (c *Calibration) Points() (expected, observed []float64) {
	for _, b := range c {
		x, y := b.Expected, b.Observed
		if b.Rows == 0 {
			x, y = math.NaN(), math.NaN()
		}
		expected, observed = append(expected, x), append(observed, y)
	}
	return expected, observed
}
