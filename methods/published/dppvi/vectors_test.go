package dppvi

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"testing"

	"parley/dataset"
	"parley/engine/local"
	"parley/internal/testkit"
	"parley/internal/vectors"
	"parley/judge/evaluate"
	"parley/method"
	"parley/methods/regression/fitted"
	"parley/methods/regression/glm"
	"parley/methods/regression/options"
	"parley/privacy/account"
	"parley/study"
)

// The descriptions' tolerances; the floors keep entries near zero from asking for
// more digits than float64 has.
var (
	tolAlgebra    = vectors.Tolerance{Rel: 1e-12, Floor: 0.1}
	tolOptimum    = vectors.Tolerance{Rel: 1e-6, Floor: 1}
	tolFixedPoint = vectors.Tolerance{Rel: 1e-5, Floor: 1}
	tolCharge     = vectors.Tolerance{Rel: 1e-6}
	tolTight      = vectors.Tolerance{Rel: 0.012} // how far apart the files' bounds are
	tolExact      = vectors.Tolerance{}
)

func verify(file []byte) ([]vectors.Check, error) {
	return vectors.Run(file, map[string]func([]byte, *vectors.List) error{
		"pvi/client-split/1": vectors.Format((*splitJSON).verify),
		"pvi/accounting/1":   vectors.Format((*accountingJSON).verify),
		"pvi/pvi-exact/1":    vectors.Format((*roundsJSON).verify),
	})
}

// unused are numbers on which nothing else depends: orders at which no minimum is attained.
var unused = regexp.MustCompile(`^\.dense_orders`)

// Numbers of independent implementations, described in testdata/vectors, agree, and changed ones do not.
func TestVectors(t *testing.T) {
	for name, file := range testkit.Files(t, "testdata/vectors/*.json", 3) {
		t.Run(name, func(t *testing.T) {
			checks, err := verify(file)
			if err != nil {
				t.Fatal(err)
			}
			testkit.Agree(t, checks, 12)
			sample := 30
			if name == "accounting.json" || name == "pvi_exact.json" {
				sample = 10 // a tenth of a second each
			}
			testkit.Changed(t, file, unused, sample, verify)
		})
	}
}

// momentsJSON is a density as the files write it.
type momentsJSON struct {
	Mean []float64 `json:"mean"`
	Var  []float64 `json:"var"`
}

func (n *momentsJSON) compareMoments(list *vectors.List, entry string, got glm.Gaussian, tol vectors.Tolerance) {
	mean, variance := got.Moments()
	list.Floats(entry+".mean", n.Mean, mean, tol)
	list.Floats(entry+".var", n.Var, variance, tol)
}

type roundsJSON struct {
	Schema string      `json:"schema"`
	X      [][]float64 `json:"X"`
	T      []float64   `json:"t"`
	Owner  []int       `json:"owner"`
	Prior  momentsJSON `json:"prior"`
	Global struct {
		momentsJSON
		ELBO float64 `json:"elbo"`
	} `json:"global_vi"`
	Runs []struct {
		Schedule string  `json:"schedule"`
		Damping  float64 `json:"damping"`
		Rounds   []struct {
			Round int `json:"round"`
			momentsJSON
		} `json:"rounds"`
		After struct {
			momentsJSON
			MaxError float64 `json:"max_abs_error_to_global"`
		} `json:"after_60_rounds"`
	} `json:"runs"`
}

// verify runs each schedule as a study of so many rounds as the file has
// moments after, and all rows in one place.
func (f *roundsJSON) verify(list *vectors.List) error {
	s, err := f.study()
	if err != nil {
		return err
	}
	// Plans know priors of one variance around 0.
	list.Floats("prior.mean", f.Prior.Mean, make([]float64, s.columns), tolExact)
	list.Floats("prior.var", f.Prior.Var, slices.Repeat([]float64{s.variance}, s.columns), tolExact)
	p, err := s.plan("sequential", 1, 1)
	if err != nil {
		return err
	}
	all, err := dataset.NewTable(p.Schema(), slices.Concat(s.rows...))
	if err != nil {
		return err
	}
	o, _, err := setup(p)
	if err != nil {
		return err
	}
	central, err := fitted.Central(context.Background(), o, all)
	if err != nil {
		return err
	}
	list.Equal("global_vi: converged", true, central.Info.Converged)
	f.Global.compareMoments(list, "global_vi", central.Model.Posterior, tolOptimum)
	list.Float("global_vi.elbo", f.Global.ELBO, central.Info.Value, tolOptimum)
	for i, r := range f.Runs {
		at := fmt.Sprintf("runs[%d]", i)
		for n, want := range r.Rounds {
			entry := fmt.Sprintf("%s.rounds[%d]", at, n)
			q, err := s.posterior(r.Schedule, r.Damping, n+1)
			if err != nil {
				return fmt.Errorf("%s: %w", entry, err)
			}
			list.Equal(entry+".round", want.Round, n+1)
			want.compareMoments(list, entry, q, tolOptimum)
		}
		q, err := s.posterior(r.Schedule, r.Damping, 60)
		if err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
		r.After.compareMoments(list, at+".after_60_rounds", q, tolFixedPoint)
		// The file's own distance says no more than that it is within the tolerance.
		list.Equal(at+".after_60_rounds.max_abs_error_to_global: small", true, r.After.MaxError >= 0 && r.After.MaxError < tolFixedPoint.Rel)
	}
	return nil
}

