package fitted

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/mat"

	"parley/figure"
	"parley/method"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
	"parley/problem"
)

// steadyRatio is the least ratio of neighbouring strengths at which a factor's
// axis can be told from its neighbour's. Between halves of one data set, factors
// further apart than this agree (cosines of .98, .90 at least), and closer ones
// may turn into each other.
const steadyRatio = 1.8

// comparison is what compare says, as JSON.
type comparison struct {
	Studies  [2]string     `json:"studies"`
	Features int           `json:"features_in_common"`
	Only     [2][]string   `json:"features_only"` // in the first, in the second
	Angles   []float64     `json:"principal_angles_degrees"`
	Matches  []factorMatch `json:"matches"`
}

// factorMatch is a factor of the first model with its counterpart in the second.
type factorMatch struct {
	A           int     `json:"factor_a"`
	B           int     `json:"factor_b"`
	Correlation float64 `json:"correlation"` // of their weighted loadings, signed
	Comparable  bool    `json:"comparable"`  // both stand apart from their neighbours
}

// common is a feature that both models describe.
type common struct{ a, b *ModelFeature }

// Compare implements [method.Comparer]. Everything is compared in the features'
// own units, so that two fits with different scalings are comparable, and
// loadings weighted by the noise of the other model: w/√ψ_B.
func (m *Model) Compare(with method.Model) (*method.Account, error) {
	o, ok := with.(*Model)
	if !ok {
		return nil, problem.Problem{What: fmt.Sprintf("a model of %s cannot be compared with one of %s", m.Method(),
			with.Method())}
	}
	if (m.Scaling == ppca.ScaleSiteRange) != (o.Scaling == ppca.ScaleSiteRange) {
		return nil, problem.Problem{What: fmt.Sprintf("one model was fitted with scaling %q, in units of each site, "+
			"and the other was not: their loadings have no common unit", ppca.ScaleSiteRange),
			Hint: "compare two fits that have a common scale"}
	}
	a, b := m.shown(), o.shown()
	shared, only := a.inCommon(b)
	switch n := len(shared); {
	case n == 0:
		return nil, problem.Problem{What: "the two models have no feature in common",
			Hint: "features are matched by view and name"}
	case n < max(len(m.Factors), len(o.Factors)):
		return nil, problem.Problem{What: fmt.Sprintf("%d features in common are fewer than the factors", n)}
	}
	c := &comparison{Studies: [2]string{m.Study, o.Study}, Features: len(shared), Only: only}
	wa, wb := weightedLoadings(shared)
	var err error
	if c.Angles, err = ppca.PrincipalAngles(wa, wb); err != nil {
		return nil, err
	}
	c.Matches = matches(wa, wb)
	for i := range c.Matches {
		x := &c.Matches[i]
		if x.Comparable = m.Rotation.name() == o.Rotation.name(); m.Rotation == nil {
			x.Comparable = x.Comparable && apart(a.Factors, x.A-1) && apart(b.Factors, x.B-1)
		}
	}
	account := c.account()
	if a, b := options.AdjustedFor(m.adjustedFor()), options.AdjustedFor(o.adjustedFor()); a != b {
		account.Notes.Add(problem.Problem{What: fmt.Sprintf("the features of A are adjusted for %s and those of B for "+
			"%s: factors that are such differences are in one model alone", cmp.Or(a, "nothing"),
			cmp.Or(b, "nothing"))})
	}
	if m.Rotation.name() != o.Rotation.name() {
		account.Notes.Add(problem.Problem{What: fmt.Sprintf("the factors of A are rotated by %s and those of B by %s: "+
			"compare single factors only under one rotation", m.Rotation.name(), o.Rotation.name()),
			Hint: "parley model rotate gives a model another rotation"})
	}
	return account, nil
}

