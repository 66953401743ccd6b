package local

import (
	"context"
	"fmt"
	"slices"

	"parley/dataset"
	"parley/method"
	"parley/privacy"
	"parley/study"
)

// terms are what the gate of one site holds requests against.
func (c *Config) terms(ctx context.Context, site string, data dataset.Source) (privacy.Study, privacy.Policy, error) {
	s, err := privacy.StudyOf(c.Plan, site)
	if err != nil || c.Policy == nil {
		return s, privacy.SimulationPolicy(), err
	}
	// A real policy has limits that depend on how many subjects there are.
	for _, err := range data.Rows(ctx) {
		if err != nil {
			return s, *c.Policy, fmt.Errorf("counting subjects: %w", err)
		}
		s.Subjects++
	}
	return s, *c.Policy, nil
}

// agree holds everything that a private study will ask of a site against its
// policy and ledger, before the first charge: what would be refused in the end
// is not begun, and costs nothing. A study that the ledger knows has been
// agreed to; its gate sees to the rest. The error may wrap ErrRefused.
func agree(m method.Method, p *study.Plan, s privacy.Study, policy privacy.Policy, store privacy.LedgerReader) error {
	charger, ok := m.(method.Charger)
	if !ok || !p.Privacy.Differential() {
		return nil
	}
	ledger, err := privacy.ReadLedger(store)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(ledger.Entries, func(e privacy.Entry) bool { return e.Study == s.Digest }) {
		return nil
	}
	charges, err := charger.Charges(p, s.Site)
	if err != nil {
		return err
	}
	return ledger.Check(policy, s, charges...)
}

// refusing is a site that does not take part.
type refusing struct{ reason error }

func (r refusing) Exchange(context.Context, []byte) ([]byte, error) { return nil, r.reason }