// partition is the file's rows as those of the sites of a study.
type partition struct {
	columns  int
	variance float64 // of the prior
	sites    []string
	rows     [][]dataset.Row // by site
}

var answers = map[float64]string{-1: "no", 1: "yes"}

// study divides the rows among their owners.
func (f *roundsJSON) study() (*partition, error) {
	if len(f.Owner) != len(f.X) || len(f.T) != len(f.X) {
		return nil, fmt.Errorf("%d owners of %d rows", len(f.Owner), len(f.X))
	}
	s := &partition{columns: len(f.X[0]), variance: f.Prior.Var[0]}
	for i, m := range f.Owner {
		if m < 0 || answers[f.T[i]] == "" {
			return nil, fmt.Errorf("row %d belongs to client %d and has label %v", i, m, f.T[i])
		}
		for len(s.rows) <= m {
			s.sites = append(s.sites, fmt.Sprintf("c%d", len(s.rows)))
			s.rows = append(s.rows, nil)
		}
		s.rows[m] = append(s.rows[m], dataset.Row{ID: fmt.Sprintf("%06d", i), Views: [][]float64{f.X[i]}, Subject: []string{answers[f.T[i]]}})
	}
	return s, nil
}

// plan is a plan that takes numbers as they are.
func (s *partition) plan(schedule string, damping float64, rounds int) (*study.Plan, error) {
	features, constants := make([]string, s.columns), make([]options.Constant, s.columns)
	for j := range features {
		features[j] = fmt.Sprintf("x%d", j)
		constants[j] = options.Constant{Feature: features[j], Scale: 1}
	}
	// JSON is YAML.
	text, err := json.Marshal(map[string]any{
		"parley": study.Version, "name": "vectors", "sites": s.sites, "subjects": []string{"y"},
		"views":   []any{map[string]any{"name": "v", "features": features}},
		"privacy": map[string]any{"protection": study.ProtectionNone},
		"method": map[string]any{
			"name": Name, "outcome": glm.Outcome{Column: "y", Levels: []string{"no", "yes"}}, "intercept": false, "constants": constants,
			"prior_variance": s.variance, "schedule": schedule, "rounds": rounds, "damping": damping, "tolerance": 0,
		},
	})
	if err != nil {
		return nil, err
	}
	return study.Parse("the vectors' plan", text, method.Registry{Method{}})
}

// posterior is that of a whole study.
func (s *partition) posterior(schedule string, damping float64, rounds int) (q glm.Gaussian, err error) {
	p, err := s.plan(schedule, damping, rounds)
	if err != nil {
		return q, err
	}
	rows := map[string]dataset.Source{}
	for m, site := range s.sites {
		if rows[site], err = dataset.NewTable(p.Schema(), s.rows[m]); err != nil {
			return q, err
		}
	}
	out, err := local.Run(context.Background(), local.Config{Plan: p, Methods: method.Registry{Method{}}, Data: rows})
	if err != nil {
		return q, err
	}
	data, err := method.ModelJSON(out.Result.Files)
	if err != nil {
		return q, err
	}
	m, err := fitted.LoadModel(data)
	if err != nil {
		return q, err
	}
	return m.Posterior, m.Posterior.CheckProper(s.columns)
}

type splitJSON struct {
	Schema string `json:"schema"`
	Cases  []struct {
		Name          string  `json:"name"`
		N             int     `json:"N"`
		Majority      int     `json:"N_majority"`
		M             int     `json:"M"`
		Rho           float64 `json:"rho"`
		Kappa         float64 `json:"kappa"`
		Valid         bool    `json:"valid"`
		Small         int     `json:"N_small"`
		Large         int     `json:"N_large"`
		Fraction      float64 `json:"majority_fraction"`
		Target        float64 `json:"target_fraction_small"`
		SmallMajority int     `json:"small_majority"`
		SmallMinority int     `json:"small_minority"`
		Unused        int     `json:"unused"`
		MinoritySmall float64 `json:"minority_fraction_small"`
		MinorityLeft  float64 `json:"minority_fraction_left"`
		DeltaSmall    float64 `json:"delta_small"`
		DeltaLarge    float64 `json:"delta_large"`
	} `json:"cases"`
}

