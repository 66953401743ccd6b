package verify

import (
	"fmt"

	"parley/internal/vectors"
	"parley/methods/regression/glm"
)

type naturalCaseJSON struct {
	Old       naturalJSON `json:"q_old"`
	New       naturalJSON `json:"q_new"`
	Product   naturalJSON `json:"product_q_old_q_new"`
	Quotient  naturalJSON `json:"quotient_q_new_q_old"`
	Factor    naturalJSON `json:"t_old"`
	Damping   float64     `json:"damping"`
	Damped    naturalJSON `json:"damped_delta"`
	NewFactor naturalJSON `json:"t_new"`
	Projected naturalJSON `json:"t_new_projected"`
	Delta     naturalJSON `json:"delta_projected"`
	After     naturalJSON `json:"q_after"`
	KLNewOld  float64     `json:"kl_q_new_q_old"`
	KLOldNew  float64     `json:"kl_q_old_q_new"`
}

// casesJSON is a file that is a list of cases.
type casesJSON[C any] struct {
	Schema string `json:"schema"`
	Cases  []C    `json:"cases"`
}

// ofCases runs each case, and says which of them cannot be run.
func ofCases[C any](verify func(c *C, list *vectors.List, at string) error) func([]byte, *vectors.List) error {
	return vectors.Format(func(f *casesJSON[C], list *vectors.List) error {
		for i := range f.Cases {
			at := fmt.Sprintf("cases[%d]", i)
			if err := verify(&f.Cases[i], list, at); err != nil {
				return fmt.Errorf("%s: %w", at, err)
			}
		}
		return nil
	})
}

func (c *naturalCaseJSON) verify(list *vectors.List, at string) error {
	q, err := c.Old.density()
	if err != nil {
		return fmt.Errorf("q_old: %w", err)
	}
	target, err := c.New.density()
	if err != nil {
		return fmt.Errorf("q_new: %w", err)
	}
	t, err := c.Factor.gaussian(len(q.Eta))
	if err != nil {
		return fmt.Errorf("t_old: %w", err)
	}
	if err := target.CheckProper(len(q.Eta)); err != nil {
		return fmt.Errorf("q_new: %w", err)
	}
	// Conversions go both ways.
	for _, both := range []struct {
		entry string
		file  *naturalJSON
		made  glm.Gaussian
	}{{"q_old", &c.Old, q}, {"q_new", &c.New, target}} {
		both.file.compare(list, at+"."+both.entry, both.made, tolAlgebra)
		natural, err := both.file.gaussian(len(q.Eta))
		if err != nil {
			return fmt.Errorf("%s: %w", both.entry, err)
		}
		both.file.compareMoments(list, at+"."+both.entry, natural, tolAlgebra)
	}
	c.Product.compare(list, at+".product_q_old_q_new", q.Times(target), tolAlgebra)
	c.Quotient.compare(list, at+".quotient_q_new_q_old", target.Over(q), tolAlgebra)
	damped := target.Over(q).Power(c.Damping)
	c.Damped.compare(list, at+".damped_delta", damped, tolAlgebra)
	c.NewFactor.compare(list, at+".t_new", t.Times(damped), tolAlgebra)
	factor, change, _ := glm.Refine(t, q, target, c.Damping)
	c.Projected.compare(list, at+".t_new_projected", factor, tolAlgebra)
	c.Delta.compare(list, at+".delta_projected", change, tolAlgebra)
	c.After.compare(list, at+".q_after", q.Times(change), tolAlgebra)
	for _, kl := range []struct {
		entry string
		a, b  glm.Gaussian
		want  float64
	}{{"kl_q_new_q_old", target, q, c.KLNewOld}, {"kl_q_old_q_new", q, target, c.KLOldNew}} {
		got, err := kl.a.KL(kl.b)
		if err != nil {
			return fmt.Errorf("%s: %w", kl.entry, err)
		}
		list.Float(at+"."+kl.entry, kl.want, got, tolAlgebra)
	}
	return nil
}

type energyCaseJSON struct {
	X       [][]float64 `json:"X"`
	T       []float64   `json:"t"`
	Old     naturalJSON `json:"q_old"`
	Factor  naturalJSON `json:"t_m"`
	Cavity  naturalJSON `json:"cavity"`
	Points  []pointJSON `json:"points"`
	Optimum struct {
		Mean       []float64   `json:"mean"`
		Var        []float64   `json:"var"`
		FreeEnergy float64     `json:"free_energy"`
		NewFactor  naturalJSON `json:"new_t_m"`
	} `json:"optimum"`
}

