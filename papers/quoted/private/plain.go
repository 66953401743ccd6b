package private

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"gonum.org/v1/gonum/mat"

	"parley/dataset"
	"parley/judge/evaluate"
	"parley/method"
	"parley/methods/factors"
	"parley/methods/factors/fitted"
	"parley/methods/factors/ppca"
	"parley/papers/deal"
	"parley/privacy/account"
	"parley/study"
)

// Of a plain release: the constant entry of a subject's vector, and the standard deviation
// in parts of the range for which its norm is not clipped.
const (
	plainConstant = 0.3
	plainSD       = 0.2
)

// plain fits a model to one isotropic release of noised moments of each site (Dwork,
// Talwar, Thakurta and Zhang, "Analyze Gauss", STOC 2014), added up: eigenvalues of the
// covariance that noise made negative are raised to a little. The noise is simulated.
func (x *data) plain(ctx context.Context, sites []dataset.Source, epsilon float64,
	seed uint64) (evaluate.Model, error) {
	sd, err := deal.Noise(1, math.Sqrt2, 1, account.Budget{Epsilon: epsilon, Delta: delta})
	if err != nil {
		return nil, err
	}
	r := rand.New(rand.NewPCG(seed, 3))
	d := len(x.ranges)
	m := mat.NewSymDense(d+1, nil)
	scale := math.Sqrt(1-plainConstant*plainConstant) / (plainSD * math.Sqrt(float64(d)))
	for _, site := range sites {
		for row, err := range site.Rows(ctx) {
			if err != nil {
				return nil, err
			}
			t, j, norm := make([]float64, d+1), 0, 0.0
			for _, v := range row.Views {
				for _, value := range v {
					t[j] = scale * (max(0, min(1, (value-x.ranges[j][0])/(x.ranges[j][1]-x.ranges[j][0]))) - 0.5)
					norm += t[j] * t[j]
					j++
				}
			}
			for j := range d {
				t[j] *= min(1, math.Sqrt((1-plainConstant*plainConstant)/norm))
			}
			t[d] = plainConstant
			m.SymRankOne(m, 1, mat.NewVecDense(d+1, t))
		}
		for i := range d + 1 {
			m.SetSym(i, i, m.At(i, i)+sd*r.NormFloat64())
			for j := range i {
				m.SetSym(i, j, m.At(i, j)+sd/math.Sqrt2*r.NormFloat64())
			}
		}
	}
	n := max(1, m.At(d, d)/plainConstant/plainConstant)
	b := ppca.Block{N: n, Mean: make([]float64, d), Scatter: make([]float64, d*d)}
	cov := mat.NewSymDense(d, nil)
	for j := range d {
		b.Features = append(b.Features, j)
		b.Mean[j] = max(-0.5, min(0.5, m.At(j, d)/plainConstant/scale/n))
	}
	for i := range d {
		for j := range i + 1 {
			cov.SetSym(i, j, m.At(i, j)/scale/scale/n-b.Mean[i]*b.Mean[j])
		}
	}
	var e mat.EigenSym
	if !e.Factorize(cov, true) {
		return nil, fmt.Errorf("the eigenvalues did not converge")
	}
	var v mat.Dense
	e.VectorsTo(&v)
	const least = 1e-4
	for a, y := range e.Values(nil) {
		for i := range d {
			for j := range d {
				b.Scatter[i*d+j] += n * max(y, least) * (v.At(i, a) * v.At(j, a))
			}
		}
	}
	for j := range b.Mean {
		b.Mean[j] += 0.5
	}
	var dims []int
	for _, view := range x.train.Schema().Views {
		dims = append(dims, len(view.Columns))
	}
	l, err := ppca.NewLayout(dims, ppca.NoisePerView)
	if err != nil {
		return nil, err
	}
	fit, err := ppca.Fit(l, []ppca.Block{b}, x.q, nil, ppca.FitOptions{})
	if err != nil {
		return nil, err
	}
	return x.model(l, &fit.Params)
}

// model opens parameters of values in parts of the ranges.
func (x *data) model(l ppca.Layout, p *ppca.Params) (evaluate.Model, error) {
	m := &fitted.Model{Format: fitted.ModelFormat, Plan: strings.Repeat("0", 64), Study: "plain", Scaling: "range",
		Factors: make([]float64, p.Rank)}
	for k, v := range x.train.Schema().Views {
		view := fitted.ModelView{Name: v.Name}
		for lo, hi := l.View(k); lo < hi; lo++ {
			view.Features = append(view.Features, fitted.ModelFeature{Name: v.Columns[len(view.Features)].Name,
				Shift: x.ranges[lo][0], Factor: 1 / (x.ranges[lo][1] - x.ranges[lo][0]),
				Mean: p.Mu[lo], Noise: p.Noise[k], Loadings: p.W[lo*p.Rank:][:p.Rank]})
		}
		m.Views = append(m.Views, view)
	}
	data, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	return factors.Method{}.Evaluator(new(study.Plan), []method.File{{Name: "model/model.json", Data: data}}, false)
}
