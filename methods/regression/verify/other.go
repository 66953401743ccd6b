package verify

import (
	"fmt"

	"parley/internal/vectors"
	"parley/judge/evaluate"
	"parley/methods/published/dppvi"
	"parley/methods/regression/glm"
	"parley/privacy/account"
)

type predictiveJSON struct {
	Schema string `json:"schema"`
	Cases  []struct {
		Mean     []float64   `json:"mean"`
		Var      []float64   `json:"var"`
		X        [][]float64 `json:"X"`
		ActMean  []float64   `json:"act_mean"`
		ActVar   []float64   `json:"act_var"`
		Probit   []float64   `json:"probit"`
		Exact    []float64   `json:"exact"`
		T        []float64   `json:"t"`
		Accuracy float64     `json:"accuracy"`
		LogLik   float64     `json:"mean_log_lik"`
	} `json:"cases"`
}

func (f *predictiveJSON) verify(list *vectors.List) error {
	for i, c := range f.Cases {
		at := fmt.Sprintf("cases[%d].", i)
		d, err := design(c.X, c.T)
		if err != nil {
			return fmt.Errorf("%s %w", at, err)
		}
		q, err := glm.FromMoments(c.Mean, c.Var)
		if err != nil {
			return fmt.Errorf("%s %w", at, err)
		}
		probit, err := glm.PredictBinary(d, q, false)
		if err != nil {
			return fmt.Errorf("%s %w", at, err)
		}
		exact, err := glm.PredictBinary(d, q, true)
		if err != nil {
			return fmt.Errorf("%s %w", at, err)
		}
		mean, variance := make([]float64, d.Rows()), make([]float64, d.Rows())
		for i := range mean {
			mean[i], variance[i] = d.Row(i).Activation(c.Mean, c.Var)
		}
		list.Floats(at+"act_mean", c.ActMean, mean, tolAlgebra)
		list.Floats(at+"act_var", c.ActVar, variance, tolAlgebra)
		list.Floats(at+"probit", c.Probit, probit.Expected, tolAlgebra)
		list.Floats(at+"exact", c.Exact, exact.Expected, tolQuadrature)
		list.Float(at+"accuracy", c.Accuracy, probit.Accuracy(), tolAlgebra)
		list.Float(at+"mean_log_lik", c.LogLik, probit.LogLik, tolAlgebra)
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
		list.Float(at+"delta_small", c.DeltaSmall, dppvi.Delta(c.Small), tolExact)
		list.Float(at+"delta_large", c.DeltaLarge, dppvi.Delta(c.Large), tolExact)
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
