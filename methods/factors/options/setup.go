package options

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"parley/method"
	"parley/methods/factors/ppca"
	"parley/problem"
	"parley/study"
)

// Setup is a checked plan, its options, and how its features lie in memory: all that
// both halves of a study know before it begins.
type Setup struct {
	ppca.Frame
	Options *Options
	// Most is how many numbers the exact scatter matrix of a set of subjects has at most, or, where only totals are
	// told, those of all sets together.
	Most int
}

// SetUp reads a checked plan, whose method has to be this one.
func SetUp(p *study.Plan) (Setup, error) {
	opts, ok := p.Method.Options.(*Options)
	if !ok {
		return Setup{}, fmt.Errorf("the plan's options are of method %s, not of factors", p.Method.Name)
	}
	frame, err := ppca.NewFrame(p, opts.NoiseGroups(), int(opts.Latent), opts.Scaling)
	frame.Totals = opts.OnePopulation()
	if opts.Latent == Select { // as many as the features can tell
		d, q := frame.Layout.Features(), 1
		for q+1 < d && q < mostSelected && !ppca.TooMany(d, q+1) {
			q++
		}
		frame.Factors = q
	}
	return Setup{frame, opts, ppca.LargestExact}, err
}

// Bound says what a site sends of scatter matrices that are too large: sums along the directions of the model that it
// was sent, or along drawn ones. Where only totals are told, all sets are as large as the plan makes them.
func (s Setup) Bound(sent *ppca.Params) ppca.Bound {
	b := ppca.Bound{Numbers: s.Most, Along: ppca.DirectionsOf(s.Layout, sent, s.Factors, s.surplus())}
	if s.Plan.Privacy.Secure() {
		if b.Numbers = 0; s.Triangles() {
			b.Numbers = math.MaxInt32
		}
	}
	return b
}

// Triangles says whether the exact scatter matrices of all sets of which only totals are told are within the bound.
func (s Setup) Triangles() bool {
	numbers := 0
	for _, features := range s.TotalSets() {
		numbers += len(features) * (len(features) + 5) / 2
	}
	return numbers <= s.Most
}

// surplus is along how many directions a site tells of a scatter matrix beside those of a model: 100, if these are not
// more numbers than exact sums may have.
func (s Setup) surplus() int { return min(100, s.Most/s.Layout.Features()) }

// SumNumbers is how many numbers a site's answer has where only totals over sites are told.
func (s Setup) SumNumbers() (n int) {
	bound := s.Bound(nil)
	for _, features := range s.TotalSets() {
		n += bound.Sums(len(features))
	}
	return n
}

// TotalSets are the features of the sets of subjects that all sites describe alike where only totals are told: those of
// the plan's patterns, and one that has all. They are in the order of their views.
func (s Setup) TotalSets() (sets [][]int) {
	l := s.Layout
	all := l.ViewsOf(l.AllFeatures())
	patterns := s.Options.Patterns.At(s.Plan, "")
	if !slices.ContainsFunc(patterns, func(views []int) bool { return len(views) == len(all) }) {
		patterns = append(patterns, all)
	}
	slices.SortFunc(patterns, slices.Compare)
	for _, views := range patterns {
		sets = append(sets, l.FeaturesOf(views))
	}
	return sets
}

// mostSelected is how many factors are tried at most where the plan leaves their number to the study.
const mostSelected = 25

// Private says whether sites release noised sums.
func (s Setup) Private() bool { return s.Options.Mechanism == MechanismStatistics }

// With is the setup of a study with so many factors.
func (s Setup) With(rank int) Setup {
	o := *s.Options
	o.Latent, s.Options, s.Factors = Factors(rank), &o, rank
	return s
}

// CheckRank refuses a model of other than the plan's number of factors: what a
// site declares counts on that.
func (s Setup) CheckRank(rank int) error {
	if rank != s.Factors && !(s.Options.Latent == Select && rank >= 1 && rank < s.Factors) {
		return fmt.Errorf("a model of %d factors, and the plan has %v", rank, s.Options.Latent)
	}
	return nil
}

// CheckLatent refuses numbers of factors that no model of these features has.
func (s Setup) CheckLatent(qs ...int) error {
	for _, q := range qs {
		if d := s.Layout.Features(); q < 1 || q >= d {
			return problem.Problem{Where: "latent", What: fmt.Sprintf("%d factors for %d features", q, d),
				Hint: fmt.Sprintf("fewer factors than features: 1 to %d", d-1)}
		}
	}
	return nil
}

// Draws returns the random numbers of one site in one round: a function of the
// plan's seed, the site's name and the round alone.
func Draws(seed uint64, site string, round int) *rand.Rand {
	return method.Draws("mvppca %d %q %d", seed, site, round)
}

// The tasks, in the words that progress and logs show.
const (
	TaskAdjust = "adjust" // sums for the regression on covariates
	TaskScale  = "scale"  // sums for a common scale
	TaskFit    = "fit"    // the sums of the site's subjects
	TaskAssess = "assess" // how well the model describes the site

	TaskOverview = "overview" // noised number of the site's subjects, and how far views spread
	TaskCoarse   = "coarse"   // noised moments of the subjects
	TaskFine     = "fine"     // the same about what all sites' coarse moments told
)

// Scale is a [ppca.Scale] as it travels and is kept.
type Scale struct {
	ppca.Scale
	// Effects of covariates are taken out of the values before; none where the plan adjusts
	// for nothing.
	Effects *Effects `cbor:"effects,omitempty"`
}

// ScaleTask asks for the sums that the plan's scaling needs.
type ScaleTask struct {
	Effects *Effects `cbor:"effects,omitempty"` // of covariates, which are taken out before
}
