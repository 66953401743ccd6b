package graffl

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math"
	"strconv"
	"strings"

	"parley/figure"
	"parley/method"
	"parley/methods/graffl/mixture"
)

// Result implements [method.Coordinator].
func (c *coordinator) Result(ms method.State) (*method.Result, error) {
	s := ms.(*state)
	p, err := c.sample(s)
	if err != nil {
		return nil, err
	}
	o, err := c.observation(s)
	if err != nil {
		return nil, err
	}
	fit, err := c.checkFit(o, p)
	if err != nil {
		return nil, err
	}
	v := &landmarkView{view{c.setup, p, p.Mean()}, o, fit}
	files, err := v.files()
	if err != nil {
		return nil, err
	}
	return &method.Result{
		Files:    files,
		Metrics:  v.metrics(),
		Headline: v.headline(),
		Sections: []figure.Section{v.componentsSection(), v.posteriorSection(), v.fitSection(), v.samplingSection(s), c.attackSection(c.marks.Len(), s.rows()...)},
	}, nil
}

// view is a posterior on its way into a report.
type view struct {
	*setup
	posterior *mixture.Posterior
	mean      mixture.Mixture // of the posterior
}

// landmarkView is one that was made from landmarks.
type landmarkView struct {
	view
	observed Observation
	fit      *fitCheck
}

// fitCheck compares what was observed at the landmarks with what the posterior expects.
type fitCheck struct {
	expected []float64
	sd       []float64 // of the observed means around the expected ones, noise included
	largest  float64   // distance, in sd
	chiSq    float64   // of all distances together, and the probability of as much or
	tail     float64   // more if the model is right: see Landmarks.Misfit
}

// fitDraws is how many draws the covariance of observed means is averaged over: it
// hardly changes where the posterior is.
const fitDraws = 16

// checkFit takes expectations over draws, and not at the posterior means of parameters: a
// component that hardly a row belongs to may be anywhere, and its mean is nowhere.
func (c *coordinator) checkFit(o Observation, p *mixture.Posterior) (*fitCheck, error) {
	if err := o.Check(c.marks.Len()); err != nil {
		return nil, err
	}
	n := c.marks.Len()
	f := &fitCheck{expected: make([]float64, n), sd: make([]float64, n)}
	e, pairs := newMoments(c.marks), newOverlaps(c.marks)
	mean, one, cov := make([]float64, n), make([]float64, n*n), make([]float64, n*n)
	sum, next := 0.0, 0.5
	for i, m := range p.Draws {
		if !e.mean(m, mean) {
			return nil, fmt.Errorf("draw %d has a covariance that is not positive definite", i+1)
		}
		for r, v := range mean {
			f.expected[r] += p.Weights[i] * v
		}
		// At equal steps of the summed weight; a draw that several fall on counts as often.
		times := 0.0
		for sum += p.Weights[i]; sum*fitDraws > next; next++ {
			times++
		}
		if times == 0 {
			continue
		}
		if !e.covariance(m, pairs, mean, one) {
			return nil, fmt.Errorf("draw %d has a covariance that is not positive definite", i+1)
		}
		spread(rough(o), mean, one)
		for r, v := range one {
			cov[r] += times / fitDraws * v
		}
	}
	for r, v := range f.expected {
		f.sd[r] = math.Sqrt(max(cov[r*n+r], 0))
		if f.sd[r] > 0 {
			f.largest = max(f.largest, math.Abs(o.Mean[r]-v)/f.sd[r])
		}
	}
	var err error
	f.chiSq, f.tail, err = misfit(o, f.expected, cov)
	return f, err
}

// interval is a posterior mean with the interval that holds 90 %.
type interval struct{ mean, low, high float64 }

func intervalOf(p *mixture.Posterior, value func(mixture.Mixture) float64) (v interval) {
	values := make([]float64, len(p.Draws))
	for i, m := range p.Draws {
		values[i] = value(m)
		v.mean += p.Weights[i] * values[i]
	}
	v.low, v.high = mixture.Quantile(values, p.Weights, 0.05), mixture.Quantile(values, p.Weights, 0.95)
	return v
}