func (f *splitJSON) verify(list *vectors.List) error {
	for i, c := range f.Cases {
		at := fmt.Sprintf("cases[%d].", i)
		scheme := evaluate.Scheme{Rho: c.Rho, Kappa: c.Kappa}
		if c.Name != "" {
			named, err := evaluate.ParseScheme(c.Name)
			if err != nil {
				return fmt.Errorf("%s %w", at, err)
			}
			list.Equal(at+"name: scheme", scheme, named)
		}
		h, err := scheme.Shares(c.M, c.N, c.Majority)
		if err != nil {
			return fmt.Errorf("%s %w", at, err)
		}
		list.Equal(at+"valid", c.Valid, h.Valid())
		for _, n := range []struct {
			entry     string
			want, got int
		}{
			{"N_small", c.Small, h.Small}, {"N_large", c.Large, h.Large}, {"small_majority", c.SmallMajority, h.SmallMajority},
			{"small_minority", c.SmallMinority, h.SmallMinority}, {"unused", c.Unused, h.Unused},
		} {
			list.Equal(at+n.entry, n.want, n.got)
		}
		list.Float(at+"majority_fraction", c.Fraction, h.Majority, tolAlgebra)
		list.Float(at+"target_fraction_small", c.Target, h.Target, tolAlgebra)
		list.Float(at+"minority_fraction_small", c.MinoritySmall, h.MinoritySmall, tolAlgebra)
		list.Float(at+"minority_fraction_left", c.MinorityLeft, h.MinorityLeft, tolAlgebra)
		list.Float(at+"delta_small", c.DeltaSmall, paperDelta(c.Small), tolExact)
		list.Float(at+"delta_large", c.DeltaLarge, paperDelta(c.Large), tolExact)
	}
	return nil
}

type chargeJSON struct {
	Rate          float64  `json:"q"`
	Sigma         float64  `json:"sigma"`
	Steps         int      `json:"steps"`
	Delta         float64  `json:"delta"`
	Classic       float64  `json:"eps_integer_2_33_classic"`
	OrderClassic  float64  `json:"order_classic"`
	Improved      float64  `json:"eps_dense_improved"`
	OrderImproved float64  `json:"order_improved"`
	Lower         *float64 `json:"eps_tight_lower"`
	Upper         *float64 `json:"eps_tight_upper"`
}

type accountingJSON struct {
	Schema string    `json:"schema"`
	Orders []float64 `json:"dense_orders"`
	RDP    []struct {
		Rate   float64 `json:"q"`
		Sigma  float64 `json:"sigma"`
		Values []struct {
			Alpha float64 `json:"alpha"`
			RDP   float64 `json:"rdp"`
		} `json:"values"`
	} `json:"rdp"`
	Epsilon []chargeJSON `json:"epsilon"`
}

func (f *accountingJSON) verify(list *vectors.List) error {
	for i, r := range f.RDP {
		var orders, want []float64
		for _, v := range r.Values {
			orders, want = append(orders, v.Alpha), append(want, v.RDP)
		}
		got, err := account.RDP(sampledGaussian(r.Rate, r.Sigma, 1), account.AddRemove, orders)
		if err != nil {
			return fmt.Errorf("rdp[%d]: %w", i, err)
		}
		list.Floats(fmt.Sprintf("rdp[%d].values", i), want, got, tolCharge)
	}
	var whole []float64
	for a := 2.0; a <= 33; a++ {
		whole = append(whole, a)
	}
	for i := range f.Epsilon {
		if err := f.Epsilon[i].verify(list, fmt.Sprintf("epsilon[%d].", i), whole, f.Orders); err != nil {
			return fmt.Errorf("epsilon[%d]: %w", i, err)
		}
	}
	return nil
}

func sampledGaussian(rate, sigma float64, steps int) []account.Mechanism {
	return []account.Mechanism{{Kind: account.Gaussian, Noise: sigma, Rate: rate, Diameter: 2, Count: steps}}
}

func (c *chargeJSON) verify(list *vectors.List, at string, whole, dense []float64) error {
	ms := sampledGaussian(c.Rate, c.Sigma, c.Steps)
	for _, m := range []struct {
		name    string
		orders  []float64
		convert func(orders, rdp []float64, delta float64) (float64, float64, error)
		epsilon float64
		order   float64
	}{
		{"classic", whole, account.ConvertRDPClassic, c.Classic, c.OrderClassic},
		{"improved", dense, account.ConvertRDP, c.Improved, c.OrderImproved},
	} {
		rdp, err := account.RDP(ms, account.AddRemove, m.orders)
		if err != nil {
			return err
		}
		epsilon, order, err := m.convert(m.orders, rdp, c.Delta)
		if err != nil {
			return err
		}
		list.Float(at+"eps_"+m.name, m.epsilon, epsilon, tolCharge)
		list.Float(at+"order_"+m.name, m.order, order, tolExact)
	}
	if c.Lower == nil || c.Upper == nil {
		return nil
	}
	epsilon, err := account.Epsilon(ms, account.AddRemove, c.Delta)
	if err != nil {
		return err
	}
	list.Equal(at+"eps_tight: between lower and upper", true, epsilon >= *c.Lower && epsilon <= *c.Upper)
	list.Float(at+"eps_tight_lower", *c.Lower, epsilon, tolTight)
	list.Float(at+"eps_tight_upper", *c.Upper, epsilon, tolTight)
	return nil
}
