package halves

import (
	"parley/internal/wire"
	"parley/method"
	"parley/methods/factors/assess"
	"parley/methods/factors/between"
	"parley/methods/factors/fitted"
	"parley/methods/factors/moments"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
	"parley/privacy"
)

// State is what the coordinator carries.
type State struct {
	Phase   string                        `cbor:"phase"`
	Steps   int                           `cbor:"steps"` // tasks given out so far, for progress
	Left    []string                      `cbor:"left"`
	Inbox   method.Inbox                  `cbor:"inbox"` // of this round, by site
	Scale   *options.Scale                `cbor:"scale"`
	Model   *ppca.Params                  `cbor:"model"`
	Reports map[string]*fitted.Assessment `cbor:"reports"` // what the sites said of the final model
	LogLik  float64                       `cbor:"log_lik"` // of the final model, mean per subject, in nats
	// SiteMeans is how the sites' means differ; nil where they are taken for samples of
	// one population.
	SiteMeans *between.Offsets `cbor:"site_means,omitempty"`
	// Adjusted is what covariates add to the features; nil where the plan has none.
	Adjusted *options.Estimates `cbor:"adjusted,omitempty"`
	// Apart are the views of sites, numbered as in the plan, whose values have nothing in
	// common with those of the others.
	Apart []ppca.Apart `cbor:"apart,omitempty"`
	// Strengths are the eigenvalues that order the factors, once they are final.
	Strengths wire.Vector `cbor:"strengths"`
	// Doubt is what privacy noise adds to the variance of each feature's predictions;
	// none where there is no such noise, or nothing is known of it.
	Doubt wire.Vector `cbor:"doubt"`
	// HeldOut is how well views are predicted for subjects who took no part in the fit; nil where nobody could be
	// left out, or nothing is known of subjects.
	HeldOut *assess.HeldOut `cbor:"held_out,omitempty"`
	// OfTotals is how well the model describes all subjects, where the coordinator has totals over the sites and no
	// site is asked.
	OfTotals *fitted.Assessment `cbor:"of_totals,omitempty"`
	// Noise is how the noise of sites differs, once they have said how the model describes them.
	Noise map[string][]between.Noise `cbor:"noise"`

	Exact  fitState    `cbor:"exact"`
	Noised noisedState `cbor:"noised"`
}

// MarshalBinary implements [method.State].
func (s *State) MarshalBinary() ([]byte, error) { return method.SealState(*s) }

// Coordinator is the coordinator's half.
type Coordinator struct {
	options.Setup
	noised map[string]*declared // what every site releases of a private study
}

// Of is the setup with the number of factors of the final model, once there is one.
func (c Coordinator) Of(s *State) options.Setup {
	if len(s.Strengths) == 0 {
		return c.Setup
	}
	return c.With(len(s.Strengths))
}

// Staying lists the sites that have not left, in the plan's order.
func (c Coordinator) Staying(s *State) []string { return method.Staying(c.Plan.Sites, s.Left) }

// Ask gives every site that is left a task.
func (c Coordinator) Ask(s *State, kind string, body func(site string) (any, error)) ([]method.Task, error) {
	s.Phase = kind
	return method.Ask(kind, c.Staying(s), body)
}

// fitState is how the fit to exact sums stands.
type fitState struct {
	// Latent are the numbers of factors that were chosen where the plan leaves that to the study, the last of
	// which holds: from sums that were filled by means, and again once they were filled by a model that has settled.
	Latent []int    `cbor:"latent,omitempty"`
	Fit    *outcome `cbor:"fit"`
	// Said is what the sites answered last, while they are asked again: it stands for sites that leave
	// meanwhile.
	Said method.Inbox `cbor:"said,omitempty"`
	// LogLik is the log-likelihood per subject of all models that sites were sent.
	LogLik wire.Vector `cbor:"log_lik"`
	// Steps are the last models that sites were sent, each with that fitted to their answers.
	Steps []exchanged `cbor:"steps,omitempty"`
	// Reach is how many times an exchange's change extrapolations go at most; 0 before the first.
	Reach float64 `cbor:"reach,omitempty"`
	// Last says that sites are asked for totals once more only to learn how well the final model describes them.
	Last bool `cbor:"last,omitempty"`
	// Sent is the model by which sites fill cells at the moment.
	Sent *ppca.Params `cbor:"sent,omitempty"`
}

// exchanged is a model by which cells were filled, and the one fitted to the sums, and sites' means where they differ.
type exchanged struct {
	Sent  *ppca.Params     `cbor:"sent"`
	Found *ppca.Params     `cbor:"found"`
	Apart *between.Offsets `cbor:"apart,omitempty"`
}

// outcome is the last model, and how its fit went.
type outcome struct {
	Converged bool    `cbor:"converged"`
	Filled    float64 `cbor:"filled"` // cells
	// nats per subject by which the last exchange moved the model, about; 0 without one
	Moved float64 `cbor:"moved"`
	// Starts is how many starts the first fit followed, and AtBest how many of them ended at the likeliest.
	Starts int `cbor:"starts"`
	AtBest int `cbor:"at_best"`
	// Along says that some scatter matrix was too large to be sent, and is told of along directions.
	Along bool `cbor:"along,omitempty"`
	// Spread is how sites differ.
	Spread *spread `cbor:"spread"`
	// Discords are features whose loadings disagree between sites.
	Discords []loadingHeterogeneity `cbor:"discords,omitempty"`
	// Compositions are views whose features add up to a constant.
	Compositions []int `cbor:"compositions,omitempty"`
}

// noisedState is what the coordinator keeps of noised sums.
type noisedState struct {
	Pooled *ppca.Explained `cbor:"pooled"` // the variance explained by the noised sums
	Gains  wire.Vector     `cbor:"gains"`  // see [Coordinator.gains]
	// by site, of those that have given all sums asked for so far
	Released map[string][]*privacy.Noised `cbor:"released"`
	// of the coarse and of the fine sums, once they are known
	Whitenings [2][]moments.Whitening        `cbor:"lenses"`
	Apart      []moments.BetweenSiteVariance `cbor:"apart,omitempty"`  // by feature
	Biases     *fitted.Biases                `cbor:"biases,omitempty"` // nil where nothing tells of any
}
