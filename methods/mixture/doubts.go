package mixture

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"

	"parley/figure"
	"parley/methods/mixture/fitted"
	"parley/methods/mixture/gmm"
)

// leastDraws is the effective sample size below which a report warns.
const leastDraws = 100

// groupDoubts says where a posterior is unsure of its components, by its own probabilities: that one lies elsewhere,
// by half of the distance to its neighbour or more, and that one has no weight. Both are doubted above
// [fitted.Level]. Distances are in standard deviations of the components' rows, feature by feature. The posterior is
// one of so many rows with a prior. What is wrong stands before a colon, and the evidence after it.
func groupDoubts(p *gmm.Posterior, prior gmm.Prior, rows float64) (all []string) {
	m := p.Mean()
	if m.Components() == 1 {
		return nil // it has all the weight, and no neighbour
	}
	if x := elsewhere(p, m); x > fitted.Level {
		all = append(all, fmt.Sprintf("a component may lie elsewhere: with a probability of %s one is off by more "+
			"than half of the distance to its neighbour", percent(x)))
	}
	if x := rivalled(p); x > fitted.Level {
		all = append(all, fmt.Sprintf("another mixture, with components elsewhere, explains what the sites released "+
			"nearly as well: the probability that one like it is right is %s", percent(x)))
	}
	for k := range m.Weights {
		if x := nothing(p, m, k, prior, rows); x > fitted.Level {
			all = append(all, fmt.Sprintf("component %d was not found: its weight may be nothing, with a probability "+
				"of %s if that was as likely as not", k+1, percent(x)))
		}
	}
	return all
}

// titles are doubts without their evidence: whoever reads them alone is to know what is wrong.
func titles(doubts []string) string {
	var all []string
	for _, doubt := range doubts {
		says, _, _ := strings.Cut(doubt, ":")
		all = append(all, says)
	}
	return strings.Join(all, "; ")
}

func percent(x float64) string { return figure.General.Text(math.Round(1000*x)/10) + "\u00a0%" }

// widths are the standard deviations of rows within components, of each feature.
func widths(m gmm.Mixture) []float64 {
	width := make([]float64, m.Dim)
	for i := range width {
		for k, w := range m.Weights {
			width[i] += w * m.Cov(k)[i*m.Dim+i]
		}
		width[i] = math.Sqrt(max(width[i], math.SmallestNonzeroFloat64))
	}
	return width
}

// elsewhere is the probability that a mean is farther from its place in m than half of the
// distance to the nearest other.
func elsewhere(p *gmm.Posterior, m gmm.Mixture) (x float64) {
	width := widths(m)
	between := func(a, b []float64) (s float64) {
		for i, w := range width {
			s += (a[i] - b[i]) * (a[i] - b[i]) / (w * w)
		}
		return math.Sqrt(s)
	}
	nearest := make([]float64, m.Components())
	for k := range nearest {
		nearest[k] = math.Inf(1)
		for j := range nearest {
			if j != k {
				nearest[k] = min(nearest[k], between(m.Mean(j), m.Mean(k)))
			}
		}
	}
	for i, draw := range p.Draws {
		for k, far := range nearest {
			if between(draw.Mean(k), m.Mean(k)) > far/2 {
				x += p.Weights[i]
				break
			}
		}
	}
	return x
}

// rivalled is the probability of all rivals together, by their evidence.
func rivalled(p *gmm.Posterior) float64 {
	others := 0.0
	for _, below := range p.Rivals {
		others += math.Exp(-below)
	}
	return others / (1 + others)
}

// nothing is the probability that component k has no weight, if that is as likely as not before
// anything is released: by the Bayes factor of Dickey and Lientz (1970), the density of the
// weight at nothing in the posterior, which is taken for normal, over that in a prior that is even
// over all weights. Nobody belongs to a component without weight, so that the chance of who takes
// part is then no part of its variance; what noise and neighbours leave unknown is, and a row.
func nothing(p *gmm.Posterior, m gmm.Mixture, k int, prior gmm.Prior, rows float64) float64 {
	variance := 0.0
	for i, draw := range p.Draws {
		off := draw.Weights[k] - m.Weights[k]
		variance += p.Weights[i] * off * off
	}
	concentration := 0.0
	for _, a := range prior.Alpha {
		concentration += a
	}
	rows = max(rows, 1)
	weight, of := m.Weights[k], rows+concentration
	sd := math.Sqrt(max(variance-weight*(1-weight)/(of+1), 1/(rows*rows)))
	z := max(weight*of-prior.Alpha[k], 0) / rows / sd // without what the prior adds
	factor := math.Exp(-z*z/2) / (sd * math.Sqrt(2*math.Pi) * float64(m.Components()-1))
	if math.IsInf(factor, 1) {
		return 1
	}
	return factor / (1 + factor)
}

// apartOwn is with what probability, on average, a row of a component that stands apart is the component's own.
// Measured on single groups that are skewed, heavy-tailed or even, which two components share.
const apartOwn = 0.9

// merged is a mixture with one component in place of a and b, with their weight, mean and covariance.
func merged(m gmm.Mixture, a, b int) gmm.Mixture {
	out := gmm.Mixture{Dim: m.Dim}
	for k, w := range m.Weights {
		if k != a && k != b {
			out.Weights, out.Means = append(out.Weights, w), append(out.Means, m.Mean(k)...)
			out.Covs = append(out.Covs, m.Cov(k)...)
		}
	}
	weight := m.Weights[a] + m.Weights[b]
	mean, cov := make([]float64, m.Dim), make([]float64, m.Dim*m.Dim)
	for _, k := range []int{a, b} {
		floats.AddScaled(mean, m.Weights[k]/weight, m.Mean(k))
	}
	for _, k := range []int{a, b} {
		off := floats.SubTo(make([]float64, m.Dim), m.Mean(k), mean)
		for i, x := range off {
			floats.AddScaled(cov[i*m.Dim:][:m.Dim], m.Weights[k]/weight, m.Cov(k)[i*m.Dim:][:m.Dim])
			floats.AddScaled(cov[i*m.Dim:][:m.Dim], m.Weights[k]/weight*x, off)
		}
	}
	out.Weights, out.Means, out.Covs = append(out.Weights, weight), append(out.Means, mean...), append(out.Covs, cov...)
	return out
}

// together is each component that does not stand apart with the one that it is most easily taken for.
func together(m gmm.Mixture, seed uint64) (all [][2]int) {
	if m.Components() == 1 {
		return nil
	}
	of := gmm.NewPredictive(&gmm.Posterior{Draws: []gmm.Mixture{m}, Weights: []float64{1}})
	const rows = 400 // drawn of each component
	r := rand.New(rand.NewPCG(seed, 6))
	x := make([]float64, rows*m.Dim)
	for k := range m.Weights {
		one := gmm.Mixture{Dim: m.Dim, Weights: []float64{1}, Means: m.Mean(k), Covs: m.Cov(k)}
		if one.Simulate(r, x) != nil {
			return nil
		}
		shares := make([]float64, m.Components())
		for row := range slices.Chunk(x, m.Dim) {
			says, err := of.Of(row)
			if err != nil {
				return nil
			}
			for j, p := range says.Probability {
				shares[j] += p / rows
			}
		}
		next := -1 // the component that it is most easily taken for
		for j := range shares {
			if j != k && (next < 0 || shares[j] > shares[next]) {
				next = j
			}
		}
		if shares[k] < apartOwn {
			all = append(all, [2]int{k, next})
		}
	}
	return all
}
