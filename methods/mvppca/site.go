package mvppca

import (
	"context"
	"fmt"
	"math"
	"slices"

	"parley/dataset"
	"parley/internal/wire"
	"parley/method"
	"parley/methods/mvppca/ppca"
	"parley/privacy"
	"parley/study"
)

// site is the half at one site. Between tasks it remembers only what one pass
// over the same rows gives again.
type site struct {
	plan   *study.Plan
	opts   *Options
	layout ppca.Layout
	name   string
	// clipping is what the site releases in a private round; nil where no
	// clipping mechanism is in use.
	clipping *clipPlan
	noised   *statisticsPlan // the same where the mechanism is statistics
	seen     *rowSums
}

// rowSums is everything that fitting needs of a site's rows, from one
// streaming pass: sufficient statistics per pattern of observed features, in
// the features' own units, and each feature's extremes.
type rowSums struct {
	blocks   []ppca.Block
	patterns []ppca.Pattern
	extremes *featureSums
}

// read makes the one pass.
func (h *site) read(ctx context.Context, data dataset.Source) (*rowSums, error) {
	if h.seen != nil {
		return h.seen, nil
	}
	acc, err := ppca.NewAccumulator(h.layout, nil)
	if err != nil {
		return nil, err
	}
	sums := &rowSums{extremes: newFeatureSums(h.layout.Features())}
	for row, err := range data.Rows(ctx) {
		if err != nil {
			return nil, err
		}
		views := h.held(row.Views)
		for k, v := range views {
			if j := slices.IndexFunc(v, func(x float64) bool { return math.Abs(x) > ppca.LargestValue }); j >= 0 {
				return nil, fmt.Errorf("subject %q: value %d of view %d is beyond %g: no measurement is as large", row.ID, j+1, k+1, ppca.LargestValue)
			}
		}
		if err := acc.Add(views); err != nil {
			return nil, fmt.Errorf("subject %q: %w", row.ID, err)
		}
		sums.extremes.addRow(views, h.layout.Dims, true)
	}
	sums.blocks = acc.Blocks()
	if len(sums.blocks) == 0 {
		return nil, fmt.Errorf("no subject has any value of the plan's views")
	}
	sums.patterns = ppca.Patterns(h.layout, sums.blocks)
	if n := len(sums.patterns); n > ppca.LargestPatterns {
		return nil, fmt.Errorf("the subjects have %d different sets of views, and a study can tell %d apart", n, ppca.LargestPatterns)
	}
	h.seen = sums
	return sums, nil
}

// moments turns blocks into what a common scale by moments needs.
func (r *rowSums) moments(d int) *featureSums {
	out := newFeatureSums(d)
	for i := range r.blocks {
		b := &r.blocks[i]
		one := newFeatureSums(d)
		squares := make([]float64, len(b.Features))
		b.Squares(squares)
		for n, j := range b.Features {
			one.N[j], one.A[j], one.B[j] = b.N, b.Mean[n], squares[n]
		}
		out.merge(one, false)
	}
	return out
}

// scaled returns the blocks in the units that the task asks for, or in the
// site's own where the plan says so.
func (h *site) scaled(r *rowSums, m *scaleMessage) ([]ppca.Block, *ppca.Scale, error) {
	var scale *ppca.Scale
	var err error
	if h.opts.Scaling == ScaleSiteRange {
		scale = r.extremes.ownRange()
	} else if scale, err = m.scale(h.layout); err != nil {
		return nil, nil, err
	}
	blocks := make([]ppca.Block, len(r.blocks))
	for i := range blocks {
		blocks[i] = r.blocks[i].Scaled(scale)
	}
	return blocks, scale, nil
}

// What a site releases is decided by the plan that it agreed to: a task brings
// the coordinator's state and chooses nothing.

// scaleTask asks for the sums that the plan's scaling needs.
type scaleTask struct{}

// fitTask asks for the one shot.
type fitTask struct {
	Scale scaleMessage `cbor:"scale"`
}

