package graffl

import (
	"fmt"

	"parley/methods/mixture/fitted"
	"parley/methods/mixture/gmm"
	"parley/study"
)

// Name is what plans call the method.
const Name = "graffl-abc"

// The algorithms.
const (
	// Rows is Algorithm 2: rows are compared one by one with simulated ones.
	Rows = "rows"
	// Sets compares one simulated set for each proposal with the rows of every site, by a
	// discrepancy that adds up over them.
	Sets = "sets"
)

// Options are what a plan says under method.
type Options struct {
	Algorithm  string       `json:"algorithm"`  // Rows or Sets (rows)
	Components int          `json:"components"` // K of the mixture, 1 to 64; no default
	Prior      PriorOptions `json:"prior"`      // public, in terms of the features' ranges
	// rows: in each of which every row is compared with one simulated row (100)
	Rounds   int         `json:"rounds,omitempty"`
	Accepted int         `json:"accepted,omitempty"` // rows: L, proposals that are kept (1000)
	Set      *SetOptions `json:"set,omitempty"`      // sets
}

// PriorOptions make the prior of the features' public ranges, of widths R: see
// [gmm.BoxPrior], whose numbers are the defaults.
type PriorOptions struct {
	Concentration float64 `json:"concentration"` // α of the weights' Dirichlet distribution, 0.01 to 1e6 (1)
	// Kappa is how many rows the middle of the box is worth as a component's mean, 1e-6 to 1e6 (0.02).
	Kappa  float64 `json:"kappa"`
	Spread float64 `json:"spread"` // E Σ of a component as a share of diag(R²), 1e-6 to 1e3 (0.02)
	// Freedom is ν of the inverse Wishart distribution, at least features + 1.1, to 1e6 (features + 3).
	Freedom float64 `json:"freedom"`
}

// SetOptions say how parameters are learned from set discrepancies: see [discrepancy]. Distances are in the
// features' own units: one in large numbers drowns the others.
type SetOptions struct {
	Discrepancy string  `json:"discrepancy"`         // energy (the default) or mmd
	Bandwidth   float64 `json:"bandwidth,omitempty"` // mmd: h of its kernel, in features' units
	Particles   int     `json:"particles"`           // parameters in the sample, 16 to 10000 (128)
	Proposals   int     `json:"proposals"`           // most of them, over all generations, to 100000 (15000)
	Rows        int     `json:"rows"`                // simulated from each proposal, 2 to 10000 (150)
	Keep        float64 `json:"keep"`                // share of particles below the next threshold, in (0, 1) (0.7)
	// the study ends, inside a generation too, when so small a share of at least as many proposals as there are
	// particles is accepted, in [0, 1) (0.01)
	LeastAcceptance float64 `json:"least_acceptance"`
}

// defaultSet is what 15 000 proposals are best spent on for three components in two dimensions.
func defaultSet() SetOptions {
	return SetOptions{Discrepancy: string(byEnergy), Particles: 128, Proposals: 15000, Rows: 150, Keep: 0.7,
		LeastAcceptance: 0.01}
}

// Check reports what is wrong with the choices of the sampler.
func (c *SetOptions) Check() error {
	switch {
	case c.Particles < 16 || c.Particles > fitted.MaxDraws:
		return fmt.Errorf("%d particles: want 16 to %d", c.Particles, fitted.MaxDraws)
	case c.Proposals < c.Particles || c.Proposals > maxSetProposals:
		return fmt.Errorf("%d proposals for %d particles: want at least as many, and at most %d",
			c.Proposals, c.Particles, maxSetProposals)
	case c.Rows < 2 || c.Rows > maxSetRows:
		return fmt.Errorf("%d rows simulated from each proposal: want 2 to %d", c.Rows, maxSetRows)
	case !(c.Keep > 0 && c.Keep < 1):
		return fmt.Errorf("a share of %v kept between generations: want a number between 0 and 1", c.Keep)
	case !(c.LeastAcceptance >= 0 && c.LeastAcceptance < 1):
		return fmt.Errorf("a least acceptance of %v: want a number from 0 to below 1", c.LeastAcceptance)
	}
	return nil
}

const (
	maxRounds       = 100_000
	maxAccepted     = 100_000
	maxSetRows      = 10_000
	maxSetProposals = 100_000

	// setBatch is how many proposals go to the sites at a time.
	setBatch = 100
)

// Fill puts in the defaults.
func (o *Options) Fill(p *study.Plan, missing func(key string) bool) {
	if missing("prior.freedom") {
		o.Prior.Freedom = float64(fitted.Features(p)) + 3
	}
	switch o.Algorithm {
	case Rows:
		if missing("rounds") {
			o.Rounds = 100
		}
		if missing("accepted") {
			o.Accepted = 1000
		}
	case Sets:
		o.fillSet(missing)
	}
}

func (o *Options) fillSet(missing func(key string) bool) {
	if o.Set == nil {
		o.Set = &SetOptions{}
	}
	q, c := o.Set, defaultSet()
	for key, fill := range map[string]func(){
		"discrepancy": func() { q.Discrepancy = c.Discrepancy }, "particles": func() { q.Particles = c.Particles },
		"proposals": func() { q.Proposals = c.Proposals }, "rows": func() { q.Rows = c.Rows },
		"keep": func() { q.Keep = c.Keep }, "least_acceptance": func() { q.LeastAcceptance = c.LeastAcceptance },
	} {
		if missing("set." + key) {
			fill()
		}
	}
}

// Former implements [study.Former].
func (*Options) Former(key string) string {
	switch key {
	case "encoder":
		return "leave it out: the paper's codes are in its tables alone (go run -C papers . run graffl-table-1)"
	case "scarce":
		return "leave it out, or name: mixture, whose mixture serves a scarce class"
	}
	return ""
}

