package evaluate

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"parley/dataset"
)

// Posterior is what a fitted model says of one row.
type Posterior struct {
	// Latent is the mean of the latent variables given the row's observed entries.
	Latent []float64
	// Mean holds the expected value of every feature of every view, also of
	// those not observed, shaped as the row's schema. Of a model that takes features
	// as given it is NaN where something was observed.
	Mean [][]float64
	// LogLik is the natural logarithm of the density of the row's observed
	// entries, in nats; NaN if the model has no density.
	LogLik float64
	// Outcome is what a model that predicts an outcome expects of it. Other models
	// leave it alone.
	Outcome Prediction
}

// Resize gives the posterior room for a number of latent variables and for
// views of the given numbers of features, reusing memory it has.
func (p *Posterior) Resize(latent int, features []int) {
	p.Latent = resize(p.Latent, latent)
	if cap(p.Mean) < len(features) {
		p.Mean = append(p.Mean[:cap(p.Mean)], make([][]float64, len(features)-cap(p.Mean))...)
	}
	p.Mean = p.Mean[:len(features)]
	for k, d := range features {
		p.Mean[k] = resize(p.Mean[k], d)
	}
}

// Unknown makes room for a number of latent variables, and expects nothing of the
// row's features: what a model does that takes them as given.
func (p *Posterior) Unknown(latent int, row *dataset.Row) {
	p.Resize(latent, make([]int, len(row.Views)))
	for k, x := range row.Views {
		p.Mean[k] = resize(p.Mean[k], len(x))
		for j := range p.Mean[k] {
			p.Mean[k][j] = math.NaN()
		}
	}
	p.LogLik = math.NaN()
}

func resize(s []float64, n int) []float64 {
	if cap(s) < n {
		return make([]float64, n)
	}
	return s[:n]
}

// Model is a fitted model as evaluation sees it: one that describes features, or one
// that predicts an [Outcome] from them, and must not look at the row's own. Infer must
// not keep the row, and sets every field of dst; see [Posterior.Resize].
type Model interface {
	Infer(row *dataset.Row, dst *Posterior) error
}

// Score says how well a model describes a set of rows. Errors are in the units
// of the rows that were scored.
type Score struct {
	Rows        int
	MAE         float64   // mean absolute error over all observed entries
	ViewMAE     []float64 // the same for each view; NaN for a view nobody has
	MeanViewMAE float64   // mean of ViewMAE over the views that somebody has
	LogLik      float64   // mean log-likelihood of a row's observed entries, in nats; NaN if the model has no density
}

// EvaluateIn scores the model on every row of the source, in one pass, in the units that a scaling of the rows would
// give: a method that sees values as they were measured, and does its own scaling, is scored in the same units as one
// that saw scaled values. The density is then that of the scaled values too; a feature that the scaling makes constant
// counts for nothing in it. A nil unit leaves everything as it is. It is an error if there are no rows or no observed
// entries, or if the model's expectation of an observed entry is not a finite number.
func EvaluateIn(ctx context.Context, unit *Scaling, m Model, src dataset.Source) (Score, error) {
	schema := src.Schema()
	sum := make([]float64, len(schema.Views))
	count := make([]int, len(schema.Views))
	var s Score
	err := infer(ctx, m, src, func(row *dataset.Row, p *Posterior) error {
		for k, x := range row.Views {
			for j, v := range x {
				if math.IsNaN(v) {
					continue
				}
				e := math.Abs(v - p.Mean[k][j])
				if math.IsNaN(e) || math.IsInf(e, 0) {
					return fmt.Errorf("the model expects %v for %s, where %v was observed", p.Mean[k][j],
						schema.Views[k].Columns[j].Name, v)
				}
				if unit != nil {
					f := unit.Factor[k][j]
					e *= f
					if f > 0 {
						p.LogLik -= math.Log(f)
					}
				}
				sum[k] += e
				count[k]++
			}
		}
		s.Rows++
		s.LogLik += p.LogLik
		return nil
	})
	if err != nil {
		return Score{}, fmt.Errorf("evaluating: %w", err)
	}
	total, entries, views := 0.0, 0, 0
	for k := range sum {
		s.ViewMAE = append(s.ViewMAE, sum[k]/float64(count[k]))
		if count[k] > 0 {
			s.MeanViewMAE += s.ViewMAE[k]
			views++
		}
		total += sum[k]
		entries += count[k]
	}
	if entries == 0 {
		return Score{}, fmt.Errorf("evaluating: nothing was observed in %d rows", s.Rows)
	}
	s.MAE = total / float64(entries)
	s.MeanViewMAE /= float64(views)
	s.LogLik /= float64(s.Rows)
	return s, nil
}

// infer calls do with every row of the source and what the model says of it.
func infer(ctx context.Context, m Model, src dataset.Source, do func(*dataset.Row, *Posterior) error) error {
	var p Posterior
	for row, err := range src.Rows(ctx) {
		if err != nil {
			return err
		}
		if err := m.Infer(row, &p); err != nil {
			return fmt.Errorf("subject %s: %w", row.ID, err)
		}
		if err := do(row, &p); err != nil {
			return fmt.Errorf("subject %s: %w", row.ID, err)
		}
	}
	return nil
}

