package conformance

import (
	"context"

	"parley/dataset"
	"parley/engine/local"
	"parley/internal/vectors"
	"parley/method"
	"parley/privacy/account"
	"parley/study"
)

// Known is every family of test vectors that a program with these methods knows:
// the accountant's, and those of each method that has any.
func Known(methods method.Registry) []method.Verifier {
	list := []method.Verifier{accountant{}}
	for _, m := range methods {
		if v, ok := m.(method.Verifier); ok {
			list = append(list, v)
		}
	}
	return list
}

// Means are what the files of Known may need: data that open opens, and studies of
// these methods in memory.
func Means(methods method.Registry, open vectors.Opener) method.Means {
	return method.Means{Open: open, Run: func(p *study.Plan, rows map[string]dataset.Source) (*method.Result, error) {
		out, err := local.Run(context.Background(), local.Config{Plan: p, Methods: methods, Data: rows})
		if err != nil {
			return nil, err
		}
		return out.Result, nil
	}}
}

// accountant runs the vectors of package account, which need no data.
type accountant struct{}

func (accountant) SchemaPrefix() string { return account.VectorSchema }

func (accountant) Verify(file []byte, _ method.Means) ([]vectors.Check, error) {
	return account.Verify(file)
}