// BeyondRange implements [study.RangeTeller].
func (o *Options) BeyondRange(*study.Plan) string { return study.RangeAsIs }

// Check holds the options against the plan.
func (o *Options) Check(p *study.Plan, report study.Report) {
	if !report.OneOf("algorithm", o.Algorithm, Rows, Sets) {
		return
	}
	sets := o.Algorithm == Sets
	report.If(sets && o.Rounds != 0, "rounds", "belongs to algorithm: "+Rows, "leave it out")
	report.If(sets && o.Accepted != 0, "accepted", "belongs to algorithm: "+Rows, "leave it out")
	report.If(!sets && o.Set != nil, "set", "belongs to algorithm: "+Sets, "leave it out")
	draws, key, what := o.Accepted, "accepted", "the published algorithm releases exact distances, which give rows away"
	if sets {
		if report.If(o.Set == nil, "set", "missing", // in an encoding that somebody else made
			"discrepancy, particles, proposals, rows, keep and least_acceptance") {
			return
		}
		draws, key, what = max(o.Set.Particles, setBatch), "set.particles",
			"set discrepancies are released exactly, for as many simulated sets as there are proposals"
		o.checkSet(report)
	} else {
		report.If(o.Rounds < 1 || o.Rounds > maxRounds, "rounds", fmt.Sprintf("%d rounds", o.Rounds),
			fmt.Sprintf("from 1 to %d", maxRounds))
		report.If(o.Accepted < 1 || o.Accepted > maxAccepted, "accepted",
			fmt.Sprintf("%d accepted proposals", o.Accepted), fmt.Sprintf("from 1 to %d", maxAccepted))
	}
	if fitted.Check(p, o.Components, draws, key, report) {
		o.checkPrior(p, report)
	}
	report.If(p.Privacy.Differential(), "", what, "name: "+fitted.Name+", or protection: none among simulated sites")
}

// checkPrior holds the prior against bounds beyond which weights or covariances that are drawn from it are not
// numbers any more that a sampler can go on from.
func (o *Options) checkPrior(p *study.Plan, report study.Report) {
	ok := true
	for _, c := range []struct {
		key       string
		x, lo, hi float64
	}{{"concentration", o.Prior.Concentration, 0.01, 1e6}, {"kappa", o.Prior.Kappa, 1e-6, 1e6},
		{"spread", o.Prior.Spread, 1e-6, 1e3},
		{"freedom", o.Prior.Freedom, float64(fitted.Features(p)) + 1.1, 1e6}} { // from d + 1 down there is no mean
		ok = !report.If(!(c.x >= c.lo && c.x <= c.hi), "prior."+c.key, fmt.Sprintf("%v is out of range", c.x),
			fmt.Sprintf("from %v to %v", c.lo, c.hi)) && ok
	}
	if _, err := o.prior(p); ok && err != nil {
		report("prior", err.Error(), "ranges of features that are neither as wide nor as narrow")
	}
}

// prior is that of the public box.
func (o *Options) prior(p *study.Plan) (gmm.Prior, error) {
	_, lo, hi := fitted.Box(p)
	q, err := gmm.BoxPrior(lo, hi, o.Components)
	if err != nil {
		return q, err
	}
	for k := range q.Alpha {
		q.Alpha[k] = o.Prior.Concentration
	}
	q.Kappa, q.Nu = o.Prior.Kappa, o.Prior.Freedom
	for i := range lo {
		r := hi[i] - lo[i]
		q.Psi[i*len(lo)+i] = o.Prior.Spread * (q.Nu - float64(len(lo)+1)) * r * r
	}
	return q, q.Check()
}

func (o *Options) checkSet(report study.Report) {
	if err := o.discrepancy().Check(); err != nil {
		report("set.discrepancy", err.Error(), "energy; or mmd, with a bandwidth about as large as a component")
	}
	if err := o.Set.Check(); err != nil {
		report("set", err.Error(), "leave them out for the defaults; for closer answers, name: "+fitted.Name)
	}
}

// discrepancy is by which sets are compared.
func (o *Options) discrepancy() discrepancy {
	return discrepancy{Kind: discrepancyKind(o.Set.Discrepancy), Bandwidth: o.Set.Bandwidth}
}

// together is how many rounds, from round first on, one task asks for.
func (o *Options) together(first int) int {
	return min(max(o.Rounds-first, 0), o.batch())
}

// batch is how many rounds a task has, but for the last. A task costs an entry of the
// ledger and two of the disk's slowest operations, so that some go together; an answer
// is as long as its rounds have rows, so that no more do than keep the tasks few.
func (o *Options) batch() int {
	return max(leastBatch, (o.Rounds+mostTasks-1)/mostTasks)
}

const (
	leastBatch = 16
	mostTasks  = 256
)

// tasks is how many each site gets: at most 256, however many proposals there are.
func (o *Options) tasks() int { return (o.Rounds + o.batch() - 1) / o.batch() }

// setup is what both halves know from a plan.
type setup struct {
	*fitted.Setup
	own *Options
}

func setUp(p *study.Plan) (setup, error) {
	own, ok := p.Method.Options.(*Options)
	if !ok {
		return setup{}, fmt.Errorf("the plan's options are of method %s, not of %s", p.Method.Name, Name)
	}
	prior, err := own.prior(p)
	return setup{fitted.NewSetup(p, prior), own}, err
}

// says is what a model file says of the method.
func (s setup) says() *fitted.Published {
	return &fitted.Published{Method: Name, Algorithm: s.own.Algorithm}
}
