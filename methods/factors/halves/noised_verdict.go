package halves

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat/distuv"

	"parley/methods/factors/fitted"
	"parley/methods/factors/moments"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
	"parley/privacy/account"
	"parley/problem"
)

// leastGain is the expected gain below which a model counts as no better than the mean:
// expectations rest on moments that are noised themselves.
const leastGain = 0.1

// gains are what each view gains from being predicted from all others, over giving
// everybody the mean: 1 − the ratio of the mean squared errors, on average over its features, of
// which public ranges do not say how much they vary. It is what the model and the known law of the
// noise lead to expect: the variance that the model leaves, and what privacy noise adds to it, over the
// whole. Of a single view, which nothing predicts, it is the R² that the model claims.
func (c Coordinator) gains(s *State) (gains []float64, err error) {
	predictor, err := ppca.NewPredictor(c.Layout, s.Model)
	if err != nil {
		return nil, err
	}
	explained, all := s.Noised.Pooled, c.Layout.AllFeatures()
	_, md := predictor.Model()
	for k := range c.Layout.Views() {
		gain := explained.R2(k, explained.Rank())
		if lo, hi := c.Layout.View(k); hi-lo < len(all) {
			post, err := predictor.Given(slices.Delete(slices.Clone(all), lo, hi))
			if err != nil {
				return nil, err
			}
			variance, left := make([]float64, hi-lo), 0.0
			post.MissingVar(variance)
			for i, j := range post.Missing {
				w := md.W[j*md.LD:][:md.Q]
				left += (variance[i] + s.Doubt[j]) / (md.Psi[j] + floats.Dot(w, w))
			}
			gain = 1 - left/float64(hi-lo)
		}
		gains = append(gains, gain)
	}
	return gains, nil
}

const (
	// leastApart is the share of a view's variance between sites from which on it is said: of two sites
	// of one size, means are then at least two thirds of a standard deviation apart. Of single
	// features, of which a view can have many, it is more.
	leastApart, leastApartAlone = 0.1, 0.3
	// falseApart is the probability that means are said to differ of sites that are alike.
	falseApart = 0.01
)

// apartVerdict names the views, or else features, of which much lies between sites, beyond the noise
// and beyond chance; nothing if there are none.
func (c Coordinator) apartVerdict(r *noisedState) fitted.Verdict {
	far := distuv.UnitNormal.Quantile(1 - falseApart/float64(2*max(1, len(r.Released))*c.Layout.Features()))
	var found fitted.Found
	var views []string // a site whose means are others in one view may have others in any
	for _, view := range c.Plan.Views {
		views = append(views, view.Name)
	}
	for k, view := range c.Plan.Views {
		lo, hi := c.Layout.View(k)
		share, farthest := 0.0, 0.0
		var alone []string
		for j, a := range r.Apart[lo:hi] {
			share, farthest = share+a.Share/float64(hi-lo), max(farthest, a.Far)
			if a.Share > leastApartAlone && a.Far > far {
				alone = append(alone, fmt.Sprintf("at least %.0f %% in %s", 100*a.Share, view.Features[j].Name))
			}
		}
		if few := alone != nil && 2*len(alone) < hi-lo; !few && share > leastApart && farthest > far {
			alone = []string{fmt.Sprintf("at least %.0f %% in %s", 100*share, view.Name)}
		}
		for _, what := range alone {
			found.Add(what, views...)
		}
	}
	return found.Verdict(fitted.OnSites, "What the sites released says so, beyond the noise in it. A private model "+
		"has one mean for all sites. So its factors tell sites apart as well as subjects, what is explained counts "+
		"that, variances come out too small, and values that are imputed at a site lean toward those of the others. "+
		"See whether units, instruments or diagnoses differ. If a site's own level is publicly known, give values as "+
		"differences from it; otherwise let sites that are alike make a study of their own.",
		"Sites' means differ, which is part of the variance: %s")
}