func weightOf(p *mixture.Posterior, k int) interval {
	return intervalOf(p, func(m mixture.Mixture) float64 { return m.Weights[k] })
}

func locationOf(p *mixture.Posterior, k, i int) interval {
	return intervalOf(p, func(m mixture.Mixture) float64 { return m.Mean(k)[i] })
}

func deviationOf(p *mixture.Posterior, k, i int) interval {
	return intervalOf(p, func(m mixture.Mixture) float64 { return math.Sqrt(m.Cov(k)[i*m.Dim+i]) })
}

// components adds the posterior means of weights and of component means.
func (v *view) components(out map[string]float64) {
	for k := range v.opts.Components {
		out[fmt.Sprintf("weight/%d", k+1)] = v.mean.Weights[k]
		for i, name := range v.names {
			out[fmt.Sprintf("mean/%d/%s", k+1, name)] = v.mean.Mean(k)[i]
		}
	}
}

// weights says in a few words how large the components are: nothing of a single one.
func (v *view) weights() []figure.Fact {
	shares := make([]string, v.opts.Components)
	for i, k := range v.bySize() {
		shares[i] = fmt.Sprintf("%.0f", 100*weightOf(v.posterior, k).mean)
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
func (v *view) bySize() []int { return mixture.BySize(v.mean.Weights) }

func (v *landmarkView) metrics() map[string]float64 {
	p := v.posterior
	out := map[string]float64{"rows": v.observed.Rows, "landmarks": float64(v.marks.Len()), "draws": float64(len(p.Draws)), "effective_sample_size": p.Size,
		"temperatures": float64(p.Stages), "acceptance": p.Acceptance, "largest_residual_sd": v.fit.largest, "misfit_chi_square": v.fit.chiSq, "misfit_p": v.fit.tail,
		"noise_sd_of_landmark_means": math.Sqrt(v.observed.NoiseVar)}
	v.components(out)
	return out
}

func (v *landmarkView) headline() []figure.Fact {
	rows := figure.Fact{Name: "rows", Value: figure.Count.Text(v.observed.Rows)}
	if v.opts.Scarce != nil {
		rows.Name += " of " + v.class()
	}
	if v.observed.RowsVar > 0 {
		rows.Name += fmt.Sprintf(", by a noised count (± %.0f)", math.Sqrt(v.observed.RowsVar))
	}
	facts := []figure.Fact{{Name: "components", Value: strconv.Itoa(v.opts.Components)}}
	facts = append(facts, v.weights()...)
	return append(facts, rows,
		figure.Fact{Name: fmt.Sprintf("effective sample size, of %d draws", len(v.posterior.Draws)), Value: fmt.Sprintf("%.0f", v.posterior.Size)},
		figure.Fact{Name: fmt.Sprintf("largest residual, sd (below %.1f if it fits)", likelyLargest(v.marks.Len())), Value: fmt.Sprintf("%.1f", v.fit.largest)})
}

// posteriorCSV writes a line for every draw: its weight, then π, μ and the lower
// triangle of every Σ.
func (c *setup) posteriorCSV(p *mixture.Posterior) ([]byte, error) {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	head := []string{"draw", "sample_weight"}
	for k := range c.opts.Components {
		head = append(head, fmt.Sprintf("weight_%d", k+1))
	}
	for k := range c.opts.Components {
		for _, name := range c.names {
			head = append(head, fmt.Sprintf("mean_%d/%s", k+1, name))
		}
	}
	for k := range c.opts.Components {
		for i, a := range c.names {
			for _, b := range c.names[:i+1] {
				head = append(head, fmt.Sprintf("covariance_%d/%s/%s", k+1, a, b))
			}
		}
	}
	if err := w.Write(head); err != nil {
		return nil, err
	}
	number := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
	for i, m := range p.Draws {
		line := []string{strconv.Itoa(i + 1), number(p.Weights[i])}
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
