package fitted

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"parley/dataset"
	"parley/figure"
	"parley/internal/version"
	"parley/method/association"
	"parley/methods/factors/options"
	"parley/problem"
)

// emptyTable has no tests yet.
func (m *Model) emptyTable() (*association.Table, error) {
	data, err := m.Encode()
	if err != nil {
		return nil, err
	}
	digest := sha256.Sum256(data)
	return &association.Table{Format: association.Format, Program: "parley " + version.Number, Study: m.Study, Model: hex.EncodeToString(digest[:]), Tests: []association.Test{}}, nil
}

// ReleaseAssociations implements [method.NoisedAssociater]: of each subject the posterior
// means of the factors, whatever was not measured of it; one without any value does not
// count. Reliability is that of a subject with every view, by the model alone.
func (m *Model) ReleaseAssociations(p *association.Protocol, site string) (*association.Release, error) {
	if m.Adjusts() {
		return nil, problem.Problem{Where: "model " + m.Study, What: fmt.Sprintf("is adjusted for %s by exact sums, so that its factors are no function of one subject's features alone", options.AdjustedFor(m.adjustedFor())),
			Hint: "release associations of a model that was fitted without adjust, adjusted for these by the protocol; --share makes a table without noise"}
	}
	var who Population
	if m.Separate() {
		if m.checkSite(site) != nil {
			return nil, problem.Problem{Where: "--site", What: fmt.Sprintf("%q is no site of the fit, whose sites have means of their own: scores of its subjects would depend on which views they lack", site),
				Hint: "name the site as the fit does"}
		}
		who.Site = site
	}
	r, _, err := m.use(who)
	if err != nil {
		return nil, err
	}
	t, err := m.emptyTable()
	if err != nil {
		return nil, err
	}
	l, _ := r.predictor.Model()
	post, err := r.predictor.Given(slices.DeleteFunc(l.AllFeatures(), func(j int) bool { return !r.predictor.Describes(j) }))
	if err != nil {
		return nil, err
	}
	q := len(m.Factors)
	cov := r.rotation.covariance(post.Cov)
	for a := range q {
		t.Reliability = append(t.Reliability, 1-cov[a*q+a]) // the prior variance is 1
	}
	return p.Release(m.Method(), *t, func(row *dataset.Row, z []float64) bool {
		post, values, err := r.predictor.Subject(row.Views, r.scale)
		if err != nil || len(values) == 0 {
			return false
		}
		post.Latent(z, values)
		r.rotation.latent(z)
		return true
	})
}

// share makes of a site's tests what may be combined with others'. It refuses groups so
// small that an estimate tells of single subjects.
func (m *Model) share(a *columnTests, list []tested, reliability []float64) (*association.Table, error) {
	t, err := m.emptyTable()
	if err != nil {
		return nil, err
	}
	t.Adjusted, t.Subjects, t.Reliability = a.adjusted(), a.complete(), reliability
	var wrong problem.List
	for _, test := range a.tests {
		if p := test.tooSmall(); p != nil {
			wrong.Add(*p)
		}
	}
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	for i, x := range list {
		test := a.tests[i/a.q] // q tests of each column, in order
		out := association.Test{Column: x.Column, Factor: x.Factor, Subjects: x.Subjects, DF: x.DF[1]}
		variance := test.fit.variance(x.Factor - 1)
		if variance == 0 {
			return nil, problem.Problem{Where: fmt.Sprintf("factor %d", x.Factor), What: "is the same for all subjects here, so it cannot be tested"}
		}
		for k, e := range x.Effects {
			out.Estimates = append(out.Estimates, e.Estimate)
			row := make([]float64, len(x.Effects))
			for l := range row {
				row[l] = variance * (test.fit.inverse[k][l] + test.fit.inverse[l][k]) / 2 // the same from both sides
			}
			out.Covariance = append(out.Covariance, row)
			if test.category {
				out.Levels = append(out.Levels, association.Level{Name: e.Level, Subjects: e.Subjects})
			}
		}
		if test.category {
			out.Reference = &association.Level{Name: x.Reference, Subjects: test.counts[test.level[x.Reference]]}
		}
		t.Tests = append(t.Tests, out)
	}
	return t, nil
}

// tooSmall says why a column's tests may not be shared, nil if they may.
func (t *columnTest) tooSmall() *problem.Problem {
	p := problem.Problem{Where: "column " + t.name, Hint: "merge levels or choose another column; without --share the answer is for this site alone"}
	if t.category || len(t.names) <= fewCodes {
		for level, n := range t.counts {
			if n < association.Minimum {
				p.What = fmt.Sprintf("only %s with %s: an estimate for fewer than %d tells of single subjects", figure.Plural(n, "subject"), t.names[level], association.Minimum)
				return &p
			}
		}
	}
	switch {
	case !t.fit.full:
		p.What = "some of its levels are told already by what is adjusted for, so they have no estimates"
	case t.fit.df[1] < association.Minimum:
		p.What = fmt.Sprintf("%d degrees of freedom are left: with fewer than %d, estimates tell of single subjects", t.fit.df[1], association.Minimum)
	default:
		return nil
	}
	return &p
}
