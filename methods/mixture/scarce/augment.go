package scarce

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"

	"parley/internal/stats"
	"parley/judge/evaluate"
)

// Oversample returns extra rows that are drawn from rows with replacement:
// random oversampling. They share memory with rows. No rows to draw from are an error.
func Oversample(rows [][]float64, extra int, rng *rand.Rand) ([][]float64, error) {
	if len(rows) == 0 && extra > 0 {
		return nil, errors.New("oversampling: no rows to draw from")
	}
	out := make([][]float64, 0, max(extra, 0))
	for range extra {
		out = append(out, rows[rng.IntN(len(rows))])
	}
	return out, nil
}

// SMOTE returns extra rows, each at a uniformly drawn place between a random row
// and one of its k nearest others in Euclidean distance (Chawla, Bowyer, Hall
// and Kegelmeyer, JAIR 16, 2002; they use k = 5). With fewer than k others, all
// of them count; a row that is alone is repeated. Rows must be as long as one
// another. Neither rows to draw from nor k may be lacking.
func SMOTE(rows [][]float64, extra, k int, rng *rand.Rand) ([][]float64, error) {
	if k < 1 {
		return nil, fmt.Errorf("smote: %d neighbours: want at least one", k)
	}
	if len(rows) < 2 {
		return Oversample(rows, extra, rng)
	}
	near := make([][]int, len(rows)) // neighbours of the rows that were drawn
	out := make([][]float64, 0, max(extra, 0))
	for range extra {
		i := rng.IntN(len(rows))
		if near[i] == nil {
			near[i] = neighbours(rows, i, k)
		}
		j, u := near[i][rng.IntN(len(near[i]))], rng.Float64()
		row := make([]float64, len(rows[i]))
		for c, v := range rows[i] {
			row[c] = v + u*(rows[j][c]-v)
		}
		out = append(out, row)
	}
	return out, nil
}

// neighbours returns the k rows nearest to row i, itself left out; of equal
// distances the earlier rows.
func neighbours(rows [][]float64, i, k int) []int {
	distance := make([]float64, len(rows))
	var others []int
	for j, r := range rows {
		if j == i {
			continue
		}
		others = append(others, j)
		for c, v := range r {
			distance[j] += (v - rows[i][c]) * (v - rows[i][c])
		}
	}
	slices.SortStableFunc(others, func(a, b int) int { return cmp.Compare(distance[a], distance[b]) })
	return others[:min(k, len(others))]
}

// LinearClassifier is P(y = 1 | x) = σ(w·x + b). A site that applies one of another
// site needs no generator: that is a control too.
type LinearClassifier struct {
	Weights   []float64
	Intercept float64
}

// FitLinear fits a logistic regression by penalised maximum likelihood: it
// maximises Σ ln P(yᵢ | xᵢ) − ½ penalty ‖w‖², where the intercept is free, by
// Newton's method with halved steps. A penalty above 0 makes the optimum unique and finite
// even where a line separates the classes; 1/penalty is what other programs call C.
//
// Both labels must occur. Rows of several lengths, entries that are not finite, and
// no convergence in 100 steps are errors.
func FitLinear(rows [][]float64, labels []bool, penalty float64) (*LinearClassifier, error) {
	if len(rows) == 0 || len(rows) != len(labels) || !slices.Contains(labels, true) || !slices.Contains(labels, false) {
		return nil, fmt.Errorf("logistic regression: %d rows with %d labels: want as many, and both classes", len(rows), len(labels))
	}
	if !(penalty > 0) || math.IsInf(penalty, 0) {
		return nil, fmt.Errorf("logistic regression: penalty %v: want a number above 0", penalty)
	}
	d := len(rows[0])
	x := mat.NewDense(len(rows), d+1, nil) // a last column of ones
	for i, row := range rows {
		if len(row) != d {
			return nil, fmt.Errorf("logistic regression: row %d has %d columns, the first %d", i+1, len(row), d)
		}
		for j, v := range row {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return nil, fmt.Errorf("logistic regression: row %d, column %d is %v", i+1, j+1, v)
			}
			x.Set(i, j, v)
		}
		x.Set(i, d, 1)
	}
	f := &logisticFit{x: x, labels: labels, penalty: penalty}
	w, err := f.maximise()
	if err != nil {
		return nil, fmt.Errorf("logistic regression: %w", err)
	}
	return &LinearClassifier{Weights: w[:d:d], Intercept: w[d]}, nil
}

