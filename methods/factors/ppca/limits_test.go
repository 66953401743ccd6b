package ppca_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"parley/methods/factors/factorstest"
	"parley/methods/factors/ppca"
)

// Moments that no data have are made into such that a fit can use; those of data,
// whatever they are, stay as they are to the last bit.
func TestMomentsThatCannotBeAreMended(t *testing.T) {
	l := factorstest.Shape(t, ppca.NoisePerFeature, 3, 2)
	r := rand.New(rand.NewPCG(81, 1))
	tr := factorstest.NewTruth(r, l, 1, 0.3)
	rows := tr.Subjects(r, 40)
	for i := range rows {
		rows[i][0], rows[i][4] = 1e6+rows[i][0], 7
		rows[i][2] *= 1e-9
	}
	honest := factorstest.Moments(factorstest.BlocksOf(t, l, rows)...)[0]
	same := honest
	same.Scatter = slices.Clone(honest.Scatter)
	if err := same.MakePossible(); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(same.Scatter, honest.Scatter) {
		t.Errorf("the moments of data were changed:\n%v\n%v", honest.Scatter, same.Scatter)
	}
	for name, lie := range map[string]func(s []float64){
		"together more than each": func(s []float64) { s[1], s[5] = 1e9, 1e9 },
		"nothing goes with much":  func(s []float64) { s[0] = 0 },
		"all against all": func(s []float64) {
			for i := range s {
				if i%6 != 0 {
					s[i] = -1e6
				}
			}
		},
	} {
		b := honest
		b.Scatter = slices.Clone(honest.Scatter)
		lie(b.Scatter)
		if err := b.MakePossible(); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, err := ppca.Fit(l, []ppca.Block{b, honest}, 2, nil, ppca.FitOptions{MaxIter: 200}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