type pointJSON struct {
	Mean       []float64 `json:"mean"`
	LogVar     []float64 `json:"log_var"`
	FreeEnergy float64   `json:"free_energy"`
	KL         float64   `json:"kl_to_cavity"`
	Expected   []float64 `json:"expected_log_lik"`
	GradMean   []float64 `json:"grad_mean"`
	GradLogVar []float64 `json:"grad_log_var"`
	Twenty     struct {
		FreeEnergy float64   `json:"free_energy"`
		GradMean   []float64 `json:"grad_mean"`
		GradLogVar []float64 `json:"grad_log_var"`
	} `json:"twenty_nodes"`
}

func (c *energyCaseJSON) verify(list *vectors.List, at string) error {
	d, err := design(c.X, c.T)
	if err != nil {
		return err
	}
	q, err := c.Old.gaussian(d.Columns())
	if err != nil {
		return fmt.Errorf("q_old: %w", err)
	}
	t, err := c.Factor.gaussian(d.Columns())
	if err != nil {
		return fmt.Errorf("t_m: %w", err)
	}
	local := &glm.Local{Likelihood: glm.Logistic{}, Data: d, Cavity: q.Over(t)}
	if err := local.Check(); err != nil {
		return err
	}
	c.Cavity.compare(list, at+".cavity", local.Cavity, tolAlgebra)
	c.Cavity.compareMoments(list, at+".cavity", local.Cavity, tolAlgebra)
	for i := range c.Points {
		if err := c.Points[i].verify(list, fmt.Sprintf("%s.points[%d]", at, i), local); err != nil {
			return fmt.Errorf("points[%d]: %w", i, err)
		}
	}
	best, info, err := local.Optimum(q, glm.Solve{})
	if err != nil {
		return err
	}
	list.Equal(at+".optimum: converged", true, info.Converged)
	mean, variance := best.Moments()
	list.Floats(at+".optimum.mean", c.Optimum.Mean, mean, tolFreeEnergy)
	list.Floats(at+".optimum.var", c.Optimum.Var, variance, tolFreeEnergy)
	list.Float(at+".optimum.free_energy", c.Optimum.FreeEnergy, info.Value, tolFreeEnergy)
	c.Optimum.NewFactor.compare(list, at+".optimum.new_t_m", best.Over(local.Cavity), tolFreeEnergy)
	return nil
}

func (p *pointJSON) verify(list *vectors.List, at string, l *glm.Local) error {
	if len(p.Mean) != l.Weights() || len(p.LogVar) != l.Weights() {
		return fmt.Errorf("%d means and %d variances for %d weights", len(p.Mean), len(p.LogVar), l.Weights())
	}
	q, err := glm.FromPoint(append(append([]float64(nil), p.Mean...), p.LogVar...))
	if err != nil {
		return err
	}
	kl, err := q.KL(l.Cavity)
	if err != nil {
		return err
	}
	list.Float(at+".kl_to_cavity", p.KL, kl, tolRule)
	_, variance := q.Moments()
	expected := make([]float64, l.Data.Rows())
	first := make([]float64, 2)
	for i := range expected {
		a, c := l.Data.Row(i).Activation(p.Mean, variance)
		expected[i] = glm.Logistic{}.Expect(l.Data.Outcome(i), []float64{a}, []float64{c}, first, nil)
	}
	list.Floats(at+".expected_log_lik", p.Expected, expected, tolQuadrature)
	gradMean, gradLogVar := make([]float64, l.Weights()), make([]float64, l.Weights())
	list.Float(at+".free_energy", p.FreeEnergy, l.Value(p.Mean, p.LogVar, gradMean, gradLogVar), tolQuadrature)
	list.Floats(at+".grad_mean", p.GradMean, gradMean, tolQuadrature)
	list.Floats(at+".grad_log_var", p.GradLogVar, gradLogVar, tolQuadrature)
	by20 := glm.Local{Likelihood: glm.LogisticTwenty{}, Data: l.Data, Cavity: l.Cavity}
	list.Float(at+".twenty_nodes.free_energy", p.Twenty.FreeEnergy, by20.Value(p.Mean, p.LogVar, gradMean, gradLogVar), tolRule)
	list.Floats(at+".twenty_nodes.grad_mean", p.Twenty.GradMean, gradMean, tolRule)
	list.Floats(at+".twenty_nodes.grad_log_var", p.Twenty.GradLogVar, gradLogVar, tolRule)
	return nil
}
