package fitted

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"

	"parley/figure"
	"parley/methods/factors/ppca"
)

// inUnits turns a loading or standard deviation in scaled units into the feature's own. It is not
// available where the sites had units of their own or no site had the feature.
func (m *Model) inUnits(f *ModelFeature, x float64) float64 {
	if m.Scaling == ppca.ScaleSiteRange || f.Noise == 0 {
		return math.NaN()
	}
	return x / f.Factor
}

// standardised returns the unit-free loading of feature f on factor a.
func (f *ModelFeature) standardised(a int) float64 { return f.Loadings[a] / f.total() }

// ranked lists the features by the size of their standardised loadings on factor a, the first top of them; all if top
// is 0.
func (m *Model) ranked(a, top int) []feature {
	all := m.described()
	slices.SortStableFunc(all, func(x, y feature) int {
		return cmp.Compare(math.Abs(y.standardised(a)), math.Abs(x.standardised(a)))
	})
	if top > 0 {
		all = all[:min(top, len(all))]
	}
	return all
}

// loadingTable has the first top features of each factor; all if top is 0.
func (m *Model) loadingTable(top int) figure.Table {
	t := figure.Table{ID: "loadings", Columns: []figure.Column{{Name: "factor", Format: figure.Count},
		{Name: "rank", Format: figure.Count}, {Name: "view"}, {Name: "feature"}, {Name: "unit"},
		{Name: "standardised", Numbers: figure.Numbers{}}, {Name: "scaled", Numbers: figure.Numbers{}},
		{Name: "own", Numbers: figure.Numbers{}}}}
	for a := range m.Factors {
		for i, e := range m.ranked(a, top) {
			t.Add(a+1, i+1, e.view, e.Name, e.Unit, e.standardised(a), e.Loadings[a],
				m.inUnits(e.ModelFeature, e.Loadings[a]))
		}
	}
	return t
}

// factorTable has each factor's strength, and its R² by itself in each view but of a rotated one.
func (m *Model) factorTable() figure.Table {
	t := figure.Table{ID: "factors", Title: "Factors", Columns: []figure.Column{{Name: "factor", Format: figure.Count},
		{Name: "strength", Numbers: figure.Numbers(m.Factors)}},
		Caption: "Strength is λᵀΨ⁻¹λ of a factor's loadings λ: how far it stands out of the noise. r2 is the share " +
			"of the view's variance within sites that the factor explains by itself; shares do not add up."}
	for a := range m.Factors {
		t.Columns[0].Numbers = append(t.Columns[0].Numbers, float64(a+1))
	}
	for _, v := range m.Views {
		if len(v.R2Each) > 0 {
			t.Columns = append(t.Columns, figure.Column{Name: "r2 " + v.Name, Format: figure.Percent,
				Numbers: v.R2Each})
		}
	}
	return t
}

// LoadingsCSV is the loadings as a table for other programs, with their standard errors where these are known.
func (m *Model) LoadingsCSV() ([]byte, error) {
	errors, t := m.hasErrors(), figure.Table{Columns: figure.TextColumns("view", "feature", "mean", "noise_variance")}
	m = m.shown()
	for _, name := range []string{"factor_%d", "se_%d"}[:map[bool]int{false: 1, true: 2}[errors]] {
		for a := range m.Factors {
			t.Columns = append(t.Columns, figure.Column{Name: fmt.Sprintf(name, a+1)})
		}
	}
	for _, f := range m.features() {
		cells := []any{f.view, f.Name, f.Mean, f.Noise}
		for _, x := range f.Loadings {
			cells = append(cells, x)
		}
		for a := 0; errors && a < len(m.Factors); a++ {
			se := f.LoadingSE[a]
			if se == 0 { // nothing is known
				se = math.NaN()
			}
			cells = append(cells, se)
		}
		t.Add(cells...)
	}
	return asCSV(t)
}

func asCSV(t figure.Table) ([]byte, error) {
	var b bytes.Buffer
	err := t.CSV(&b)
	return b.Bytes(), err
}
