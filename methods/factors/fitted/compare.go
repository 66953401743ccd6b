package fitted

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
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
	// Correlations are those of all factors of the first with all of the second, by their weighted
	// loadings.
	Correlations [][]float64    `json:"correlations"`
	Views        []viewContrast `json:"views"`
}

// factorMatch is a factor of the first model with its counterpart in the second.
type factorMatch struct {
	A           int     `json:"factor_a"`
	B           int     `json:"factor_b"`
	Correlation float64 `json:"correlation"` // of their weighted loadings, signed
	Aligned     float64 `json:"correlation_after_rotation"`
	Comparable  bool    `json:"comparable"` // both stand apart from their neighbours
}

// viewContrast compares what two models say of one view.
type viewContrast struct {
	View     string      `json:"view"`
	Features int         `json:"features"`
	Loadings float64     `json:"loadings_rv"`         // RV coefficient of W Wᵀ: 1 if they are proportional
	Means    float64     `json:"mean_difference"`     // root mean square, in standard deviations of B's population
	Noise    float64     `json:"noise_sd_ratio"`      // A's by B's, geometric mean
	Spread   float64     `json:"population_sd_ratio"` // A's by B's, geometric mean
	R2       [2]*float64 `json:"r2"`                  // of A and of B; null where not known
}

// common is a feature that both models describe.
type common struct {
	view string
	a, b *ModelFeature
}

// Compare implements [method.Comparer]. Everything is compared in the features'
// own units, so that two fits with different scalings are comparable, and
// loadings weighted by the noise of the other model: w/√ψ_B.
func (m *Model) Compare(with method.Model) (*method.Account, error) {
	o, ok := with.(*Model)
	if !ok {
		return nil, problem.Problem{What: fmt.Sprintf("a model of %s cannot be compared with one of %s", m.Method(), with.Method())}
	}
	if (m.Scaling == options.ScaleSiteRange) != (o.Scaling == options.ScaleSiteRange) {
		return nil, problem.Problem{What: fmt.Sprintf("one model was fitted with scaling %q, in units of each site, and the other was not: their loadings have no common unit", options.ScaleSiteRange),
			Hint: "compare two fits that have a common scale"}
	}
	shared, only := m.inCommon(o)
	if len(shared) == 0 {
		return nil, problem.Problem{What: "the two models have no feature in common", Hint: "features are matched by view and name"}
	}
	a, b := columns(shared, len(m.Factors), len(o.Factors))
	angles, err := subspaceAngles(a, b)
	if err != nil {
		return nil, err
	}
	c := comparison{Studies: [2]string{m.Study, o.Study}, Features: len(shared), Only: only, Angles: angles}
	if c.Matches, c.Correlations, err = m.shownMatches(o); err != nil {
		return nil, err
	}
	for k, v := range o.Views {
		if x, ok := contrast(v.Name, shared); ok {
			x.R2 = [2]*float64{m.r2Of(v.Name), o.Views[k].R2}
			c.Views = append(c.Views, x)
		}
	}
	account := c.account()
	if a, b := options.AdjustedFor(m.adjustedFor()), options.AdjustedFor(o.adjustedFor()); a != b {
		account.Notes.Add(problem.Problem{What: fmt.Sprintf("the features of A are adjusted for %s and those of B for %s: factors that are such differences are in one model alone", cmp.Or(a, "nothing"), cmp.Or(b, "nothing"))})
	}
	if m.Rotation.name() != o.Rotation.name() {
		account.Notes.Add(problem.Problem{What: fmt.Sprintf("the factors of A are rotated by %s and those of B by %s: compare single factors only under one rotation", m.Rotation.name(), o.Rotation.name()),
			Hint: "parley model rotate gives a model another rotation"})
	}
	return account, nil
}

// shownMatches pairs the factors on the axes that they are shown on.
func (m *Model) shownMatches(o *Model) ([]factorMatch, [][]float64, error) {
	a, b := m.shown(), o.shown()
	shared, _ := a.inCommon(b)
	wa, wb := columns(shared, len(a.Factors), len(b.Factors))
	list, correlations, err := matches(wa, wb, a.Factors, b.Factors)
	if m.Rotation != nil || o.Rotation != nil { // axes follow from the criterion, not from strengths
		for i := range list {
			list[i].Comparable = m.Rotation.name() == o.Rotation.name()
		}
	}
	return list, correlations, err
}

func (m *Model) r2Of(view string) *float64 {
	for _, v := range m.Views {
		if v.Name == view {
			return v.R2
		}
	}
	return nil
}

