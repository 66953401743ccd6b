package verify

import (
	"fmt"
	"math"
	"slices"

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

type predictiveJSON struct {
	Schema string `json:"schema"`
	Cases  []struct {
		Mean    []float64   `json:"mean"`
		Var     []float64   `json:"var"`
		X       [][]float64 `json:"X"`
		ActMean []float64   `json:"act_mean"`
		ActVar  []float64   `json:"act_var"`
		Exact   []float64   `json:"exact"`
	} `json:"cases"`
}

func (f *predictiveJSON) verify(list *vectors.List) error {
	for i, c := range f.Cases {
		at := fmt.Sprintf("cases[%d].", i)
		d, err := design(c.X, slices.Repeat([]float64{1}, len(c.X))) // whatever the outcomes
		if err != nil {
			return fmt.Errorf("%s %w", at, err)
		}
		mean, variance, exact := make([]float64, d.Rows()), make([]float64, d.Rows()), make([]float64, d.Rows())
		for i := range mean {
			mean[i], variance[i] = d.Row(i).Activation(c.Mean, c.Var)
			exact[i] = math.Exp(glm.LogExpectSigmoid(mean[i], variance[i]))
		}
		list.Floats(at+"act_mean", c.ActMean, mean, tolAlgebra)
		list.Floats(at+"act_var", c.ActVar, variance, tolAlgebra)
		list.Floats(at+"exact", c.Exact, exact, tolQuadrature)
	}
	return nil
}

type clippingJSON struct {
	Schema string `json:"schema"`
	Cases  []struct {
		C       float64     `json:"C"`
		G       [][]float64 `json:"g"`
		Norms   []float64   `json:"norms"`
		Factors []float64   `json:"factors"`
		Sum     []float64   `json:"clipped_sum"`
		Mean    []float64   `json:"clipped_mean"`
	} `json:"cases"`
}

func (f *clippingJSON) verify(list *vectors.List) error {
	for i, c := range f.Cases {
		at := fmt.Sprintf("cases[%d].", i)
		if len(c.G) == 0 || !(c.C > 0) {
			return fmt.Errorf("%s: %d gradients and the bound %v", at, len(c.G), c.C)
		}
		sum := make([]float64, len(c.G[0]))
		var norms, factors, mean []float64
		for _, g := range c.G {
			if len(g) != len(sum) {
				return fmt.Errorf("%s: gradients of %d and %d entries", at, len(sum), len(g))
			}
			norm := glm.Row{Value: g}.Norm()
			factor := glm.ClipFactor(norm, c.C)
			for j, x := range g {
				sum[j] += factor * x
			}
			norms, factors = append(norms, norm), append(factors, factor)
		}
		for _, x := range sum {
			mean = append(mean, x/float64(len(c.G)))
		}
		list.Floats(at+"norms", c.Norms, norms, tolAlgebra)
		list.Floats(at+"factors", c.Factors, factors, tolAlgebra)
		list.Floats(at+"clipped_sum", c.Sum, sum, tolAlgebra)
		list.Floats(at+"clipped_mean", c.Mean, mean, tolAlgebra)
	}
	return nil
}
