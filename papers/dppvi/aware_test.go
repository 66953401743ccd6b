package dppvi

import (
	"math"
	"math/rand/v2"
	"testing"

	"parley/methods/regression/glm"
	"parley/privacy/account"
)

// Where gradients are those of a known quadratic, the posterior of its optimum is where it is, as
// wide as noise has it; and without noise to speak of the fit ends at the exact optimum.
func TestNoiseAwareInferenceFindsTheOptimum(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	d := glm.NewDesign(3)
	for range 2000 {
		x := []float64{r.NormFloat64(), r.NormFloat64(), 1}
		y := -1.0
		if r.Float64() < sigmoid(x[0]-0.5*x[2]) {
			y = 1
		}
		if err := d.Append(glm.Dense(x), y); err != nil {
			t.Fatal(err)
		}
	}
	a, err := newAware(d, account.Budget{Epsilon: 20, Delta: 1e-5}, 1)
	if err != nil {
		t.Fatal(err)
	}
	far, inside := 0.0, 0
	const curvature, optimum, traces = 3.0, 0.7, 200
	noise := awareClip * a.noise
	for range traces {
		c := coordinate{}
		for range 500 {
			x := optimum + 10*noise*r.NormFloat64()/math.Sqrt(500)
			g := awareRate*curvature*(x-optimum) + noise*r.NormFloat64()
			c.n, c.x, c.xx, c.g, c.gg, c.xg = c.n+1, c.x+x, c.xx+x*x, c.g+g, c.gg+g*g, c.xg+x*g
		}
		a.trace[0] = c
		mean, variance := a.optimum(0)
		far += (mean - optimum) / traces
		if math.Abs(mean-optimum) < 1.645*math.Sqrt(variance) {
			inside++
		}
	}
	if inside < 160 || math.Abs(far) > 0.2 {
		t.Errorf("%d of %d intervals of 90 %% hold the optimum, off by %v on average", inside, traces, far)
	}
	want := meanField(d)
	clear(a.trace)
	q, last, err := a.fit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for j, m := range want.Mean {
		sd := math.Sqrt(want.Variance[j])
		t.Logf("%v ± %v: %v ± %v, %v ± %v", m, sd, q.Mean[j], math.Sqrt(q.Variance[j]), last.Mean[j],
			math.Sqrt(last.Variance[j]))
		if math.Abs(q.Mean[j]-m) > 3*math.Sqrt(q.Variance[j]) || q.Variance[j] < 0.5*want.Variance[j] {
			t.Errorf("weight %d", j+1)
		}
	}
}

// meanField is the optimum of independent weights N(0, 1), by steps of natural gradients that are damped.
func meanField(d *glm.Design) glm.Normal {
	q := glm.Isotropic(d.Columns(), 0, 1).Normal()
	for range 2000 {
		eta, precision := make([]float64, len(q.Mean)), make([]float64, len(q.Mean))
		for i := range d.Rows() {
			r, y := d.Row(i), d.Outcome(i)
			a, c := q.Activation(r, 0)
			_, e := glm.ExpectLogSigmoid(y*a, c)
			for k, j := range r.Index {
				eta[j] += y * e[0] * r.Value[k]
				precision[j] -= e[1] * r.Value[k] * r.Value[k]
			}
		}
		for j, m := range q.Mean {
			q.Variance[j] = 1 / (0.8/q.Variance[j] + 0.2*(1+precision[j]))
			q.Mean[j] += 0.2 * q.Variance[j] * (eta[j] - m)
		}
	}
	return q
}
