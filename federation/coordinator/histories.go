package coordinator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley/engine"
	"parley/engine/wire"
)

// histories asks the sites for the history that they have kept, and returns the longest.
// One that has left by what others have kept needs none; and one that a person drops, or
// that does not answer within the deadline, is done without: what it alone has kept, no
// other site has seen, so no other has answered anything that came after.
func (s *running) histories(ctx context.Context) (longest [][]byte, err error) {
	type answer struct {
		site    string
		history [][]byte
		err     error
	}
	answers := make(chan answer, len(s.plan.Sites))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.mu.Lock()
	links, without := maps.Clone(s.links), map[string]error{}
	for site, l := range links {
		if s.dropped[site] {
			without[site] = errDropped
			continue
		}
		go func() {
			h, err := l.history(ctx)
			answers <- answer{site, h, err}
		}()
	}
	s.mu.Unlock()
	kept, left := map[string][][]byte{}, map[string]bool{}
	for {
		waiting, staying := 0, 0
		for _, site := range s.plan.Sites {
			if kept[site] == nil && without[site] == nil && !left[site] {
				waiting++
			}
			if without[site] == nil && !left[site] {
				staying++
			}
		}
		if len(without) > 0 && staying < s.plan.Quorum {
			var reasons []error
			for _, site := range slices.Sorted(maps.Keys(without)) {
				reasons = append(reasons, fmt.Errorf("site %s: %w", site, without[site]))
			}
			return nil, fmt.Errorf("the sites were asked for the history of the study: %d of %d would be left, and the plan's quorum is %d:\n%w\n  hint: once enough of them can answer, submit the plan again, and the study goes on where it was; or abort it", staying, len(s.plan.Sites), s.plan.Quorum, errors.Join(reasons...))
		}
		if waiting == 0 {
			return longest, nil
		}
		select {
		case a := <-answers:
			if refusal := (*engine.Refusal)(nil); errors.As(a.err, &refusal) {
				without[a.site] = a.err
				continue
			}
			if a.err != nil {
				return nil, a.err
			}
			kept[a.site] = append([][]byte{}, a.history...)
			if longest, err = wire.Longest(slices.Collect(maps.Values(kept))...); err != nil {
				return nil, fmt.Errorf("%w\n  hint: drop the sites that went another way than the others, and submit the plan again; where the quorum does not allow that, abort the study, and run it anew", err)
			}
			took, gone, err := engine.PartsOf(longest, len(s.plan.Sites))
			if err != nil {
				return nil, err
			}
			s.setState(func(st *studyState) {
				for _, at := range took {
					st.approve(s.plan.Sites[at])
				}
				for _, at := range gone {
					left[s.plan.Sites[at]] = true
					st.leave(s.plan.Sites[at], "it left before")
				}
			})
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// waits says for whom a study waits whose history is collected or repeated; the caller holds s.mu.
func (s *running) waits() string {
	sites := slices.DeleteFunc(slices.Clone(s.plan.Sites), func(site string) bool {
		l := s.links[site]
		_, left := s.state.Left[site]
		return l == nil || l.giveUp == nil || left && s.engine == nil
	})
	names := strings.Join(sites, ", ")
	if !s.state.Rebuild || names == "" || s.engine != nil && !s.repeats {
		return ""
	}
	if s.engine != nil {
		return "it waits for what these sites have released, which nobody else has: " + names
	}
	return "it waits for the history that these sites have kept: " + names + "; one that does not come back can be dropped"
}
