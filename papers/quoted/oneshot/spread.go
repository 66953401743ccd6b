package oneshot

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"parley/dataset"
	"parley/figure"
	"parley/papers/experiment"
	"parley/papers/melba"
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

// sdFactors is the true number of factors of the synthetic data.
const sdFactors = 5

var (
	spreadSites = []int{3, 6}
	spreadSeeds = uint64(3) // data sets of each case
)

// The names of an estimate's values: standard deviations between sites.
const (
	ofLoadings = "W"
	ofMeans    = "μ"
)

func spreadID(sites int, c [2]float64, seed uint64) string {
	return experiment.Slug(fmt.Sprintf("%d sites %v %v %d", sites, c[0], c[1], seed))
}

func spreads() experiment.Experiment {
	return experiment.Experiment{Name: "parley-spread",
		Cells: func(quick bool) (cells experiment.Cells) {
			for _, n := range spreadSites {
				for _, c := range spreadCases {
					for seed := uint64(1); seed <= spreadSeeds; seed++ {
						if !quick || seed == 1 && n == spreadSites[0] {
							cells.Add(spreadID(n, c, seed), func(ctx context.Context,
								_ experiment.Data) (experiment.Values, error) {
								return estimate(ctx, n, c, seed)
							})
						}
					}
				}
			}
			return cells
		},
		Conclude: func(o experiment.Outcomes) experiment.Conclusion {
			t := figure.Table{ID: "spread", Title: "True and estimated standard deviations",
				Caption: fmt.Sprintf("Means of %d data sets, and their range.", spreadSeeds),
				Columns: figure.TextColumns("sites", "true, loadings", "estimated", "range", "true, means",
					"estimated", "range")}
			for _, n := range spreadSites {
				for _, c := range spreadCases {
					row := []any{fmt.Sprint(n)}
					for i, name := range []string{ofLoadings, ofMeans} {
						var x []float64
						for seed := uint64(1); seed <= spreadSeeds; seed++ {
							x = append(x, o[spreadID(n, c, seed)][name]...)
						}
						if len(x) > 0 {
							row = append(row, fmt.Sprintf("%.4f", c[i]), fmt.Sprintf("%.4f", stat.Mean(x, nil)),
								fmt.Sprintf("%.4f to %.4f", slices.Min(x), slices.Max(x)))
						}
					}
					if len(row) > 1 {
						t.Add(row...)
					}
				}
			}
			return experiment.Conclusion{Tables: []figure.Table{t}}
		},
	}
}

// estimate estimates a known spread between sites.
func estimate(ctx context.Context, sites int, c [2]float64, seed uint64) (experiment.Values, error) {
	data, err := newPopulation(seed).sites(sites, c[0], c[1])
	if err != nil {
		return nil, err
	}
	m, _, err := federate(ctx, data, asIs(sdFactors, 3), seed)
	if err != nil {
		return nil, err
	}
	w, mu, d := 0.0, 0.0, 0.0
	for _, v := range m.Views {
		dk := float64(len(v.Features))
		w, mu, d = w+dk**v.LoadingSD**v.LoadingSD, mu+dk**v.MeanSD**v.MeanSD, d+dk
	}
	return experiment.Values{ofLoadings: {math.Sqrt(w / d)}, ofMeans: {math.Sqrt(mu / d)}}, nil
}
