package fitted

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"parley/dataset"
	"parley/figure"
	"parley/method"
	"parley/method/association"
	"parley/methods/factors/ppca"
	"parley/problem"
)

// Associate implements [method.Associater]: a regression of each factor's posterior mean
// on each subject column, by ordinary least squares, given the columns of opts.Adjust.
// A column whose cells are all numbers has a slope; any other is a category, whose levels
// have a mean each. The test is the partial F test of the column, which without
// adjustment is that of the correlation (Pearson) or of the analysis of variance. P values
// are adjusted over all factors and columns ([association.BenjaminiHochberg]).
//
// Subjects without the column, without one that is adjusted for or without any value are
// left out. A posterior mean is drawn towards 0 the more, the less was observed of the
// subject: estimates are those of the factor itself times about the reliability that is
// stated. Subjects of a site of the fit are scored about that site's means, where sites have means
// of their own: otherwise scores would depend on which views a subject lacks.
//
// With opts.Share it returns what may be combined with other sites' tables. Under
// differential privacy there is no such table, and groups under [association.Minimum]
// subjects are in none: it is exact, and so tells of subjects.
func (m *Model) Associate(ctx context.Context, data dataset.Source, opts method.AssociateOptions) (*method.Account, *association.Table, error) {
	if opts.Share && (m.Options != nil && m.Options.Mechanism != "" || m.Published != nil && m.Published.Private) {
		return nil, nil, problem.Problem{Where: "model " + m.Study, What: "was fitted in a study under differential privacy, and a table of exact tests would tell of its subjects beyond what the sites agreed to release",
			Hint: "leave out --share: the answer is then for this site alone; or release noised sums by a --protocol that all sites agree to"}
	}
	r, notes, err := m.use(Population{Site: opts.Site})
	if err != nil {
		return nil, nil, err
	}
	if m.Separate() && opts.Site == "" {
		notes.Add(problem.Problem{Where: "--site", What: "sites have means of their own, and nothing says whose subjects these are. Scores of subjects who lack a view are then off by what the site's means are, and where lacking it goes with a column, p values can be far too small",
			Hint: "name the site of the fit that they are of"})
	}
	q, empty := len(m.Factors), 0
	tests := NewAssociations(data.Schema().Subject, opts.Categories, opts.Adjust, q)
	if len(opts.Tested) > 0 { // the data may have others that the model needs
		tests.tests = slices.DeleteFunc(tests.tests, func(t *columnTest) bool { return !slices.Contains(opts.Tested, t.name) })
	}
	z, reliability := make([]float64, q), make([]float64, q)
	if _, err := r.each(ctx, data, func(row *dataset.Row, post *ppca.Posterior, values []float64) error {
		if len(values) == 0 {
			empty++
			return nil
		}
		post.Latent(z, values)
		r.rotation.latent(z)
		if tests.Add(row.Subject, z) {
			cov := r.rotation.covariance(post.Cov)
			for a := range reliability {
				reliability[a] += 1 - cov[a*q+a] // the prior variance is 1
			}
		}
		return nil
	}); err != nil {
		return nil, nil, err
	}
	for a := range reliability {
		reliability[a] /= float64(tests.complete)
	}
	if empty > 0 {
		notes.Add(problem.Problem{Where: "subjects", What: fmt.Sprintf("%d without any value of the model's views were left out", empty)})
	}
	list, untested := tests.results(&notes)
	if err := untested.Err(); err != nil {
		return nil, nil, err
	}
	account := &method.Account{
		Tables: []figure.Table{associationTable(list), effectTable(list, reliability)},
		Notes:  append(notes, r.notes()...),
		Value:  sitesOwn{"this site only: exact, not for release", tests.adjusted(), reliability, list},
	}
	if len(opts.Adjust) > 0 {
		account.Facts = []figure.Fact{{Name: "adjusted for", Value: strings.Join(tests.adjusted(), ", ")}}
	}
	if !opts.Share {
		return account, nil, nil
	}
	table, err := m.share(tests, list, reliability)
	return account, table, err
}

// sitesOwn is the answer as JSON.
type sitesOwn struct {
	For          string         `json:"for"`
	AdjustedFor  []string       `json:"adjusted_for"`
	Reliability  figure.Numbers `json:"reliability"`
	Associations []tested       `json:"associations"`
}
