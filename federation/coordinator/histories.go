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
	answers := make(chan answer)
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
			select {
			case answers <- answer{site, h, err}:
			case <-ctx.Done():
			}
		}()
	}
	s.mu.Unlock()
	kept, left := map[string][][]byte{}, map[string]bool{}
	defer s.waitFor(nil)
	for {
		var waiting []string
		staying := 0
		for _, site := range s.plan.Sites {
			if kept[site] == nil && without[site] == nil && !left[site] {
				waiting = append(waiting, site)
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
			return nil, fmt.Errorf("the sites were asked for the history of the study: %d of %d would be left, and the plan's quorum is %d:\n%w", staying, len(s.plan.Sites), s.plan.Quorum, errors.Join(reasons...))
		}
		if len(waiting) == 0 {
			return longest, nil
		}
		s.waitFor(waiting)
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
			for _, at := range gone {
				left[s.plan.Sites[at]] = true
			}
			s.setState(func(st *studyState) {
				for _, at := range took {
					st.approve(s.plan.Sites[at])
				}
			})
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// waitFor says in the status whose history is waited for.
func (s *running) waitFor(sites []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waits = ""; len(sites) > 0 {
		s.waits = "it waits for the history that these sites have kept: " + strings.Join(sites, ", ") + "; one that does not come back can be dropped"
	}
}