// logisticFit is a penalised log-likelihood by weights, the last one the intercept.
type logisticFit struct {
	x       *mat.Dense
	labels  []bool
	penalty float64
}

// value returns what is maximised.
func (f *logisticFit) value(w []float64) float64 {
	v := 0.0
	for i, y := range f.labels {
		s := inner(f.x.RawRowView(i), w)
		if !y {
			s = -s
		}
		v += stats.LogLogistic(s)
	}
	for _, c := range w[:len(w)-1] {
		v -= f.penalty / 2 * c * c
	}
	return v
}

func (f *logisticFit) maximise() ([]float64, error) {
	n, p := f.x.Dims()
	w, trial := make([]float64, p), make([]float64, p)
	gradient, step := mat.NewVecDense(p, nil), mat.NewVecDense(p, nil)
	weighted := mat.NewDense(n, p, nil)
	hessian, chol := mat.NewSymDense(p, nil), mat.Cholesky{}
	value := f.value(w)
	for range 100 {
		gradient.Zero()
		for i, y := range f.labels {
			row, to := f.x.RawRowView(i), weighted.RawRowView(i)
			s := stats.Logistic(inner(row, w))
			e, root := -s, math.Sqrt(s*(1-s))
			if y {
				e++
			}
			for j, v := range row {
				gradient.SetVec(j, gradient.AtVec(j)+e*v)
				to[j] = root * v
			}
		}
		hessian.SymOuterK(1, weighted.T())
		for j := range p {
			ridge := 1e-12 // keeps the intercept's pivot positive when all is separated
			if j < p-1 {
				ridge = f.penalty
				gradient.SetVec(j, gradient.AtVec(j)-f.penalty*w[j])
			}
			hessian.SetSym(j, j, hessian.At(j, j)+ridge)
		}
		if !chol.Factorize(hessian) {
			return nil, errors.New("the Hessian is not negative definite")
		}
		if err := chol.SolveVecTo(step, gradient); err != nil && !errors.As(err, new(mat.Condition)) {
			return nil, err
		}
		gain := mat.Dot(gradient, step) // twice what the quadratic promises
		if gain <= 1e-16*(1+math.Abs(value)) {
			return w, nil
		}
		length, risen := 1.0, false
		for range 40 {
			for j := range trial {
				trial[j] = w[j] + length*step.AtVec(j)
			}
			if v := f.value(trial); v > value {
				value, risen = v, true
				break
			}
			length /= 2
		}
		if !risen { // rounding hides what is left to gain
			return w, nil
		}
		w, trial = trial, w
	}
	return nil, errors.New("no convergence in 100 steps")
}

// inner is Σ aᵢbᵢ, added in order.
func inner(a, b []float64) float64 {
	s := 0.0
	for i, v := range a {
		s += v * b[i]
	}
	return s
}

// Probability returns P(y = 1 | x) of each row. Rows of another length are errors.
func (c *LinearClassifier) Probability(rows [][]float64) ([]float64, error) {
	out := make([]float64, len(rows))
	for i, row := range rows {
		if len(row) != len(c.Weights) {
			return nil, fmt.Errorf("classifying row %d: %d columns, want %d", i+1, len(row), len(c.Weights))
		}
		out[i] = stats.Logistic(c.Intercept + inner(row, c.Weights))
	}
	return out, nil
}

// ClassifierScore says how well probabilities of y = 1 predict labels.
type ClassifierScore struct {
	AUC      float64 // area under the ROC curve
	Accuracy float64 // share of rows on the right side of ½
	F1       float64 // of y = 1 at ½: 2·TP/(2·TP + FP + FN); 0 if there is no TP
}

// ScoreClassifier compares probabilities with labels, of which there must be as many.
func ScoreClassifier(probability []float64, labels []bool) (ClassifierScore, error) {
	if len(probability) != len(labels) || len(labels) == 0 {
		return ClassifierScore{}, fmt.Errorf("scoring a classifier: %d probabilities and %d labels: want as many, and at least one", len(probability), len(labels))
	}
	right, hits, wrong := 0, 0, 0
	for i, p := range probability {
		switch said := p > 0.5; {
		case said && labels[i]:
			hits++
			right++
		case said == labels[i]:
			right++
		default:
			wrong++
		}
	}
	s := ClassifierScore{AUC: evaluate.AUC(probability, labels), Accuracy: float64(right) / float64(len(labels))}
	if hits > 0 {
		s.F1 = 2 * float64(hits) / float64(2*hits+wrong)
	}
	return s, nil
}
