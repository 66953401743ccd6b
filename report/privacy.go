package report

import (
	"fmt"
	"reflect"
	"slices"

	"parley/engine"
	"parley/privacy"
	"parley/privacy/account"
	"parley/privacy/ledger"
	"parley/study"
)

// privacyRecord is what a private study promised and what all that was released
// comes to, as the coordinator can see it: privacy.json. Charges of
// computations that did not finish stand in the sites' own ledgers.
type privacyRecord struct {
	Unit        privacy.Unit      `json:"unit"`
	Adjacency   account.Adjacency `json:"adjacency"`
	Total       *account.Budget   `json:"total,omitempty"`       // promised; absent if nothing is
	PerRelease  *account.Budget   `json:"per_release,omitempty"` // claimed for each noised sum as if it were the only one
	Diagnostics float64           `json:"diagnostics,omitempty"` // share of the total for the report
	Holds       bool              `json:"holds"`                 // a total is promised, and everything released keeps it
	Broken      []string          `json:"broken,omitempty"`      // what no guarantee is compatible with
	Rounds      int               `json:"rounds"`
	Sites       []SitePrivacy     `json:"sites"`
	Releases    []ReleaseKind     `json:"releases"`
}

// SitePrivacy is what one site has released.
type SitePrivacy struct {
	Site        string        `json:"site"`
	Releases    int           `json:"releases"`
	Unprotected int           `json:"unprotected"` // of them, without noise: nothing bounds what they tell
	Seeded      int           `json:"seeded"`      // of them, with noise from a seed, which protects nobody
	Sums        int           `json:"noised_sums"`
	Bytes       int           `json:"bytes"`
	Losses      []ledger.Loss `json:"losses"` // of the noised sums, for the plan's unit, under both adjacencies
}

// ReleaseKind is one kind of noised sum, or of release without noise.
type ReleaseKind struct {
	Task     string       `json:"task"`
	Sum      *privacy.Sum `json:"sum,omitempty"`     // with the count of the site that made it most often; absent without noise
	Entries  int          `json:"entries"`           // numbers each time, at most
	Times    int          `json:"times"`             // over all rounds and sites
	Epsilon  *float64     `json:"epsilon,omitempty"` // of one site, all its times but nothing else, at the plan's δ; absent where there is no bound
	Releases int          `json:"releases"`          // that held it, and perhaps other sums
	Bytes    int          `json:"bytes"`             // of those releases
}

// privacyOf adds up what a study released; nil if it is not a private one.
func privacyOf(plan *study.Plan, rounds []engine.Round) (*privacyRecord, error) {
	if !plan.Privacy.Differential() {
		return nil, nil
	}
	p := &privacyRecord{
		Unit: privacy.Unit(plan.Privacy.Unit), Adjacency: plan.Privacy.Adjacency, Total: plan.Privacy.Total, PerRelease: plan.Privacy.PerRelease,
		Diagnostics: plan.Privacy.Diagnostics, Rounds: len(rounds),
	}
	var before []privacy.Request // of the last site: most are alike
	for i, site := range plan.Sites {
		s := SitePrivacy{Site: site}
		var requests []privacy.Request
		for _, x := range releases(rounds) {
			if x.Site == site {
				s.count(x)
				requests = append(requests, x.Request)
			}
		}
		if i > 0 && reflect.DeepEqual(requests, before) {
			s.Losses = p.Sites[i-1].Losses
		} else {
			var err error
			if s.Losses, err = ledger.Losses(requests, p.claim().Delta, p.Unit); err != nil {
				return nil, fmt.Errorf("adding up what site %s released: %w", site, err)
			}
		}
		before, p.Sites = requests, append(p.Sites, s)
	}
	p.judge()
	return p, p.kinds(releases(rounds))
}

// releases are the exchanges in which something left a site.
func releases(rounds []engine.Round) (list []engine.Exchange) {
	for _, r := range rounds {
		for _, x := range r.Sites {
			if x.Request.Protection != "" {
				list = append(list, x)
			}
		}
	}
	return list
}

