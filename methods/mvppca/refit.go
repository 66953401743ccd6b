package mvppca

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"parley/internal/wire"
	"parley/method"
	"parley/method/judged"
	"parley/methods/mvppca/moments"
	"parley/methods/mvppca/options"
	"parley/problem"
	"parley/study"
)

var _ judged.Refitter = Method{}

// ReleasedFile implements [judged.Refitter]. Only [options.MechanismStatistics] releases
// what is enough for another model.
func (Method) ReleasedFile(p *study.Plan) (string, error) {
	opts, _, err := setUp(p)
	if err != nil {
		return "", err
	}
	if opts.Mechanism != options.MechanismStatistics {
		what := "without differential protection a site's answers depend on the number of factors"
		if opts.Clips() {
			what = fmt.Sprintf("with mechanism %q sites release the parameters of one model, round by round", opts.Mechanism)
		}
		return "", problem.Problem{Where: "method.mechanism", What: what + ", so no other model can be made of them",
			Hint: "only " + options.MechanismStatistics + " releases statistics that any number of factors can be fitted to"}
	}
	return ReleasedName, nil
}

// Refit implements [judged.Refitter].
func (m Method) Refit(p *study.Plan, released []byte, latent int) (*method.Result, error) {
	r, err := readReleased(p, released)
	if err != nil {
		return nil, err
	}
	if err := r.checkLatent(latent); err != nil {
		return nil, err
	}
	r.opts.Latent = latent
	s, err := r.answered()
	if err != nil {
		return nil, err
	}
	if _, _, err := r.statistics(s); err != nil {
		return nil, err
	}
	out, err := r.Result(s)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(out.Files, func(f method.File) bool { return f.Name == ReleasedName })
	out.Files[at].Data = released // with everything that the study released
	return out, nil
}

// releasedStudy is the coordinator of a study that has its sites' answers from
// a file.
type releasedStudy struct {
	*statisticsRounds
	sites    []string // that released something, in the plan's order
	answers  []*statisticsRecord
	releases []moments.Released
}

// answeredSite is releasedOfASite as it is read: diagnostics tell of the study's
// own model, and have no use here.
type answeredSite struct {
	Site string `json:"site"`
	statisticsRecord
	Diagnostics json.RawMessage `json:"diagnostics"`
}

// readReleased reads what the sites of a plan's study released, and checks that
// it is what the plan declares.
func readReleased(p *study.Plan, data []byte) (*releasedStudy, error) {
	opts, layout, err := setUp(p)
	if err != nil {
		return nil, err
	}
	if opts.Mechanism != options.MechanismStatistics {
		_, err := Method{}.ReleasedFile(p)
		return nil, err
	}
	noised, err := newStatisticsPlan(p, opts, layout)
	if err != nil {
		return nil, err
	}
	digest, err := p.Digest()
	if err != nil {
		return nil, err
	}
	var file struct {
		Format string         `json:"format"`
		Plan   string         `json:"plan_sha256"`
		Sites  []answeredSite `json:"sites"`
	}
	if err := strictly(data, &file); err != nil {
		return nil, problem.Problem{What: "this is not what sites released: " + err.Error(), Hint: "the file " + ReleasedName + " of a study's results"}
	}
	switch {
	case file.Format != ReleasedFormat:
		return nil, problem.Problem{What: fmt.Sprintf("the format is %q, and this program reads %q", file.Format, ReleasedFormat)}
	case file.Plan != digest.String():
		return nil, problem.Problem{What: fmt.Sprintf("this was released for another plan (%.12s)", file.Plan), Hint: fmt.Sprintf("what the study of plan %s released", digest.Short())}
	case len(file.Sites) < max(1, p.Quorum):
		return nil, problem.Problem{What: fmt.Sprintf("%d sites released something, and the plan's quorum is %d", len(file.Sites), p.Quorum), Hint: "the file of a study that has ended"}
	}
	own := *opts // the plan keeps its own number of factors
	once := *noised
	once.check = nil // what the study's own model was asked is not asked of another
	r := &releasedStudy{statisticsRounds: newStatisticsRounds(p, &own, layout, &once)}
	last := -1
	for i := range file.Sites {
		site := &file.Sites[i]
		at := slices.Index(p.Sites, site.Site)
		if at <= last {
			return nil, problem.Problem{What: fmt.Sprintf("site %q is not of the plan, or not in its order, or there twice", site.Site)}
		}
		last = at
		answer, err := noised.released(&site.statisticsRecord)
		if err != nil {
			return nil, fmt.Errorf("site %s: %w", site.Site, err)
		}
		r.sites = append(r.sites, site.Site)
		r.answers, r.releases = append(r.answers, &site.statisticsRecord), append(r.releases, *answer)
	}
	return r, nil
}

// strictly decodes one JSON value with known fields and nothing after it.
func strictly(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("something follows its end")
	}
	return nil
}

func (r *releasedStudy) checkLatent(q int) error {
	if d := r.layout.Features(); q < 1 || q >= d {
		return problem.Problem{Where: "latent", What: fmt.Sprintf("%d factors for %d features", q, d), Hint: fmt.Sprintf("fewer factors than features: 1 to %d", d-1)}
	}
	return nil
}

// answered is the state of the coordinator when all sites have answered.
func (r *releasedStudy) answered() (*state, error) {
	scale := rangeScale(r.plan)
	s := &state{
		Phase: options.TaskStatistics, Round: 1, Steps: 1, Inbox: map[string][]byte{}, Sites: map[string]*siteRecord{},
		Scale: &scaleMessage{scale.Shift, scale.Factor},
	}
	for _, site := range r.plan.Sites {
		at := slices.Index(r.sites, site)
		if at < 0 {
			s.Left = append(s.Left, site)
			continue
		}
		body, err := wire.Marshal(r.answers[at])
		if err != nil {
			return nil, fmt.Errorf("site %s: %w", site, err)
		}
		s.Inbox[site] = body
	}
	return s, nil
}
