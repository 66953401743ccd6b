package method

import (
	"context"
	"fmt"
	"slices"

	"parley/dataset"
	"parley/figure"
	"parley/problem"
	"parley/study"
)

// Selector is a method with a number to choose before it is fitted, such as
// how many factors a model has. Unlike the two halves it works in one process,
// on rows of simulated sites.
type Selector interface {
	Method
	// Chooses is the option of the plan that is chosen, such as latent.
	Chooses() string
	// Select fits the method with every candidate and says which to take. The
	// outcome depends on the plan, the rows and the config, not on how many
	// fits run at a time.
	Select(ctx context.Context, p *study.Plan, data map[string]dataset.Source, c SelectConfig) (*Selection, error)
}

// SelectConfig says what to try.
type SelectConfig struct {
	Values []int // the candidates, ascending, none twice
	// Progress is told how much of the work is done. It is never called by two
	// goroutines at a time. May be nil.
	Progress func(done, of float64)
}

// Selection is what came of it.
type Selection struct {
	Option      string        `json:"option"`      // of the plan: what was chosen, such as latent
	Noun        string        `json:"-"`           // what it counts, in the plural: factors
	Recommended int           `json:"recommended"` // 0 if none is, for reasons that Warnings give
	Choices     []Choice      `json:"choices"`     // of every rule, the one that a recommendation follows first
	Candidates  []Candidate   `json:"candidates"`  // in the order of SelectConfig.Values
	Table       *figure.Table `json:"-"`           // of them, for a terminal; nil for what every rule would take
	// numbers that decided how it was computed: sites, subjects, draws
	Settings map[string]float64 `json:"settings"`
	Warnings problem.List       `json:"-"` // what must be mended before anything is recommended
	Notes    problem.List       `json:"-"` // what should be known
	Result   *Result            `json:"-"` // the same for people: headline, curves, tables
}

// Choice is what one rule would take.
type Choice struct {
	Rule  string `json:"rule"`
	Value int    `json:"value"`
	Why   string `json:"why"` // the rule in a sentence
}

// Candidate is one value with its scores by name. A score that could not be
// computed is left out.
type Candidate struct {
	Value  int                `json:"value"`
	Scores map[string]float64 `json:"scores"`
	Doubts []string           `json:"doubts,omitempty"` // why not to rely on the model that has it
}

// Refitter is a method whose sites may release something that is enough to make
// other models of, without asking the sites again. What is made so is
// post-processing: under differential privacy it costs nothing, and the
// guarantee of the study that released it covers it.
type Refitter interface {
	Method
	// Chooses is as that of [Selector].
	Chooses() string
	// ReleasedFile names the file, among those of the result of the plan's study,
	// that keeps what the sites released. It is an error if that is not enough.
	ReleasedFile(p *study.Plan) (string, error)
	// Refit makes the result that the study would have had with this value of the
	// option, if its sites had released the same, but for what was released to describe
	// the study's own model. Released is the content of the file, which may have come
	// from anywhere: whatever is wrong with it is an error. The plan is the
	// study's, and with its own value the model is the study's model.
	Refit(p *study.Plan, released []byte, value int) (*Result, error)
	// SelectReleased is [Selector.Select] from that file. The outcome depends on the plan, the file and the
	// values alone.
	SelectReleased(ctx context.Context, p *study.Plan, released []byte, c SelectConfig) (*Selection, error)
}

// CheckReleased holds a file of what the sites of a plan's study released to that plan: it has the format that is
// wanted and the digest of the plan, and is of sites of the plan, in its order, that are as many as its quorum.
func CheckReleased(p *study.Plan, wanted, format, plan string, sites []string) error {
	digest, err := p.Digest()
	switch {
	case err != nil:
		return err
	case format != wanted:
		return fmt.Errorf("the format is %q, and this program reads %q", format, wanted)
	case plan != digest.String():
		return fmt.Errorf("it was released for another plan (%.12s), and this is %s", plan, digest.Short())
	case len(sites) < max(1, p.Quorum):
		return fmt.Errorf("%d sites released something, and the plan's quorum is %d", len(sites), p.Quorum)
	}
	last := -1
	for _, site := range sites {
		at := slices.Index(p.Sites, site)
		if at <= last {
			return fmt.Errorf("site %q is not of the plan, or not in its order, or there twice", site)
		}
		last = at
	}
	return nil
}
