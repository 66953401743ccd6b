package scarce

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"parley/dataset"
	"parley/internal/nn"
	"parley/internal/wire"
	"parley/method"
	"parley/methods/mixture/options"
	"parley/privacy"
)

// half is a site's half of a plan with codes or classes: it answers the tasks around
// the sampler's, and lets the sampler's see codes.
type half struct {
	*options.Site
	sampler method.Site
}

// NewSite is the half at a site: a sampler's, and what its plan puts around it.
func NewSite(h *options.Site, v options.Sampler) method.Site {
	inner := v.Site(h)
	if plain(h.Setup) {
		return inner
	}
	return half{h, inner}
}

// Listed is what a site is asked for over a whole study, by a sampler and around it.
func Listed(s *options.Setup, site string, v options.Sampler) (list []privacy.Listed) {
	if s.Receives() && site == s.Options.Encoder.Site {
		list = append(list, privacy.Listed{Kind: taskEncoder, Times: 1, Request: encoderRequest(s)})
	}
	if s.Judged() {
		list = append(list, privacy.Listed{Kind: taskClassifier, Times: 1, Request: linearRequest(s)})
	}
	list = append(list, privacy.Listed{Kind: v.Task(), Times: v.Times(s), Request: v.Request(s)})
	if s.Tested() {
		list = append(list, privacy.Listed{Kind: taskWorth, Times: 1, Request: worthRequest()})
	}
	return list
}

func encoderRequest(s *options.Setup) privacy.Request {
	e := s.Options.Encoder
	inputs := options.Features(s.Plan)
	values, width := 0, inputs
	for _, next := range append(append([]int{}, e.Hidden...), e.Dimension) {
		values += (width + 1) * next
		width = next
	}
	return options.Unprotected(
		privacy.Content{What: "weights of an encoder, trained on rows and outcomes without noise: they tell of single rows", Values: values},
		privacy.Content{What: "mean and standard deviation of every feature, and how many of these gross errors are moved to", Values: 2*inputs + 1})
}

func linearRequest(s *options.Setup) privacy.Request {
	return options.Unprotected(
		privacy.Content{What: fmt.Sprintf("weights of a classifier of %s, fitted to rows without noise", s.Options.Scarce.Outcome.Column), Values: len(s.Names) + 1},
		privacy.Content{What: "numbers of rows that are of the class, and that are not", Values: 2})
}

func worthRequest() privacy.Request {
	return options.Unprotected(
		privacy.Content{What: "scores of classifiers on rows here, by what was done about the scarce class, and how many rows were added", Values: 5 * len(arms)},
		privacy.Content{What: "numbers of rows, and of the class, held and not", Values: 4},
		privacy.Content{What: "whether synthetic rows are kept, by which gain and its standard error", Values: 3})
}

// Run implements [method.Site].
func (h half) Run(ctx context.Context, t method.Task, s *privacy.Session) (method.Answer, error) {
	if h.Trains() {
		data, err := s.Data()
		if err != nil {
			return method.Answer{}, err
		}
		if t.Body, err = h.prepare(ctx, t, s.State(), data); err != nil {
			return method.Answer{}, err
		}
	}
	var answer any
	var err error
	switch t.Kind {
	case taskEncoder:
		answer, err = encoderAnswer{h.Encoder}, method.OpenTask(t, new(encoderTask))
	case taskClassifier:
		answer, err = h.answerLinear(ctx, t, s)
	case taskWorth:
		answer, err = h.answerWorth(ctx, t, s)
	default:
		return h.sampler.Run(ctx, t, s)
	}
	return h.Seal(t, answer, err)
}

// prepare makes the encoder ready that a task is about, and returns the task without it. A
// site takes one encoder in a study: with another for every task, whoever asks could
// scan rows out.
func (h half) prepare(ctx context.Context, t method.Task, kept []byte, data dataset.Source) ([]byte, error) {
	if !h.Receives() || t.Kind == taskEncoder {
		if h.Receives() && h.Name != h.Options.Encoder.Site {
			return nil, fmt.Errorf("the plan has site %s train the encoder", h.Options.Encoder.Site)
		}
		return t.Body, h.own(ctx, data)
	}
	task := new(encodedTask)
	if err := method.OpenTask(t, task); err != nil {
		return nil, err
	}
	return task.Body, h.accept(task.Encoder, kept)
}

// own trains the site's encoder, once.
func (h half) own(ctx context.Context, data dataset.Source) error {
	if h.Encoder != nil {
		return nil
	}
	e, err := h.train(ctx, data)
	if err != nil {
		return err
	}
	return h.accept(e, nil)
}

// accept takes an encoder, if it fits the plan and is the one whose digest was kept.
func (h half) accept(e *nn.Encoder, kept []byte) error {
	if err := checkEncoder(h.Setup, e); err != nil {
		return fmt.Errorf("the shared encoder: %w", err)
	}
	data, err := wire.Marshal(e)
	if err != nil {
		return err
	}
	digest := sha256.Sum256(data)
	if len(kept) > 0 && !bytes.Equal(kept, digest[:]) {
		return errors.New("the encoder is not the one that this study began with here")
	}
	if !bytes.Equal(h.Keep, digest[:]) {
		h.Encoder, h.Rows, h.Keep = e, nil, digest[:]
	}
	return nil
}

// answerLinear answers with the site's own classifier.
func (h half) answerLinear(ctx context.Context, t method.Task, s *privacy.Session) (any, error) {
	if err := method.OpenTask(t, new(linearTask)); err != nil {
		return nil, err
	}
	data, err := s.Data()
	if err != nil {
		return nil, err
	}
	return h.linear(ctx, data)
}

// answerWorth answers with the scores of all arms.
func (h half) answerWorth(ctx context.Context, t method.Task, s *privacy.Session) (any, error) {
	share := new(worthShare)
	if err := method.OpenTask(t, share); err != nil {
		return nil, err
	}
	data, err := s.Data()
	if err != nil {
		return nil, err
	}
	w, err := h.compare(ctx, share, data)
	if err != nil {
		return nil, err
	}
	return w.answer(), nil
}

// Report implements [method.Site]: what the sampler reports, and what the generated rows are
// worth here.
func (h half) Report(ctx context.Context, shared []byte, data dataset.Source) (*method.Result, error) {
	share := new(siteShare)
	if err := wire.Unmarshal(shared, share); err != nil {
		return nil, fmt.Errorf("decoding what the study shares: %w", err)
	}
	var err error
	switch {
	case h.Receives():
		err = h.accept(share.Encoder, nil)
	case h.Trains():
		err = h.own(ctx, data)
	}
	if err != nil {
		return nil, err
	}
	r, err := h.sampler.Report(ctx, share.Sampler, h.Mixed(data))
	if err != nil || h.Options.Scarce == nil {
		return r, err
	}
	if share.Worth == nil {
		return nil, errors.New("the study does not share what synthetic rows are drawn from")
	}
	return r, h.reportWorth(ctx, r, share.Worth, data)
}
