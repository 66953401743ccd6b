package privacy

import (
	"fmt"
	"math"
	"slices"

	"parley/privacy/account"
	"parley/privacy/policy"
)

// limits are everything that holds for the requests of one study at one site.
type limits struct {
	policy    policy.Policy
	study     Study
	guarantee *meter   // nil without a guarantee
	perStudy  []*meter // of the policy, for single subjects; none where the guarantee is as strict
	lifetime  []account.Filter
}

// limitsOf prepares to check; an error is one of the policy or of the study,
// which no request can mend.
func limitsOf(p policy.Policy, s Study) (*limits, error) {
	if err := p.Validate(); err != nil {
		return nil, fmt.Errorf("the site's policy: %w", err)
	}
	l := &limits{policy: p, study: s}
	adjacencies := p.Adjacencies()
	if g := s.Guarantee; g != nil {
		if err := g.Check(); err != nil {
			return nil, err
		}
		l.guarantee = &meter{adjacency: g.Adjacency, budget: g.Budget}
		adjacencies = []account.Adjacency{g.Adjacency} // the policy's, or refused
	}
	if p.Study != nil && (s.Guarantee == nil || s.Guarantee.Unit != Subject) {
		for _, a := range adjacencies {
			l.perStudy = append(l.perStudy, &meter{adjacency: a, budget: *p.Study})
		}
	}
	if p.Lifetime != nil {
		for _, a := range p.Adjacencies() {
			f, err := p.Lifetime.FilterFor(a)
			if err != nil {
				return nil, fmt.Errorf("the site's policy: lifetime: %w", err)
			}
			l.lifetime = append(l.lifetime, f)
		}
	}
	return l, nil
}

// check returns a *RefusalError if the requests are too much after everything
// in the book. A request that makes no sense is another error.
func (l *limits) check(b *book, requests ...Request) error {
	no := &RefusalError{}
	l.checkStudy(no)
	proposed := map[Unit][]account.Mechanism{}
	for _, r := range requests {
		if err := l.checkRequest(no, b, r, proposed); err != nil {
			return err
		}
	}
	if len(no.Reasons) > 0 || len(proposed) == 0 {
		return no.err()
	}
	if g := l.study.Guarantee; g != nil {
		if err := l.guarantee.limit(no, fmt.Sprintf("the plan's guarantee for a %s", g.Unit), b.ours[g.Unit],
			proposed[g.Unit]); err != nil {
			return err
		}
	}
	for _, m := range l.perStudy {
		if err := m.limit(no, "the policy's limit for a study", b.ours[Subject], proposed[Subject]); err != nil {
			return err
		}
	}
	for i, f := range l.lifetime {
		ok, err := f.Admit(b.all, proposed[Subject])
		if err != nil {
			return err
		}
		if !ok {
			hint := "what was released cannot be taken back: only a new policy would allow it"
			if len(b.all) == 0 {
				hint = "nothing was released yet, so that a plan with a smaller total fits, or a lifetime above what " +
					"this study costs"
			}
			no.add("lifetime", fmt.Sprintf("everything that this site has released, with this, would exceed ε %v at δ "+
				"%v (%s)",
				l.policy.Lifetime.Epsilon, l.policy.Lifetime.Delta, l.policy.Adjacencies()[i]), hint)
		}
	}
	return no.err()
}

// limit adds a reason if the composition leaves the budget.
func (m *meter) limit(no *RefusalError, what string, spent account.Tally, proposed []account.Mechanism) error {
	ok, err := m.admits(spent, proposed)
	if err != nil || ok {
		return err
	}
	text := "no bound at all"
	if epsilon, err := account.Epsilon(spent.With(1, proposed...), m.adjacency, m.budget.Delta); err != nil {
		return err
	} else if !math.IsInf(epsilon, 1) {
		text = fmt.Sprintf("ε %.4g", epsilon)
	}
	no.add("", fmt.Sprintf("with this the study would cost %s at δ %v (%s), above the ε %v of %s", text, m.budget.Delta,
		m.adjacency, m.budget.Epsilon, what), "")
	return nil
}

