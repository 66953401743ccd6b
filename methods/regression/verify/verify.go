// Package verify compares the numerics of regression with published test
// vectors: numbers from independent implementations, which lie in ../testdata/pvi.
// [Vectors] runs one file of them.
package verify

import (
	"fmt"

	"parley/internal/vectors"
	"parley/methods/regression/glm"
)

// Schema is how the "schema" of this method's test vectors begins.
const Schema = "pvi/"

// Vectors runs one file of published test vectors and compares every entry with the
// tolerance its description states. The file's "schema" says which of the formats it
// is; an unknown one is an error, and so is a file that cannot be run.
func Vectors(file []byte) ([]vectors.Check, error) {
	return vectors.Run(file, map[string]func([]byte, *vectors.List) error{
		"pvi/natural-parameters/1": ofCases((*naturalCaseJSON).verify),
		"pvi/local-free-energy/1":  ofCases((*energyCaseJSON).verify),
		"pvi/predictive/1":         vectors.Format((*predictiveJSON).verify),
		"pvi/clipping/1":           vectors.Format((*clippingJSON).verify),
	})
}

// The descriptions' tolerances; the floors keep entries near zero from asking for
// more digits than float64 has.
var (
	tolAlgebra    = vectors.Tolerance{Rel: 1e-12, Floor: 0.1}
	tolRule       = vectors.Tolerance{Rel: 1e-9, Floor: 0.01}
	tolQuadrature = vectors.Tolerance{Rel: 1e-9, Floor: 1}
	tolOptimum    = vectors.Tolerance{Rel: 1e-6, Floor: 1}
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
