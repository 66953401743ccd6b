package fitted

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/mat"

	"parley/figure"
	"parley/method"
	"parley/methods/factors/ppca"
	"parley/problem"
)

// The rotations of a model's factors.
const (
	rotateNone    = "none"
	rotateVarimax = "varimax"
	rotatePromax  = "promax"
)

// factorRotation says on which axes the factors of a model are shown: scores, loadings,
// summaries and tests are of the factors y = R x. The model itself, which loadings in
// model.json are of, x ~ N(0, I), stays as it was fitted, and with it every prediction
// and likelihood. Loadings on y are W R⁻¹, the pattern; those of features that a model
// describes, divided by the features' standard deviations, are what was rotated.
type factorRotation struct {
	Method       string      `json:"method"`              // varimax or promax
	Matrix       [][]float64 `json:"matrix"`              // R, factors × factors by rows
	Correlations [][]float64 `json:"factor_correlations"` // Φ = R Rᵀ, of y in the study's population; the identity with varimax
}

// correlated says whether the rotated factors are; nil is no rotation.
func (r *factorRotation) correlated() bool { return r != nil && r.Method == rotatePromax }

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
	if r.Method != rotateVarimax && r.Method != rotatePromax {
		return fmt.Errorf("rotation %q is not known", r.Method)
	}
	for _, m := range [][][]float64{r.Matrix, r.Correlations} {
		if len(m) != q || slices.ContainsFunc(m, func(row []float64) bool { return len(row) != q }) {
			return fmt.Errorf("the %s rotation is not %d × %d", r.Method, q, q)
		}
		for _, row := range m {
			if err := ppca.Finite("rotation", row); err != nil {
				return err
			}
		}
	}
	m, phi := dense(r.Matrix), new(mat.Dense)
	phi.Mul(m, m.T())
	for i := range q {
		for k := range q {
			want := r.Correlations[i][k]
			if !r.correlated() || i == k {
				want = map[bool]float64{true: 1}[i == k]
			}
			if math.Abs(phi.At(i, k)-want) > 1e-9 || math.Abs(phi.At(i, k)-r.Correlations[i][k]) > 1e-9 {
				return fmt.Errorf("the matrix of the %s rotation does not give the correlations of the factors", r.Method)
			}
		}
	}
	if mat.Cond(m, 2) > 1e8 {
		return fmt.Errorf("the %s rotation makes factors nearly the same", r.Method)
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

func byRows(m *mat.Dense) [][]float64 {
	r, _ := m.Dims()
	out := make([][]float64, r)
	for i := range out {
		out[i] = slices.Clone(m.RawRowView(i))
	}
	return out
}

// correlationTable shows how the rotated factors correlate.
func (r *factorRotation) correlationTable() figure.Table {
	t := figure.Table{ID: "correlations", Title: "Correlations of the factors", Columns: []figure.Column{{Name: "factor", Format: figure.Count}},
		Caption: "Between the rotated factors, in the population that the model describes."}
	for a := range r.Correlations {
		t.Columns[0].Numbers = append(t.Columns[0].Numbers, float64(a+1))
		t.Columns = append(t.Columns, figure.Column{Name: strconv.Itoa(a + 1), Numbers: figure.Numbers(r.Correlations[a])})
	}
	return t
}

// Rotate implements [method.Rotator]: varimax (Kaiser 1958), promax (Hendrickson and
// White 1964, power 4), or none, which is the canonical form again. It starts from the
// canonical factors, whatever rotation the model has.
func (m *Model) Rotate(to string) ([]method.File, *method.Account, error) {
	names := []string{rotateVarimax, rotatePromax, rotateNone}
	if !slices.Contains(names, to) {
		return nil, nil, problem.Problem{Where: "rotation " + to, What: "is not known", Hint: problem.DidYouMean(to, names, "one of "+strings.Join(names, ", "))}
	}
	out := *m
	out.Rotation = nil
	if to != rotateNone {
		r, err := m.rotation(to)
		if err != nil {
			return nil, nil, problem.Problem{Where: "model " + m.Study, What: err.Error(), Hint: "fit it with fewer factors (latent), or use another rotation"}
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

// rotation finds the rotation of the standardised loadings of what the model describes.
func (m *Model) rotation(to string) (*factorRotation, error) {
	var a []float64
	q := len(m.Factors)
	for _, v := range m.Views {
		for i := range v.Features {
			for l := range v.Features[i].Loadings {
				if f := &v.Features[i]; f.Noise != 0 {
					a = append(a, f.standardised(l))
				}
			}
		}
	}
	t, err := rotate(to, a, q)
	if err != nil {
		return nil, err
	}
	var matrix, phi mat.Dense
	if err := matrix.Inverse(mat.NewDense(q, q, t)); err != nil {
		return nil, fmt.Errorf("the rotated factors are nearly the same: %w", err)
	}
	phi.Mul(&matrix, matrix.T())
	r := &factorRotation{Method: to, Matrix: byRows(&matrix), Correlations: byRows(&phi)}
	return r, r.check(q)
}

// rotate finds T, the rotated pattern being A T.
func rotate(to string, a []float64, q int) ([]float64, error) {
	if to == rotatePromax {
		return ppca.Promax(a, q, ppca.Power)
	}
	return ppca.Varimax(a, q)
}

// shown returns the model with loadings, strengths and sites' factors on the axes that
// they are shown on: for tables, not for predictions.
func (m *Model) shown() *Model {
	if m.Rotation == nil {
		return m
	}
	out, q := *m, len(m.Factors)
	var t mat.Dense
	if err := t.Inverse(dense(m.Rotation.Matrix)); err != nil {
		panic(err) // check has seen its condition
	}
	phi := dense(m.Rotation.Correlations)
	out.Factors, out.Views, out.Sites = make([]float64, q), slices.Clone(m.Views), slices.Clone(m.Sites)
	for k := range out.Views {
		v := &out.Views[k]
		v.R2Each, v.Features, v.shares = nil, slices.Clone(v.Features), make(figure.Numbers, q)
		all := 0.0
		for i := range v.Features {
			f := &v.Features[i]
			var pattern, structure mat.VecDense
			pattern.MulVec(t.T(), mat.NewVecDense(q, slices.Clone(f.Loadings)))
			structure.MulVec(phi, &pattern)
			f.sd, f.Loadings, f.structure = f.total(), pattern.RawVector().Data, structure.RawVector().Data
			if f.Noise == 0 {
				continue
			}
			all += f.sd * f.sd
			for a := range q {
				out.Factors[a] += f.Loadings[a] * f.Loadings[a] / f.Noise
				v.shares[a] += f.structure[a] * f.structure[a]
			}
		}
		for a := range q {
			v.shares[a] /= all
		}
	}
	for i := range out.Sites {
		s := &out.Sites[i]
		s.LatentMean = slices.Clone(s.LatentMean)
		m.Rotation.latent(s.LatentMean)
		s.LatentCov = byRows(mat.NewDense(q, q, m.Rotation.covariance(slices.Concat(s.LatentCov...))))
	}
	return &out
}
