package fitted

import (
	"fmt"
	"slices"
	"strings"

	"gonum.org/v1/gonum/mat"

	"parley/figure"
	"parley/method"
	"parley/methods/factors/ppca"
	"parley/problem"
)

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
