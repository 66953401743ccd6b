package dppvi

import (
	"fmt"
	"math"
	"os"
	"testing"

	"parley/dataset"
	"parley/engine/local"
	"parley/internal/testkit"
	"parley/internal/vectors"
	"parley/judge/evaluate"
	"parley/privacy/account"
)

// vectorsOf decodes numbers of an independent implementation, which testdata/vectors describes.
func vectorsOf(t *testing.T, name string, v any) {
	t.Helper()
	file, err := os.ReadFile("testdata/vectors/" + name)
	if err == nil {
		err = vectors.Decode(file, v)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// same holds a number against that of the vectors, with a relative tolerance.
func same(t *testing.T, what string, want, got, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance*max(math.Abs(want), 0.1)) {
		t.Errorf("%s: want %v, got %v", what, want, got)
	}
}

type moments struct {
	Round    int       `json:"round"`
	Mean     []float64 `json:"mean"`
	Var      []float64 `json:"var"`
	ELBO     float64   `json:"elbo"`
	MaxError float64   `json:"max_abs_error_to_global"`
}

// The published rounds, through the real engine: tasks, gates, stores and all.
func TestRoundsEqualTheVectors(t *testing.T) {
	var f struct {
		Schema string      `json:"schema"`
		X      [][]float64 `json:"X"`
		T      []float64   `json:"t"`
		Owner  []int       `json:"owner"`
		Prior  moments     `json:"prior"`
		Global moments     `json:"global_vi"`
		Runs   []struct {
			Schedule string    `json:"schedule"`
			Damping  float64   `json:"damping"`
			Rounds   []moments `json:"rounds"`
			After    moments   `json:"after_60_rounds"`
		} `json:"runs"`
	}
	vectorsOf(t, "pvi_exact.json", &f)
	s := sample{X: f.X}
	for _, y := range f.T {
		s.Y = append(s.Y, map[float64]string{-1: "no", 1: "yes"}[y])
	}
	sites := []string{"c0", "c1", "c2"}
	for _, r := range f.Runs {
		for _, want := range append(r.Rounds, moments{Round: 60, Mean: r.After.Mean, Var: r.After.Var}) {
			p := planOf(t, 3, sites, fmt.Sprintf(twoLevels+"algorithm: exact\nschedule: %s\nrounds: %d\ndamping: %v\ntolerance: 0\nprior_variance: %v", r.Schedule, want.Round, r.Damping, f.Prior.Var[0]), unprotected)
			c := local.Config{Plan: p, Methods: methods, Data: map[string]dataset.Source{}}
			for m, site := range sites {
				c.Data[site] = s.Table(t, p, func(i int) bool { return f.Owner[i] == m })
			}
			m, _ := run(t, c)
			mean, variance := m.Posterior.Moments()
			tolerance := 1e-6
			if want.Round == 60 {
				tolerance = 1e-5
			}
			close2(t, fmt.Sprint(r.Schedule, " mean ", want.Round), want.Mean, mean, tolerance)
			close2(t, fmt.Sprint(r.Schedule, " var ", want.Round), want.Var, variance, tolerance)
		}
	}
	p := planOf(t, 3, sites, fmt.Sprintf(twoLevels+"prior_variance: %v", f.Prior.Var[0]), unprotected)
	central := testkit.Get(central(t.Context(), setupOf(t, p), s.Table(t, p, nil)))(t)
	mean, variance := central.Model.Posterior.Moments()
	close2(t, "global mean", f.Global.Mean, mean, 1e-6)
	close2(t, "global var", f.Global.Var, variance, 1e-6)
	same(t, "elbo", f.Global.ELBO, central.Info.Value, 1e-6)
}

// How the paper divides rows among clients, and which δ they have.
func TestClientsEqualTheVectors(t *testing.T) {
	var f struct {
		Schema string           `json:"schema"`
		Cases  []map[string]any `json:"cases"`
	}
	vectorsOf(t, "client_split.json", &f)
	for i, c := range f.Cases {
		of := func(key string) float64 { x, _ := c[key].(float64); return x }
		scheme := evaluate.Scheme{Rho: of("rho"), Kappa: of("kappa")}
		if name, _ := c["name"].(string); name != "" {
			if named, err := evaluate.ParseScheme(name); err != nil || named != scheme {
				t.Errorf("scheme %s is %+v, %v", name, named, err)
			}
		}
		h := testkit.Get(scheme.Shares(int(of("M")), int(of("N")), int(of("N_majority"))))(t)
		if h.Valid() != c["valid"] {
			t.Errorf("case %d is valid: %v", i, h.Valid())
		}
		for key, got := range map[string]float64{
			"N_small": float64(h.Small), "N_large": float64(h.Large), "small_majority": float64(h.SmallMajority), "small_minority": float64(h.SmallMinority),
			"unused": float64(h.Unused), "majority_fraction": h.Majority, "target_fraction_small": h.Target, "minority_fraction_small": h.MinoritySmall,
			"minority_fraction_left": h.MinorityLeft, "delta_small": paperDelta(h.Small), "delta_large": paperDelta(h.Large),
		} {
			if c[key] == nil {
				t.Errorf("case %d has no %s", i, key)
			}
			same(t, fmt.Sprintf("case %d, %s", i, key), of(key), got, 1e-12)
		}
	}
}

// What steps of sampled Gaussian noise cost, by the paper's accountant and by tight ones.
func TestAccountingEqualsTheVectors(t *testing.T) {
	var f struct {
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
		Epsilon []struct {
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
		} `json:"epsilon"`
	}
	vectorsOf(t, "accounting.json", &f)
	sampled := func(rate, sigma float64, steps int) []account.Mechanism {
		return []account.Mechanism{{Kind: account.Gaussian, Noise: sigma, Rate: rate, Diameter: 2, Count: steps}}
	}
	costs := func(ms []account.Mechanism, orders []float64) []float64 {
		return testkit.Get(account.RDP(ms, account.AddRemove, orders))(t)
	}
	for _, r := range f.RDP {
		for _, v := range r.Values {
			same(t, fmt.Sprintf("rdp at q %v, σ %v, α %v", r.Rate, r.Sigma, v.Alpha), v.RDP, costs(sampled(r.Rate, r.Sigma, 1), []float64{v.Alpha})[0], 1e-6)
		}
	}
	var whole []float64
	for a := 2.0; a <= 33; a++ {
		whole = append(whole, a)
	}
	for i, c := range f.Epsilon {
		ms := sampled(c.Rate, c.Sigma, c.Steps)
		classic, classicOrder, err := account.ConvertRDPClassic(whole, costs(ms, whole), c.Delta)
		if err != nil {
			t.Fatal(err)
		}
		improved, order, err := account.ConvertRDP(f.Orders, costs(ms, f.Orders), c.Delta)
		if err != nil {
			t.Fatal(err)
		}
		close2(t, fmt.Sprint("ε ", i), []float64{c.Classic, c.OrderClassic, c.Improved, c.OrderImproved}, []float64{classic, classicOrder, improved, order}, 1e-6)
		if c.Lower == nil {
			continue
		}
		if epsilon, err := account.Epsilon(ms, account.AddRemove, c.Delta); err != nil || epsilon < *c.Lower || epsilon > *c.Upper {
			t.Errorf("ε %d: %v, %v; between %v and %v", i, epsilon, err, *c.Lower, *c.Upper)
		}
	}
}