// inCommon lists the features that both describe, in o's order, and the names
// of those that only one does.
func (m *Model) inCommon(o *Model) (shared []common, only [2][]string) {
	at := map[string]*ModelFeature{}
	for _, f := range m.described() {
		at[f.view+"/"+f.Name] = f.ModelFeature
	}
	for _, f := range o.described() {
		name := f.view + "/" + f.Name
		if at[name] == nil {
			only[1] = append(only[1], name)
			continue
		}
		shared = append(shared, common{at[name], f.ModelFeature})
		delete(at, name)
	}
	for _, f := range m.described() {
		if name := f.view + "/" + f.Name; at[name] != nil {
			only[0] = append(only[0], name)
		}
	}
	return shared, only
}

// weightedLoadings are those of both models, features × factors.
func weightedLoadings(shared []common) (a, b *mat.Dense) {
	a, b = mat.NewDense(len(shared), len(shared[0].a.Loadings), nil),
		mat.NewDense(len(shared), len(shared[0].b.Loadings), nil)
	for i, s := range shared {
		weight := s.b.Factor / math.Sqrt(s.b.Noise) // 1/√ψ in own units
		for f, w := range s.a.Loadings {
			a.Set(i, f, w/s.a.Factor*weight)
		}
		for f, w := range s.b.Loadings {
			b.Set(i, f, w/s.b.Factor*weight)
		}
	}
	return a, b
}

// matches pairs the factors one to one, those with the largest correlations of their
// weighted loadings first, whatever their signs.
func matches(a, b *mat.Dense) (list []factorMatch) {
	var all []factorMatch
	for i := range a.RawMatrix().Cols {
		for j := range b.RawMatrix().Cols {
			u, v, x := a.ColView(i), b.ColView(j), 0.0
			if size := mat.Norm(u, 2) * mat.Norm(v, 2); size > 0 {
				x = max(-1, min(1, mat.Dot(u, v)/size))
			}
			all = append(all, factorMatch{A: i + 1, B: j + 1, Correlation: x})
		}
	}
	slices.SortStableFunc(all, func(x, y factorMatch) int {
		return cmp.Compare(math.Abs(y.Correlation), math.Abs(x.Correlation))
	})
	for _, x := range all {
		if !slices.ContainsFunc(list, func(y factorMatch) bool { return x.A == y.A || x.B == y.B }) {
			list = append(list, x)
		}
	}
	slices.SortFunc(list, func(x, y factorMatch) int { return x.A - y.A })
	return list
}

// apart says whether a factor's strength differs enough from its neighbours'.
func apart(strengths []float64, i int) bool {
	return (i == 0 || strengths[i-1] >= steadyRatio*strengths[i]) &&
		(i+1 == len(strengths) || strengths[i] >= steadyRatio*strengths[i+1])
}

func (c *comparison) account() *method.Account {
	a := &method.Account{Value: c}
	angles := make([]string, len(c.Angles))
	for i, x := range c.Angles {
		angles[i] = figure.General.Text(x)
	}
	a.Facts = []figure.Fact{
		{Name: "A", Value: c.Studies[0]}, {Name: "B", Value: c.Studies[1]},
		{Name: "features in common", Value: fmt.Sprint(c.Features)},
		{Name: "principal angles", Value: strings.Join(angles, "°, ") + "°"},
	}
	for i, name := range []string{"A", "B"} {
		if n := len(c.Only[i]); n > 0 {
			a.Notes.Add(problem.Problem{Where: "model " + name,
				What: fmt.Sprintf("%s of it not compared, since the other lacks them: %s", figure.Plural(n, "feature"),
					strings.Join(c.Only[i][:min(n, 8)], ", "))})
		}
	}
	f := figure.Table{Title: "Factors, matched one to one",
		Caption: "Correlation is that of the loadings, weighted by the noise. Compare single factors only where it " +
			"says yes: elsewhere a neighbour is so close in strength (less than 1.8 times) that the two may turn " +
			"into each other, or the models have other rotations, and only the space that they span is sure, for " +
			"which see the principal angles.",
		Columns: []figure.Column{{Name: "A", Format: figure.Count}, {Name: "B", Format: figure.Count},
			{Name: "correlation"}, {Name: "comparable"}}}
	for _, m := range c.Matches {
		f.Add(m.A, m.B, m.Correlation, map[bool]string{true: "yes", false: "no"}[m.Comparable])
	}
	a.Tables = []figure.Table{f}
	return a
}