// inCommon lists the features that both describe, in o's order, and the names
// of those that only one does.
func (m *Model) inCommon(o *Model) (shared []common, only [2][]string) {
	type key struct{ view, feature string }
	at := map[key]*ModelFeature{}
	for _, v := range m.Views {
		for i := range v.Features {
			if f := &v.Features[i]; f.Noise != 0 {
				at[key{v.Name, f.Name}] = f
			}
		}
	}
	seen := map[key]bool{}
	for _, v := range o.Views {
		for i := range v.Features {
			f, k := &v.Features[i], key{v.Name, v.Features[i].Name}
			switch {
			case f.Noise == 0:
			case at[k] == nil:
				only[1] = append(only[1], v.Name+"/"+f.Name)
			default:
				seen[k] = true
				shared = append(shared, common{v.Name, at[k], f})
			}
		}
	}
	for _, v := range m.Views {
		for _, f := range v.Features {
			if k := (key{v.Name, f.Name}); at[k] != nil && !seen[k] {
				only[0] = append(only[0], v.Name+"/"+f.Name)
			}
		}
	}
	return shared, only
}

// columns returns the weighted loadings of both models, features × factors.
func columns(shared []common, qa, qb int) (a, b *mat.Dense) {
	a, b = mat.NewDense(len(shared), qa, nil), mat.NewDense(len(shared), qb, nil)
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

// subspaceAngles returns the principal angles between the spaces that the
// columns span, rising, in degrees: as many as the
// smaller has dimensions.
func subspaceAngles(a, b *mat.Dense) ([]float64, error) {
	if r, qa := a.Dims(); r < qa || r < b.RawMatrix().Cols {
		return nil, problem.Problem{What: fmt.Sprintf("%d features in common are fewer than the factors", r)}
	}
	if a.RawMatrix().Cols < b.RawMatrix().Cols {
		a, b = b, a
	}
	angles, err := ppca.PrincipalAngles(a, b)
	for i := range angles {
		angles[i] *= 180 / math.Pi
	}
	return angles, err
}

// matches pairs the factors one to one, those with the largest correlations of their
// weighted loadings first, whatever their signs, and says how
// alike the pairs are once all of A is turned to B by orthogonal Procrustes. It also returns
// the correlations of all factors.
func matches(a, b *mat.Dense, strengthA, strengthB []float64) ([]factorMatch, [][]float64, error) {
	var cross mat.Dense
	cross.Mul(a.T(), b)
	normA, normB := norms(a), norms(b)
	gain, correlations := make([][]float64, len(normA)), make([][]float64, len(normA))
	for i := range gain {
		gain[i], correlations[i] = make([]float64, len(normB)), make([]float64, len(normB))
		for j := range gain[i] {
			correlations[i][j] = cosine(cross.At(i, j), normA[i], normB[j])
			gain[i][j] = math.Abs(correlations[i][j])
		}
	}
	var svd mat.SVD
	if !svd.Factorize(&cross, mat.SVDThin) {
		return nil, nil, fmt.Errorf("the singular values of the loadings did not converge")
	}
	var u, v, turn, turned mat.Dense
	svd.UTo(&u)
	svd.VTo(&v)
	turn.Mul(&u, v.T())
	turned.Mul(a, &turn) // column j is the counterpart of B's column j
	normT := norms(&turned)
	var list []factorMatch
	for i, j := range assign(gain) {
		if j < 0 {
			continue
		}
		list = append(list, factorMatch{
			A: i + 1, B: j + 1, Correlation: correlations[i][j],
			Aligned:    cosine(mat.Dot(turned.ColView(j), b.ColView(j)), normT[j], normB[j]),
			Comparable: apart(strengthA, i) && apart(strengthB, j),
		})
	}
	return list, correlations, nil
}

func norms(a *mat.Dense) []float64 {
	_, c := a.Dims()
	n := make([]float64, c)
	for j := range n {
		n[j] = mat.Norm(a.ColView(j), 2)
	}
	return n
}

func cosine(dot, a, b float64) float64 {
	if a == 0 || b == 0 {
		return 0
	}
	return max(-1, min(1, dot/a/b))
}

// apart says whether a factor's strength differs enough from its neighbours'.
func apart(strengths []float64, i int) bool {
	return (i == 0 || strengths[i-1] >= steadyRatio*strengths[i]) && (i+1 == len(strengths) || strengths[i] >= steadyRatio*strengths[i+1])
}

// contrast compares two models on the features of a view.
func contrast(view string, shared []common) (c viewContrast, ok bool) {
	c.View = view
	var aa, ab, bb [][]float64 // Gram matrices; ‖W_A W_Aᵀ‖² = ‖W_Aᵀ W_A‖² and so on
	add := func(gram *[][]float64, x, y []float64, scale float64) {
		if *gram == nil {
			*gram = make([][]float64, len(x))
			for i := range *gram {
				(*gram)[i] = make([]float64, len(y))
			}
		}
		for i, u := range x {
			for j, v := range y {
				(*gram)[i][j] += scale * u * v
			}
		}
	}
	for _, s := range shared {
		if s.view != view {
			continue
		}
		c.Features++
		sd := s.b.total() / s.b.Factor // in own units, so that features weigh alike
		x, y := 1/(s.a.Factor*sd), 1/(s.b.Factor*sd)
		add(&aa, s.a.Loadings, s.a.Loadings, x*x)
		add(&ab, s.a.Loadings, s.b.Loadings, x*y)
		add(&bb, s.b.Loadings, s.b.Loadings, y*y)
		shift := (s.a.Mean/s.a.Factor + s.a.Shift - s.b.Mean/s.b.Factor - s.b.Shift) / sd
		c.Means += shift * shift
		c.Noise += math.Log(s.a.Noise/s.b.Noise)/2 - math.Log(s.a.Factor/s.b.Factor)
		c.Spread += math.Log(s.a.total() / s.a.Factor / sd)
	}
	if c.Features == 0 {
		return c, false
	}
	n := float64(c.Features)
	c.Means, c.Noise, c.Spread = math.Sqrt(c.Means/n), math.Exp(c.Noise/n), math.Exp(c.Spread/n)
	if norm := math.Sqrt(squares(aa) * squares(bb)); norm > 0 {
		c.Loadings = min(1, squares(ab)/norm)
	}
	return c, true
}

func squares(a [][]float64) (s float64) {
	for _, row := range a {
		for _, x := range row {
			s += x * x
		}
	}
	return s
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
			a.Notes.Add(problem.Problem{Where: "model " + name, What: fmt.Sprintf("%s of it not compared, since the other lacks them: %s", figure.Plural(n, "feature"), strings.Join(c.Only[i][:min(n, 8)], ", "))})
		}
	}
	f := figure.Table{Title: "Factors, matched one to one",
		Caption: "Correlation is that of the loadings, weighted by the noise; aligned is that after all factors of A are turned together to those of B. Compare single factors only where it says yes: elsewhere a neighbour is so close in strength (less than 1.8 times) that the two may turn into each other, or the models have other rotations, and only the space that they span is sure, for which see the principal angles.",
		Columns: []figure.Column{{Name: "A", Format: figure.Count}, {Name: "B", Format: figure.Count}, {Name: "correlation"}, {Name: "aligned"}, {Name: "comparable"}}}
	for _, m := range c.Matches {
		f.Add(m.A, m.B, m.Correlation, m.Aligned, map[bool]string{true: "yes", false: "no"}[m.Comparable])
	}
	v := figure.Table{Title: "Views",
		Caption: "Loadings: RV coefficient of the two patterns of covariance, 1 if they are the same whatever the rotation. Means: root mean square difference in standard deviations of B. Noise and population: ratio of standard deviations, A by B.",
		Columns: []figure.Column{{Name: "view"}, {Name: "features", Format: figure.Count}, {Name: "loadings"}, {Name: "means"}, {Name: "noise"}, {Name: "population"}}}
	for _, x := range c.Views {
		v.Add(x.View, x.Features, x.Loadings, x.Means, x.Noise, x.Spread)
	}
	a.Figures, a.Tables = []figure.Figure{c.picture()}, []figure.Table{f, v}
	return a
}

