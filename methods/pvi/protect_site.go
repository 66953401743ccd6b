package pvi

import (
	"context"
	"fmt"
	"math"

	"parley/dataset"
	"parley/internal/wire"
	"parley/method"
	"parley/privacy"
)

// request declares one use of a protected site's sum.
func (*protection) request(sum privacy.Sum) privacy.Request {
	r := privacy.Request{Protection: privacy.Differential, Sums: []privacy.Sum{sum}}
	if sum.Kept {
		r.Contents = []privacy.Content{{What: "change of the posterior that the noised gradients lead to", Values: sum.Blocks[0]}}
	}
	return r
}

// protectedRun answers from noised sums alone. Nothing that depends on a row but
// through them may show: a row that cannot be read as the plan says contributes
// nothing, and no error tells of it.
func (h *site) protectedRun(ctx context.Context, t method.Task, s *privacy.Session) (answer any, state []byte, err error) {
	b, err := h.bind(&h.encoding, h.plan.Schema())
	if err != nil {
		return nil, nil, err
	}
	p := h.protected[h.name]
	switch {
	case t.Kind == taskAssess && p.quality != nil:
		return nil, s.State(), h.protectedQuality(ctx, t, s, b)
	case t.Kind != taskUpdate:
		return nil, nil, fmt.Errorf("the plan has no task %q", t.Kind)
	}
	task := new(updateTask)
	if err := wire.Unmarshal(t.Body, task); err != nil {
		return nil, nil, fmt.Errorf("decoding task %q: %w", t.Kind, err)
	}
	_, q, factor, err := task.open(h.setup, h.name)
	if err != nil {
		return nil, nil, err
	}
	if p.published != nil {
		return h.publishedUpdate(ctx, task, q, factor, s, b)
	}
	contribution := h.natural().contribution(q)
	if p.sum.Unit == privacy.WholeSite {
		_, err = s.Whole(ctx, p.sum.Name, func(data dataset.Source, v []float64) error {
			read := h.reader(b)
			for row, err := range data.Rows(ctx) {
				if err != nil {
					return err
				}
				if x, y, ok := read(row); ok {
					contribution(x, y, v)
				}
			}
			return nil
		})
	} else {
		_, err = s.Sum(ctx, p.sum.Name, h.overRows(b, contribution))
	}
	return nil, nil, err
}

// reader returns a function that reads rows as the plan says; not ok is a row that
// contributes nothing. The row that it returns is valid until the next one.
func (h *site) reader(b *Binding) func(*dataset.Row) (x Row, y float64, ok bool) {
	var x Row
	return func(row *dataset.Row) (Row, float64, bool) {
		y, err := b.Outcome(h.likelihood, row)
		if err == nil {
			err = b.Row(row, &x)
		}
		return x, y, err == nil
	}
}

// overRows makes what rows of a design contribute into what rows of data do.
func (h *site) overRows(b *Binding, contribution func(x Row, y float64, v []float64)) func(*dataset.Row, []float64) int {
	read := h.reader(b)
	return func(row *dataset.Row, v []float64) int {
		x, y, ok := read(row)
		if !ok {
			return -1
		}
		contribution(x, y, v)
		return 0
	}
}