// rareVerdict names features that hardly anybody has who has their view; nothing if there are none.
func (c Coordinator) rareVerdict(r *noisedState) fitted.Verdict {
	var found fitted.Found
	named := map[int]bool{}
	for _, of := range r.Whitenings[1] {
		for i, j := range c.Layout.FeaturesOf(of.Views) {
			if !named[j] && of.Observed[i] <= moments.HardlyObserved {
				named[j] = true
				view := c.Plan.Views[c.Layout.ViewOf()[j]]
				lo, _ := c.Layout.View(c.Layout.ViewOf()[j])
				found.Add(view.Features[j-lo].Name, view.Name)
			}
		}
	}
	v := found.Verdict(fitted.OnMissing, "Its mean and its loadings rest on few values and on a noised count of them. "+
		"Leave the feature out, or give it a view of its own and state the sets of views that subjects have.",
		"Four of five subjects or more lack a feature of a view that they have: %s")
	v.Voids = v.Views
	return v
}

// verdictOf warns of the views that gain nothing; nothing if all do.
func (c Coordinator) verdictOf(gains []float64) (v fitted.Verdict) {
	var poor []string
	for k, gain := range gains {
		if !(gain >= leastGain) {
			poor = append(poor, c.Plan.Views[k].Name)
		}
	}
	if len(poor) == 0 {
		return v
	}
	what, views := "Next to nothing was learned: no view is predicted better than by its mean, as far as anybody can "+
		"tell", "any view"
	if len(poor) < len(gains) {
		views = strings.Join(poor, ", ")
		what = "Predicted no better than by their means, as far as anybody can tell: " + views
	}
	return fitted.Verdict{Kind: fitted.OnPrediction, Says: what, Views: poor, Voids: poor,
		Advice: "By what is known of the privacy noise, this model may predict " + views +
			" worse than the features' " +
			"means do. That does not mean that there is nothing to find: at this total, from so few subjects at so " +
			"many sites, the noise hides it. Do not read the loadings there, and do not impute with them. More would " +
			"be learned from fewer views or features, from more subjects at each site, from fewer and larger sites, " +
			"or at a larger ε: parley plan check and parley privacy curve say how many subjects a plan needs, before " +
			"any budget is spent."}
}

// sharedVariance is what all factors together are taken to hold of the variance, each
// the same, where a plan is told how many subjects it needs: nobody knows it before.
const sharedVariance = 0.5

// RequiredSampleSize says, from the plan alone, how many subjects at each site the study needs to
// find any factor, what would lower that, and who counts for nothing.
func RequiredSampleSize(set options.Setup) (problem.List, error) {
	p := set.Plan
	features, sites := set.Layout.Features(), len(p.Sites)
	d, err := newDeclared(set, p.Sites[0])
	if err != nil {
		return nil, err
	}
	mu, ok := account.Mu(mechanisms(d.sums), p.Privacy.Adjacency)
	if !ok {
		return nil, fmt.Errorf("the sums have no Gaussian DP parameter")
	}
	least := math.Ceil(moments.SubjectsToSee(features, sites, sharedVariance/float64(set.Factors), mu))
	where, hint := "the only site", "several times as many for a good model, fewer features, or a larger ε"
	if sites > 1 {
		where = fmt.Sprintf("each of the %d sites", sites)
		hint += "; the same subjects at fewer sites help too"
	}
	var notes problem.List
	notes.Add(problem.Problem{Where: "privacy.total",
		What: fmt.Sprintf("with fewer than about %.0f subjects at %s this study learns next to nothing: at ε %g, "+
			"noise hides factors that together hold half of the variance of %d features",
			least, where, p.Privacy.Total.Epsilon, features),
		Hint: hint + "; parley privacy curve simulates it"})
	if len(p.Views) > 1 && set.Options.Patterns == nil {
		notes.Add(problem.Problem{Where: "method.patterns", What: "none are stated, so subjects who lack a view " +
			"count for nothing",
			Hint: "state the sets of views that many subjects have, that of all views among them"})
	}
	return notes, nil
}