// fitAnswer is a site's own fit, or its moments where they are smaller.
type fitAnswer struct {
	Patterns []patternCount   `cbor:"patterns"`
	Params   *paramsMessage   `cbor:"params"`
	Moments  []momentsMessage `cbor:"moments"`
}

// request is what a task of a kind releases. The counts of numbers are upper
// bounds, for a site that has every view, whatever cells are missing.
func (h *site) request(kind string) (privacy.Request, error) {
	switch {
	case kind == taskClip && h.clipping != nil:
		return h.clipping.request(), nil
	case kind == taskStatistics && h.noised != nil:
		return h.noised.request(), nil
	case kind == taskCheck && h.noised != nil && h.noised.check != nil:
		return h.noised.checkRequest(), nil
	}
	d, q, k, g := h.layout.Features(), h.opts.Latent, h.layout.Views(), h.layout.Groups()
	r := privacy.Request{Protection: privacy.Unprotected}
	say := func(values int, what string) {
		r.Contents = append(r.Contents, privacy.Content{What: what, Values: values})
	}
	if !h.opts.asks(h.plan, kind) {
		return r, fmt.Errorf("the plan has no task %q", kind)
	}
	switch kind {
	case taskScale:
		what := "number of values, mean and sum of squared deviations of each feature"
		if h.opts.Scaling == ScaleMinMax {
			what = "number of values, smallest and largest value of each feature"
		}
		say(3*d, what)
	case taskFit:
		say((2+k)<<min(k, 16), "number of subjects and share of cells observed, per pattern of present views")
		say(d+2, "which features these are of")
		say(d*(h.opts.LocalRank+1)+g, "loadings, means and noise variances of the site's own model, or mean and scatter matrix where these are fewer numbers")
	case taskRefine:
		say(d*(q+1)+q*(q+1)+4*g, "regression of the features on the factors; mean and covariance of the factors; noise variances, residual sums of squares, counts of values and degrees of freedom")
		say(d*(q+1)*(q+1), "second moments of the factors, for each set of features that the same subjects have")
		say(2, "number of subjects and their log-likelihood")
	case taskIterate:
		say(d*(q+1)+k, "loadings, means and noise variances of the site")
	case taskAssess:
		say((2+k)<<min(k, 16), "number of subjects and share of cells observed, per pattern of present views")
		say(k*(q+4), "sums of squares and of absolute errors, total and unexplained, per view and factor")
		say(2*d, "sums of squares, total and unexplained, per feature")
		say(ppca.LeftOutValues(k), "for each view, predicted from the subjects' other views: sums of squared errors, and histograms of values, of imputed values and of where values fall in their predictions")
		say(q*(q+1), "mean and covariance of the factors")
		say(1, "log-likelihood of the site's subjects")
	}
	return r, nil
}

// Run answers one task.
func (h *site) Run(ctx context.Context, t method.Task, s *privacy.Session) (method.Answer, error) {
	var answer any // nil where the noised sums are all of it
	var err error
	switch {
	case t.Kind == taskClip && h.clipping != nil:
		err = h.clip(ctx, t, s)
	case t.Kind == taskStatistics && h.noised != nil:
		answer, err = run(t, func(*statisticsTask) (any, error) { return h.noised.release(ctx, s) })
	case t.Kind == taskCheck && h.noised != nil:
		_, err = run(t, func(task *checkTask) (any, error) { return nil, h.check(ctx, task, s) })
	default:
		answer, err = h.exact(ctx, t, s)
	}
	if err != nil || answer == nil {
		return method.Answer{}, err
	}
	body, err := wire.Marshal(answer)
	if err != nil {
		return method.Answer{}, fmt.Errorf("encoding the answer to %q: %w", t.Kind, err)
	}
	return method.Answer{Body: body}, nil
}

