package vae

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/gonum/mathext"

	"parley/dataset"
	"parley/internal/linalg"
	"parley/method"
	"parley/problem"
)

const modelFormat = "parley/vae-model/1"

// model is a fitted autoencoder, and what model.json holds.
type model struct {
	Format  string      `json:"format"`
	Program string      `json:"program,omitempty"` // what wrote it, if it was older: a model does not depend on that
	Plan    string      `json:"plan_sha256"`
	Study   string      `json:"study"`
	Seed    uint64      `json:"seed"`
	Options *options    `json:"options"`
	Views   []modelView `json:"views"`
	Sites   []modelSite `json:"sites"`
	// Weights are those of each channel in turn: encoder and decoder, layer by layer as Wᵀ by
	// rows and then b, and then the log variances of the features' noise.
	Weights []float64 `json:"weights"`

	scale scale
	net   *network
	dims  []int
}

type modelView struct {
	Name     string         `json:"name"`
	Features []modelFeature `json:"features"`
}

// modelFeature is scaled by its lowest and highest value at the sites to [0, 1].
type modelFeature struct {
	Name string  `json:"name"`
	Unit string  `json:"unit,omitempty"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
	Mean float64 `json:"mean"`
	// Missing are cells that stand for a missing value.
	Missing []string `json:"missing,omitempty"`
}

type modelSite struct {
	Name string  `json:"name"`
	Rows float64 `json:"rows"`
}

func newModel(s *setup, sc *scale, weights []float64, sites map[string]float64) *model {
	m := &model{Format: modelFormat, Study: s.plan.Name, Seed: s.plan.Seed, Options: s.options,
		Weights: weights, scale: *sc, net: s.net, dims: s.dims}
	if digest, err := s.plan.Digest(); err == nil {
		m.Plan = digest.String()
	}
	j := 0
	for k, v := range s.plan.Views {
		view := modelView{Name: v.Name}
		for i, f := range v.Features {
			view.Features = append(view.Features, modelFeature{f.Name, f.Unit, sc.Low[j], sc.High[j], sc.Mean[j],
				s.plan.Codes(k, i)})
			j++
		}
		m.Views = append(m.Views, view)
	}
	for _, name := range s.plan.Sites {
		if rows, ok := sites[name]; ok {
			m.Sites = append(m.Sites, modelSite{name, rows})
		}
	}
	return m
}

func (m *model) encode() ([]byte, error) { return method.EncodeModel(m) }

// loadModel reads model.json; what does not fit together is an error.
func loadModel(data []byte) (*model, error) {
	if err := method.CheckFormat(data, modelFormat); err != nil {
		return nil, err
	}
	m := &model{}
	if err := method.DecodeJSON(data, m); err != nil {
		return nil, fmt.Errorf("reading the model: %w", err)
	}
	all := 0
	for _, v := range m.Views {
		m.dims = append(m.dims, len(v.Features))
		all += len(v.Features)
		if len(v.Features) == 0 {
			return nil, errors.New("the model has a view without features")
		}
		for _, f := range v.Features {
			m.scale.Low, m.scale.High, m.scale.Mean = append(m.scale.Low, f.Low), append(m.scale.High, f.High),
				append(m.scale.Mean, f.Mean)
		}
	}
	o := m.Options
	switch {
	case o == nil || all == 0:
		return nil, errors.New("the model has no options or no features")
	case !slices.Contains([]string{linear, twoLayer, multiChannel}, o.Model):
		return nil, fmt.Errorf("the model is a %q autoencoder, which there is not", o.Model)
	case o.Latent < 1 || o.Latent >= all || o.Hidden < 0 || o.Latent+o.Hidden > len(m.Weights):
		return nil, errors.New("the model's options do not fit its features and weights")
	}
	m.net = newNetwork(m.dims, o)
	if len(m.Weights) != len(m.net.places) {
		return nil, fmt.Errorf("the model has %d weights, and its options need %d", len(m.Weights), len(m.net.places))
	}
	if !bounded(m.Weights, 2*largestWeight) {
		return nil, errors.New("a weight of the model is too large")
	}
	if err := m.scale.check(m.net); err != nil {
		return nil, fmt.Errorf("the model has %w", err)
	}
	return m, nil
}

// Schema implements [method.Model].
func (m *model) Schema() (s dataset.Schema) {
	for _, v := range m.Views {
		view := dataset.View{Name: v.Name}
		for _, f := range v.Features {
			view.Columns = append(view.Columns, dataset.Column{Name: f.Name, Missing: f.Missing})
		}
		s.Views = append(s.Views, view)
	}
	return s
}

// at reports a site that the model does not know. To the model all sites are alike.
func (m *model) at(name string) error {
	if name == "" || slices.ContainsFunc(m.Sites, func(s modelSite) bool { return s.Name == name }) {
		return nil
	}
	return problem.Problem{Where: "site " + name, What: "took no part in the fit",
		Hint: "leave it out: to an autoencoder all sites are alike"}
}

// each asks about every subject of a source.
func (m *model) each(ctx context.Context, data dataset.Source,
	do func(row *dataset.Row, s *subject, a *answer) error) (n int, err error) {
	in := m.net.inferrer(m.Weights)
	var x []float64
	for row, err := range data.Rows(ctx) {
		if err != nil {
			return n, err
		}
		x = flatten(x, m.dims, row)
		s := m.scale.subject(x)
		if err := do(row, &s, in.infer(&s)); err != nil {
			return n, fmt.Errorf("subject %q: %w", row.ID, err)
		}
		n++
	}
	return n, nil
}

// Transform implements [method.Transformer]: the mean of each subject's code, and the
// standard deviation of every number of it. The columns are id, values (how many were
// observed), code_1 to code_q and sd_1 to sd_q.
func (m *model) Transform(ctx context.Context, data dataset.Source, to io.Writer,
	opts method.TransformOptions) (int, method.Notes, error) {
	if err := m.at(opts.Site); err != nil {
		return 0, nil, err
	}
	header := []string{"id", "values"}
	for _, of := range []string{"code_", "sd_"} {
		for a := range m.net.latent {
			header = append(header, of+strconv.Itoa(a+1))
		}
	}
	w := csv.NewWriter(to)
	w.Write(header) // an error comes back from Flush
	n, err := m.each(ctx, data, func(row *dataset.Row, s *subject, a *answer) error {
		values := 0
		for _, ok := range s.seen {
			if ok {
				values++
			}
		}
		record := []string{row.ID, strconv.Itoa(values)}
		for _, x := range a.code {
			record = append(record, decimal(x))
		}
		for _, v := range a.codeVar {
			record = append(record, decimal(math.Sqrt(v)))
		}
		return w.Write(record)
	})
	w.Flush()
	return n, nil, errors.Join(err, w.Error())
}

// Impute implements [method.Imputer]: what the decoders expect of every value that was not
// observed, given the code of what was. The columns are id, view, feature, mean, sd, low and high, in
// the feature's own unit. Weights are taken as known.
func (m *model) Impute(ctx context.Context, data dataset.Source, to io.Writer,
	opts method.ImputeOptions) (int, method.Notes, error) {
	if !(opts.Level > 0 && opts.Level < 1) {
		return 0, nil, problem.Problem{Where: "level", What: fmt.Sprintf("%v is not between 0 and 1", opts.Level),
			Hint: "0.9 for intervals that hold nine values of ten"}
	}
	var known []string
	for _, v := range m.Views {
		known = append(known, v.Name)
	}
	for _, name := range opts.Views {
		if !slices.Contains(known, name) {
			return 0, nil, problem.Problem{Where: "view " + name, What: "the model has no such view",
				Hint: problem.DidYouMean(name, known, "one of "+problem.Names(known))}
		}
	}
	if err := m.at(opts.Site); err != nil {
		return 0, nil, err
	}
	z := mathext.NormalQuantile(0.5 + opts.Level/2)
	w := csv.NewWriter(to)
	w.Write([]string{"id", "view", "feature", "mean", "sd", "low", "high"}) // an error comes back from Flush
	written := 0
	_, err := m.each(ctx, data, func(row *dataset.Row, s *subject, a *answer) error {
		j := -1
		for _, v := range m.Views {
			for _, f := range v.Features {
				if j++; s.seen[j] || len(opts.Views) > 0 && !slices.Contains(opts.Views, v.Name) {
					continue
				}
				mean, sd := m.scale.own(j, a)
				written++
				if err := w.Write([]string{row.ID, v.Name, f.Name, decimal(mean), decimal(sd), decimal(mean - z*sd),
					decimal(mean + z*sd)}); err != nil {
					return err
				}
			}
		}
		return nil
	})
	w.Flush()
	return written, nil, errors.Join(err, w.Error())
}

// own is what is expected of a feature in its own unit.
func (s *scale) own(j int, a *answer) (mean, sd float64) {
	return s.Low[j] + s.width(j)*a.mean[j], s.width(j) * math.Sqrt(a.variance[j])
}

func decimal(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// answer is what a model says of one subject, in the network's units. Each channel of which
// something was observed has a normal law of the code; together they are a mixture of
// equal parts, with the moments given here. Without any channel it is the prior.
type answer struct {
	code, codeVar []float64
	mean          []float64 // of every feature: the decoded means of the laws of the code, averaged
	variance      []float64 // of every feature, its noise included: exact where the decoder is linear
}

// inferrer asks a model about subjects, one at a time. It is not safe for concurrent use.
type inferrer struct {
	*machine
	z []float64 // the mean code, and that with one entry a standard deviation larger, as thin rows
}

func (n *network) inferrer(packed []float64) *inferrer {
	return &inferrer{n.machine(n.unpack(packed), n.latent+1), make([]float64, (n.latent+1)*linalg.Stride(n.latent))}
}

// infer answers about a subject.
func (m *inferrer) infer(s *subject) *answer {
	q := m.latent
	d := m.features
	a := &answer{make([]float64, q), make([]float64, q), make([]float64, d), make([]float64, d)}
	n := 0.0
	for e := range m.channels {
		if s.observed(&m.channels[e]) {
			n++
			out := m.encode(e, []subject{*s})
			m.add(a, out[:q], out[q:2*q])
		}
	}
	if n == 0 {
		n = 1
		m.add(a, make([]float64, q), make([]float64, q))
	}
	for _, v := range []struct{ mean, square []float64 }{{a.code, a.codeVar}, {a.mean, a.variance}} {
		for i := range v.mean {
			v.mean[i] /= n
			v.square[i] = max(v.square[i]/n-v.mean[i]*v.mean[i], 0)
		}
	}
	for _, c := range m.channels {
		for j := range c.hi - c.lo {
			a.variance[c.lo+j] += math.Exp(m.theta[c.noise+j])
		}
	}
	return a
}

// add adds first and second moments of a code N(mean, diag e^lv), and of what it decodes to but for noise:
// of a decoder f the variance is Σ_a (f(mean + sd_a) − f(mean))².
func (m *inferrer) add(a *answer, mean, lv []float64) {
	q, ld := m.latent, linalg.Stride(m.latent)
	clear(m.z)
	for k := range q + 1 {
		copy(m.z[k*ld:], mean)
	}
	for i := range q {
		v := math.Exp(lv[i])
		m.z[(i+1)*ld+i] += math.Sqrt(v)
		a.code[i] += mean[i]
		a.codeVar[i] += v + mean[i]*mean[i]
	}
	for d, c := range m.channels {
		f, w := m.decode(d, m.z, q+1), linalg.Stride(c.hi-c.lo)
		for j := range c.hi - c.lo {
			x, v := f[j], 0.0
			for k := 1; k <= q; k++ {
				v += (f[k*w+j] - x) * (f[k*w+j] - x)
			}
			a.mean[c.lo+j] += x
			a.variance[c.lo+j] += v + x*x
		}
	}
}
