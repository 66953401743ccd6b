package ppca

import (
	"fmt"
	"math"
	"slices"
)

// Pattern counts the subjects of a site who have the same views.
type Pattern struct {
	Views    []int   // ascending: those with at least one observed cell
	Subjects float64 // whole at a site
	Share    float64 // of the cells in these views which were observed, in (0, 1]
}

// Patterns counts the subjects in the blocks by the views they have, in order
// of views.
func Patterns(l Layout, blocks []Block) []Pattern {
	var out []Pattern
	for i := range blocks {
		b := &blocks[i]
		views := l.ViewsOf(b.Features)
		at, found := slices.BinarySearchFunc(out, views, func(p Pattern, v []int) int { return slices.Compare(p.Views, v) })
		if !found {
			out = slices.Insert(out, at, Pattern{Views: views})
		}
		out[at].Subjects += b.N
		out[at].Share += b.N * float64(len(b.Features)) // observed cells, for now
	}
	for i := range out {
		cells := 0
		for _, k := range out[i].Views {
			cells += l.Dims[k]
		}
		out[i].Share /= out[i].Subjects * float64(cells)
	}
	return out
}

// PseudoBlocks stands in for a site's subjects by what the site's own model
// says of them: for each pattern, on its views, N subjects with mean μ_c and
// scatter N (W_c W_cᵀ + Ψ_c), N being the subjects times the share of cells
// observed. Fitting one model to the pseudo-blocks of all sites is the one-shot
// estimate; nothing in it depends on how each site's factors are rotated.
func PseudoBlocks(l Layout, site *Params, patterns []Pattern) ([]Block, error) {
	if err := site.Check(l); err != nil {
		return nil, err
	}
	if len(patterns) == 0 {
		return nil, fmt.Errorf("a site without subjects")
	}
	group := l.GroupOf()
	out := make([]Block, 0, len(patterns))
	for i, pt := range patterns {
		n := pt.Subjects * pt.Share
		if !(n >= least && n <= Largest && pt.Share > 0 && pt.Share <= 1) {
			return nil, fmt.Errorf("pattern %d has %v subjects and a share of %v", i, pt.Subjects, pt.Share)
		}
		features, err := l.FeaturesOf(pt.Views)
		if err != nil {
			return nil, fmt.Errorf("pattern %d: %w", i, err)
		}
		// A feature that nobody at the site has is in a view and yet not described.
		features = slices.DeleteFunc(features, func(j int) bool {
			_, ok := slices.BinarySearch(site.Features, j)
			return !ok
		})
		if len(features) == 0 {
			return nil, fmt.Errorf("pattern %d: views %v are not described by the site's parameters", i, pt.Views)
		}
		p, q := len(features), site.Rank
		b := Block{Features: features, N: n, Mean: make([]float64, p), Factor: make([]float64, q*p), Diag: make([]float64, p)}
		for k, j := range features {
			b.Mean[k] = site.Mu[j]
			b.Diag[k] = n * site.Noise[group[j]]
			for a := range q {
				b.Factor[a*p+k] = math.Sqrt(n) * site.W[j*q+a]
			}
		}
		out = append(out, b)
	}
	return out, nil
}

// PreferMoments says whether a site's exact moments (see [Moments]) take no
// more numbers to send than parameters of the given rank would, and are at
// least as good: then there is no reason to summarise them by a model.
func PreferMoments(blocks []Block, rank int) bool {
	moments := 0
	seen := make(map[int]bool)
	for _, b := range Moments(blocks...) {
		p := len(b.Features)
		moments += 1 + p*(p+3)/2 // subjects, mean, scatter
		for _, j := range b.Features {
			seen[j] = true
		}
	}
	return moments <= len(seen)*(rank+1)+1 // loadings, means, one noise variance at least
}
