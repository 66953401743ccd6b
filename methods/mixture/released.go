package mixture

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"parley/method"
	"parley/problem"
	"parley/study"
)

// releasedName is the file of a result that keeps what its posterior was made of.
const releasedName = "model/released.json"

// releasedFormat names the format of that file and its version.
const releasedFormat = "parley/graffl-released/1"

// released is what the sites of a study released, added up: all that its posterior is made of,
// and any other that is made without asking them again. It tells no more than the report, which
// draws the sums and lists the rows.
type released struct {
	Format string         `json:"format"`
	Plan   string         `json:"plan_sha256"`
	Sums   []float64      `json:"sums"`  // Σ φ(x) over the rows of all sites, with their noise
	Sites  []releasedSite `json:"sites"` // that released something, in the plan's order
}

type releasedSite struct {
	Site    string  `json:"site"`
	Rows    float64 `json:"rows"`    // noised under privacy: of either sign
	SD      float64 `json:"sd"`      // of its noise in each of the sums; 0 without privacy
	RowsSD  float64 `json:"rows_sd"` // of that in Rows
	Lacking int     `json:"lacking,omitempty"`
}

// file is [releasedName].
func (all *released) file(p *study.Plan) (method.File, error) {
	digest, err := p.Digest()
	if err != nil {
		return method.File{}, err
	}
	all.Format, all.Plan = releasedFormat, digest.String()
	data, err := json.Marshal(all)
	return method.File{Name: releasedName, Data: append(data, '\n')}, err
}

// readReleased reads what the sites of a plan's study released, and checks it: the file may have
// come from anywhere.
func (s *setup) readReleased(data []byte) (*released, error) {
	digest, err := s.Plan.Digest()
	if err != nil {
		return nil, err
	}
	all := new(released)
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err = d.Decode(all); err == nil {
		if _, end := d.Token(); !errors.Is(end, io.EOF) {
			err = errors.New("something follows its end")
		}
	}
	if err != nil {
		return nil, problem.Problem{What: "this is not what sites released: " + err.Error(), Hint: "the file " + releasedName + " of a study's results"}
	}
	switch {
	case all.Format != releasedFormat:
		return nil, problem.Problem{What: fmt.Sprintf("the format is %q, and this program reads %q", all.Format, releasedFormat)}
	case all.Plan != digest.String():
		return nil, problem.Problem{What: fmt.Sprintf("this was released for another plan (%.12s)", all.Plan), Hint: fmt.Sprintf("what the study of plan %s released", digest.Short())}
	case len(all.Sums) != s.Of.Len():
		return nil, problem.Problem{What: fmt.Sprintf("%d sums at the frequencies where the plan has %d", len(all.Sums), s.Of.Len())}
	case len(all.Sites) < max(1, s.Plan.Quorum):
		return nil, problem.Problem{What: fmt.Sprintf("%d sites released something, and the plan's quorum is %d", len(all.Sites), s.Plan.Quorum), Hint: "the file of a study that has ended"}
	}
	last, most := -1, 0.0
	for _, a := range all.Sites {
		at := slices.Index(s.Plan.Sites, a.Site)
		if at <= last {
			return nil, problem.Problem{What: fmt.Sprintf("site %q is not of the plan, or not in its order, or there twice", a.Site)}
		}
		last = at
		one := sums{Rows: a.Rows, SD: a.SD, RowsSD: a.RowsSD, Lacking: a.Lacking}
		if err := one.checkRows(); err != nil {
			return nil, fmt.Errorf("site %s: %w", a.Site, err)
		}
		if private := s.Sum != nil; a.SD > 0 != private || a.RowsSD > 0 != private {
			return nil, fmt.Errorf("site %s: %v rows with noise %v and %v are not what the plan has it release", a.Site, a.Rows, a.SD, a.RowsSD)
		}
		most += one.most()
	}
	for r, x := range all.Sums {
		if !(math.Abs(x) <= most) {
			return nil, fmt.Errorf("sum %d of %d is %v", r+1, len(all.Sums), x)
		}
	}
	return all, nil
}
