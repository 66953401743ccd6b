package gvi

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

// sitesOf divides a design's rows unevenly.
func sitesOf(d *Design, sites int) []*Design {
	out := make([]*Design, sites)
	for m := range out {
		out[m] = NewDesign(d.Columns())
	}
	for i := range d.Rows() {
		m := min(i*i%7, sites-1)
		if err := out[m].Append(d.Row(i), d.Outcome(i)); err != nil {
			panic(err)
		}
	}
	return out
}

func all(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// Every fixed point is central variational inference, whatever the schedule, the
// likelihood, or who comes when.
func TestRoundsConvergeToCentralInference(t *testing.T) {
	classes := func(r *rand.Rand, f float64) float64 { return math.Abs(math.Round(math.Max(-2, math.Min(f, 2)))) }
	for name, c := range map[string]struct {
		l     Likelihood
		d     *Design
		damp  float64
		prior float64 // variance
		run   func(s *State, r *rand.Rand, u Updater) error
	}{
		"sequential": {Logistic{}, simulated(1, 60, 3, binary), 1, 4,
			func(s *State, _ *rand.Rand, u Updater) error { return s.Sequential(all(3), u) }},
		"synchronous": {Logistic{}, simulated(2, 60, 3, binary), 0.3, 4,
			func(s *State, _ *rand.Rand, u Updater) error { return s.Synchronous(all(3), u) }},
		"any order": {Logistic{}, simulated(3, 60, 3, binary), 0.7, 4,
			func(s *State, r *rand.Rand, u Updater) error {
				return s.Sequential([]int{r.IntN(3), r.IntN(3), r.IntN(3)}, u)
			}},
		"linear": {Linear{1}, simulated(4, 60, 3, func(r *rand.Rand, f float64) float64 { return f + r.NormFloat64() }), 1, 4,
			func(s *State, _ *rand.Rand, u Updater) error { return s.Sequential(all(3), u) }},
		// What shifts all classes alike is settled by the prior alone, and slowly if that is wide.
		"softmax": {Softmax{3}, simulated(5, 90, 2, classes), 1, 0.25,
			func(s *State, _ *rand.Rand, u Updater) error { return s.Sequential(all(3), u) }},
	} {
		t.Run(name, func(t *testing.T) {
			prior := Isotropic(c.l.Activations()*c.d.Columns(), 0, c.prior)
			want, _ := optimise(t, &Local{c.l, c.d, prior})
			s := Begin(prior, 3)
			update := Exact(c.l, sitesOf(c.d, 3), c.damp, Solve{})
			r := rand.New(rand.NewPCG(1, 1))
			for range 120 {
				if err := c.run(s, r, update); err != nil {
					t.Fatal(err)
				}
			}
			near(t, "eta", want.Eta, s.Q.Eta, 1e-5)
			near(t, "lambda", want.Lambda, s.Q.Lambda, 1e-5)
			total := 0.0
			for m := range s.Factors {
				total += Information(s.Factors[m], prior)
			}
			sum := 0.0
			for j := range s.Q.Lambda {
				sum += s.Q.Lambda[j]/prior.Lambda[j] - 1
			}
			near(t, "information", []float64{sum}, []float64{total}, 1e-9)
		})
	}
}

func TestRoundsReportSitesThatFail(t *testing.T) {
	d := simulated(1, 60, 3, binary)
	s := Begin(Isotropic(3, 0, 1), 3)
	before := s.Q.Clone()
	err := s.Synchronous(all(3), Exact(Logistic{}, sitesOf(d, 3), 1, Solve{MaxSteps: 1}))
	if !errors.Is(err, ErrNotConverged) {
		t.Error(err)
	}
	near(t, "q", before.Eta, s.Q.Eta, 0)
	if err := s.Sequential([]int{1}, Exact(Softmax{9}, sitesOf(d, 3), 1, Solve{})); err == nil {
		t.Error("a prior over other weights passes")
	}
}

// The paper's schedule on its distribution C: exact PVI comes within 0.2 points and
// 0.003 nats of central inference.
func TestPartitionedInferenceWorksOnDistributionC(t *testing.T) {
	parts := income(t, "C")
	var sites []*Design
	for _, name := range []string{"c01", "c02", "c03", "c04", "c05", "c06", "c07", "c08", "c09", "c10"} {
		sites = append(sites, parts[name])
	}
	prior := Isotropic(108, 0, 1)
	s := Begin(prior, len(sites))
	update := Exact(Logistic{}, sites, 1, Solve{Tolerance: 1e-3})
	for range 5 {
		if err := s.Sequential(all(len(sites)), update); err != nil {
			t.Fatal(err)
		}
	}
	p, err := PredictBinary(parts["test"], s.Q, false)
	if err != nil {
		t.Fatal(err)
	}
	if p.Accuracy() < 0.85115-0.002 || p.LogLik < -0.31701-0.003 {
		t.Errorf("partitioned: %.2f %%, %.4f", 100*p.Accuracy(), p.LogLik)
	}
}
