package ppca

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/optimize"
)

// surface is the log-likelihood of blocks as a function of free numbers: loadings and means in
// units of the noise at the start, and logarithms of what each noise variance has above its
// floor. Its gradient is that of the expected log-likelihood of the complete data (Fisher's
// identity): with the sums of a fit and ψ of feature j,
//
//	∂ℓ/∂w_j = (B_j − R w_j)/ψ, ∂ℓ/∂μ_j = (Dev_j − Σ⟨x⟩ᵀw_j)/ψ,
//	∂ℓ/∂ln ψ = Σ_j {(Square_j − 2 B_jᵀw_j + w_jᵀR w_j)/ψ − N_j}/2 over the features of its group.
type surface struct {
	f      *pxem
	unit   []float64 // per feature observed: √ψ at the start
	groups []int     // noise groups in use
	at     []int     // of each noise group: its place among them
	last   []float64 // where the E step was run last
	value  float64
	grad   []float64
	evals  int
}

func newSurface(f *pxem) *surface {
	s := &surface{f: f, at: slices.Repeat([]int{-1}, len(f.Floor))}
	for _, j := range f.Features {
		s.unit = append(s.unit, math.Sqrt(f.Model.Psi[j]))
		if g := f.Model.Group[j]; s.at[g] < 0 {
			s.at[g] = len(s.groups)
			s.groups = append(s.groups, g)
		}
	}
	s.grad = make([]float64, s.size())
	return s
}

func (s *surface) size() int { return len(s.f.Features)*(s.f.Q+1) + len(s.groups) }

// read returns the numbers of the model.
func (s *surface) read() []float64 {
	m, q, x := s.f.Model, s.f.Q, make([]float64, s.size())
	noise := x[len(s.f.Features)*(q+1):]
	for i, j := range s.f.Features {
		row := x[i*(q+1):][:q+1]
		copy(row, m.W[j*m.LD:][:q])
		row[q] = m.Mu[j]
		floats.Scale(1/s.unit[i], row)
		g := m.Group[j]
		noise[s.at[g]] = math.Log(max(m.Psi[j]-s.f.Floor[g], math.SmallestNonzeroFloat64))
	}
	return x
}

// write makes them those of the model.
func (s *surface) write(x []float64) {
	m, q := s.f.Model, s.f.Q
	noise := x[len(s.f.Features)*(q+1):]
	for i, j := range s.f.Features {
		for a, v := range x[i*(q+1):][:q] {
			m.W[j*m.LD+a] = v * s.unit[i]
		}
		m.Mu[j] = x[i*(q+1)+q] * s.unit[i]
		g := m.Group[j]
		m.Psi[j] = s.f.Floor[g] + math.Exp(min(noise[s.at[g]], 300))
	}
}

// evaluate runs the E step at x, unless that was done.
func (s *surface) evaluate(x []float64) {
	if s.last != nil && floats.Equal(s.last, x) {
		return
	}
	s.evals++
	s.write(x)
	s.last = append(s.last[:0], x...)
	f, q := s.f, s.f.Q
	m := f.Model
	ll, err := f.Expect()
	if err != nil || math.IsNaN(ll) || math.IsInf(ll, 0) {
		s.value = math.Inf(1)
		return
	}
	s.value = -ll / f.Subjects
	clear(s.grad)
	noise := s.grad[len(f.Features)*(q+1):]
	for i, j := range f.Features {
		r, w, b := f.R[f.Class[j]], m.W[j*m.LD:][:q], f.B[j*f.LD:][:q]
		to, psi := s.grad[i*(q+1):][:q+1], m.Psi[j]
		square := f.Square[j]
		for a := range q {
			rw := floats.Dot(r[a*f.Stride:][:q], w)
			square += w[a] * (rw - 2*b[a])
			to[a] = b[a] - rw
		}
		to[q] = f.Dev[j] - floats.Dot(r[q*f.Stride:][:q], w)
		floats.Scale(-s.unit[i]/(psi*f.Subjects), to)
		g := m.Group[j]
		above := (psi - f.Floor[g]) / psi
		noise[s.at[g]] -= above * (square/psi - f.Count[j]) / (2 * f.Subjects)
	}
}

const (
	// atMaximum is the largest derivative, in nats a subject, of a likelihood at its maximum.
	atMaximum = 1e-11
	// polishing bounds the steps by the slope alone.
	polishing = 100
	// nearFloor is how far above its floor noise may be, as a part of it, that goes there.
	nearFloor = 1e-3
	// summed is about how exactly, as a part of it, a likelihood is summed.
	summed = 0x1p-48
)

// climb goes from the model of a fit to the next maximum of the likelihood, where expectation maximisation creeps. Near
// a maximum the likelihood is the same to its last digit, which leaves half of the digits of the model open: a fit that
// is to be exact goes on by the slope alone, to where that vanishes.
func (f *pxem) climb(o FitOptions, left int) (steps int, err error) {
	s := newSurface(f)
	s.evaluate(s.read())
	err = s.climb(math.Sqrt(summed*max(math.Abs(s.value), 1)), left, o.Tol/100, fitWindow,
		func() float64 { return s.value }, &optimize.MoreThuente{})
	if err == nil && o.Exact {
		s.evaluate(s.read())
		for _, j := range f.Features { // the logarithm of what is above a floor would fall without end
			g := f.Model.Group[j]
			if s.grad[s.size()-len(s.groups)+s.at[g]] > 0 && f.Model.Psi[j] < (1+nearFloor)*f.Floor[g] {
				f.Model.Psi[j] = f.Floor[g]
			}
		}
		err = s.climb(atMaximum, polishing, 0, polishing, func() float64 { return 0 }, &optimize.Bisection{})
	}
	return s.evals, err
}

// climb goes to where no derivative is above slope, some steps are done, or some value has fallen by no more than tol
// over a window of them, by the limited-memory method of Broyden, Fletcher, Goldfarb and Shanno (Liu and Nocedal 1989),
// in units of the slope at the start, which is about how far the maximum is.
func (s *surface) climb(slope float64, steps int, tol float64, window int, of func() float64,
	line optimize.Linesearcher) error {
	from := s.read()
	s.evaluate(from)
	base, unit := of(), floats.Norm(s.grad, 2)
	if !(unit > slope) {
		return nil
	}
	at := func(y []float64) []float64 { return floats.AddScaledTo(make([]float64, len(y)), from, unit, y) }
	found, err := optimize.Minimize(optimize.Problem{
		Func: func(y []float64) float64 { s.evaluate(at(y)); return (of() - base) / (unit * unit) },
		Grad: func(grad, y []float64) { s.evaluate(at(y)); floats.ScaleTo(grad, 1/unit, s.grad) },
	}, make([]float64, len(from)), &optimize.Settings{
		GradientThreshold: slope / unit, MajorIterations: steps, GradEvaluations: 2 * steps,
		Converger: &optimize.FunctionConverge{Absolute: tol / (unit * unit), Iterations: window},
	}, &optimize.LBFGS{Store: 20, Linesearcher: line})
	if found == nil {
		return fmt.Errorf("climbing: %w", err)
	}
	if err != nil && !errors.Is(err, optimize.ErrLinesearcherFailure) &&
		!errors.Is(err, optimize.ErrNonDescentDirection) && !errors.Is(err, optimize.ErrNoProgress) {
		return err
	}
	s.evaluate(from)
	least := s.value + summed*max(math.Abs(s.value), 1)
	if s.evaluate(at(found.X)); s.value > least { // a slope leads to a lower place, too
		s.write(from)
	}
	return nil
}
