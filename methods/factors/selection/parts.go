package selection

import (
	"context"
	"fmt"
	"math"
	"slices"

	"parley/dataset"
	"parley/judge/evaluate"
	"parley/methods/factors/between"
	"parley/methods/factors/federated"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
	"parley/problem"
)

// selectSite is a site's rows that have any value, in memory.
type selectSite struct {
	name string
	data *dataset.Table
	at   int // number of its first subject among those of all sites
}

// trainedSite is a site as one fit sees it: the rows that are not held out.
type trainedSite struct {
	name string
	sums *options.RowSums
}

// part is one division of every site's rows: fold of repeat, or all rows.
type part struct {
	repeat, fold int // −1 for all rows
	held         [][]int
	trained      []trainedSite
	scale        *ppca.Scale
}

func (p *part) String() string {
	if p.fold < 0 {
		return "all rows"
	}
	if p.repeat > 0 {
		return fmt.Sprintf("repeat %d, fold %d", p.repeat+1, p.fold+1)
	}
	return fmt.Sprintf("fold %d", p.fold+1)
}

// collect reads every site. Covariates are taken out of all rows at once, those that will be
// held out among them: so few numbers do not tell candidates apart.
func (s *selector) collect(ctx context.Context, data map[string]dataset.Source) error {
	var sources []dataset.Source
	for _, name := range s.set.Plan.Sites {
		src, ok := data[name]
		if !ok {
			return fmt.Errorf("site %s has no data", name)
		}
		outliers, err := options.Excluded(ctx, s.set, src)
		if err != nil {
			return fmt.Errorf("site %s: %w", name, err)
		}
		sources = append(sources, outliers.Without(src))
	}
	_, sources, err := options.Regress(ctx, s.set, sources...)
	if err != nil {
		return err
	}
	for i, name := range s.set.Plan.Sites {
		table, err := dataset.Collect(ctx, sources[i])
		if err != nil {
			return fmt.Errorf("site %s: %w", name, err)
		}
		var some []int
		for i := range table.Len() {
			if slices.ContainsFunc(table.Row(i).Views, func(view []float64) bool {
				return slices.ContainsFunc(view, func(x float64) bool { return !math.IsNaN(x) })
			}) {
				some = append(some, i)
			}
		}
		if len(some) < s.config.Folds {
			return problem.Problem{Where: "site " + name, What: fmt.Sprintf("%d subjects with any value cannot be split into %d folds", len(some), s.config.Folds),
				Hint: "fewer --folds, at least 2, or leave the site out of the plan"}
		}
		s.sites = append(s.sites, selectSite{name, table.Select(some...), s.subjects})
		s.subjects += len(some)
	}
	return nil
}

// divide lists the parts: all rows first, then every fold. Each site splits
// its own rows, by their ids and the plan's seed.
func (s *selector) divide(ctx context.Context) error {
	s.parts = []*part{{repeat: -1, fold: -1, held: make([][]int, len(s.sites))}}
	for range s.config.Repeats * s.config.Folds {
		s.parts = append(s.parts, &part{held: make([][]int, len(s.sites))})
	}
	for at, here := range s.sites {
		ids, _, err := dataset.Labels(ctx, here.data, "")
		if err != nil {
			return err
		}
		subjects := make([]evaluate.Subject, len(ids))
		for i, id := range ids {
			subjects[i].ID = id
		}
		folds, err := evaluate.Folds(subjects, s.config.Folds, s.config.Repeats, s.set.Plan.Seed)
		if err != nil {
			return fmt.Errorf("site %s: %w", here.name, err)
		}
		for i, f := range folds {
			p := s.parts[i+1]
			p.repeat, p.fold = f.Repeat, f.Index
			for _, id := range f.Test {
				row, _ := slices.BinarySearch(ids, id)
				p.held[at] = append(p.held[at], row)
			}
		}
	}
	return nil
}

