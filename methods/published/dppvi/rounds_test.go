package dppvi

import (
	"math"
	"math/rand/v2"
	"testing"

	"parley/methods/regression/glm"
)

// sitesOf divides a design's rows unevenly.
func sitesOf(d *glm.Design, sites int) []*glm.Design {
	out := make([]*glm.Design, sites)
	for m := range out {
		out[m] = glm.NewDesign(d.Columns())
	}
	for i := range d.Rows() {
		m := min(i*i%7, sites-1)
		if err := out[m].Append(d.Row(i), d.Outcome(i)); err != nil {
			panic(err)
		}
	}
	return out
}

// rounds are the updates of [refine] without a study around them: q is the prior times
// the factors of the sites.
type rounds struct {
	likelihood likelihood
	sites      []*glm.Design
	damping    float64
	solve      solve
	q          glm.Gaussian
	factors    []glm.Gaussian
}

func begin(l likelihood, sites []*glm.Design, damping float64, prior glm.Gaussian) *rounds {
	s := &rounds{likelihood: l, sites: sites, damping: damping, q: prior}
	for range sites {
		s.factors = append(s.factors, glm.Flat(len(prior.Eta)))
	}
	return s
}

// update lets sites update from the same q, each to its local optimum.
func (s *rounds) update(t testing.TB, sites ...int) {
	t.Helper()
	from := s.q
	for _, m := range sites {
		local := freeEnergy{Likelihood: s.likelihood, Data: s.sites[m], Cavity: from.Over(s.factors[m])}
		target, info, err := local.Optimum(from, s.solve)
		if err != nil || !info.Converged {
			t.Fatalf("%+v, %v", info, err)
		}
		factor, change, _ := refine(s.factors[m], from, target, s.damping)
		s.factors[m], s.q = factor, s.q.Times(change)
	}
}

// sequential lets one site update after the other.
func (s *rounds) sequential(t testing.TB, sites ...int) {
	t.Helper()
	for _, m := range sites {
		s.update(t, m)
	}
}

// Every fixed point is central variational inference, whatever the schedule, the
// likelihood, or who comes when.
func TestRoundsConvergeToCentralInference(t *testing.T) {
	classes := func(r *rand.Rand, f float64) float64 { return math.Abs(math.Round(math.Max(-2, math.Min(f, 2)))) }
	for name, c := range map[string]struct {
		l     likelihood
		d     *glm.Design
		damp  float64
		prior float64 // variance
		run   func(s *rounds, r *rand.Rand)
	}{
		"sequential": {logistic{}, simulated(1, 60, 3, binary), 1, 4,
			func(s *rounds, _ *rand.Rand) { s.sequential(t, 0, 1, 2) }},
		"synchronous": {logistic{}, simulated(2, 60, 3, binary), 0.3, 4,
			func(s *rounds, _ *rand.Rand) { s.update(t, 0, 1, 2) }},
		"any order": {logistic{}, simulated(3, 60, 3, binary), 0.7, 4,
			func(s *rounds, r *rand.Rand) { s.sequential(t, r.IntN(3), r.IntN(3), r.IntN(3)) }},
		"linear": {linear{glm.Linear{Variance: 1}}, simulated(4, 60, 3, func(r *rand.Rand, f float64) float64 { return f + r.NormFloat64() }), 1, 4,
			func(s *rounds, _ *rand.Rand) { s.sequential(t, 0, 1, 2) }},
		// What shifts all classes alike is settled by the prior alone, and slowly if that is wide.
		"softmax": {softmax{glm.Softmax{Classes: 3}}, simulated(5, 90, 2, classes), 1, 0.25,
			func(s *rounds, _ *rand.Rand) { s.sequential(t, 0, 1, 2) }},
	} {
		t.Run(name, func(t *testing.T) {
			prior := glm.Isotropic(c.l.Activations()*c.d.Columns(), 0, c.prior)
			want, _ := optimise(t, &freeEnergy{c.l, c.d, prior})
			s := begin(c.l, sitesOf(c.d, 3), c.damp, prior)
			r := rand.New(rand.NewPCG(1, 1))
			for range 120 {
				c.run(s, r)
			}
			near(t, "eta", want.Eta, s.q.Eta, 1e-5)
			near(t, "lambda", want.Lambda, s.q.Lambda, 1e-5)
			total := 0.0
			for m := range s.factors {
				total += information(s.factors[m], prior)
			}
			sum := 0.0
			for j := range s.q.Lambda {
				sum += s.q.Lambda[j]/prior.Lambda[j] - 1
			}
			near(t, "information", []float64{sum}, []float64{total}, 1e-9)
		})
	}
}
