package privacy

import (
	"fmt"
	"slices"

	"parley/privacy/account"
	"parley/privacy/policy"
)

// SimulationPolicy allows everything that published papers did. It is for
// simulated sites: it protects nobody.
func SimulationPolicy() policy.Policy {
	return policy.Policy{Version: policy.Default().Version, Protection: policy.Optional, MaxDelta: 1, PerRelease: true}
}

// Charged is a request that has been charged, and the study that it was for.
type Charged struct {
	Study   string // hexadecimal digest of the plan
	Request Request
}

// CheckAfter reports everything for which a policy would refuse the requests of a whole
// study, as a [*RefusalError], after everything that was charged before. Its answer follows
// from its arguments alone: no data are touched. An error that is not ErrRefused
// is one of the policy, the study or a request that makes no sense.
func CheckAfter(p policy.Policy, before []Charged, s Study, requests ...Request) error {
	l, err := limitsOf(p, s)
	if err != nil {
		return err
	}
	b := newBook(s.Digest)
	for _, c := range before {
		b.add(c.Study == s.Digest, c.Request)
	}
	return l.check(b, requests...)
}

// PreApproves says whether a policy's rule approves a study without a person,
// and in a sentence why or why not. It is not yet an admission: policy and ledger
// must allow the study, too. Rows have no part in it: whoever posts plans would
// otherwise ask questions about them, for nothing.
func PreApproves(p policy.Policy, s Study) (ok bool, why string) {
	r, g := p.PreApproval, s.Guarantee
	switch {
	case r == nil:
		return false, "The policy has no rule that approves studies without a person."
	case !slices.Contains(r.Methods, s.Method):
		return false, fmt.Sprintf("The policy's rule is for %v, and the study's method is %s.", r.Methods, s.Method)
	case g == nil || !s.Noised():
		return false, "The policy's rule is for studies with differential privacy in total, and this one has none."
	case g.Unit != Subject:
		return false, fmt.Sprintf("The policy's rule is for guarantees for one subject, and this one is for one %s.",
			g.Unit)
	case p.Size == 0 && p.CountsSubjects():
		return false, "The policy's rule knows no number of subjects to hold minimum.subjects and δ against: the " +
			"policy must name one that others may know, as its size."
	case !(g.Epsilon <= r.Study.Epsilon && g.Delta <= r.Study.Delta):
		return false, fmt.Sprintf("The policy's rule is for studies of at most %s, and this one promises %s.",
			account.Words(r.Study.Epsilon, r.Study.Delta), account.Words(g.Epsilon, g.Delta))
	}
	return true, fmt.Sprintf("The policy's rule approves studies by %s of at most %s, and this one promises %s.",
		s.Method, account.Words(r.Study.Epsilon, r.Study.Delta), account.Words(g.Epsilon, g.Delta))
}
