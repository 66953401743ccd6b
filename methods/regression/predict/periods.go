package predict

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"parley/internal/stats"
	"parley/internal/wire"
	"parley/methods/regression/glm"
)

// Periods are sums over person-periods, whose outcome y is 1 for an event. By period and bin of the score they
// stand one period after the other; a row of weight w counts as w rows. Scores are what a
// person's features add to the activation, in bins an eighth of the root of the sum of squared weights wide.
type Periods struct {
	Risk   wire.Vector `cbor:"risk"`   // rows
	Events wire.Vector `cbor:"events"` // of which events
	// For the period k of a row, counted from 0, the derivatives g of its log-likelihood by the activation and h,
	// minus the second:
	Score  wire.Vector `cbor:"score" sums:"signed"`  // Σ k g x
	Zeroth wire.Vector `cbor:"zeroth" sums:"signed"` // Σ h x xᵀ, the lower triangle by rows
	First  wire.Vector `cbor:"first" sums:"signed"`  // Σ k h x xᵀ
	Second wire.Vector `cbor:"second" sums:"signed"` // Σ k² h x xᵀ
}

const scoreBins = 64

// PeriodsSay is what these sums are.
const PeriodsSay = "for each period its rows and events in 64 bins of the score; and the derivatives of the " +
	"log-likelihood by all weights times the number of the period, with their covariances by the model, once, times " +
	"that number and its square"

func newPeriods(periods, weights int) *Periods {
	n := scoreBins * periods
	return &Periods{make(wire.Vector, n), make(wire.Vector, n), make(wire.Vector, weights),
		make(wire.Vector, glm.Triangle(weights)), make(wire.Vector, glm.Triangle(weights)),
		make(wire.Vector, glm.Triangle(weights))}
}

// PeriodsOf sums up the person-periods of a design whose last columns are so many periods, of a
// site whose own effect is b; nil if sites have none.
func PeriodsOf(l glm.Likelihood, q glm.Normal, b *glm.Intercept, d *glm.Design, periods int) *Periods {
	columns, own, unit := d.Columns()-periods, 0.0, 0.0
	s := newPeriods(periods, d.Columns())
	if b != nil {
		own = b.Mean
	}
	for _, w := range q.Mean[:columns] {
		unit += w * w
	}
	unit = math.Sqrt(unit) / 8
	var f, first [1]float64
	for i := range d.Rows() {
		r, y := d.Row(i), d.Outcome(i)
		k := int(r.Index[len(r.Index)-1]) - columns
		f[0], _ = r.Activation(q.Mean, q.Mean)
		f[0] += own
		_, h := l.LogLik(y, f[:], first[:])
		bin := scoreBins / 2
		if x := (f[0] - q.Mean[columns+k] - r.Offset) / unit; x == x { // NaN is no whole number
			bin = int(min(max(x+scoreBins/2, 0), scoreBins-1))
		}
		at := k*scoreBins + bin
		s.Risk[at] += r.Weight
		if y > 0 {
			s.Events[at] += r.Weight
		}
		g := r.Weight * float64(k) * first[0]
		h *= r.Weight
		for n, j := range r.Index {
			x := r.Value[n]
			s.Score[j] += glm.Clamp(g*x, rowLargest)
			for m := range n + 1 {
				add := glm.Clamp(h*x*r.Value[m], rowLargest)
				at := glm.Packed(int(j), int(r.Index[m]))
				s.Zeroth[at] += add
				s.First[at] += float64(k) * add
				s.Second[at] += float64(k*k) * add
			}
		}
	}
	return s
}

// check refuses what no rows can give, beyond [method.CheckSums].
func (s *Periods) check() error {
	for k, n := range s.Events {
		if n > s.Risk[k] {
			return fmt.Errorf("%v events of %v rows", n, s.Risk[k])
		}
	}
	return nil
}

// Count is how many rows and events each period has.
func (s *Periods) Count() (rows, events []float64) {
	for k := 0; k < len(s.Risk); k += scoreBins {
		rows, events = append(rows, sum(s.Risk[k:k+scoreBins])), append(events, sum(s.Events[k:k+scoreBins]))
	}
	return rows, events
}

