package policy

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"parley/internal/wire"
	"parley/privacy/account"
)

// PreApproval is a rule by which a site approves studies without asking a person
// about each. It widens nothing: everything else in the policy holds for these
// studies too.
type PreApproval struct {
	Methods []string       `json:"methods"` // at least one
	Study   account.Budget `json:"study"`   // largest total, for single subjects
}

// checkPreApproval reports each wrong value of the rule.
func (p Policy) checkPreApproval(report func(key, what, hint string)) {
	r := p.PreApproval
	if r == nil {
		return
	}
	if len(r.Methods) == 0 {
		report("pre_approval.methods", "missing", "the methods whose studies need no person, such as [factors]")
	}
	checkNames(report, "pre_approval.methods", "name each method once", r.Methods)
	for i, m := range r.Methods {
		if m != "" && !p.Allows(m) {
			report(fmt.Sprintf("pre_approval.methods[%d]", i),
				fmt.Sprintf("%q is not among the methods that the policy allows", m),
				fmt.Sprintf("it allows %v", p.Methods))
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
	p.Version = version
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
		p.PreApproval = &PreApproval{Methods: slices.Sorted(slices.Values(p.PreApproval.Methods)),
			Study: p.PreApproval.Study}
	}
	data, err := wire.Marshal(p)
	if err != nil {
		panic(err) // text and numbers, far below the limits
	}
	return sha256.Sum256(data)
}
