// Package graffl is GRAFFL as published: Hahn and Lee, "GRAFFL: Gradient-free Federated
// Learning of a Bayesian Generative Model", 2020. Sections and Algorithm 2 are cited beside
// the code. Register [Method]; plans name it graffl-abc.
//
// By algorithm rows (Algorithm 2) sites answer, round by round, with the exact distance of each row to a simulated one,
// and the coordinator keeps the proposals that came closest. It gives every row away, and what it accepts does not
// become the posterior; reports begin with both. By algorithm sets each proposal is compared with all rows of a site
// together, which is sequential Monte Carlo (Sisson, Fan and Tanaka 2007) in its place. The paper's codes, and its rows
// for a scarce class, are in the experiments that repeat its tables.
//
// [proposer] and [acceptance] are Algorithm 2, and [modes] finds the peaks of what it accepts; [SMC] goes by one
// discrepancy for each simulated set. Proposals are functions of a seed and their number, so that they are drawn
// again and not kept. Nothing here protects rows.
package graffl

import (
	"context"
	"fmt"

	"parley/dataset"
	"parley/judge/evaluate"
	"parley/method"
	"parley/methods/mixture/fitted"
	"parley/privacy"
	"parley/problem"
	"parley/study"
)

var (
	_ method.Attackable  = Method{}
	_ method.DataChecker = Method{}
	_ method.Describer   = Method{}
	_ method.Evaluable   = Method{}
	_ method.Noter       = Method{}
)

// Method is GRAFFL as published for the registry.
type Method struct{}

// Name implements [method.Method].
func (Method) Name() string { return Name }

// Options implements [method.Method]: a pointer to [Options].
func (Method) Options() any {
	return &Options{Algorithm: Rows, Prior: PriorOptions{Concentration: 1, Kappa: 0.02, Spread: 0.02}}
}

// Revision implements [method.Method].
func (Method) Revision() int { return 1 }

// Coordinator implements [method.Method].
func (Method) Coordinator(p *study.Plan) (method.Coordinator, error) {
	s, err := setUp(p)
	if err != nil {
		return nil, err
	}
	if s.own.Algorithm == Sets {
		return &setsCoordinator{s}, nil
	}
	return &rowsCoordinator{s}, nil
}

// Site implements [method.Method].
func (Method) Site(p *study.Plan, name string) (method.Site, error) {
	s, err := setUp(p)
	if err != nil {
		return nil, err
	}
	if s.own.Algorithm == Sets {
		return &setsSite{site{setup: s, Name: name}}, nil
	}
	return &rowsSite{site{setup: s, Name: name}}, nil
}

// Requests implements [method.Method]: one release for every task of the algorithm.
func (Method) Requests(p *study.Plan, _ string) ([]privacy.Listed, error) {
	s, err := setUp(p)
	if err != nil {
		return nil, err
	}
	if s.own.Algorithm == Sets {
		return []privacy.Listed{{Kind: taskDiscrepancies, Times: s.own.Set.Proposals, Request: s.setsRequest()}}, nil
	}
	return []privacy.Listed{{Kind: taskDistances, Times: s.own.tasks(), Request: s.rowsRequest()}}, nil
}

// Notes implements [method.Noter]: what the algorithms give away.
func (Method) Notes(p *study.Plan) (notes problem.List) {
	o, ok := p.Method.Options.(*Options)
	if !ok {
		return nil
	}
	n := problem.Problem{Where: "method.algorithm",
		What: fmt.Sprintf("rows gives every row away, by %d exact distances to known points, and what it accepts does "+
			"not become the posterior", fitted.Features(p)+1),
		Hint: "it is there to compare with; name: " + fitted.Name + " for data of persons"}
	if o.Algorithm == Sets {
		n.What = fmt.Sprintf("sets releases up to %d exact means over each site's rows, which tell of single rows, "+
			"and its intervals are not to be relied on", o.Set.Proposals)
	}
	notes.Add(n)
	return notes
}

// CheckData implements [method.DataChecker].
func (Method) CheckData(ctx context.Context, p *study.Plan, rows dataset.Source) (problem.List, error) {
	s, err := setUp(p)
	if err != nil {
		return nil, err
	}
	return s.CheckData(ctx, rows)
}

// Describe implements [method.Describer].
func (Method) Describe(p *study.Plan) string {
	s, err := setUp(p)
	if err != nil {
		return ""
	}
	if s.own.Algorithm == Sets {
		return s.Describe() + " Again and again sites tell how far their rows as a whole are from simulated ones."
	}
	return s.Describe() + " Again and again sites tell the exact distance of each of their rows to simulated ones, " +
		"from which the rows can be found."
}

// Evaluator implements [method.Evaluable] by [fitted.Evaluator].
func (Method) Evaluator(p *study.Plan, files []method.File, _ bool) (evaluate.Model, error) {
	s, err := setUp(p)
	if err != nil {
		return nil, err
	}
	return fitted.Evaluator(s.Setup, files)
}