// train reads the rows that are not held out, at every site, and finds the
// scale of the fit from these rows alone, as the plan says.
func (s *selector) train(ctx context.Context, p *part) error {
	for at, here := range s.sites {
		var fitted []int
		for i := range here.data.Len() {
			if _, held := slices.BinarySearch(p.held[at], i); !held {
				fitted = append(fitted, i)
			}
		}
		sums, err := options.Read(ctx, s.set.Layout, here.data.Select(fitted...), nil)
		if err != nil {
			return fmt.Errorf("%v, site %s: %w", p, here.name, err)
		}
		p.trained = append(p.trained, trainedSite{here.name, sums})
	}
	var all []*options.RowSums
	for _, t := range p.trained {
		all = append(all, t.sums)
	}
	var err error
	if p.scale, err = options.Common(s.set, s.set.Options.Scaling, all...); err != nil && p.fold >= 0 {
		err = fmt.Errorf("%v: among the rows that are fitted, a feature has no value or does not vary; with more folds more rows are fitted\n%w", p, err)
	}
	return err
}

// checkCarried refuses candidates that the sites' rows together cannot tell from noise.
func (s *selector) checkCarried() error {
	most := s.set.Layout.Features() - 2
	for _, p := range s.parts {
		var blocks []ppca.Block
		subjects := 0.0
		for _, t := range p.trained {
			blocks = append(blocks, t.sums.Blocks...)
			for _, x := range t.sums.Patterns {
				subjects += x.Subjects
			}
		}
		most = min(most, len(ppca.Observed(s.set.Layout, blocks))-2, int(subjects)-2)
	}
	if largest := s.config.Values[len(s.config.Values)-1]; largest > max(most, 1) {
		return problem.Problem{Where: "latent", What: fmt.Sprintf("%d factors are more than the sites can carry: %d, the features or the fitted subjects less 2", largest, most),
			Hint: fmt.Sprintf("at most %d, or more --folds, which leave more subjects to fit", max(most, 1))}
	}
	return nil
}

// trialFit is a model, and how the means of sites differ from it; nil where they do not.
type trialFit struct {
	*ppca.Params
	means *options.SiteMeans
}

// shot is the one shot of a study with q factors on the rows of a part.
func (s *selector) shot(ctx context.Context, p *part, q int) (*trialFit, error) {
	var sites []*options.RowSums
	var names []string
	for _, t := range p.trained {
		sites, names = append(sites, t.sums), append(names, t.name)
	}
	fit, means, err := federated.FitRows(ctx, s.set.With(q), p.scale, names, sites)
	if err != nil {
		return nil, err
	}
	return &trialFit{fit, means}, nil
}

// predictor is of further subjects of a site.
func (m *trialFit) predictor(l ppca.Layout, site string) (*ppca.Predictor, error) {
	if own := m.means.At(site); own != nil {
		return between.AtSite(l, m.Params, own.Unpack())
	}
	return ppca.NewPredictor(l, m.Params)
}

// heldOut is what one part's held-out rows say of a model.
type heldOut struct {
	LogLik   [][]float64 // per site and held-out row, in the units of the fit to all rows
	AbsError float64     // of all cells, in the same units
	Cells    int
}

// score scores the held-out rows of a part. Densities and errors are brought
// from the part's own units to those of all rows, so that parts can be added.
func (s *selector) score(p *part, model *trialFit) (*heldOut, error) {
	unit := s.parts[0].scale
	ratio, logRatio := make([]float64, s.set.Layout.Features()), make([]float64, s.set.Layout.Features())
	for j := range ratio {
		ratio[j] = unit.Factor[j] / p.scale.Factor[j]
		logRatio[j] = -math.Log(ratio[j])
	}
	h := &heldOut{LogLik: make([][]float64, len(s.sites))}
	expected := make([]float64, s.set.Layout.Features())
	for at, here := range s.sites {
		h.LogLik[at] = make([]float64, len(p.held[at]))
		predictor, err := model.predictor(s.set.Layout, here.name)
		if err != nil {
			return nil, fmt.Errorf("site %s: %w", here.name, err)
		}
		for i, n := range p.held[at] {
			row := here.data.Row(n)
			post, t, err := predictor.Subject(row.Views, p.scale)
			if err != nil {
				return nil, fmt.Errorf("site %s, subject %q: %w", here.name, row.ID, err)
			}
			l := post.LogLik(t)
			post.Describe(expected, t)
			for c, j := range post.Observed {
				l += logRatio[j]
				h.AbsError += math.Abs(t[c]-expected[c]) * ratio[j]
			}
			if math.IsNaN(l) || math.IsInf(l, 0) {
				return nil, fmt.Errorf("site %s, subject %q: log-likelihood %v", here.name, row.ID, l)
			}
			h.LogLik[at][i] = l
			h.Cells += len(t)
		}
	}
	return h, nil
}
