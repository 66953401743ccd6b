package report

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"parley/engine"
	"parley/figure"
	"parley/privacy"
	"parley/privacy/account"
	"parley/privacy/ledger"
	"parley/study"
)

// privacyRecord is what a private study promised and what all that was released
// comes to, as the coordinator can see it: privacy.json. Charges of
// computations that did not finish stand in the sites' own ledgers.
type privacyRecord struct {
	Unit      privacy.Unit      `json:"unit"`
	Adjacency account.Adjacency `json:"adjacency"`
	Total     *account.Budget   `json:"total,omitempty"` // promised; absent if nothing is
	// claimed for each noised sum as if it were the only one
	PerRelease  *account.Budget `json:"per_release,omitempty"`
	Diagnostics float64         `json:"diagnostics,omitempty"` // share of the total for the report
	// a total is promised, and everything released keeps it
	Holds    bool          `json:"holds"`
	Broken   []string      `json:"broken,omitempty"` // what no guarantee is compatible with
	Rounds   int           `json:"rounds"`
	Sites    []SitePrivacy `json:"sites"`
	Releases []ReleaseKind `json:"releases"`

	openers   string // how many have to be honest, in words
	collusion *int   // of a secure sum: how many sites may work together with the coordinator
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
	Task string `json:"task"`
	// with the count of the site that made it most often; absent without noise
	Sum     *privacy.Sum `json:"sum,omitempty"`
	Entries int          `json:"entries"` // numbers each time, at most
	Times   int          `json:"times"`   // over all rounds and sites
	// of one site, all its times but nothing else, at the plan's δ; absent where there is no bound
	Epsilon  *float64 `json:"epsilon,omitempty"`
	Releases int      `json:"releases"` // that held it, and perhaps other sums
	Bytes    int      `json:"bytes"`    // of those releases
}

