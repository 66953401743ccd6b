package privacy

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"parley/internal/wire"
	"parley/privacy/account"
	"parley/privacy/internal/words"
)

// PreApproval is a rule by which a site approves studies without asking a person
// about each. It widens nothing: everything else in the policy holds for these
// studies too.
type PreApproval struct {
	Methods []string       `json:"methods"` // at least one
	Study   account.Budget `json:"study"`   // largest total, for single subjects
}

// PreApproves says whether the policy's rule approves a study without a person,
// and in a sentence why or why not. It is not yet an admission: policy, ledger
// and data must allow the study, too.
func (p Policy) PreApproves(s Study) (ok bool, why string) {
	r, g := p.PreApproval, s.Guarantee
	switch {
	case r == nil:
		return false, "The policy has no rule that approves studies without a person."
	case !slices.Contains(r.Methods, s.Method):
		return false, fmt.Sprintf("The policy's rule is for %v, and the study's method is %s.", r.Methods, s.Method)
	case g == nil || slices.ContainsFunc(s.Requests, func(l Listed) bool { return l.Request.Protection != Differential }):
		return false, "The policy's rule is for studies with differential privacy in total, and this one has none."
	case g.Unit != Subject:
		return false, fmt.Sprintf("The policy's rule is for guarantees for one subject, and this one is for one %s.", g.Unit)
	case !(g.Epsilon <= r.Study.Epsilon && g.Delta <= r.Study.Delta):
		return false, fmt.Sprintf("The policy's rule is for studies of at most %s, and this one promises %s.", words.Budget(r.Study.Epsilon, r.Study.Delta), words.Budget(g.Epsilon, g.Delta))
	}
	return true, fmt.Sprintf("The policy's rule approves studies by %s of at most %s, and this one promises %s.", s.Method, words.Budget(r.Study.Epsilon, r.Study.Delta), words.Budget(g.Epsilon, g.Delta))
}

// checkPreApproval reports each wrong value of the rule.
func (p Policy) checkPreApproval(report func(key, what, hint string)) {
	r := p.PreApproval
	if r == nil {
		return
	}
	if len(r.Methods) == 0 {
		report("pre_approval.methods", "missing", "the methods whose studies need no person, such as [mvppca]")
	}
	checkNames(report, "pre_approval.methods", "name each method once", r.Methods)
	for i, m := range r.Methods {
		if m != "" && !p.allows(m) {
			report(fmt.Sprintf("pre_approval.methods[%d]", i), fmt.Sprintf("%q is not among the methods that the policy allows", m), fmt.Sprintf("it allows %v", p.Methods))
		}
	}
	if r.Study == (account.Budget{}) {
		report("pre_approval.study", "missing", budgetHint)
		return
	}
	checkBudget(report, "pre_approval.study", r.Study.Epsilon, r.Study.Delta)
}

// Digest is the SHA-256 of everything that the policy says, with its defaults: how
// its file is written, and in which order methods stand, makes no difference.
func (p Policy) Digest() [32]byte {
	p.Version = policyVersion
	if p.Protection == "" {
		p.Protection = Required
	}
	if p.Lifetime != nil {
		l := *p.Lifetime
		if l.Filter == "" {
			l.Filter = RenyiFilter
		}
		p.Lifetime = &l
	}
	p.Methods = slices.Sorted(slices.Values(p.Methods))
	if p.PreApproval != nil {
		p.PreApproval = &PreApproval{Methods: slices.Sorted(slices.Values(p.PreApproval.Methods)), Study: p.PreApproval.Study}
	}
	data, err := wire.Marshal(p)
	if err != nil {
		panic(err) // text and numbers, far below the limits
	}
	return sha256.Sum256(data)
}
