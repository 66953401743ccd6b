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
	return privacy.Request{Protection: privacy.Differential, Sums: []privacy.Sum{sum}}
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
		answer, err = h.protectedQuality(ctx, t, s, b)
		return answer, s.State(), err
	case t.Kind != taskUpdate:
		return nil, nil, fmt.Errorf("the plan has no task %q", t.Kind)
	}
	task := new(updateTask)
	if err := wire.Unmarshal(t.Body, task); err != nil {
		return nil, nil, fmt.Errorf("decoding task %q: %w", t.Kind, err)
	}
	_, q, factor, err := task.open(h.setup)
	if err != nil {
		return nil, nil, err
	}
	if p.published != nil {
		return h.publishedUpdate(ctx, task, q, factor, s, b)
	}
	contribution := h.natural().contribution(q)
	var noised *privacy.Noised
	if p.sum.Unit == privacy.WholeSite {
		noised, err = s.Whole(ctx, p.sum.Name, func(data dataset.Source, v []float64) error {
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
		noised, err = s.Sum(ctx, p.sum.Name, h.overRows(b, contribution))
	}
	if err != nil {
		return nil, nil, err
	}
	return sumAnswer{Sum: *noised}, nil, nil
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
	carry, err := wire.Marshal(carried)
	return updateAnswer{Change: packGaussian(target.Over(q))}, carry, err
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
func (h *site) protectedQuality(ctx context.Context, t method.Task, s *privacy.Session, b *Binding) (any, error) {
	task := new(assessTask)
	if err := wire.Unmarshal(t.Body, task); err != nil {
		return nil, fmt.Errorf("decoding task %q: %w", t.Kind, err)
	}
	q, err := task.Q.density(h.weights())
	if err != nil {
		return nil, fmt.Errorf("q: %w", err)
	}
	m := newPredictor(h.likelihood, q, h.encoding.Width())
	noised, err := s.Sum(ctx, sumQuality, h.overRows(b, func(x Row, y float64, v []float64) {
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
	}))
	if err != nil {
		return nil, err
	}
	return sumAnswer{Sum: *noised}, nil
}

// noisedQuality reads a noised sum of predictions. What noise has made of small
// numbers stays in the bins as it is, so that those of several sites add up without
// bias: see [assessment.calibration].
func noisedQuality(answer *sumAnswer, declared privacy.Sum) (*assessment, error) {
	if err := answer.Sum.Check(declared); err != nil {
		return nil, err
	}
	v := answer.Sum.Floats(0)
	a := newAssessment()
	for i := range bins {
		a.Count[i], a.Expected[i], a.Observed[i] = v[i], middle(i)*v[i]+v[bins+i]/float64(bins), v[2*bins+i]
	}
	right, wrong := max(int(math.Round(v[3*bins])), 0), max(int(math.Round(v[3*bins+1])), 0)
	a.Rows, a.Correct = max(right+wrong, 1), right
	a.LogLik = min(-v[3*bins+2]*qualityUnit, 0)
	a.Noise = answer.Sum.SD
	return a, nil
}
