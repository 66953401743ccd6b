package exact

import (
	"fmt"

	"parley/internal/wire"
	"parley/methods/regression/options"
	"parley/methods/regression/predict"
)

// Form is an answer to a task of this kind with everything that it may have, all 0: see [method.Flatten].
func Form(s *options.Setup, kind string) (any, error) {
	c := common{s}
	switch kind {
	case options.TaskScale:
		names, levels := c.Counted()
		n := len(names)
		return &options.ScaleAnswer{N: make(wire.Vector, n), Mean: make(wire.Vector, n), Squares: make(wire.Vector, n), Levels: make(wire.Vector, levels)}, nil
	case taskSums:
		return c.sums(), nil
	case taskNested:
		return c.likelihoods(), nil
	case options.TaskAssess:
		return c.assessment(), nil
	}
	return nil, fmt.Errorf("no sums answer task %q", kind)
}

// sums are those of an exchange.
func (c common) sums() *Sums {
	s := newSums(c.Weights())
	if k := c.classes(); k > 1 {
		s.Classes = make([]float64, k)
	}
	return s
}

// likelihoods are those without each term.
func (c common) likelihoods() *nestedAnswer {
	names, _ := c.terms()
	a := &nestedAnswer{Value: make(wire.Vector, 1+len(names))}
	for range names {
		a.Gradient = append(a.Gradient, make(wire.Vector, c.Weights()))
	}
	return a
}

// assessment is how well the model predicts, with all that is asked of it.
func (c common) assessment() *predict.Assessment {
	return predict.Form(c.Weights(), c.classes(), c.periods(), !c.Options.Random())
}
