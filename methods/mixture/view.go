package mixture

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math"
	"strconv"
	"strings"

	"parley/figure"
	"parley/method"
	"parley/methods/mixture/gmm"
)

// samplingID is the section that says how a posterior was made.
const samplingID = "sampling"

// View is a posterior on its way into a report.
type View struct {
	*Setup
	Posterior *gmm.Posterior
	Mean      gmm.Mixture // of the posterior
	// What a sampler adds that has it:
	Published *Published // the method that made it as a paper has it; nil for graffl
	Accepted  bool       // draws are what Algorithm 2 accepted, and no posterior
	Called    string     // what draws are called: posterior, or sample, as of those that are none
	// Doubted has the reasons against the posterior, each with its evidence behind a colon.
	Doubted []string
}

// NewView is one of a sample.
func NewView(s *Setup, p *gmm.Posterior) View {
	return View{Setup: s, Posterior: p, Mean: p.Mean(), Called: "sample"}
}

// interval is a posterior mean with the interval that holds 90 %.
type interval struct{ mean, low, high float64 }

func intervalOf(p *gmm.Posterior, value func(gmm.Mixture) float64) (v interval) {
	values := make([]float64, len(p.Draws))
	for i, m := range p.Draws {
		values[i] = value(m)
		v.mean += p.Weights[i] * values[i]
	}
	v.low, v.high = gmm.Quantile(values, p.Weights, 0.05), gmm.Quantile(values, p.Weights, 0.95)
	return v
}

func weightOf(p *gmm.Posterior, k int) interval {
	return intervalOf(p, func(m gmm.Mixture) float64 { return m.Weights[k] })
}

func locationOf(p *gmm.Posterior, k, i int) interval {
	return intervalOf(p, func(m gmm.Mixture) float64 { return m.Mean(k)[i] })
}

func deviationOf(p *gmm.Posterior, k, i int) interval {
	return intervalOf(p, func(m gmm.Mixture) float64 { return math.Sqrt(m.Cov(k)[i*m.Dim+i]) })
}

// Components adds the posterior means of weights and of component means.
func (v *View) Components(out map[string]float64) {
	for k := range v.Options.Components {
		out[fmt.Sprintf("weight/%d", k+1)] = v.Mean.Weights[k]
		for i, name := range v.Names {
			out[fmt.Sprintf("mean/%d/%s", k+1, name)] = v.Mean.Mean(k)[i]
		}
	}
}

// Overview shows how many rows of each site the mixture was learned from.
func (v *View) Overview(sites []figure.SiteSubjects) figure.Section {
	section := method.Overview(v.Plan, sites)
	f := section.Items[0].Figure
	f.Title = "Rows by site"
	f.Caption = "A bar is as long as the site has rows with all features. d is the number of features, n that of rows."
	if v.Plan.Privacy.Differential() { // nobody has paid for the number of the others
		f.Caption += " Rows that lack a feature take no part, and only their sites know how many these are."
		f.Caption += " Counts hold privacy noise: ± is two standard deviations of it, and a count that noise took below 0 stands at 0."
	} else {
		f.Caption += " Others take no part."
	}
	f.Alt = "For every site, how many rows the mixture was learned from."
	return section
}

// OverviewOf is Overview where counts are exact.
func (v *View) OverviewOf(rows map[string]int) figure.Section {
	var all []figure.SiteSubjects
	for _, name := range v.Plan.Sites {
		if n, ok := rows[name]; ok {
			all = append(all, method.Complete(v.Plan, name, float64(n), 0))
		}
	}
	return v.Overview(all)
}

// Weights says in a few words how large the components are: nothing of a single one.
func (v *View) Weights() []figure.Fact {
	shares := make([]string, v.Options.Components)
	for i, k := range v.bySize() {
		shares[i] = fmt.Sprintf("%.0f", 100*weightOf(v.Posterior, k).mean)
	}
	switch n := len(shares); {
	case n == 1:
		return nil
	case n <= 4:
		return []figure.Fact{{Name: "weights", Value: strings.Join(shares, " · ") + "\u00a0%"}}
	default:
		return []figure.Fact{{Name: "weights, largest to smallest", Value: shares[0] + " % to " + shares[n-1] + " %"}}
	}
}

// bySize lists the components, largest weight first.
func (v *View) bySize() []int { return gmm.BySize(v.Mean.Weights) }

// posteriorCSV writes a line for every draw: its weight, then π, μ and the lower
// triangle of every Σ.
func (v *View) posteriorCSV() ([]byte, error) {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	head := []string{"draw", "sample_weight"}
	for k := range v.Options.Components {
		head = append(head, fmt.Sprintf("weight_%d", k+1))
	}
	for k := range v.Options.Components {
		for _, name := range v.Names {
			head = append(head, fmt.Sprintf("mean_%d/%s", k+1, name))
		}
	}
	for k := range v.Options.Components {
		for i, a := range v.Names {
			for _, b := range v.Names[:i+1] {
				head = append(head, fmt.Sprintf("covariance_%d/%s/%s", k+1, a, b))
			}
		}
	}
	if err := w.Write(head); err != nil {
		return nil, err
	}
	number := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
	for i, m := range v.Posterior.Draws {
		line := []string{strconv.Itoa(i + 1), number(v.Posterior.Weights[i])}
		for _, x := range m.Weights {
			line = append(line, number(x))
		}
		for _, x := range m.Means {
			line = append(line, number(x))
		}
		for k := range m.Weights {
			for i := range m.Dim {
				for _, x := range m.Cov(k)[i*m.Dim:][:i+1] {
					line = append(line, number(x))
				}
			}
		}
		if err := w.Write(line); err != nil {
			return nil, err
		}
	}
	w.Flush()
	return b.Bytes(), w.Error()
}
