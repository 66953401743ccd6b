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
		sums := newSums(c.Weights())
		if k := c.classes(); k > 1 {
			sums.Classes = make([]float64, k)
		}
		return sums, nil
	case taskNested:
		names, _ := c.terms()
		a := &nestedAnswer{Value: make(wire.Vector, 1+len(names))}
		for range names {
			a.Gradient = append(a.Gradient, make(wire.Vector, c.Weights()))
		}
		return a, nil
	case options.TaskAssess:
		return predict.Form(c.Weights(), c.classes(), c.periods()), nil
	}
	return nil, fmt.Errorf("no sums answer task %q", kind)
}