func (s *SitePrivacy) count(x engine.Exchange) {
	s.Releases++
	s.Bytes += x.Up
	if x.Request.Protection == privacy.Unprotected {
		s.Unprotected++
	}
	if x.Seeded {
		s.Seeded++
	}
	for _, sum := range x.Request.Sums {
		s.Sums += sum.Mechanism.Count
	}
}

// claim is the budget that the noise was chosen for.
func (p *privacyRecord) claim() account.Budget {
	if p.Total != nil {
		return *p.Total
	}
	return *p.PerRelease
}

// loss is what the site's noised sums cost, as the plan counts.
func (p *privacyRecord) loss(s SitePrivacy) ledger.Loss {
	return s.Losses[slices.IndexFunc(s.Losses, func(l ledger.Loss) bool { return l.Adjacency == p.Adjacency })]
}

// judge says whether what was promised holds. The gates have seen to it; who
// reads the results should not have to take their word for it.
func (p *privacyRecord) judge() {
	for _, s := range p.Sites {
		no := func(format string, a ...any) {
			p.Broken = append(p.Broken, "site "+s.Site+": "+fmt.Sprintf(format, a...))
		}
		if s.Unprotected > 0 {
			no("%d of its %d releases left it without noise", s.Unprotected, s.Releases)
		}
		if s.Seeded > 0 {
			no("the noise of %d of its releases came from a seed", s.Seeded)
		}
		switch loss := p.loss(s); {
		case loss.Epsilon == nil:
			no("%s", loss.Unbounded)
		case p.Total != nil && *loss.Epsilon > p.Total.Epsilon:
			no("its releases come to ε %s, above the ε %v that was promised", ledger.Spent(loss.Epsilon), p.Total.Epsilon)
		}
	}
	p.Holds = p.Total != nil && len(p.Broken) == 0
}

// kinds lists what was released, equal sums of all rounds and sites together.
func (p *privacyRecord) kinds(list []engine.Exchange) error {
	p.Releases = []ReleaseKind{}
	times := []map[string]int{} // by site, of each kind
	add := func(x engine.Exchange, sum *privacy.Sum, entries, count int) {
		i := slices.IndexFunc(p.Releases, func(k ReleaseKind) bool { return k.Task == x.Kind && sameSum(k.Sum, sum) })
		if i < 0 {
			i = len(p.Releases)
			p.Releases, times = append(p.Releases, ReleaseKind{Task: x.Kind, Sum: sum}), append(times, map[string]int{})
		}
		k := &p.Releases[i]
		k.Entries, k.Times, k.Releases, k.Bytes = max(k.Entries, entries), k.Times+count, k.Releases+1, k.Bytes+x.Up
		times[i][x.Site] += count
	}
	for _, x := range list {
		for _, sum := range x.Request.Sums {
			add(x, &sum, sum.Entries(), sum.Mechanism.Count)
		}
		if x.Request.Protection == privacy.Unprotected {
			entries := 0
			for _, c := range x.Request.Contents {
				entries += c.Values
			}
			add(x, nil, entries, 1)
		}
	}
	for i := range p.Releases {
		k := &p.Releases[i]
		if k.Sum == nil {
			continue
		}
		for _, n := range times[i] {
			k.Sum.Mechanism.Count = max(k.Sum.Mechanism.Count, n)
		}
		losses, err := ledger.Losses([]privacy.Request{{Protection: privacy.Differential, Sums: []privacy.Sum{*k.Sum}}}, p.claim().Delta, p.Unit)
		if err != nil {
			return fmt.Errorf("counting %q: %w", k.Sum.Name, err)
		}
		k.Epsilon = p.loss(SitePrivacy{Losses: losses}).Epsilon
	}
	return nil
}

// sameSum says whether two sums are alike but for how often they are made and,
// with the views that a site has, how long they are.
func sameSum(a, b *privacy.Sum) bool {
	if a == nil || b == nil {
		return a == b
	}
	x, y := *a, *b
	x.Blocks, y.Blocks = nil, nil
	x.Mechanism.Count, y.Mechanism.Count = 0, 0
	return reflect.DeepEqual(x, y)
}
