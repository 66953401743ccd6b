package vae

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"

	"parley/study"
)

// The models.
const (
	// linear encodes all views together, x ↦ mean and log variance of the code, and
	// decodes them from it, by one affine map each.
	linear = "linear"
	// twoLayer puts a hidden layer with tanh into both maps.
	twoLayer = "two-layer"
	// multiChannel has an encoder and a decoder for each view: Antelmi et al. 2019.
	multiChannel = "multi-channel"
)

// The optimisers of a site's epochs.
const (
	optimiserAdam = "adam"
	optimiserSGD  = "sgd"
)

// options are what a plan says under method. Rounds, epochs, step size and optimiser are by
// default those with which Balelli et al. (2022, section 5) ran their autoencoders.
type options struct {
	Model  string `json:"model"`  // one of the models above; no default
	Latent int    `json:"latent"` // q, the length of a code; no default
	// width of a hidden layer; 0 is none. Default of two-layer: √(dq), at least q
	Hidden       int     `json:"hidden"`
	Rounds       int     `json:"rounds"`        // times that weights are averaged, 1 to 100000 (100)
	Epochs       int     `json:"epochs"`        // passes over a site's subjects in a round, 1 to 100000 (15)
	Batch        int     `json:"batch"`         // subjects to a step; 0 is all of the site's (0)
	Optimiser    string  `json:"optimiser"`     // adam, restarted every round, or sgd (adam)
	LearningRate float64 `json:"learning_rate"` // step size, above 0, at most 1 (0.001)
	Proximal     float64 `json:"proximal"`      // λ of FedProx, at least 0, at most 1e6; 0 is FedAvg (0)
}

func defaults() *options {
	return &options{Rounds: 100, Epochs: 15, Optimiser: optimiserAdam, LearningRate: 1e-3}
}

// maxParameters bounds what travels in a round, in either direction, to 32 MB.
const maxParameters = 4 << 20

// dims counts the features of each view.
func dims(p *study.Plan) (d []int, all int) {
	for _, v := range p.Views {
		d = append(d, len(v.Features))
		all += len(v.Features)
	}
	return d, all
}

// Fill implements [study.Filler].
func (o *options) Fill(p *study.Plan, missing func(key string) bool) {
	if _, d := dims(p); o.Model == twoLayer && missing("hidden") && o.Latent > 0 {
		o.Hidden = max(o.Latent, int(math.Round(math.Sqrt(float64(d)*float64(o.Latent)))))
	}
}

// Check implements [study.Checker].
func (o *options) Check(p *study.Plan, report study.Report) {
	_, d := dims(p)
	if p.Privacy.Differential() {
		report("", "an autoencoder's weights are exact functions of a site's subjects, and no noise is put on them",
			"privacy: {protection: none}, or method factors, which can be private")
	}
	for k, v := range p.Views {
		for j, f := range v.Features {
			if f.Kind == study.Category {
				report(fmt.Sprintf("views[%d].features[%d]", k, j),
					f.Name+" is a category, and the decoder's law is normal", "leave it out, or write it as numbers")
			}
		}
	}
	known := report.OneOf("model", o.Model, linear, twoLayer, multiChannel)
	report.OneOf("optimiser", o.Optimiser, optimiserAdam, optimiserSGD)
	report.AtLeast("latent", o.Latent, 1)
	if o.Latent >= d && d > 0 {
		report("latent", fmt.Sprintf("codes of %d numbers for %d features", o.Latent, d),
			"fewer than there are features")
	}
	for _, r := range []struct {
		key              string
		value, low, high int
	}{{"rounds", o.Rounds, 1, 100_000}, {"epochs", o.Epochs, 1, 100_000}, {"batch", o.Batch, 0, math.MaxInt32},
		{"hidden", o.Hidden, 0, 10_000}} {
		if r.value < r.low || r.value > r.high {
			report(r.key, fmt.Sprintf("%d is not from %d to %d", r.value, r.low, r.high),
				fmt.Sprintf("a whole number from %d to %d", r.low, r.high))
		}
	}
	if !(o.LearningRate > 0 && o.LearningRate <= 1) {
		report("learning_rate", fmt.Sprintf("%v is no step size", o.LearningRate),
			"above 0 and at most 1, such as 0.001")
	}
	if !(o.Proximal >= 0 && o.Proximal <= 1e6) {
		report("proximal", fmt.Sprintf("%v is no weight of the proximal term", o.Proximal),
			"0 for FedAvg, or up to 1e6")
	}
	switch {
	case !known:
	case o.Model == linear && o.Hidden != 0:
		report("hidden", "a linear autoencoder has no hidden layer", "leave it out, or model: two-layer")
	case o.Model == twoLayer && o.Hidden == 0:
		report("hidden", "a two-layer autoencoder has a hidden layer", "its width, or leave it out")
	}
	if n := 2 * (d + 1) * (o.Hidden + o.Latent + 1); d > 0 && o.Latent > 0 && o.Latent < d && o.Hidden >= 0 &&
		(n > maxParameters || o.Hidden > 0 && 3*o.Hidden*o.Latent*len(p.Views) > maxParameters) {
		report("", fmt.Sprintf("about %d parameters, above %d", n, maxParameters),
			"fewer codes, or a narrower hidden layer")
	}
}

// BeyondRange implements [study.RangeTeller]: features are scaled by what sites have of them.
func (o *options) BeyondRange(*study.Plan) string { return study.RangeAsIs }

// The tasks.
const (
	taskScale  = "scale"  // once: how features spread
	taskTrain  = "train"  // every round: epochs from the common weights on
	taskAssess = "assess" // once: how well the model describes the site's subjects
)

// setup is what both halves know from the plan.
type setup struct {
	plan *study.Plan
	*options
	dims []int // features of each view
	net  *network
}

func newSetup(p *study.Plan) (*setup, error) {
	chosen := p.Method
	o, ok := chosen.Options.(*options)
	if !ok {
		return nil, fmt.Errorf("the plan's options are of method %s, not of vae", chosen.Name)
	}
	d, _ := dims(p)
	return &setup{p, o, d, newNetwork(d, o)}, nil
}

// stream returns the draws of one place and round. They are no noise for privacy.
func (s *setup) stream(name string, round int) *rand.Rand {
	h := sha256.Sum256(fmt.Appendf(nil, "vae/%s/%d", name, round))
	return rand.New(rand.NewPCG(s.plan.Seed, binary.LittleEndian.Uint64(h[:])))
}
