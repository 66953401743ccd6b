package halves

import (
	"fmt"
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
	digest, err := p.Digest()
	if err != nil {
		return nil, err
	}
	var file releasedFile
	if err := method.DecodeJSON(data, &file); err != nil {
		return nil, problem.Problem{What: "this is not what sites released: " + err.Error(), Hint: "the file " +
			ReleasedName + " of a study's results"}
	}
	switch {
	case file.Format != ReleasedFormat:
		return nil, problem.Problem{What: fmt.Sprintf("the format is %q, and this program reads %q", file.Format,
			ReleasedFormat)}
	case file.Plan != digest.String():
		return nil, problem.Problem{What: fmt.Sprintf("this was released for another plan (%.12s)", file.Plan),
			Hint: fmt.Sprintf("what the study of plan %s released", digest.Short())}
	case len(file.Sites) < max(1, p.Quorum):
		return nil, problem.Problem{What: fmt.Sprintf("%d sites released something, and the plan's quorum is %d",
			len(file.Sites), p.Quorum), Hint: "the file of a study that has ended"}
	}
	o := noisedState{Released: map[string][]*privacy.Noised{},
		Whitenings: [2][]moments.Whitening{file.Coarse, file.Fine}}
	last := -1
	for i := range file.Sites {
		site := &file.Sites[i]
		at := slices.Index(p.Sites, site.Site)
		if at <= last {
			return nil, problem.Problem{What: fmt.Sprintf("site %q is not of the plan, or not in its order, or there "+
				"twice", site.Site)}
		}
		last, o.Released[site.Site] = at, []*privacy.Noised{&site.Overview, &site.Coarse, &site.Fine}
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