// Concordance is the share of pairs of which one has the event in a period that the other is followed through
// without, in which the first has the higher score (Harrell and others, JAMA 1982); pairs of one bin count half.
// NaN without pairs.
func (s *Periods) Concordance() float64 {
	right, all := 0.0, 0.0
	for k := 0; k < len(s.Risk); k += scoreBins {
		below := 0.0
		for b := k; b < k+scoreBins; b++ {
			without := s.Risk[b] - s.Events[b]
			right += s.Events[b] * (below + without/2)
			below += without
		}
		all += sum(s.Events[k:k+scoreBins]) * below
	}
	return right / all
}

// Change is a test of whether an effect changes with the number of the period.
type Change struct {
	ChiSquared float64
	Free       int
	P          float64
	Slope      float64 // of the effect by period, of a single column, in one step from no change; else NaN
}

// changeAlarm is the probability with which a study gets the verdict on effects that change over time where none does,
// at most, over all terms.
const changeAlarm = 0.01

// Changes tests each of the first columns, and all of them together, for effects times the number of the period, beside
// all weights and their prior: the score test that cox.zph makes of a Cox model (Grambsch and Therneau,
// Biometrika 1994), whose scale in time decides nothing. Residuals vary over times as much as under the model.
func (s *Periods) Changes(features int, prior glm.Gaussian, over float64) (each []Change, all Change) {
	n := len(s.Score)
	first := glm.Symmetric(s.First, n)
	var half, explained mat.Dense
	information := glm.Symmetric(s.Zeroth, n)
	for j, l := range prior.Lambda {
		information.SetSym(j, j, information.At(j, j)+l)
	}
	covariance, _ := glm.PseudoInverse(information)
	half.Mul(first, covariance)
	explained.Mul(&half, first)
	left := func(i, j int) float64 { return glm.Entry(s.Second, i, j) - explained.At(i, j) }
	test := func(from, to int) (c Change) {
		v := glm.Sym(to-from, func(a, b int) float64 {
			for _, i := range []int{from + a, from + b} {
				if !(left(i, i) > 1e-9*s.Second[glm.Packed(i, i)]) { // below, rounding makes it
					return 0
				}
			}
			return left(from+a, from+b)
		})
		u := mat.NewVecDense(to-from, slices.Clone(s.Score[from:to]))
		c.ChiSquared, c.Free = quadratic(v, u)
		if c.ChiSquared /= over; !glm.Finite(c.ChiSquared) {
			c.ChiSquared, c.Free = 0, 0
		}
		c.P, c.Slope = stats.ChiSquareTail(c.ChiSquared, float64(c.Free)), math.NaN()
		if to-from == 1 && c.Free == 1 {
			c.Slope = u.AtVec(0) / v.At(0, 0)
		}
		return c
	}
	for j := range features {
		each = append(each, test(j, j+1))
	}
	return each, test(0, features)
}

// Matters says whether one of so many changes is beyond chance, and enough to matter with so many events.
func (c Change) Matters(tests int, events float64) bool {
	return c.P < changeAlarm/float64(tests) && (c.ChiSquared-float64(c.Free))/events > glm.OnShape.Matters
}

// quadratic is uᵀ V⁻¹ u over the directions in which V says anything, and how many these are.
func quadratic(v *mat.SymDense, u *mat.VecDense) (x float64, free int) {
	inverse, free := glm.PseudoInverse(v)
	return mat.Inner(u, inverse, u), free
}

// Quadratic is the statistic of Wald's test of some entries of a mean, m_Jᵀ (C_JJ)⁻¹ m_J.
func Quadratic(mean, covariance []float64, columns []int) (x float64, free int) {
	u := mat.NewVecDense(len(columns), nil)
	for a, i := range columns {
		u.SetVec(a, mean[i])
	}
	return quadratic(glm.Sym(len(columns), func(a, b int) float64 {
		return glm.Entry(covariance, columns[a], columns[b])
	}), u)
}