// privacyOf adds up what a study released; nil if it is not a private one.
func privacyOf(plan *study.Plan, rounds []engine.Round) (*privacyRecord, error) {
	if !plan.Privacy.Differential() {
		return nil, nil
	}
	p := &privacyRecord{
		Unit: privacy.Unit(plan.Privacy.Unit), Adjacency: plan.Privacy.Adjacency, Total: plan.Privacy.Total,
		PerRelease:  plan.Privacy.PerRelease,
		Diagnostics: plan.Privacy.Diagnostics, Rounds: len(rounds), openers: plan.Privacy.HonestOpeners(),
		collusion: plan.Privacy.Collusion,
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
			no("its releases come to ε %s, above the ε %v that was promised", ledger.Spent(loss.Epsilon),
				p.Total.Epsilon)
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
		losses, err := ledger.Losses([]privacy.Request{{Protection: privacy.Differential, Sums: []privacy.Sum{*k.Sum}}},
			p.claim().Delta, p.Unit)
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

// privacySection says in words what protected what was released, then what it
// cost; p is nil for a study that is not private.
func privacySection(p *privacyRecord, rounds []engine.Round) figure.Section {
	s := figure.Section{ID: "privacy", Title: "Privacy"}
	note := func(n figure.Note) { s.Items = append(s.Items, figure.Item{Note: &n}) }
	if p == nil {
		note(figure.Note{Title: "Not protected by differential privacy", // as planned, and no fault of the result
			Text: "Everything that left a site passed its release gate and is listed below. But what left is exact: " +
				"no noise was added, so nobody can promise how little it tells about a single subject, and enough " +
				"exact numbers can give rows away. Share these results only among those who may see such statistics."})
		return s
	}
	if p.seeded() > 0 {
		note(figure.Note{Title: "The noise came from a seed: this protects nobody", Warning: true,
			Text: fmt.Sprintf("In %d of %d releases the noise was drawn from a seed, for a simulation that can be "+
				"repeated. Whoever knows the seed takes the noise away again. What is counted below would hold of "+
				"noise that nobody can foresee. These results must not be made from real people's data.", p.seeded(),
				len(releases(rounds)))})
	}
	switch {
	case p.Holds:
		note(p.guarantee())
	case p.Total != nil:
		note(figure.Note{Title: "No guarantee", Warning: true, Text: "The plan promises " + pair(*p.Total) +
			" in total, and this is not what happened: " + strings.Join(p.Broken, "; ") +
			". Nothing is promised to anybody. Share these results only among those who may see exact statistics."})
	default:
		note(p.unpromised())
	}
	beyond := "What is not protected"
	if !p.Holds {
		beyond = "What would not be protected in any case"
	}
	note(figure.Note{Title: beyond, Text: p.beyond()})
	s.Items = append(s.Items, figure.Item{Figure: p.figure()}, figure.Item{Table: p.siteTable()},
		figure.Item{Table: p.releaseTable()})
	return s
}

func (p *privacyRecord) seeded() (n int) {
	for _, s := range p.Sites {
		n += s.Seeded
	}
	return n
}

func pair(b account.Budget) string {
	return fmt.Sprintf("ε %s at δ %s", number(b.Epsilon), number(b.Delta))
}

func number(x float64) string { return figure.General.Text(x) }

// guarantee states what holds, for people who answer for other people's data.
func (p *privacyRecord) guarantee() figure.Note {
	e := p.Total.Epsilon
	whom, title := "any one subject", "every single subject"
	if p.Unit == privacy.WholeSite {
		whom, title = "any one site", "every site as a whole"
	}
	change := "if " + whom + " had not taken part"
	if p.Adjacency == account.ReplaceOne {
		change = "if the data of " + whom + " had been others, whichever they are"
	}
	person := "this one person"
	if p.Unit == privacy.WholeSite {
		person = "this one site"
	}
	odds, more := "on whether "+person+" took part",
		fmt.Sprintf(" For odds between two values that the data of %s may have, the ε under replace-one counts, in "+
			"the table below.", person)
	if p.Adjacency == account.ReplaceOne {
		odds, more = "between any two possibilities for the data of "+person, ""
	}
	text := []string{
		fmt.Sprintf("Everything that left a site, and so everything in these results, would have come about almost as "+
			"likely %s. “Almost” has a measure: no outcome became more than e^ε = %s times as likely, or as unlikely, "+
			"apart from a probability of at most δ = %s.",
			change, factor(e), number(p.Total.Delta)),
		fmt.Sprintf("What that means: whoever sees all of it and knows everybody else's data can change their odds %s "+
			"by a factor of at most %s. Someone who was undecided can be at most %s sure afterwards. δ is the chance "+
			"that this does not hold, %s. It holds whatever else they know, and whatever anybody computes from these "+
			"results later.%s%s", odds,
			factor(e), sure(e), oneIn(p.Total.Delta), more, p.weak()),
		p.trust() + " The site's own people, its computer and this program have to be trusted." + p.several(),
		p.counted(),
	}
	return figure.Note{Title: fmt.Sprintf("Guaranteed for %s: %s", title, pair(*p.Total)),
		Text: strings.Join(text, "\n\n")}
}

// weak warns of a promise that says little.
func (p *privacyRecord) weak() string {
	if p.Total.Epsilon < 5 {
		return ""
	}
	return " With so large an ε the promise is weak: it does not keep anybody from becoming nearly certain."
}

// trust says on whom the promise rests: with a secure sum, on others too.
func (p *privacyRecord) trust() string {
	if p.collusion == nil {
		return "Whom one has to trust: each site adds its noise itself, before anything leaves it. So the " +
			"coordinator, the other sites and the network need not be trusted."
	}
	return fmt.Sprintf("Whom one has to trust: each site adds its share of the noise itself, and masks the sums "+
		"before they leave it. The promise holds as long as %s, and the coordinator works together with at most "+
		"%s.", p.openers, figure.Plural(*p.collusion, "site"))
}

func (p *privacyRecord) several() string {
	switch {
	case p.Unit == privacy.WholeSite || len(p.Sites) < 2:
		return ""
	case p.collusion != nil: // of one noise, a sum of two rows takes more than two noises of as many rows
		return " The promise is for what one site has. A person with data at several sites is in each total as " +
			"often, which loses more than these sites' losses added up."
	}
	return " The promise is each site's for itself. Of a person with data at several sites the losses add up."
}

// counted says over what the guarantee was counted, and what it assumes.
func (p *privacyRecord) counted() string {
	sums := 0
	sampled := []string{}
	for _, s := range p.Sites {
		sums = max(sums, s.Sums)
	}
	for _, k := range p.Releases {
		if k.Sum != nil && k.Sum.Mechanism.Rate < 1 {
			if rate := number(k.Sum.Mechanism.Rate); !slices.Contains(sampled, rate) {
				sampled = append(sampled, rate)
			}
		}
	}
	text := fmt.Sprintf("How it was counted: all that a site gave, %s in %s, counts together, whoever sees it. The "+
		"noise is exact discrete noise under keys from the operating system's secure generator, and its amount was "+
		"fixed before the first round.",
		figure.Plural(sums, "noised sum"), figure.Plural(p.Rounds, "round"))
	if len(sampled) == 0 {
		text += " No sampling of subjects is assumed."
	} else {
		text += fmt.Sprintf(" Each subject entered each sum by a secret chance of its own (Poisson sampling, "+
			"probability %s), and the count relies on it.", strings.Join(sampled, ", "))
	}
	if p.Diagnostics > 0 {
		text += fmt.Sprintf(" Of the total, %s went to diagnostics for this report.",
			figure.Percent.Text(p.Diagnostics))
	}
	return text
}

// unpromised is for plans with a budget for each release: what they claim, and
// what is true.
func (p *privacyRecord) unpromised() figure.Note {
	text := fmt.Sprintf("The plan chose its noise the published way: %s for each noised sum, as if it were the only "+
		"one. Losses of several sums add up, so this is no promise about the study.", pair(*p.PerRelease))
	worst, sums := 0.0, 0
	for _, s := range p.Sites {
		loss := p.loss(s)
		if loss.Epsilon == nil {
			worst = math.Inf(1)
			continue
		}
		if *loss.Epsilon >= worst {
			worst, sums = *loss.Epsilon, s.Sums
		}
	}
	if !math.IsInf(worst, 1) {
		text += fmt.Sprintf("\n\nWhat is true: the %s of a site together have ε %s at δ %s, for one %s under %s. By "+
			"that, odds may change by a factor of %s.",
			figure.Plural(sums, "noised sum"), ledger.Spent(&worst), number(p.PerRelease.Delta), p.Unit, p.Adjacency,
			factor(worst))
	}
	if len(p.Broken) > 0 {
		text += "\n\nBeyond that nothing is bounded: " + strings.Join(p.Broken, "; ") + "."
	}
	return figure.Note{Title: "No guarantee for the study as a whole",
		Text: text + "\n\nShare these results only among those who may see exact statistics.", Warning: true}
}

// beyond says what no guarantee of this kind speaks of.
func (p *privacyRecord) beyond() string {
	text := []string{"What is true of people in general. If the study finds that two measurements go together, it " +
		"says so of those who took part as of those who did not."}
	if p.Unit == privacy.Subject {
		text = append(text, "What a site's subjects have in common, above all that the site took part, and of whom it "+
			"is the site.")
	}
	if p.Adjacency == account.ReplaceOne && p.Unit == privacy.Subject {
		text = append(text, "How many subjects a site has.")
	}
	text = append(text, "The plan itself with its features and ranges, which site answered when or left, and the "+
		"sizes of messages.",
		"The pages in sites/NAME, which show a site's own people single subjects as they are. They must not leave the "+
			"site.",
		"What the sites release in other studies. It adds up in each site's ledger, which the site's own page sums up.")
	return strings.Join(text, "\n\n")
}

// factor is e^ε for people, never below what it is.
func factor(epsilon float64) string {
	if epsilon > 20 {
		return fmt.Sprintf("e^%s, so large that it says nothing", number(math.Ceil(epsilon)))
	}
	x := math.Exp(epsilon)
	return ledger.Spent(&x)
}

// sure is the largest certainty that odds of one to one may become.
func sure(epsilon float64) string {
	p := 1 / (1 + math.Exp(-epsilon))
	if p > 0.9995 {
		return "practically"
	}
	return fmt.Sprintf("%.1f %%", math.Ceil(p*1000)/10)
}

func oneIn(delta float64) string {
	return "one in " + figure.Count.Text(math.Floor(1/delta*(1+1e-12)))
}
