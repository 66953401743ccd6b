package method

import (
	"fmt"

	"parley/privacy"
	"parley/privacy/ledger"
	"parley/study"
)

// Cost returns what a checked plan promises and what it costs each site. A
// plan that its method cannot keep is an error.
func (r Registry) Cost(p *study.Plan) (*ledger.Cost, error) {
	m, ok := r.Lookup(p.Method.Name)
	if !ok {
		return nil, fmt.Errorf("method %q is not known", p.Method.Name)
	}
	return ledger.CostOf(p, func(site string) ([]privacy.Request, error) {
		list, err := m.Requests(p, site)
		return privacy.Requests(list), err
	})
}
