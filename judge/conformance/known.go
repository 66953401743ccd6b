package conformance

import (
	"parley/internal/vectors"
	"parley/method"
	"parley/privacy/account"
)

// Verifier runs the files of one family of test vectors: those whose "schema"
// begins with SchemaPrefix. A method that has vectors is one, see
// [method.Verifier].
type Verifier interface {
	SchemaPrefix() string
	Verify(file []byte, open vectors.Opener) ([]vectors.Check, error)
}

// Known is every family of test vectors that a program with these methods knows:
// the accountant's, and those of each method that has any.
func Known(methods method.Registry) []Verifier {
	list := []Verifier{accountant{}}
	for _, m := range methods {
		if v, ok := m.(method.Verifier); ok {
			list = append(list, v)
		}
	}
	return list
}

// accountant runs the vectors of package account, which need no data.
type accountant struct{}

func (accountant) SchemaPrefix() string { return account.VectorSchema }

func (accountant) Verify(file []byte, _ vectors.Opener) ([]vectors.Check, error) {
	return account.Verify(file)
}
