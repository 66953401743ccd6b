package halves

import (
	"cmp"
	"slices"

	"parley/method"
	"parley/methods/factors/moments"
	"parley/methods/factors/options"
	"parley/privacy"
	"parley/problem"
)

// Study is a study that has its sites' releases from a file, so that anything can be
// computed of them again: nothing of it costs privacy.
type Study struct {
	options.Setup
	Releases []moments.Released // of the sites that released something, in the plan's order
	noised   noisedState
	file     []byte
}

// ReadReleased reads what the sites of a plan's study released, and checks that
// it is what the plan declares. The plan's mechanism has to be statistics.
func ReadReleased(set options.Setup, data []byte) (*Study, error) {
	p := set.Plan
	c, err := NewCoordinator(set)
	if err != nil {
		return nil, err
	}
	var file releasedFile
	err = method.DecodeJSON(data, &file)
	o, sites := noisedState{Released: map[string][]*privacy.Noised{},
		Whitenings: [2][]moments.Whitening{file.Coarse, file.Fine}}, []string(nil)
	for i := range file.Sites {
		site := &file.Sites[i]
		sites = append(sites, site.Site)
		o.Released[site.Site] = []*privacy.Noised{&site.Overview, &site.Coarse, &site.Fine}
	}
	if err = cmp.Or(err, method.CheckReleased(p, ReleasedFormat, file.Format, file.Plan, sites)); err != nil {
		return nil, problem.Problem{What: "this is not what sites released: " + err.Error(),
			Hint: "the file " + ReleasedName + " of the results of this plan's study, which has ended"}
	}
	_, releases, err := c.releases(&o)
	return &Study{set, releases, o, data}, err
}

// Refit makes the result of the study with another number of factors.
func (r *Study) Refit(latent int) (*method.Result, error) {
	if err := r.CheckLatent(latent); err != nil {
		return nil, err
	}
	c, err := NewCoordinator(r.With(latent)) // the plan keeps its own number of factors
	if err != nil {
		return nil, err
	}
	s := &State{Noised: r.noised, Scale: &options.Scale{Scale: *r.RangeScale()}} // of which the model is made anew
	for _, site := range r.Plan.Sites {
		if r.noised.Released[site] == nil {
			s.Left = append(s.Left, site)
		}
	}
	if _, _, err := c.fitNoised(s); err != nil {
		return nil, err
	}
	out, err := c.Result(s)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(out.Files, func(f method.File) bool { return f.Name == ReleasedName })
	out.Files[at].Data = r.file // with everything that the study released
	return out, nil
}
