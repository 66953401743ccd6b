package fitted

import (
	"fmt"
	"slices"

	"parley/methods/factors/ppca"
)

// Biases are how far predictions of views miss on average at single sites: mean squares, each in
// parts of its feature's variance. Predictions of a view at a site that lacks it are so much less
// certain. At sites that have it they are part of the variance of the fit.
type Biases struct {
	NewSite float64    `json:"new_site" cbor:"new_site"` // of a site that took no part
	Sites   []SiteBias `json:"sites" cbor:"sites"`
}

// SiteBias is that of one site.
type SiteBias struct {
	Name     string   `json:"name" cbor:"name"`
	Lacks    []string `json:"lacks,omitempty" cbor:"lacks,omitempty"` // views that it has nobody with
	Subjects float64  `json:"subjects_noised" cbor:"subjects_noised"` // at least 1
	Variance float64  `json:"variance" cbor:"variance"`
}

// of is that of predictions of a view for subjects of a site, or of a new one. Of those of no site
// in particular, whoever lacks a view is taken to be of a site that lacks it, if there is one.
func (b *Biases) of(view, site string, newSite bool) float64 {
	switch {
	case b == nil:
		return 0
	case newSite:
		return b.NewSite
	}
	sum, subjects := 0.0, 0.0
	for _, s := range b.Sites {
		if (site == "" || site == s.Name) && slices.Contains(s.Lacks, view) {
			sum, subjects = sum+s.Subjects*s.Variance, subjects+s.Subjects
		}
	}
	if subjects == 0 {
		return 0
	}
	return sum / subjects
}

// check says what is wrong with biases that came from elsewhere; names has an entry for each view.
func (b *Biases) check(names map[string]bool) error {
	if b == nil {
		return nil
	}
	for _, s := range append([]SiteBias{{Name: "new", Subjects: 1, Variance: b.NewSite}}, b.Sites...) {
		if !(s.Variance >= 0 && s.Variance < ppca.Largest && s.Subjects >= 1 && s.Subjects < ppca.Largest) {
			return fmt.Errorf("the bias of predictions at site %q: %v, of %v subjects", s.Name, s.Variance, s.Subjects)
		}
		for _, view := range s.Lacks {
			if !names["view "+view] {
				return fmt.Errorf("site %q lacks a view %q, which the model does not have", s.Name, view)
			}
		}
	}
	return nil
}