// publishedUpdate takes the steps of one published update. The accumulators that it
// carries are made of noised gradients alone.
func (h *site) publishedUpdate(ctx context.Context, t *updateTask, q, factor Gaussian, s *privacy.Session, b *Binding) (any, []byte, error) {
	p := h.protected[h.name]
	carried := carriedAdagrad{Sum: make(wire.Vector, p.sum.Blocks[0])}
	if state := s.State(); state != nil {
		if err := wire.Unmarshal(state, &carried); err != nil {
			return nil, nil, fmt.Errorf("the site's own state: %w", err)
		}
	}
	var failed error // of a sum: nothing that noise could be blamed for
	target, err := p.published.run(q, factor, carried.Sum, draws(h.plan, "activations", h.name, t.Update), func(contribution func(Row, float64, []float64)) ([]float64, error) {
		noised, err := s.Sum(ctx, p.sum.Name, h.overRows(b, contribution))
		if err != nil {
			failed = err
			return nil, err
		}
		return noised.Floats(0), nil
	})
	switch {
	case failed != nil:
		return nil, nil, failed
	case err != nil: // noise has led out of all bounds: stay where we are
		target = q
	}
	change := target.Over(q)
	if refined, _, _ := Refine(factor, Flat(h.weights()), change, h.opts.Damping); h.workable(refined) != nil {
		change = Flat(h.weights()) // nobody could go on from there, and the coordinator would refuse it
	}
	carry, err := wire.Marshal(carried)
	return updateAnswer{Change: packGaussian(change)}, carry, err
}

// How well one subject's outcome is predicted, as a vector of a sum: for each of ten
// bins that the subject is in it, the distance of its probability from the middle of
// the bin in widths of a bin, between −½ and ½, and whether it came true,
// then whether the prediction was right, whether it was wrong, and the
// log-likelihood, no less than −qualityWorst, divided by −qualityUnit. The last is at most 2 and so has the
// largest share of the bound; the four others that are not zero are at most 1.
const (
	qualityLength = 3*10 + 3
	qualityWorst  = 3.0 // nats: a probability of a twentieth for what happened
	qualityUnit   = qualityWorst / 2
)

var qualityBound = math.Sqrt(1 + 0.25 + 1 + 1 + 4)

// protectedQuality sums up, with noise, how well outcomes are predicted.
func (h *site) protectedQuality(ctx context.Context, t method.Task, s *privacy.Session, b *Binding) error {
	task := new(assessTask)
	if err := wire.Unmarshal(t.Body, task); err != nil {
		return fmt.Errorf("decoding task %q: %w", t.Kind, err)
	}
	_, q, err := task.open(h.setup)
	if err != nil {
		return err
	}
	_, err = s.Sum(ctx, sumQuality, h.overRows(b, h.qualityContribution(q)))
	return err
}

// qualityContribution returns what a row contributes to the sum of the quality of q.
// It is for one goroutine.
func (h *site) qualityContribution(q Gaussian) func(x Row, y float64, v []float64) {
	m := newPredictor(h.likelihood, q, h.encoding.Width())
	return func(x Row, y float64, v []float64) {
		m.row(x)
		p, happened, correct, logLik := m.judge(y)
		i := binOf(p)
		v[i], v[bins+i] = 1, (p-middle(i))*float64(bins)
		if happened {
			v[2*bins+i] = 1
		}
		if correct {
			v[3*bins] = 1
		} else {
			v[3*bins+1] = 1
		}
		v[3*bins+2] = -max(logLik, -qualityWorst) / qualityUnit
	}
}

// noisedQuality reads a noised sum of predictions. What noise has made of small
// numbers stays in the bins as it is, so that those of several sites add up without
// bias: see [assessment.calibration]. Numbers beyond what any site has rows for are
// noise alone, or worse, and are cut there.
func noisedQuality(sum *privacy.Noised) (*assessment, error) {
	v := sum.Floats(0)
	if len(v) != qualityLength {
		return nil, fmt.Errorf("a sum of %d numbers, want %d", len(v), qualityLength)
	}
	for i := range v {
		v[i] = clamp(v[i], mostRows)
	}
	a := newAssessment()
	for i := range bins {
		a.Count[i], a.Expected[i], a.Observed[i] = v[i], middle(i)*v[i]+v[bins+i]/float64(bins), v[2*bins+i]
	}
	right, wrong := max(int(math.Round(v[3*bins])), 0), max(int(math.Round(v[3*bins+1])), 0)
	a.Rows, a.Correct = max(right+wrong, 1), right
	a.LogLik = min(-v[3*bins+2]*qualityUnit, 0)
	a.Noise = sum.SD()
	return a, nil
}
