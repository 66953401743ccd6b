// Package vae is variational autoencoders, the baselines that multi-view methods are compared with:
// linear and two-layer ones over all views together (Kingma and Welling, "Auto-encoding
// variational Bayes", 2014) and the multi-channel one (Antelmi et al., "Sparse multi-channel variational
// autoencoder for the joint analysis of heterogeneous data", ICML 2019), without sparsity. Decoders are
// normal, with a learned variance of every feature.
//
// Sites train by FedAvg (McMahan et al. 2017) or FedProx (Li et al. 2020): in a round every
// site takes its epochs from the common weights on, and the coordinator averages where they end,
// weighted by numbers of subjects. Subjects lack views: what was not observed has no part
// in the bound, and the weights of a channel are averaged over the sites that have it. There is
// no private variant.
package vae

import (
	"fmt"

	"parley/method"
	"parley/privacy"
	"parley/study"
)

// Method is federated autoencoders, for the registry.
type Method struct{}

// Name implements [method.Method].
func (Method) Name() string { return "vae" }

// Options implements [method.Method].
func (Method) Options() any { return defaults() }

// Revision implements [method.Method].
func (Method) Revision() int { return 1 }

// Describe implements [method.Describer].
func (Method) Describe(p *study.Plan) string {
	s, err := newSetup(p)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("It trains a %s variational autoencoder, which describes the %d features of a subject by a "+
		"code of %d numbers. In each of %d rounds every site trains it on its own subjects without noise, and sends "+
		"its %d weights back.",
		s.Model, s.net.features, s.Latent, s.Rounds, len(s.net.places))
}

// Requests implements [method.Method].
func (Method) Requests(p *study.Plan, _ string) ([]privacy.Listed, error) {
	s, err := newSetup(p)
	if err != nil {
		return nil, err
	}
	listed := func(kind string, times int, what string, values int) privacy.Listed {
		return privacy.Listed{Kind: kind, Times: times, Request: privacy.Request{Protection: privacy.Unprotected,
			Contents: []privacy.Content{{What: what, Values: values}}}}
	}
	q := s.Latent
	return []privacy.Listed{
		listed(taskScale, 1, "smallest and largest value, sum and number of values of each feature, and number of "+
			"subjects by channel", 4*s.net.features+len(s.net.channels)),
		listed(taskTrain, s.Rounds, "weights after the site's epochs, and the loss", len(s.net.places)+1),
		listed(taskAssess, 1, "number and sum of absolute errors of the values of each view, and number, mean and "+
			"covariance of codes", 2*len(p.Views)+1+q+q*q),
	}, nil
}

// Coordinator implements [method.Method].
func (Method) Coordinator(p *study.Plan) (method.Coordinator, error) {
	s, err := newSetup(p)
	return coordinator{s}, err
}

// Site implements [method.Method].
func (Method) Site(p *study.Plan, name string) (method.Site, error) {
	s, err := newSetup(p)
	return site{s, name}, err
}
