package engine

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"parley/internal/wire"
	"parley/sitestore"
)

// Record is what a coordinator did with the answers that it had waited for: in
// which order it folded which, and who left. The global state is a function of
// the plan, the records, and the releases that they count. Sites are numbers:
// their places in the plan, from 0.
type Record struct {
	_     struct{} `cbor:",toarray"`
	Round int      // of the last task that was answered
	// All says that every site that had not left contributed, in the plan's
	// order; Sites is then empty. So a record is as short for a thousand sites.
	All   bool
	Sites []int // that contributed, in the order of folding
	Left  []int // that left, after the folding
	// Releases is SHA-256 over place, round and SHA-256 of each release, in the
	// order of folding; empty if there was none.
	Releases []byte
}

// folded is a release that a record counts.
type folded struct {
	site, round int
	digest      [32]byte
}

func digestOf(releases []folded) []byte {
	if len(releases) == 0 {
		return nil
	}
	h := sha256.New()
	for _, f := range releases {
		var b [16]byte
		binary.BigEndian.PutUint64(b[:8], uint64(f.site))
		binary.BigEndian.PutUint64(b[8:], uint64(f.round))
		h.Write(b[:])
		h.Write(f.digest[:])
	}
	return h.Sum(nil)
}

// census is who has not left after the records so far, and how often each site has
// contributed.
type census struct{ staying, times []int }

func newCensus(sites int) *census {
	c := &census{staying: make([]int, 0, sites), times: make([]int, sites)}
	for i := range sites {
		c.staying = append(c.staying, i)
	}
	return c
}

func (c *census) clone() *census { return &census{c.staying, slices.Clone(c.times)} }

// contributing is how many sites have contributed.
func (c *census) contributing() (n int) {
	for _, t := range c.times {
		n += min(t, 1)
	}
	return n
}

// contributors lists who contributed to a record that comes next.
func (c *census) contributors(r *Record) []int {
	if r.All {
		return c.staying
	}
	return r.Sites
}

// follow takes in a record, after checking that it speaks of the plan's sites,
// and of none that had left.
func (c *census) follow(r *Record) error {
	if r.Round < 1 {
		return fmt.Errorf("it is of round %d", r.Round)
	}
	if r.All && len(r.Sites) > 0 {
		return fmt.Errorf("it counts all sites, and names %d", len(r.Sites))
	}
	contributed := c.contributors(r)
	if want := min(len(contributed), 1) * sha256.Size; len(r.Releases) != want {
		return fmt.Errorf("its digest of %d releases has %d bytes", len(contributed), len(r.Releases))
	}
	if len(contributed)+len(r.Left) == 0 {
		return fmt.Errorf("it is empty")
	}
	seen := map[int]bool{}
	for _, list := range [][]int{r.Sites, r.Left} {
		for _, i := range list {
			if _, stays := slices.BinarySearch(c.staying, i); !stays || seen[i] {
				return fmt.Errorf("site %d of the plan cannot contribute to it, or leave with it", i+1)
			}
			seen[i] = true
		}
	}
	if r.All && len(r.Left) > 0 {
		return fmt.Errorf("all sites contributed, and %d left", len(r.Left))
	}
	for _, i := range contributed {
		c.times[i]++
	}
	if len(r.Left) > 0 {
		c.staying = slices.DeleteFunc(slices.Clone(c.staying), func(i int) bool { return slices.Contains(r.Left, i) })
	}
	return nil
}

func decodeRecord(data []byte) (r Record, err error) {
	if err := wire.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("decoding a record of the history: %w", err)
	}
	return r, nil
}

// PartsOf returns the places in a plan of so many sites of those that have contributed to
// a history, and of those that have left by it.
func PartsOf(history [][]byte, sites int) (contributed, left []int, err error) {
	c := newCensus(sites)
	for _, data := range history {
		r, err := decodeRecord(data)
		if err == nil {
			err = c.follow(&r)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	for at := range sites {
		if c.times[at] > 0 {
			contributed = append(contributed, at)
		}
		if !slices.Contains(c.staying, at) {
			left = append(left, at)
		}
	}
	return contributed, left, nil
}

func digest(data []byte) [32]byte { return sha256.Sum256(data) }

// manifest is the history as the coordinator keeps it.
type manifest struct {
	records [][]byte
	heads   [][32]byte // before each record, and after the last
	census  *census
	claims  [][]placedClaim // by site
	counted [][]folded      // by record
}

func newManifest(sites int) *manifest {
	return &manifest{heads: make([][32]byte, 1), census: newCensus(sites), claims: make([][]placedClaim, sites)}
}

// head is the hash that tells of the first n records.
func (m *manifest) head(n int) []byte { return m.heads[n][:] }

// until is what a site may be told with a task that was given out after the
// first n records.
func (m *manifest) until(site, n int, ledger Mark) History {
	// A site that has a task to answer contributes to no record meanwhile.
	return History{m.records[:n:n], slices.Clip(m.claims[site]), ledger, m.heads[n]}
}

// describe makes the record of what was folded, and who left after it.
func (m *manifest) describe(round int, releases []folded, left []int) ([]byte, error) {
	r := Record{Round: round, Left: left, Releases: digestOf(releases)}
	for _, f := range releases {
		r.Sites = append(r.Sites, f.site)
	}
	if slices.Equal(r.Sites, m.census.staying) && len(left) == 0 {
		r.All, r.Sites = true, nil
	}
	data, err := wire.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encoding a record of the history: %w", err)
	}
	return data, nil
}

// append takes in a record, and the releases that it counts if they are known.
func (m *manifest) append(data []byte, releases []folded) error {
	r, err := decodeRecord(data)
	if err != nil {
		return err
	}
	if err := m.census.follow(&r); err != nil {
		return fmt.Errorf("record %d of the history: %w", len(m.records), err)
	}
	for _, f := range releases {
		if f.site < 0 || f.site >= len(m.claims) {
			return fmt.Errorf("record %d of the history counts a release of site %d of the plan",
				len(m.records), f.site+1)
		}
		m.claims[f.site] = append(m.claims[f.site],
			placedClaim{len(m.records), Claim{Round: f.round, Digest: f.digest[:]}})
	}
	m.counted = append(m.counted, releases)
	m.heads = append(m.heads, sitestore.Next(m.heads[len(m.heads)-1], data))
	m.records = append(m.records, data)
	return nil
}

// released lists the releases that a record counts.
func (m *manifest) released(record int) []loggedClaim {
	list := []loggedClaim{}
	for _, f := range m.counted[record] {
		list = append(list, loggedClaim{Site: f.site, Round: f.round, Digest: f.digest[:]})
	}
	return list
}
