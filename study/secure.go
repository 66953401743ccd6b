package study

import (
	"fmt"
	"slices"

	"parley/privacy/masks"
	"parley/problem"
)

// mostOpeners is how many sites open totals where the plan names none.
const mostOpeners = 5

// fillSecure puts defaults where a plan with a secure sum says nothing.
func (p *Plan) fillSecure(missing func(path string) bool) {
	s := &p.Privacy
	if s.Sum == sumPlain {
		s.Sum = ""
	}
	if !s.Secure() {
		return
	}
	if missing("privacy.openers") {
		n := mostOpeners
		if s.Differential() { // all but one of them are less than half of the quorum, whose other half's noise counts
			n = min(n, max(2, (p.Quorum-1)/2+1))
		}
		s.Openers = slices.Clone(p.Sites[:min(n, len(p.Sites))])
	}
	if missing("privacy.collusion") && s.Differential() {
		t := max(len(s.Openers)-1, 0)
		s.Collusion = &t
	}
}

// sum checks how sums over the sites are made.
func (c *checker) sum() {
	p := c.p.Privacy
	if !p.Secure() {
		if p.Sum != "" {
			c.report("privacy.sum", fmt.Sprintf("unknown sum %q", p.Sum),
				problem.DidYouMean(p.Sum, []string{sumPlain, sumSecure},
					"plain: the coordinator learns each site's sums; secure: only their total"))
		}
		Report(c.report).Within("privacy").Absent("means nothing without sum: secure", "leave it out, or sum: secure",
			map[string]bool{"openers": len(p.Openers) > 0, "collusion": p.Collusion != nil, "keys": len(p.Keys) > 0,
				"spare": p.Spare != ""})
		return
	}
	options, ok := c.p.Method.Options.(Summable)
	if !ok {
		if c.p.Method.Options != nil {
			c.report("privacy.sum", fmt.Sprintf("method %s does not run on totals: what its sites answer, or when, is "+
				"more than a sum", c.p.Method.Name),
				"sum: plain; or one of the methods factors, regression and mixture")
		}
		return
	}
	options.Summable(c.p, func(key, what, hint string) { c.report(under("method", key), what, hint) })
	c.openers(p.Openers)
	c.spare(p)
	switch {
	case p.PerRelease != nil:
		c.report("privacy.sum", "secure stands beside per_release",
			"a total in place of per_release, which promises nothing")
	case !p.Differential() && p.Collusion != nil:
		c.report("privacy.collusion", "means nothing without noise",
			"leave it out: with protection: none one honest opener is enough, and the total itself is exact")
	case !p.Differential() && c.p.Quorum < 3:
		c.report("quorum", fmt.Sprintf("of an exact total over %d sites, each knows the other's part", c.p.Quorum),
			"quorum: 3 or more; the openers open no total over fewer")
	case p.Differential() && p.Collusion == nil:
		c.report("privacy.collusion", "missing: how many sites may work together with the coordinator",
			"one fewer than there are openers, or more")
	case p.Differential():
		c.collusion(*p.Collusion, len(p.Openers))
	}
	if n := len(p.Keys); n > 0 && n != len(c.p.Sites) {
		c.report("privacy.keys", fmt.Sprintf("%d keys for %d sites", n, len(c.p.Sites)),
			"leave them out: the keys of the sites are filled in when the plan is submitted")
		return
	}
	for i, text := range p.Keys {
		if _, err := masks.ParseMember(c.p.Sites[i], text); err != nil {
			c.report(fmt.Sprintf("privacy.keys[%d]", i), err.Error(),
				"leave keys out: they are filled in when the plan is submitted")
		}
	}
}

func under(section, key string) string {
	if key == "" {
		return section
	}
	return section + "." + key
}

func (c *checker) openers(list []string) {
	const hint = "two sites or more; whoever works with all of them can see each site's own sums"
	if len(list) < 2 {
		c.report("privacy.openers", fmt.Sprintf("%d openers", len(list)), hint)
	}
	for i, site := range list {
		switch path := fmt.Sprintf("privacy.openers[%d]", i); {
		case !slices.Contains(c.p.Sites, site):
			c.report(path, fmt.Sprintf("%q is not a site of this study", site), problem.DidYouMean(site, c.p.Sites, ""))
		case slices.Contains(list[:i], site):
			c.report(path, site+" is named twice", hint)
		}
	}
}

func (c *checker) spare(p Privacy) {
	switch {
	case p.Spare == "":
	case !p.Differential():
		c.report("privacy.spare", "means nothing without noise",
			"leave it out: exact totals of a study are all of the same sites, so that none can be asked for again")
	case !slices.Contains(c.p.Sites, p.Spare):
		c.report("privacy.spare", fmt.Sprintf("%q is not a site of this study", p.Spare),
			problem.DidYouMean(p.Spare, c.p.Sites, ""))
	case slices.Contains(p.Openers, p.Spare):
		c.report("privacy.spare", p.Spare+" is an opener already", "another site, or fewer openers")
	}
}

func (c *checker) collusion(t, openers int) {
	switch {
	case t < openers-1:
		c.report("privacy.collusion", fmt.Sprintf("%d is too few for %d openers: all but one of them may work "+
			"together, and know of %d sites' noise", t, openers, openers-1),
			fmt.Sprintf("collusion: %d, or fewer openers", openers-1))
	case c.p.Quorum-t < 1:
		c.report("privacy.collusion", fmt.Sprintf("of a quorum of %d sites, %d would leave nobody whose noise counts",
			c.p.Quorum, t),
			"below the quorum: fewer, with fewer openers, or a larger quorum")
	}
}

// Cohort is the plan as of one site of this name, with the subjects of all: what a method's halves see of a study whose
// sums are secure. What they make is the study's, and names its digest.
func (p *Plan) Cohort(name string) *Plan {
	q := *p
	q.of, q.Sites, q.Quorum, q.Local = p, []string{name}, 1, nil
	q.Privacy.Openers, q.Privacy.Collusion, q.Privacy.Keys = nil, nil, nil
	return &q
}

// Whole is the plan that a [Plan.Cohort] is of; any other plan is it.
func (p *Plan) Whole() *Plan {
	if p.of != nil {
		return p.of
	}
	return p
}

// Among is the plan of a study of these sites in place of its own, as a simulation has it: all of them have to stay. Of
// a secure sum as many open totals as before, if there are as many, noise counts on as many fewer, and has the room
// that a spare takes; one site alone has no total to hide in.
func (p *Plan) Among(sites []string) *Plan {
	own := *p
	own.of, own.Sites, own.Quorum, own.Local, own.Privacy.Keys = nil, sites, len(sites), nil, nil
	if !p.Privacy.Secure() {
		return &own
	}
	s := &own.Privacy
	if len(sites) == 1 {
		s.Sum, s.Openers, s.Collusion = "", nil, nil
		return &own
	}
	n := min(len(s.Openers), len(sites))
	s.Openers = slices.DeleteFunc(slices.Clone(s.Openers), func(o string) bool { return !slices.Contains(sites, o) })
	for _, site := range sites {
		if len(s.Openers) < n && !slices.Contains(s.Openers, site) {
			s.Openers = append(s.Openers, site)
		}
	}
	if s.Collusion != nil {
		missing := len(p.Sites) - p.Quorum
		own.Quorum = max(len(sites)-missing, 2)
		t := max(min(*s.Collusion, own.Quorum-1), len(s.Openers)-1)
		s.Collusion = &t
	}
	return &own
}
