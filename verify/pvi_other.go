package verify

import (
	"fmt"
	"math"
	"slices"

	"parley/internal/vectors"
	"parley/methods/regression/glm"
)

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
