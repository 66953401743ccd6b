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
// identity): with the sums of [Sums] and ψ of feature j,
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
	return s
}

func (s *surface) size() int { return len(s.f.Features)*(s.f.Q+1) + len(s.groups) }

// read returns the numbers of the model.
func (s *surface) read() []float64 {
	m, q, x := s.f.Model, s.f.Q, make([]float64, s.size())
	for i, j := range s.f.Features {
		row := x[i*(q+1):][:q+1]
		copy(row, m.W[j*m.LD:][:q])
		row[q] = m.Mu[j]
		floats.Scale(1/s.unit[i], row)
	}
	noise := x[len(s.f.Features)*(q+1):]
	for _, j := range s.f.Features {
		g := m.Group[j]
		noise[s.at[g]] = math.Log(max(m.Psi[j]-s.f.Floor[g], 1e-3*s.f.Floor[g]))
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
	if s.grad == nil {
		s.grad = make([]float64, s.size())
	}
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

// climb goes from the model of a fit to the next maximum of the likelihood by the limited-memory
// method of Broyden, Fletcher, Goldfarb and Shanno (Liu and Nocedal 1989): where expectation
// maximisation creeps, it needs a tenth of the steps.
func (f *pxem) climb(o FitOptions) (steps int, err error) {
	s := newSurface(f)
	problem := optimize.Problem{
		Func: func(x []float64) float64 { s.evaluate(x); return s.value },
		Grad: func(grad, x []float64) { s.evaluate(x); copy(grad, s.grad) },
	}
	found, err := optimize.Minimize(problem, s.read(), &optimize.Settings{
		GradientThreshold: 1e-12, MajorIterations: o.MaxIter - creeping, FuncEvaluations: 2 * (o.MaxIter - creeping),
		Converger: &optimize.FunctionConverge{Absolute: o.Tol / 100, Iterations: fitWindow},
	}, &optimize.LBFGS{Store: 20, Linesearcher: &optimize.MoreThuente{}})
	if found == nil {
		return s.evals, fmt.Errorf("climbing: %w", err)
	}
	if err != nil && !errors.Is(err, optimize.ErrLinesearcherFailure) &&
		!errors.Is(err, optimize.ErrNonDescentDirection) && !errors.Is(err, optimize.ErrNoProgress) {
		return s.evals, err
	}
	s.write(found.X)
	return max(s.evals, 1), nil
}
