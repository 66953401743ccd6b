package mvppca

import (
	"context"
	"fmt"
	"math"
	"slices"

	"parley/dataset"
	"parley/internal/wire"
	"parley/method"
	"parley/methods/mvppca/options"
	"parley/methods/mvppca/ppca"
	"parley/privacy"
	"parley/study"
)

// siteRounds is a site's part of one way to fit ([rounds]).
type siteRounds interface {
	// request is what a task of the way's own releases.
	request(kind string) (privacy.Request, error)
	// run answers such a task; nil where noised sums are all of the answer.
	run(ctx context.Context, t method.Task, s *privacy.Session) (any, error)
	// held returns those of a subject's views that the site takes part with.
	held(views [][]float64) [][]float64
}

// site is the half at one site. Between tasks it remembers only what one pass
// over the same rows gives again.
type site struct {
	plan   *study.Plan
	opts   *options.Options
	layout ppca.Layout
	name   string
	way    siteRounds
	seen   *rowSums
}

// rowSums is everything that fitting needs of a site's rows, from one
// streaming pass: sufficient statistics per pattern of observed features, in
// the features' own units, and each feature's extremes.
type rowSums struct {
	blocks   []ppca.Block
	patterns []ppca.Pattern
	extremes *featureSums
}

// read makes the one pass, once.
func (h *site) read(ctx context.Context, data dataset.Source) (*rowSums, error) {
	if h.seen != nil {
		return h.seen, nil
	}
	sums, err := readSums(ctx, h.layout, data, h.way.held)
	if err != nil {
		return nil, err
	}
	h.seen = sums
	return sums, nil
}

// asTheyAre is for sites that take part with every view that a subject has.
func asTheyAre(views [][]float64) [][]float64 { return views }

// readSums makes the one pass over what held leaves of the rows.
func readSums(ctx context.Context, l ppca.Layout, data dataset.Source, held func([][]float64) [][]float64) (*rowSums, error) {
	acc, err := ppca.NewAccumulator(l, nil)
	if err != nil {
		return nil, err
	}
	sums := &rowSums{extremes: newFeatureSums(l.Features())}
	for row, err := range data.Rows(ctx) {
		if err != nil {
			return nil, err
		}
		views := held(row.Views)
		for k, v := range views {
			if j := slices.IndexFunc(v, func(x float64) bool { return math.Abs(x) > ppca.LargestValue }); j >= 0 {
				return nil, fmt.Errorf("subject %q: value %d of view %d is beyond %g: no measurement is as large", row.ID, j+1, k+1, ppca.LargestValue)
			}
		}
		if err := acc.Add(views); err != nil {
			return nil, fmt.Errorf("subject %q: %w", row.ID, err)
		}
		sums.extremes.addRow(views, l.Dims, true)
	}
	sums.blocks = acc.Blocks()
	if len(sums.blocks) == 0 {
		return nil, fmt.Errorf("no subject has any value of the plan's views")
	}
	sums.patterns = ppca.Patterns(l, sums.blocks)
	if n := len(sums.patterns); n > ppca.LargestPatterns {
		return nil, fmt.Errorf("the subjects have %d different sets of views, and a study can tell %d apart", n, ppca.LargestPatterns)
	}
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
	if h.opts.Scaling == options.ScaleSiteRange {
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

// contents lists what a task without protection releases. The counts of numbers are
// upper bounds, for a site that has every view, whatever cells are missing.
type contents struct{ privacy.Request }

func (c *contents) say(values int, what string) {
	c.Protection = privacy.Unprotected
	c.Contents = append(c.Contents, privacy.Content{What: what, Values: values})
}

// request is what a task of a kind releases.
func (h *site) request(kind string) (privacy.Request, error) {
	if !h.opts.Asks(h.plan, kind) {
		return privacy.Request{Protection: privacy.Unprotected}, fmt.Errorf("the plan has no task %q", kind)
	}
	d, q, k := h.layout.Features(), h.opts.Latent, h.layout.Views()
	var r contents
	switch kind {
	case options.TaskScale:
		what := "number of values, mean and sum of squared deviations of each feature"
		if h.opts.Scaling == options.ScaleMinMax {
			what = "number of values, smallest and largest value of each feature"
		}
		r.say(3*d, what)
	case options.TaskAssess:
		r.say((2+k)<<min(k, 16), "number of subjects and share of cells observed, per pattern of present views")
		r.say(k*(q+4), "sums of squares and of absolute errors, total and unexplained, per view and factor")
		r.say(2*d, "sums of squares, total and unexplained, per feature")
		r.say(ppca.LeftOutValues(k), "for each view, predicted from the subjects' other views: sums of squared errors, and histograms of values, of imputed values and of where values fall in their predictions")
		r.say(q*(q+1), "mean and covariance of the factors")
		r.say(1, "log-likelihood of the site's subjects")
	default:
		return h.way.request(kind)
	}
	return r.Request, nil
}

// Run answers one task.
func (h *site) Run(ctx context.Context, t method.Task, s *privacy.Session) (method.Answer, error) {
	var answer any // nil where the noised sums are all of it
	var err error
	switch t.Kind {
	case options.TaskScale:
		answer, err = h.exact(ctx, s, func(sums *rowSums, _ dataset.Source) (any, error) {
			return run(t, func(*scaleTask) (any, error) {
				if h.opts.Scaling == options.ScaleMinMax {
					return sums.extremes, nil
				}
				return sums.moments(h.layout.Features()), nil
			})
		})
	case options.TaskAssess:
		answer, err = h.exact(ctx, s, func(sums *rowSums, data dataset.Source) (any, error) {
			return run(t, func(task *assessTask) (any, error) { return h.assess(ctx, task, sums, data) })
		})
	default:
		answer, err = h.way.run(ctx, t, s)
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
func (h *site) exact(ctx context.Context, s *privacy.Session, answer func(sums *rowSums, data dataset.Source) (any, error)) (any, error) {
	data, err := s.Data()
	if err != nil {
		return nil, err
	}
	sums, err := h.read(ctx, data)
	if err != nil {
		return nil, err
	}
	return answer(sums, data)
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