// checkStudy compares what the plan says with what the policy wants.
func (l *limits) checkStudy(no *RefusalError) {
	p, s := l.policy, l.study
	if p.Site != "" && p.Site != s.Site {
		no.add("site", fmt.Sprintf("this is the policy of site %q, not of %q", p.Site, s.Site), "")
	}
	if !p.Allows(s.Method) {
		no.add("methods", fmt.Sprintf("method %q is not among those it allows", s.Method),
			fmt.Sprintf("it allows %v", p.Methods))
	}
	if s.Quorum < p.Minimum.Sites {
		no.add("minimum.sites", fmt.Sprintf("the plan's quorum is %d, and it wants at least %d sites to contribute",
			s.Quorum, p.Minimum.Sites), "raise the plan's quorum")
	}
	if t := p.Minimum.Collusion; s.Collusion >= 0 && s.Collusion < t {
		no.add("minimum.collusion", fmt.Sprintf("the plan's noise is enough where %d sites work together with the "+
			"coordinator, and it wants that for %d", s.Collusion, t), "raise collusion in the plan")
	}
	switch {
	case p.Minimum.Subjects == 0:
	case s.Subjects == 0:
		no.add("minimum.subjects", "nobody has counted the site's subjects", "")
	case s.Subjects < p.Minimum.Subjects:
		no.add("minimum.subjects", fmt.Sprintf("it wants at least %d subjects, and the site has fewer",
			p.Minimum.Subjects), "")
	}
	g := s.Guarantee
	if g == nil {
		return
	}
	if p.Adjacency != "" && g.Adjacency != p.Adjacency {
		no.add("adjacency", fmt.Sprintf("the plan's guarantee is for %s, and it wants %s", g.Adjacency, p.Adjacency),
			"")
	}
	if p.Study != nil && (g.Epsilon > p.Study.Epsilon || g.Delta > p.Study.Delta) {
		no.add("study", fmt.Sprintf("the plan's guarantee is ε %v, δ %v, and it allows at most ε %v, δ %v", g.Epsilon,
			g.Delta, p.Study.Epsilon, p.Study.Delta), "a smaller total in the plan")
	}
	if g.Delta > p.LargestDelta(s.Subjects) {
		no.add("max_delta", fmt.Sprintf("the plan's δ of %v is above what it allows", g.Delta),
			"by default δ may be at most 1e-5, and at most 1 divided by 100 times the number of the site's subjects")
	}
}

// checkRequest looks at one request, and collects its mechanisms.
func (l *limits) checkRequest(no *RefusalError, b *book, r Request, proposed map[Unit][]account.Mechanism) error {
	p, s := l.policy, l.study
	if r.Protection != Unprotected && r.Protection != Differential {
		no.add("", fmt.Sprintf("protection %q is not known here", string(r.Protection)), "")
		return nil
	}
	if err := r.Check(); err != nil {
		return err
	}
	if want := p.Minimum.PatternSubjects; r.PatternMinimum < want && (r.Protection == Unprotected || r.perPattern()) {
		no.add("minimum.pattern_subjects", fmt.Sprintf("the method may give numbers of %d subjects alone, and it "+
			"wants at least %d", r.PatternMinimum, want), "")
	}
	if r.Protection == Unprotected {
		if p.Protection != policy.Optional {
			no.add("protection", "it demands differential privacy, and the plan has none", "")
		} else if s.Guarantee != nil {
			no.add("", "the plan guarantees differential privacy, and the method asks for a release without", "")
		}
		return nil
	}
	if s.Guarantee == nil && !p.PerRelease {
		no.add("per_release", "the plan gives no guarantee for the study as a whole",
			"a total in the plan, or per_release: true in the policy")
	}
	for _, x := range r.Sums {
		if _, err := x.grid(); err != nil { // nothing is charged for what cannot be made
			return err
		}
	}
	for _, unit := range []Unit{Subject, WholeSite} {
		ms, err := r.Mechanisms(unit)
		needed := unit == Subject || s.Guarantee != nil && s.Guarantee.Unit == unit
		if needed && err == nil && s.Guarantee != nil && s.Guarantee.Unit == unit && b.boundless[unit] {
			err = fmt.Errorf("the study has released what has no bound for a %s", unit)
		}
		if needed && err != nil {
			no.add("", err.Error(), "")
		}
		proposed[unit] = append(proposed[unit], ms...)
	}
	return nil
}

// perPattern says whether a request has sums for several patterns of views.
func (r Request) perPattern() bool {
	return slices.ContainsFunc(r.Sums, func(s Sum) bool { return len(s.Blocks) > 1 })
}
