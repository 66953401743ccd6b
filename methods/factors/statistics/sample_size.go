package statistics

import (
	"fmt"
	"math"

	"parley/methods/factors/moments"
	"parley/methods/factors/options"
	"parley/privacy/account"
	"parley/problem"
)

// sharedVariance is what all factors together are taken to hold of the variance, each
// the same, where a plan is told how many subjects it needs: nobody knows it before.
const sharedVariance = 0.5

// RequiredSampleSize says, from the plan alone, how many subjects at each site the study needs to
// find any factor, what would lower that, and who counts for nothing.
func RequiredSampleSize(set options.Setup) (problem.List, error) {
	p := set.Plan
	features, sites, epsilon := set.Layout.Features(), len(p.Sites), p.Privacy.Total.Epsilon
	need := func(features int, epsilon float64) (float64, error) {
		other, total := *p, *p.Privacy.Total
		total.Epsilon, other.Privacy.Total = epsilon, &total
		of := set
		of.Plan = &other
		d, err := newDeclared(of, p.Sites[0])
		if err != nil {
			return 0, err
		}
		mu, ok := account.Mu(mechanisms(d.sums), p.Privacy.Adjacency)
		if !ok {
			return 0, fmt.Errorf("the sums have no Gaussian DP parameter")
		}
		return math.Ceil(moments.SubjectsToSee(features, sites, sharedVariance/float64(set.Rank()), mu)), nil
	}
	least, err := need(features, epsilon)
	if err != nil {
		return nil, err
	}
	looser, err := need(features, 3*epsilon)
	if err != nil {
		return nil, err
	}
	hint := fmt.Sprintf("several times as many for a good model; about %.0f would do at ε %g", looser, 3*epsilon)
	if few := features / 4; few > set.Rank() {
		narrower, err := need(few, epsilon)
		if err != nil {
			return nil, err
		}
		hint += fmt.Sprintf(", and about %.0f with %d features", narrower, few)
	}
	where := "the only site"
	if sites > 1 {
		where = fmt.Sprintf("each of the %d sites", sites)
		hint += "; the same subjects at fewer sites help too"
	}
	var notes problem.List
	notes.Add(problem.Problem{Where: "privacy.total",
		What: fmt.Sprintf("with fewer than about %.0f subjects at %s this study learns next to nothing: at ε %g, noise hides factors that together hold half of the variance of %d features",
			least, where, epsilon, features),
		Hint: hint + "; parley privacy curve simulates it"})
	if len(p.Views) > 1 && set.Options.Patterns == nil {
		notes.Add(problem.Problem{Where: "method.patterns", What: "none are stated, so subjects who lack a view count for nothing",
			Hint: "state the sets of views that many subjects have, that of all views among them"})
	}
	return notes, nil
}