// exact answers a task without protection.
func (h *site) exact(ctx context.Context, t method.Task, s *privacy.Session) (answer any, err error) {
	data, err := s.Data()
	if err != nil {
		return nil, err
	}
	sums, err := h.read(ctx, data)
	if err != nil {
		return nil, err
	}
	switch t.Kind {
	case taskScale:
		answer, err = run(t, func(*scaleTask) (any, error) {
			if h.opts.Scaling == ScaleMinMax {
				return sums.extremes, nil
			}
			return sums.moments(h.layout.Features()), nil
		})
	case taskFit:
		answer, err = run(t, func(task *fitTask) (any, error) { return h.fit(ctx, task, sums) })
	case taskRefine:
		answer, err = run(t, func(task *refineTask) (any, error) { return h.refine(ctx, task, sums) })
	case taskIterate:
		answer, err = run(t, func(task *iterateTask) (any, error) {
			blocks, _, err := h.scaled(sums, &task.Scale)
			if err != nil {
				return nil, err
			}
			own, err := h.iterateAt(task, blocks)
			if err != nil {
				return nil, err
			}
			return &iterateAnswer{Params: packParams(h.layout, own)}, nil
		})
	case taskAssess:
		answer, err = run(t, func(task *assessTask) (any, error) { return h.assess(ctx, task, sums, data) })
	default:
		err = fmt.Errorf("unknown task %q", t.Kind)
	}
	return answer, err
}

// run decodes a task for what answers it.
func run[T any](t method.Task, answer func(*T) (any, error)) (any, error) {
	task := new(T)
	if err := wire.Unmarshal(t.Body, task); err != nil {
		return nil, fmt.Errorf("decoding task %q: %w", t.Kind, err)
	}
	return answer(task)
}

// checkRank refuses a model of other than the plan's number of factors: what
// the site declared counts on that.
func (h *site) checkRank(rank int) error {
	if rank != h.opts.Latent {
		return fmt.Errorf("a model of %d factors, and the plan has %d", rank, h.opts.Latent)
	}
	return nil
}

// fit is the site's part of the one shot: its own maximum likelihood, to a
// local rank that keeps what the global rank would lose.
func (h *site) fit(ctx context.Context, t *fitTask, sums *rowSums) (*fitAnswer, error) {
	blocks, _, err := h.scaled(sums, &t.Scale)
	if err != nil {
		return nil, err
	}
	answer := &fitAnswer{Patterns: packPatterns(sums.patterns)}
	features := ppca.Observed(h.layout, blocks)
	subjects := 0.0
	for _, p := range sums.patterns {
		subjects += p.Subjects
	}
	rank := min(h.opts.LocalRank, ppca.LocalRank(h.opts.LocalRank, len(features), subjects))
	if ppca.PreferMoments(blocks, rank) {
		for _, b := range ppca.Moments(blocks...) {
			answer.Moments = append(answer.Moments, packMoments(&b))
		}
		return answer, nil
	}
	own, err := ppca.Fit(h.layout, blocks, rank, nil, ppca.FitOptions{Tol: 1e-6, Stop: ctx.Err})
	if err != nil {
		return nil, fmt.Errorf("fitting the site's own model: %w", err)
	}
	packed := packParams(h.layout, &own.Params)
	answer.Params = &packed
	return answer, nil
}

// ownRange is the scale of a site by itself; a feature that it lacks or that
// does not vary there is left alone.
func (s *featureSums) ownRange() *ppca.Scale {
	out := unitScale(len(s.N))
	for j := range out.Factor {
		if s.N[j] > 0 && s.B[j] > s.A[j] {
			out.Shift[j], out.Factor[j] = s.A[j], 1/(s.B[j]-s.A[j])
		}
	}
	return out
}

// eachSubject reads the rows with what the model says of each subject: the
// posterior given what was observed, and the scaled values of that. Both, and
// the row, are valid until the next.
func eachSubject(ctx context.Context, p *ppca.Predictor, scale *ppca.Scale, data dataset.Source, do func(*dataset.Row, *ppca.Posterior, []float64) error) error {
	for row, err := range data.Rows(ctx) {
		if err != nil {
			return err
		}
		post, values, err := p.Subject(row.Views, scale)
		if err != nil {
			return fmt.Errorf("subject %q: %w", row.ID, err)
		}
		if err := do(row, post, values); err != nil {
			return err
		}
	}
	return nil
}
