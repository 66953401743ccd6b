package acceptance

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/floats"

	"parley/dataset"
	"parley/experiment/melba"
)

// population is the law of the synthetic data, with sites that differ by a
// known amount: three views, five factors, two groups which a shift of the
// factors parts. The factors are in the units of a fit: mean 0 and covariance I
// over both groups.
type population struct {
	rng       *rand.Rand
	w         [][]float64 // d × q
	mu        []float64   // d
	noise     []float64   // standard deviations, d
	direction []float64   // of the shift: q, length 1
	shift     float64     // its length, when the factors of each group have variance 1
	stretch   float64     // standard deviation of both groups along it
}

// shifted is the share of subjects in the shifted group.
const shifted = 0.625

func newPopulation(seed uint64) *population {
	p := &population{rng: rand.New(rand.NewPCG(seed, 0))}
	p.direction = melba.Shift(p.rng, sdFactors)
	p.shift = floats.Norm(p.direction, 2)
	floats.Scale(1/p.shift, p.direction)
	p.stretch = math.Sqrt(1 + shifted*(1-shifted)*p.shift*p.shift)
	features := melba.Draw(p.rng, sdFactors, 1)
	p.w, p.mu, p.noise = features.W, features.Mu, features.SD
	for j, row := range p.w {
		along := floats.Dot(row, p.direction)
		p.mu[j] += shifted * p.shift * along
		floats.AddScaled(row, (p.stretch-1)*along, p.direction)
	}
	return p
}

// subject draws the factors of one subject.
func (p *population) subject() []float64 {
	at := -shifted * p.shift
	if p.rng.Float64() < shifted {
		at += p.shift
	}
	x := p.normal(sdFactors)
	along := floats.Dot(x, p.direction)
	floats.AddScaled(x, (along+at)/p.stretch-along, p.direction)
	return x
}

func (p *population) normal(n int) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = p.rng.NormFloat64()
	}
	return v
}

// drawn is the subjects of one site and how it differs from the others.
type drawn struct {
	x, noise [][]float64 // per subject: factors, and noise of every feature
	w        []float64   // d × q by rows
	mu       []float64   // d
}

// deviations draws how n sites differ in a number of parameters. Their standard
// deviation between sites, over all parameters, is 1 in the sample too, so that
// chance in the truth is not taken for error in its estimate.
func (p *population) deviations(n, parameters int) [][]float64 {
	all := make([][]float64, n)
	mean := make([]float64, parameters)
	for c := range all {
		all[c] = p.normal(parameters)
		floats.AddScaled(mean, 1/float64(n), all[c])
	}
	squares := 0.0
	for _, z := range all {
		squares += math.Pow(floats.Distance(z, mean, 2), 2)
	}
	for _, z := range all {
		floats.Scale(math.Sqrt(float64((n-1)*parameters)/squares), z)
	}
	return all
}

// row is subject i, if loadings and means differ by sdW and sdMu times unit.
func (p *population) row(s *drawn, i int, sdW, sdMu float64, unit []float64) []float64 {
	t := make([]float64, len(p.mu))
	for j, u := range unit {
		t[j] = p.mu[j] + p.noise[j]*s.noise[i][j] + sdMu*u*s.mu[j]
		for a, x := range s.x[i] {
			t[j] += (p.w[j][a] + sdW*u*s.w[j*sdFactors+a]) * x
		}
	}
	return t
}

// sites draws n sites of 90 subjects whose loadings and means differ from the
// population's by normal deviations of the given size. The rows and the
// deviations are in units in which all rows of sites that are alike would span
// [0, 1].
func (p *population) sites(n int, sdW, sdMu float64) ([]dataset.Source, error) {
	d := len(p.mu)
	low, unit, zero := make([]float64, d), make([]float64, d), make([]float64, d)
	for j := range d {
		low[j], unit[j] = math.Inf(1), math.Inf(-1)
	}
	all := make([]drawn, n)
	w, mu := p.deviations(n, d*sdFactors), p.deviations(n, d)
	for c := range all {
		s := &all[c]
		s.w, s.mu = w[c], mu[c]
		for range 90 {
			s.x, s.noise = append(s.x, p.subject()), append(s.noise, p.normal(d))
			for j, v := range p.row(s, len(s.x)-1, 0, 0, zero) {
				low[j], unit[j] = min(low[j], v), max(unit[j], v)
			}
		}
	}
	floats.Sub(unit, low)
	var sites []dataset.Source
	for c := range all {
		var rows []dataset.Row
		for i := range all[c].x {
			t := p.row(&all[c], i, sdW, sdMu, unit)
			floats.Sub(t, low)
			floats.Div(t, unit)
			rows = append(rows, dataset.Row{ID: fmt.Sprintf("s%d-%02d", c+1, i), Views: melba.Views(melba.Dims, t)})
		}
		table, err := dataset.NewTable(melba.Schema(melba.Dims), rows)
		if err != nil {
			return nil, err
		}
		sites = append(sites, table)
	}
	return sites, nil
}

// spreadCases are the standard deviations between sites to recover, in parts
// of a feature's range.
var spreadCases = [][2]float64{{0, 0}, {0.0126, 0.0126}, {0.0503, 0.0503}, {0.0503, 0}, {0, 0.0503}}

// spread estimates a known spread between sites.
func spread(ctx context.Context, seeds int, sites []int) ([]row, error) {
	t := &table{promise: "spread"}
	for _, n := range sites {
		for _, c := range spreadCases {
			var w, mu estimates
			for seed := range seeds {
				data, err := newPopulation(uint64(seed+1)).sites(n, c[0], c[1])
				if err != nil {
					return nil, err
				}
				m, _, err := federate(ctx, data, asIs(sdFactors, 3), uint64(seed+1))
				if err != nil {
					return nil, fmt.Errorf("seed %d: %w", seed+1, err)
				}
				varW, varMu, d := 0.0, 0.0, 0.0
				for _, v := range m.Views {
					dk := float64(len(v.Features))
					varW, varMu, d = varW+dk**v.LoadingSD**v.LoadingSD, varMu+dk**v.MeanSD**v.MeanSD, d+dk
				}
				w.add(math.Sqrt(varW / d))
				mu.add(math.Sqrt(varMu / d))
			}
			at := fmt.Sprintf("%d sites, sd of W %.4f, of μ %.4f", n, c[0], c[1])
			t.recovered(at, "sd of W", c[0], &w)
			t.recovered(at, "sd of μ", c[1], &mu)
		}
	}
	return t.rows, nil
}

// estimates are what several seeds gave for one truth.
type estimates struct {
	n              int
	sum, low, high float64
}

func (e *estimates) add(x float64) {
	if e.n == 0 {
		e.low, e.high = x, x
	}
	e.n++
	e.sum, e.low, e.high = e.sum+x, min(e.low, x), max(e.high, x)
}

// recovered holds the mean estimate to what the method is known to reach on
// such data: 6 % where the spread is large, a fifth where sampling hides it,
// and nearly nothing where there is none.
func (t *table) recovered(at, what string, truth float64, e *estimates) {
	got := e.sum / float64(e.n)
	r := t.add(at, what, got).note("%d seeds, %.4f to %.4f", e.n, e.low, e.high)
	switch {
	case truth == 0:
		r.atMost(0.008)
	case truth > 0.04:
		r.atLeast(0.94 * truth).atMost(1.06 * truth)
	default:
		r.atLeast(0.8 * truth).atMost(1.2 * truth)
	}
}
