package evaluate

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
)

// stratify returns the ids of every group in a random order and the groups in
// ascending order. Ids are ordered by SHA-256 of seed, purpose and id: uniform,
// the same on every machine, and independent of the order they came in.
func stratify(subjects []Subject, seed uint64, purpose string) (byGroup map[string][]string, groups []string, err error) {
	type keyed struct {
		Subject
		key [sha256.Size]byte
	}
	prefix := append(binary.BigEndian.AppendUint64(nil, seed), purpose+"\x00"...)
	all := make([]keyed, len(subjects))
	seen := make(map[string]bool, len(subjects))
	for i, s := range subjects {
		if seen[s.ID] {
			return nil, nil, fmt.Errorf("subject %s appears twice", s.ID)
		}
		seen[s.ID] = true
		all[i] = keyed{s, sha256.Sum256(append(prefix[:len(prefix):len(prefix)], s.ID...))}
	}
	slices.SortFunc(all, func(a, b keyed) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), bytes.Compare(a.key[:], b.key[:]))
	})
	byGroup = map[string][]string{}
	for _, k := range all {
		if len(byGroup[k.Group]) == 0 {
			groups = append(groups, k.Group)
		}
		byGroup[k.Group] = append(byGroup[k.Group], k.ID)
	}
	return byGroup, groups, nil
}
