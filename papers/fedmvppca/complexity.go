package fedmvppca

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"parley/dataset"
	"parley/figure"
	"parley/papers/experiment"
	"parley/papers/internal/cputime"
	"parley/papers/melba"
)

// size is how much one site has to compute: rows, features in each of so many views, factors.
type size struct{ rows, features, views, factors int }

func (s size) d() int { return s.features * s.views }

// usual is the size of which one number at a time is varied.
var usual = size{8000, 60, 3, 8}

// vary are the sizes of a slope, by what is varied.
func vary() map[string][]size {
	all := map[string][]size{}
	for _, by := range []int{1, 2, 4, 8} {
		n, d, q := usual, usual, usual
		n.rows, d.features, q.factors = usual.rows*by/2, usual.features*by/2, usual.factors*by/2
		all["N"], all["d"], all["q"] = append(all["N"], n), append(all["d"], d), append(all["q"], q)
	}
	return all
}

// work is what is timed: seconds of processors for a size.
var work = []struct {
	name, claim string
	seconds     func(context.Context, size) (float64, error)
}{
	{"iteration row by row, as published", "N d q", rowByRow},
	{"the one pass over the rows, here", "N d²", onePass},
	{"iteration on its sums, here", "d² q", onSums},
}

// complexity measures what section 3.3 says. All is timed in one cell, one after the other, since
// cells that run beside each other share the processors.
func complexity() experiment.Experiment {
	return experiment.Experiment{Name: "fedmvppca-complexity",
		Cells: func(quick bool) (cells experiment.Cells) {
			cells.Add(nth("times", 0), func(ctx context.Context, _ experiment.Data) (experiment.Values, error) {
				v := experiment.Values{}
				for _, w := range work {
					for what, sizes := range vary() {
						for _, s := range sizes {
							if quick {
								s.rows /= 4
							}
							least := math.Inf(1)
							for range 5 {
								runtime.GC() // so that no other work is timed
								x, err := w.seconds(ctx, s)
								if err != nil {
									return nil, err
								}
								least = min(least, x)
							}
							v[w.name+" "+what] = append(v[w.name+" "+what], least)
						}
					}
				}
				return v, nil
			})
			return cells
		},
		Conclude: func(o experiment.Outcomes) experiment.Conclusion {
			t := figure.Table{ID: "slopes", Title: "Slopes", Caption: "By what power of each number the time grows, " +
				"and what it is for the usual size; of doubling all features by how much it grows.",
				Columns: figure.TextColumns("work", "as counted", "power of N", "of d", "of q", "time",
					"twice the features")}
			sizes := vary()
			for _, w := range work {
				cells := []any{w.name, w.claim}
				for _, what := range []string{"N", "d", "q"} {
					y := of(o, "times", w.name+" "+what)
					if len(y) == 0 {
						return experiment.Conclusion{}
					}
					var x, logs []float64
					for i, s := range sizes[what] {
						number := map[string]int{"N": s.rows, "d": s.d(), "q": s.factors}[what]
						x, logs = append(x, math.Log(float64(number))), append(logs, math.Log(max(y[i], 1e-9)))
					}
					_, slope := stat.LinearRegression(x, logs, nil, false)
					cells = append(cells, experiment.Minus(fmt.Sprintf("%.2f", slope)))
				}
				d := of(o, "times", w.name+" d")
				at := slices.Index(sizes["d"], usual)
				t.Add(append(cells, fmt.Sprintf("%.3g ms", 1e3*d[at]), fmt.Sprintf("%.1f", d[at+1]/d[at]))...)
			}
			return experiment.Conclusion{Tables: []figure.Table{t}}
		},
	}
}

// rowByRow is an iteration of EM as appendix A has it, with a sum over subjects in every formula:
// ⟨x⟩ of each row, then Σ (t − μ)⟨x⟩ᵀ and Σ ⟨x xᵀ⟩, then W.
func rowByRow(_ context.Context, s size) (float64, error) {
	rows, w := s.draw(s.rows), s.draw(s.factors)
	begun := cputime.Used()
	d, q := s.d(), s.factors
	var precision, cov, out mat.Dense
	loadings := mat.NewDense(d, q, w)
	precision.Mul(loadings.T(), loadings)
	if err := cov.Inverse(&precision); err != nil {
		return 0, err
	}
	b, xx := make([]float64, d*q), make([]float64, q*q)
	projected, x := make([]float64, q), make([]float64, q)
	p := cov.RawMatrix().Data
	for t := range slices.Chunk(rows, d) {
		clear(projected)
		for i, v := range t {
			for a, l := range w[i*q:][:q] {
				projected[a] += l * v
			}
		}
		for a := range x {
			x[a] = floats.Dot(p[a*q:][:q], projected)
		}
		for i, v := range t {
			for a, y := range x {
				b[i*q+a] += v * y
			}
		}
		for a, y := range x {
			floats.AddScaled(xx[a*q:][:q], y, x)
		}
	}
	out.Solve(mat.NewDense(q, q, xx), mat.NewDense(d, q, b).T()) // its condition is of no matter
	return (cputime.Used() - begun).Seconds(), nil
}

// draw are so many rows.
func (s size) draw(rows int) []float64 {
	rng := rand.New(rand.NewPCG(1, uint64(rows)))
	x := make([]float64, rows*s.d())
	for i := range x {
		x[i] = rng.NormFloat64()
	}
	return x
}

// site times the study of one site with so many iterations.
func (s size) site(ctx context.Context, iterations int) (float64, error) {
	dims := slices.Repeat([]int{s.features}, s.views)
	var all []dataset.Row
	for t := range slices.Chunk(s.draw(s.rows), s.d()) {
		all = append(all, dataset.Row{ID: fmt.Sprintf("%06d", len(all)), Views: melba.Views(dims, t)})
	}
	table, err := dataset.NewTable(melba.Schema(dims), all)
	if err != nil {
		return 0, err
	}
	c := condition{data: synthetic.of(s.factors), sites: 1}
	begun := cputime.Used()
	_, err = globals(ctx, c, &division{sites: []dataset.Source{table}}, 1, func(c condition, d *division) (keys, keys) {
		m, _ := published(c, d)
		m["first_iterations"] = iterations
		return m, nil
	})
	return (cputime.Used() - begun).Seconds(), err
}

func onePass(ctx context.Context, s size) (float64, error) { return s.site(ctx, 1) }

// onSums is what further iterations add, of as many as take a good part of a second. All sizes have
// a sixteenth of the rows, so that the pass does not hide the iterations.
func onSums(ctx context.Context, s size) (float64, error) {
	further := 50 + 400_000_000/(s.d()*s.d()*s.factors)
	s.rows /= 16
	few, err := s.site(ctx, 1)
	if err != nil {
		return 0, err
	}
	many, err := s.site(ctx, 1+further)
	return (many - few) / float64(further), err
}
