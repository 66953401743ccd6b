package dppvi

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"testing"

	"parley/internal/testkit"
	"parley/internal/vectors"
	"parley/methods/regression/glm"
)

// The arithmetic of partitioned inference agrees with an independent implementation, and not with changed numbers.
func TestArithmeticEqualsTheVectors(t *testing.T) {
	formats := map[string]func([]byte, *vectors.List) error{
		"pvi/natural-parameters/1": ofCases((*naturalCaseJSON).verify),
		"pvi/local-free-energy/1":  ofCases((*energyCaseJSON).verify),
		"pvi/predictive/1":         vectors.Format((*predictiveJSON).verify),
	}
	run := func(file []byte) ([]vectors.Check, error) { return vectors.Run(file, formats) }
	for _, name := range []string{"natural_parameters", "local_free_energy", "predictive"} {
		t.Run(name, func(t *testing.T) {
			file := testkit.Get(os.ReadFile("testdata/vectors/" + name + ".json"))(t)
			testkit.Agree(t, testkit.Get(run(file))(t), 9)
			testkit.Changed(t, file, regexp.MustCompile("^$"), 30, run)
		})
	}
}

// twentyNodes takes every expectation by 20 Gauss–Hermite nodes.
type twentyNodes struct{ logistic }

func (twentyNodes) Expect(y, a, c float64) (value, da, dc float64, _ [3]float64) {
	rule := glm.GaussHermite(20)
	s := math.Sqrt(c)
	for k, z := range rule.Nodes {
		f := y * (a + s*z)
		p := 1 / (1 + math.Exp(f))
		value -= rule.Weights[k] * math.Log1p(math.Exp(-f))
		da += rule.Weights[k] * y * p
		dc -= rule.Weights[k] * p * (1 - p) / 2
	}
	return value, da, dc, [3]float64{}
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

// designOf makes a design matrix of rows with outcomes.
func designOf(x [][]float64, y []float64) (*glm.Design, error) {
	if len(x) != len(y) || len(x) == 0 || len(x[0]) == 0 {
		return nil, fmt.Errorf("%d rows and %d outcomes", len(x), len(y))
	}
	d := glm.NewDesign(len(x[0]))
	for i, row := range x {
		if err := d.Append(glm.Dense(row), y[i]); err != nil {
			return nil, err
		}
	}
	return d, nil
}

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
	c.Product.compare(list, at+".product_q_old_q_new", times(q, target), tolAlgebra)
	c.Quotient.compare(list, at+".quotient_q_new_q_old", over(target, q), tolAlgebra)
	damped := power(over(target, q), c.Damping)
	c.Damped.compare(list, at+".damped_delta", damped, tolAlgebra)
	c.NewFactor.compare(list, at+".t_new", times(t, damped), tolAlgebra)
	factor, change, _ := refine(t, q, target, c.Damping)
	c.Projected.compare(list, at+".t_new_projected", factor, tolAlgebra)
	c.Delta.compare(list, at+".delta_projected", change, tolAlgebra)
	c.After.compare(list, at+".q_after", times(q, change), tolAlgebra)
	for _, kl := range []struct {
		entry string
		a, b  glm.Gaussian
		want  float64
	}{{"kl_q_new_q_old", target, q, c.KLNewOld}, {"kl_q_old_q_new", q, target, c.KLOldNew}} {
		got, err := divergence(kl.a, kl.b)
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
	d, err := designOf(c.X, c.T)
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
	local := &freeEnergy{Likelihood: logistic{}, Data: d, Cavity: over(q, t)}
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
	best, info, err := local.Optimum(q, 100)
	if err != nil {
		return err
	}
	list.Equal(at+".optimum: converged", true, info.Converged)
	mean, variance := best.Moments()
	list.Floats(at+".optimum.mean", c.Optimum.Mean, mean, tolFreeEnergy)
	list.Floats(at+".optimum.var", c.Optimum.Var, variance, tolFreeEnergy)
	list.Float(at+".optimum.free_energy", c.Optimum.FreeEnergy, info.Value, tolFreeEnergy)
	c.Optimum.NewFactor.compare(list, at+".optimum.new_t_m", over(best, local.Cavity), tolFreeEnergy)
	return nil
}

func (p *pointJSON) verify(list *vectors.List, at string, l *freeEnergy) error {
	if len(p.Mean) != l.Data.Columns() || len(p.LogVar) != l.Data.Columns() {
		return fmt.Errorf("%d means and %d variances for %d weights", len(p.Mean), len(p.LogVar), l.Data.Columns())
	}
	q, err := fromPoint(append(append([]float64(nil), p.Mean...), p.LogVar...))
	if err != nil {
		return err
	}
	kl, err := divergence(q, l.Cavity)
	if err != nil {
		return err
	}
	list.Float(at+".kl_to_cavity", p.KL, kl, tolRule)
	_, variance := q.Moments()
	expected := make([]float64, l.Data.Rows())
	for i := range expected {
		a, c := l.Data.Row(i).Activation(p.Mean, variance)
		expected[i], _, _, _ = logistic{}.Expect(l.Data.Outcome(i), a, c)
	}
	list.Floats(at+".expected_log_lik", p.Expected, expected, tolQuadrature)
	gradMean, gradLogVar := make([]float64, l.Data.Columns()), make([]float64, l.Data.Columns())
	list.Float(at+".free_energy", p.FreeEnergy, l.Value(p.Mean, p.LogVar, gradMean, gradLogVar), tolQuadrature)
	list.Floats(at+".grad_mean", p.GradMean, gradMean, tolQuadrature)
	list.Floats(at+".grad_log_var", p.GradLogVar, gradLogVar, tolQuadrature)
	by20 := freeEnergy{Likelihood: twentyNodes{}, Data: l.Data, Cavity: l.Cavity}
	list.Float(at+".twenty_nodes.free_energy", p.Twenty.FreeEnergy, by20.Value(p.Mean, p.LogVar, gradMean, gradLogVar),
		tolRule)
	list.Floats(at+".twenty_nodes.grad_mean", p.Twenty.GradMean, gradMean, tolRule)
	list.Floats(at+".twenty_nodes.grad_log_var", p.Twenty.GradLogVar, gradLogVar, tolRule)
	return nil
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
		d, err := designOf(c.X, slices.Repeat([]float64{1}, len(c.X))) // whatever the outcomes
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