// scatter is how scores vary: sums over clusters of rows, of which each is a person's unless the plan names
// another, of s sᵀ for a cluster's score s, the sum of w ∂ln p(y | f)/∂f x over its rows. A row that counts as w rows
// is in w clusters.
type scatter struct {
	Clusters int         `cbor:"clusters"`
	Meat     wire.Vector `cbor:"meat" sums:"signed"` // Σ s sᵀ, the lower triangle by rows
}

// ScatterSays is what a scatter tells.
const ScatterSays = "number of persons, sums of the products of the derivatives of their log-likelihood by every two " +
	"weights"

// NewScatter is that of no rows.
func NewScatter(weights int) *scatter {
	return &scatter{Meat: make(wire.Vector, glm.Triangle(weights))}
}

// ScatterOf sums up the rows of a design at the mean of q, whose weights are a sample's or numbers of rows.
func ScatterOf(l glm.Likelihood, q glm.Normal, d *glm.Design, sampled bool) *scatter {
	columns, k, weights := d.Columns(), l.Activations(), len(q.Mean)
	s := NewScatter(weights)
	rows := make([]int, d.Rows())
	for i := range rows {
		rows[i] = i
	}
	slices.SortStableFunc(rows, func(a, b int) int { return d.Cluster(a) - d.Cluster(b) })
	f, first, score := make([]float64, k), make([]float64, k), make([]float64, weights)
	for n, i := range rows {
		r := d.Row(i)
		w := r.Weight
		if !sampled {
			w = math.Sqrt(w)
		}
		for c := range f {
			f[c], _ = r.Activation(q.Mean[c*columns:], q.Mean[c*columns:])
		}
		l.LogLik(d.Outcome(i), f, first)
		for c, g := range first {
			for m, j := range r.Index {
				at := c*columns + int(j)
				score[at] = glm.Clamp(score[at]+w*g*r.Value[m], scoreLargest)
			}
		}
		if n+1 < len(rows) && d.Cluster(rows[n+1]) == d.Cluster(i) {
			continue
		}
		s.AddScore(score, Alike(r, sampled))
		clear(score)
	}
	return s
}

// scoreLargest bounds a score, so that its fourth power stays below what rowLargest allows.
const scoreLargest = 1e50

// check refuses what no rows can give, beyond [method.CheckSums].
func (s *scatter) check() error {
	if s.Clusters < 1 || s.Clusters > glm.MostRows {
		return fmt.Errorf("scores of %d persons", s.Clusters)
	}
	return glm.CheckSquares(s.Meat, "product of scores")
}

// AddScore adds so many clusters by their score. Most of its entries can be 0, as a category has one level of many.
func (s *scatter) AddScore(score []float64, clusters int) {
	s.Clusters += clusters
	var touched []int
	for i, x := range score {
		if x == 0 {
			continue
		}
		touched = append(touched, i)
		for _, j := range touched {
			s.Meat[glm.Packed(i, j)] += x * score[j]
		}
	}
}

// Robust is the covariance of weights that holds whatever the law of outcomes is, if their expectation is right:
// C (G/(G − 1) Σ s sᵀ + Λ) C of G clusters, for the covariance C by the model and the precisions Λ of the prior
// (Huber 1967; White 1980; Liang and Zeger 1986). The prior counts as rows that say as much.
func (s *scatter) Robust(q glm.Normal, prior glm.Gaussian) []float64 {
	n := len(q.Mean)
	small := float64(s.Clusters) / max(float64(s.Clusters-1), 1)
	meat := glm.Sym(n, func(i, j int) float64 {
		x := small * s.Meat[glm.Packed(i, j)]
		if i == j {
			x += prior.Lambda[i]
		}
		return x
	})
	c := glm.Symmetric(q.Covariance, n)
	var half, all mat.Dense
	half.Mul(c, meat)
	all.Mul(&half, c)
	return glm.Lower(glm.Sym(n, func(i, j int) float64 { return (all.At(i, j) + all.At(j, i)) / 2 }))
}
