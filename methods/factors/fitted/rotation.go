package fitted

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/mat"

	"parley/method"
	"parley/methods/factors/ppca"
	"parley/problem"
)

// The rotations of a model's factors.
const (
	rotateNone    = "none"
	rotateVarimax = "varimax"
)

// factorRotation says on which axes the factors of a model are shown: scores, loadings,
// summaries and tests are of the factors y = R x, which are as uncorrelated as x. The model itself,
// which loadings in model.json are of, x ~ N(0, I), stays as it was fitted, and with it every prediction
// and likelihood. Loadings on y are W Rᵀ; those of features that a model
// describes, divided by the features' standard deviations, are what was rotated.
type factorRotation struct {
	Method string      `json:"method"` // varimax
	Matrix [][]float64 `json:"matrix"` // R, factors × factors by rows, orthogonal
}

// name is the rotation's, none if there is none.
func (r *factorRotation) name() string {
	if r == nil {
		return rotateNone
	}
	return r.Method
}

// check says what is wrong with a rotation of q factors that came from elsewhere.
func (r *factorRotation) check(q int) error {
	if r == nil {
		return nil
	}
	if r.Method != rotateVarimax {
		return problem.Problem{Where: "rotation " + r.Method, What: "is not known",
			Hint: "turn the study's own model by varimax"}
	}
	if len(r.Matrix) != q || slices.ContainsFunc(r.Matrix, func(row []float64) bool { return len(row) != q }) {
		return fmt.Errorf("the %s rotation is not %d × %d", r.Method, q, q)
	}
	var product mat.Dense
	product.Mul(dense(r.Matrix), dense(r.Matrix).T())
	for i, x := range product.RawMatrix().Data {
		if want := map[bool]float64{true: 1}[i%(q+1) == 0]; !(math.Abs(x-want) < 1e-9) {
			return fmt.Errorf("the matrix of the %s rotation is not orthogonal", r.Method)
		}
	}
	return nil
}

// latent turns the mean of a subject's factors in place.
func (r *factorRotation) latent(x []float64) {
	if r == nil {
		return
	}
	y := make([]float64, len(x))
	for i, row := range r.Matrix {
		for k, v := range row {
			y[i] += v * x[k]
		}
	}
	copy(x, y)
}

// covariance returns R C Rᵀ by rows.
func (r *factorRotation) covariance(c []float64) []float64 {
	if r == nil {
		return c
	}
	m, out := dense(r.Matrix), new(mat.Dense)
	out.Product(m, mat.NewDense(len(r.Matrix), len(r.Matrix), slices.Clone(c)), m.T())
	return out.RawMatrix().Data
}

func dense(rows [][]float64) *mat.Dense {
	return mat.NewDense(len(rows), len(rows), slices.Concat(rows...))
}

// Rotate implements [method.Rotator]: varimax (Kaiser 1958), or none, which is the canonical form again. It starts
// from the canonical factors, whatever rotation the model has.
func (m *Model) Rotate(to string) ([]method.File, *method.Account, error) {
	names := []string{rotateVarimax, rotateNone}
	if !slices.Contains(names, to) {
		return nil, nil, problem.Problem{Where: "rotation " + to, What: "is not known",
			Hint: problem.DidYouMean(to, names, "one of "+strings.Join(names, ", ")+"; of promax, that of R, by "+
				"model/loadings.csv")}
	}
	out := *m
	out.Rotation = nil
	if to == rotateVarimax {
		r, err := m.varimax()
		if err != nil {
			return nil, nil, problem.Problem{Where: "model " + m.Study, What: err.Error(),
				Hint: "fit it with fewer factors (latent)"}
		}
		out.Rotation = r
	}
	data, err := out.Encode()
	if err != nil {
		return nil, nil, err
	}
	loadings, err := out.LoadingsCSV()
	if err != nil {
		return nil, nil, err
	}
	account, err := out.Summary(5)
	return []method.File{{Name: "model.json", Data: data}, {Name: "loadings.csv", Data: loadings}}, account, err
}

// varimax finds the rotation of the standardised loadings of what the model describes.
func (m *Model) varimax() (*factorRotation, error) {
	var a []float64
	q := len(m.Factors)
	for _, f := range m.described() {
		for l := range q {
			a = append(a, f.standardised(l))
		}
	}
	t, err := ppca.Varimax(a, q)
	if err != nil {
		return nil, err
	}
	r := &factorRotation{Method: rotateVarimax}
	for c := range q { // R = Tᵀ
		row := make([]float64, q)
		for k := range row {
			row[k] = t[k*q+c]
		}
		r.Matrix = append(r.Matrix, row)
	}
	return r, r.check(q)
}

// shown returns the model with loadings and strengths on the axes that they are shown on: for tables, not for
// predictions.
func (m *Model) shown() *Model {
	if m.Rotation == nil {
		return m
	}
	out, q := *m, len(m.Factors)
	out.Factors, out.Views = make([]float64, q), slices.Clone(m.Views)
	for k := range out.Views {
		v := &out.Views[k]
		v.R2Each, v.Features = nil, slices.Clone(v.Features)
		for i := range v.Features {
			f := &v.Features[i]
			f.Loadings = slices.Clone(f.Loadings)
			m.Rotation.latent(f.Loadings) // a row of W Rᵀ
			for a, w := range f.Loadings {
				if f.Noise > 0 {
					out.Factors[a] += w * w / f.Noise
				}
			}
		}
	}
	return &out
}
