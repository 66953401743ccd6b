package selection

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"

	"parley/dataset"
	"parley/judge/evaluate"
	"parley/method"
	"parley/method/judged"
	"parley/methods/mvppca"
	"parley/methods/mvppca/options"
	"parley/study"
	"parley/tools/measure/melba"
	"parley/tools/measure/protocol"
)

const (
	subjects = 400
	sites    = 3
)

// generate draws one data set of n subjects with q factors. The noise variances are
// those of the paper times a factor.
func generate(seed uint64, q, n int, noise float64) (*dataset.Table, error) {
	rng := rand.New(rand.NewPCG(seed, uint64(q)))
	features, shift := melba.Draw(rng, q, noise), melba.Shift(rng, q)
	rows := make([]dataset.Row, n)
	for i := range rows {
		move := shift
		if !melba.Moved(i, n) {
			move = make([]float64, q)
		}
		rows[i] = dataset.Row{ID: fmt.Sprintf("s%0*d", len(fmt.Sprint(n-1)), i), Views: melba.Views(melba.Dims, features.Subject(rng, move))}
	}
	return dataset.NewTable(melba.Schema(melba.Dims), rows)
}

// setting is one way to prepare and model the same data.
type setting struct {
	name, scaling, noise string
	variance             float64 // times the paper's noise variances
	kept                 bool    // whether the promise is made for it
}

var settings = []setting{
	{"one scale per view", options.ScaleView, "view", 1, true},
	{"one scale per view, noise × 10", options.ScaleView, "view", 10, true},
	{"noise per feature", options.ScaleStandard, "feature", 1, true},
	{"noise per feature, min-max", options.ScaleMinMax, "feature", 1, true},
	{"each feature scaled, noise per view", options.ScaleStandard, "view", 1, false},
	{"min-max, noise per view", options.ScaleMinMax, "view", 1, false},
}

// plan is the study of one data set.
func plan(s setting, seed uint64) (*study.Plan, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "parley: 1\nname: selection\nseed: %d\nsites: [%s]\nviews:\n", seed, strings.Join(evaluate.SiteNames(sites), ", "))
	for _, v := range melba.Schema(melba.Dims).Views {
		fmt.Fprintf(&b, "  - name: %s\n    features: [", v.Name)
		for j, c := range v.Columns {
			if j > 0 {
				b.WriteString(", ")
			}
			b.WriteString(c.Name)
		}
		b.WriteString("]\n")
	}
	fmt.Fprintf(&b, "method: {name: mvppca, latent: 1, scaling: %s, noise: %s}\nprivacy: {protection: none}\n", s.scaling, s.noise)
	return study.Parse("selection", []byte(b.String()), method.Registry{mvppca.Method{}})
}

// choose runs one selection.
func choose(ctx context.Context, s setting, seed uint64, q int, c judged.SelectConfig) (*judged.Selection, error) {
	all, err := generate(seed, q, subjects, s.variance)
	if err != nil {
		return nil, err
	}
	rows, err := protocol.Spread(ctx, all, "", evaluate.IID, sites, seed)
	if err != nil {
		return nil, err
	}
	p, err := plan(s, seed)
	if err != nil {
		return nil, err
	}
	return mvppca.Method{}.Select(ctx, p, protocol.BySite(rows), c)
}
