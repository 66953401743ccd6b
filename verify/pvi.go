package verify

import (
	"fmt"

	"parley/internal/vectors"
	"parley/methods/regression/glm"
)

var regressionFormats = map[string]func([]byte, *vectors.List) error{
	"pvi/natural-parameters/1": ofCases((*naturalCaseJSON).verify),
	"pvi/local-free-energy/1":  ofCases((*energyCaseJSON).verify),
	"pvi/predictive/1":         vectors.Format((*predictiveJSON).verify),
	"pvi/clipping/1":           vectors.Format((*clippingJSON).verify),
}

// The descriptions' tolerances; the floors keep entries near zero from asking for
// more digits than float64 has.
var (
	tolAlgebra    = vectors.Tolerance{Rel: 1e-12, Floor: 0.1}
	tolRule       = vectors.Tolerance{Rel: 1e-9, Floor: 0.01}
	tolQuadrature = vectors.Tolerance{Rel: 1e-9, Floor: 1}
	tolFreeEnergy = vectors.Tolerance{Rel: 1e-6, Floor: 1}
)

// naturalJSON is a density or factor as the files write it: by natural
// parameters, by moments, or by both.
type naturalJSON struct {
	Eta    []float64 `json:"eta"`
	Lambda []float64 `json:"lam"`
	Mean   []float64 `json:"mean"`
	Var    []float64 `json:"var"`
}

func (n *naturalJSON) gaussian(d int) (glm.Gaussian, error) {
	g := glm.Gaussian{Eta: n.Eta, Lambda: n.Lambda}
	return g, g.Check(d)
}

// density wants all four parts, where a file has both, and reads the moments.
func (n *naturalJSON) density() (glm.Gaussian, error) {
	g, err := glm.FromMoments(n.Mean, n.Var)
	if err != nil {
		return g, err
	}
	if len(g.Eta) == 0 {
		return g, fmt.Errorf("a density over no weights")
	}
	return g, nil
}

func (n *naturalJSON) compare(list *vectors.List, entry string, got glm.Gaussian, tol vectors.Tolerance) {
	list.Floats(entry+".eta", n.Eta, got.Eta, tol)
	list.Floats(entry+".lam", n.Lambda, got.Lambda, tol)
}

func (n *naturalJSON) compareMoments(list *vectors.List, entry string, got glm.Gaussian, tol vectors.Tolerance) {
	mean, variance := got.Moments()
	list.Floats(entry+".mean", n.Mean, mean, tol)
	list.Floats(entry+".var", n.Var, variance, tol)
}

// design makes a design matrix of rows with outcomes.
func design(x [][]float64, y []float64) (*glm.Design, error) {
	if len(x) != len(y) || len(x) == 0 || len(x[0]) == 0 {
		return nil, fmt.Errorf("%d rows and %d outcomes", len(x), len(y))
	}
	d := glm.NewDesign(len(x[0]))
	for i, row := range x {
		if err := d.AppendDense(row, y[i]); err != nil {
			return nil, err
		}
	}
	return d, nil
}