// Scores are subjects in latent space, with what each of them is known to be.
type Scores struct {
	Latent [][]float64 // one point for each subject
	Labels []string
}

// Project places every row of the source that has a label in latent space.
// The label is a column of the subjects table; rows where it is empty are left out.
func Project(ctx context.Context, m Model, src dataset.Source, label string) (Scores, error) {
	column := -1
	for i, c := range src.Schema().Subject {
		if c.Name == label {
			column = i
		}
	}
	if column < 0 {
		return Scores{}, fmt.Errorf("projecting: no column %q among the subjects", label)
	}
	var s Scores
	err := infer(ctx, m, src, func(row *dataset.Row, p *Posterior) error {
		if row.Subject[column] != "" {
			s.Latent = append(s.Latent, append([]float64(nil), p.Latent...))
			s.Labels = append(s.Labels, row.Subject[column])
		}
		return nil
	})
	if err != nil {
		return Scores{}, fmt.Errorf("projecting: %w", err)
	}
	return s, nil
}

// Coverage counts how often intervals of a stated level hold what was observed.
type Coverage struct {
	z             float64
	Inside, Total int
}

// NewCoverage counts central normal intervals of the given level, 0 < level < 1.
func NewCoverage(level float64) *Coverage {
	return &Coverage{z: math.Sqrt2 * math.Erfinv(level)}
}

// Add counts one observed value against the expected value and its standard
// deviation. Values that were not observed (NaN) are not counted.
func (c *Coverage) Add(observed, mean, sd float64) {
	if math.IsNaN(observed) {
		return
	}
	c.Total++
	if math.Abs(observed-mean) <= c.z*sd {
		c.Inside++
	}
}

// student is by how many times intervals of Student's t distribution with so many degrees of
// freedom are wider than normal ones; 1 without any.
func (c *Coverage) student(free float64) float64 {
	if !(free > 0) {
		return 1
	}
	return -distuv.StudentsT{Sigma: 1, Nu: free}.Quantile(math.Erfc(c.z/math.Sqrt2)/2) / c.z
}

// Rate is the share of observed values inside their intervals: for a calibrated
// model, near the level. NaN if nothing was counted.
func (c *Coverage) Rate() float64 { return float64(c.Inside) / float64(c.Total) }

// AUC is the area under the receiver operating characteristic: the probability
// that a row of label true has a higher score than one of label false, ties
// counting one half (Mann and Whitney). NaN if a label does not occur.
// Scores and labels must be as many.
func AUC(scores []float64, labels []bool) float64 {
	order := make([]int, len(scores))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(scores[a], scores[b]) })
	below, wins, positives := 0.0, 0.0, 0.0 // labels false so far; pairs won
	for at := 0; at < len(order); {
		end, t, f := at, 0.0, 0.0
		for ; end < len(order) && scores[order[end]] == scores[order[at]]; end++ {
			if labels[order[end]] {
				t++
			} else {
				f++
			}
		}
		if end == at { // NaN equals nothing
			return math.NaN()
		}
		wins += t * (below + f/2)
		below += f
		positives += t
		at = end
	}
	return wins / (positives * below)
}

// Difference is how two methods differ on the same folds.
type Difference struct {
	Mean      float64 // of a − b
	Low, High float64 // confidence interval of the mean
	// Wins counts the folds where a < b, Losses those where a > b, Ties the rest.
	Wins, Losses, Ties int
}

// Paired compares two methods by a score of each on the same folds, with a
// t-interval of the given level (0 < level < 1) for the mean difference. Folds
// of one cross-validation share training rows, so that the usual interval is
// too narrow; overlap is the number of test rows over that of training rows
// (0.5 for three folds), by which it is widened as Nadeau and Bengio propose
// (Machine Learning 52, 2003): the variance of the mean is (1/n + overlap)·s².
// An overlap of 0 gives the usual interval, for independent data.
//
// It is an error if there are fewer than two folds or a score is not finite.
func Paired(a, b []float64, level, overlap float64) (Difference, error) {
	if len(a) != len(b) || len(a) < 2 {
		return Difference{}, fmt.Errorf("paired comparison: %d scores against %d; needs the same folds, at least two",
			len(a), len(b))
	}
	if !(0 < level && level < 1) || !(overlap >= 0) {
		return Difference{}, fmt.Errorf("paired comparison: level %v, overlap %v; needs 0 < level < 1 and overlap ≥ 0",
			level, overlap)
	}
	var d Difference
	diff := make([]float64, len(a))
	for i := range a {
		diff[i] = a[i] - b[i]
		if math.IsNaN(diff[i]) || math.IsInf(diff[i], 0) {
			return Difference{}, fmt.Errorf("paired comparison: scores %v and %v of fold %d have no difference",
				a[i], b[i], i+1)
		}
		switch {
		case a[i] < b[i]:
			d.Wins++
		case a[i] > b[i]:
			d.Losses++
		default:
			d.Ties++
		}
	}
	n := float64(len(diff))
	mean, sd := stat.MeanStdDev(diff, nil)
	t := distuv.StudentsT{Sigma: 1, Nu: n - 1}.Quantile((1 + level) / 2)
	half := t * sd * math.Sqrt(1/n+overlap)
	d.Mean, d.Low, d.High = mean, mean-half, mean+half
	return d, nil
}

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
