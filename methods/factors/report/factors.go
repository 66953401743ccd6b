package report

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"parley/figure"
	"parley/methods/factors/fitted"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
)

func factorSection(set options.Setup, m *fitted.Model, sites []Site) (figure.Section, error) {
	q := set.Rank()
	sec := figure.Section{ID: "factors", Title: "Where the sites lie",
		Lead: "A factor is a pattern of features that rise and fall together; a subject's score says how strongly it shows the pattern. Scores have mean 0 and standard deviation 1 over the whole population, so a site away from 0 holds other subjects, and a small ellipse more uniform ones. Single subjects never appear here: each site's own report has them."}
	for a := 0; a+1 < max(q, 2) && a < 4; a += 2 {
		b := min(a+1, q-1)
		chart := figure.Scatter{X: figure.Axis{Label: fmt.Sprintf("score on factor %d", a+1)}, Y: figure.Axis{Label: fmt.Sprintf("score on factor %d", b+1)}}
		for _, s := range sites {
			chart.Groups = append(chart.Groups, figure.Group{Name: s.Name,
				Mean: figure.Numbers{s.Mean[a], s.Mean[b]}, Cov: figure.Numbers{s.Cov[a*q+a], s.Cov[a*q+b], s.Cov[b*q+b]}})
		}
		sec.Items = append(sec.Items, figure.Item{Figure: &figure.Figure{
			ID: fmt.Sprintf("scores-%d-%d", a+1, b+1), Title: fmt.Sprintf("Sites on factors %d and %d", a+1, b+1), Chart: chart,
			Caption: "The inner ellipse holds half of a site's subjects and the outer nine tenths, if their scores are normally distributed.",
			Alt:     "Ellipses of the sites' scores on two factors.", Choice: "Factors",
		}})
		if q == 1 {
			break
		}
	}
	effects, err := effectFigure(set, m, sites)
	sec.Items = append(sec.Items, figure.Item{Figure: effects})
	return sec, err
}

// effectFigure shows how each site's mean on the factors differs.
func effectFigure(set options.Setup, m *fitted.Model, sites []Site) (*figure.Figure, error) {
	predictor, _, err := m.Predictor()
	if err != nil {
		return nil, err
	}
	q := set.Rank()
	means, errors := make([][]float64, len(sites)), make([][]float64, len(sites))
	for i, s := range sites {
		if means[i], errors[i], err = siteMean(set, predictor, s); err != nil {
			return nil, err
		}
	}
	mean := figure.Bars{X: figure.Axis{Label: "mean score at the site"}}
	for a := range min(q, fitted.DrawnFactors) {
		for i, s := range sites {
			mean.Labels, mean.Groups = append(mean.Labels, fmt.Sprintf("Factor %d", a+1)), append(mean.Groups, s.Name)
			x, e := means[i][a], 1.645*errors[i][a]
			mean.Values, mean.Low, mean.High = append(mean.Values, x), append(mean.Low, x-e), append(mean.High, x+e)
		}
	}
	return &figure.Figure{ID: "site-means", Title: "How far each site's mean is from the study's", Chart: mean,
		Caption: "Marks are each site's mean score, with 90 % intervals; 0 is the study's mean and the unit its standard deviation. An interval that misses 0 says that the site sees other subjects, or measures otherwise, in a way that runs along the factor. Means are corrected for the pull towards 0 of scores that rest on few measurements, so intervals are wide where a site's views say little; a factor that they hardly touch is left out.",
		Alt:     "Forest plot of the sites' mean scores on each factor."}, nil
}

// leastKnown is the share of a factor's variance that a site's views must
// determine for its mean to be shown.
const leastKnown = 0.1

// siteMean estimates a site's mean on the factors, with standard errors. A
// posterior mean has the expectation (I − M) ν for a subject whose factors
// have the mean ν, M being the posterior covariance; M is that of the site's
// patterns of views.
func siteMean(set options.Setup, p *ppca.Predictor, s Site) (mean, se []float64, err error) {
	q, n := set.Rank(), float64(s.Subjects())
	shrunk, spread := mat.NewDense(q, q, nil), mat.NewDense(q, q, slices.Clone([]float64(s.Cov)))
	var within mat.Dense
	within.ReuseAs(q, q)
	for _, pattern := range s.Patterns {
		features, err := set.Layout.FeaturesOf(pattern.Views)
		if err != nil {
			return nil, nil, err
		}
		features = slices.DeleteFunc(features, func(j int) bool { return !p.Describes(j) })
		post, err := p.Given(features)
		if err != nil {
			return nil, nil, err
		}
		var part mat.Dense
		part.Scale(float64(pattern.Subjects)/n, mat.NewDense(q, q, post.Cov))
		within.Add(&within, &part)
	}
	for a := range q {
		shrunk.Set(a, a, 1)
	}
	shrunk.Sub(shrunk, &within)
	spread.Sub(spread, &within) // that of the posterior means
	var inverse, left, cov mat.Dense
	mean, se = make([]float64, q), make([]float64, q)
	if inverse.Inverse(shrunk) != nil {
		for a := range q {
			mean[a], se[a] = math.NaN(), math.NaN()
		}
		return mean, se, nil
	}
	left.Mul(&inverse, spread)
	cov.Mul(&left, inverse.T())
	for a := range q {
		for b, x := range s.Mean {
			mean[a] += inverse.At(a, b) * x
		}
		se[a] = math.Sqrt(max(0, cov.At(a, a)) / n)
		if shrunk.At(a, a) < leastKnown {
			mean[a], se[a] = math.NaN(), math.NaN()
		}
	}
	return mean, se, nil
}