// picture shows all factors against all, those of B in the order of their counterparts.
func (c *comparison) picture() figure.Figure {
	h := figure.Heatmap{Legend: "correlation of loadings", Diverging: true, Reach: 1, Facets: []figure.Facet{{Title: "Factor of B"}}}
	var order []int
	for _, m := range c.Matches {
		order = append(order, m.B-1)
	}
	for i, row := range c.Correlations {
		for j := range row {
			if !slices.Contains(order, j) {
				order = append(order, j)
			}
		}
		h.Rows = append(h.Rows, fmt.Sprintf("A, factor %d", i+1))
		values := make(figure.Numbers, len(row))
		for at, j := range order {
			values[at] = row[j]
		}
		h.Facets[0].Values = append(h.Facets[0].Values, values)
	}
	for _, j := range order {
		h.Columns = append(h.Columns, strconv.Itoa(j+1))
	}
	return figure.Figure{ID: "factors-compared", Title: "Factors of one model against those of the other", Chart: h,
		Caption: "Correlations of the loadings of the features that both models have. Factors of B stand in the order of their counterparts in A: if the models agree, the diagonal is dark and all else pale. Brown on the diagonal is a factor of opposite sign, which is the same pattern. A row that is dark in several places is a factor that the other model divides.",
		Alt:     "Heatmap of the correlations between the factors of two models."}
}

// assign pairs rows with columns, each at most once, the largest gains that are left first. It returns each row's
// column, −1 where there are more rows than columns.
func assign(gain [][]float64) []int {
	column := slices.Repeat([]int{-1}, len(gain))
	for range min(len(gain), len(gain[0])) {
		row, to, most := 0, 0, math.Inf(-1)
		for i, of := range gain {
			for j, x := range of {
				if column[i] < 0 && !slices.Contains(column, j) && x > most {
					row, to, most = i, j, x
				}
			}
		}
		column[row] = to
	}
	return column
}
