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
	if m.Separate() {
		return withinSection(set, sites), nil
	}
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
	effects, err := effectFigures(set, m, sites)
	if err != nil {
		return sec, err
	}
	sec.Items = append(sec.Items, effects...)
	return sec, nil
}

// effectFigures show how each site's mean and spread on the factors differ.
func effectFigures(set options.Setup, m *fitted.Model, sites []Site) ([]figure.Item, error) {
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
	return []figure.Item{
		{Figure: &figure.Figure{ID: "site-means", Title: "How far each site's mean is from the study's", Chart: mean,
			Caption: "Marks are each site's mean score, with 90 % intervals; 0 is the study's mean and the unit its standard deviation. An interval that misses 0 says that the site sees other subjects, or measures otherwise, in a way that runs along the factor. Means are corrected for the pull towards 0 of scores that rest on few measurements, so intervals are wide where a site's views say little; a factor that they hardly touch is left out.",
			Alt:     "Forest plot of the sites' mean scores on each factor."}},
		{Figure: spreadFigure(set, sites)},
	}, nil
}

// spreadFigure shows how much subjects of each site differ on the factors.
func spreadFigure(set options.Setup, sites []Site) *figure.Figure {
	q := set.Rank()
	sd := figure.Bars{X: figure.Axis{Label: "standard deviation of the scores at the site"}, Mark: "the study's standard deviation, 1"}
	for a := range min(q, fitted.DrawnFactors) {
		for _, s := range sites {
			// The logarithm of a normal sample's standard deviation has variance 1/(2(n − 1)).
			y, f := math.Sqrt(s.Cov[a*q+a]), math.Exp(1.645/math.Sqrt(2*max(1, float64(s.Subjects()-1))))
			sd.Labels, sd.Groups = append(sd.Labels, fmt.Sprintf("Factor %d", a+1)), append(sd.Groups, s.Name)
			sd.Values, sd.Low, sd.High, sd.Marks = append(sd.Values, y), append(sd.Low, y/f), append(sd.High, y*f), append(sd.Marks, 1)
		}
	}
	return &figure.Figure{ID: "site-spreads", Detail: true, Title: "How widely each site's subjects are spread", Chart: sd,
		Caption: "Marks are standard deviations of the scores at each site, with 90 % intervals for a sample of its size, if scores are normally distributed. Below 1, the site's subjects are more alike than those of the whole study. Where a site's views say little about a factor, the value is drawn towards 1.",
		Alt:     "Forest plot of the standard deviations of the sites' scores on each factor."}
}

// withinSection is the section on factors where sites have means of their own: then every
// site's mean score is 0.
func withinSection(set options.Setup, sites []Site) figure.Section {
	return figure.Section{ID: "factors", Title: "The factors at each site",
		Lead:  "Scores compare subjects with others of their site: every site's mean is 0, and 1 is the standard deviation within a typical site. How the means of sites differ is shown above, feature by feature. Single subjects never appear here: each site's own report has them.",
		Items: []figure.Item{{Figure: spreadFigure(set, sites)}}}
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
