package privacy_test

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/privacy"
	"parley/privacy/internal/noise"
	"parley/sitestore"
)

// faulty is a journal with a planted fault. One is made for each process.
type faulty struct {
	privacy.Journal
	mine map[string]bool // releases that this process has charged

	otherKey bool                     // a retry gets another key
	keeps    map[string][]byte        // keys, which are kept for ever
	inState  bool                     // the key is written into what is stored
	lines    *[]sitestore.Reservation // the ledger, in which each attempt stands
}

func (f *faulty) Release(id string) (sitestore.Release, bool, error) {
	r, ok, err := f.Journal.Release(id)
	if !ok || err != nil {
		return r, ok, err
	}
	r.Key = bytes.Clone(r.Key)
	if f.otherKey && r.Key != nil && !f.mine[id] {
		r.Key[0]++
	}
	if f.keeps != nil && r.Sealed != nil {
		r.Key = f.keeps[id]
	}
	if f.lines != nil && r.Sealed == nil && !f.mine[id] {
		f.mine[id] = true
		again := (*f.lines)[slices.IndexFunc(*f.lines, func(line sitestore.Reservation) bool {
			return line.Release == id
		})]
		again.Seq = len(*f.lines) + 1
		*f.lines = append(*f.lines, again)
	}
	return r, ok, err
}

func (f *faulty) Reserve(r sitestore.Reservation, key [32]byte) error {
	f.mine[r.Release] = true
	if f.keeps != nil {
		f.keeps[r.Release] = key[:]
	}
	if f.lines == nil {
		return f.Journal.Reserve(r, key)
	}
	*f.lines = append(*f.lines, r)
	r.Seq = 0
	return f.Journal.Reserve(r, key)
}

func (f *faulty) Reservations(after int) ([]sitestore.Reservation, error) {
	if f.lines != nil {
		return (*f.lines)[min(after, len(*f.lines)):], nil
	}
	return f.Journal.Reservations(after)
}

func (f *faulty) Commit(release string, sealed, state []byte) error {
	if r, _, _ := f.Journal.Release(release); f.inState {
		state = append(bytes.Clone(state), r.Key...)
	}
	return f.Journal.Commit(release, sealed, state)
}

// blindfold draws noise by what it is for, and not by what is summed.
func blindfold(a *auditor) privacy.Option {
	return privacy.Simulate(noise.Simulation{
		Key: func(release string) (key [noise.KeySize]byte) {
			copy(key[:], release)
			return key
		},
		Release: func(_ string, exact [][]int64) (noised [][]int64) {
			h := fnv.New64()
			fmt.Fprint(h, a.now.release, a.now.use)
			r := rand.New(rand.NewPCG(h.Sum64(), 0))
			for _, block := range exact {
				out := make([]int64, len(block))
				for i, x := range block {
					out[i] = x + r.Int64N(1<<30)
				}
				noised = append(noised, out)
			}
			return noised
		},
	})
}

// The property of the histories is able to fail, by each of these faults.
func TestHistoriesCatchPlantedFaults(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault func(f *faulty)
		blind bool
		disk  bool
		want  string
	}{
		{name: "key drawn anew at a retry", fault: func(f *faulty) { f.otherKey = true }, want: "noised anew"},
		{name: "key kept after the release", fault: func(f *faulty) {}, want: "its key is kept"},
		{name: "key left in the file", fault: func(f *faulty) { f.inState = true }, disk: true,
			want: "still in the file"},
		{name: "retry charged again", fault: func(f *faulty) {}, want: "charges for"},
		{name: "noise that ignores the data", blind: true, want: "was used before"},
	} {
		caught := 0
		seeds := 600
		if c.disk {
			seeds = 3
		}
		for seed := range seeds {
			err := rapid.Custom(func(rt *rapid.T) error {
				p := inMemory(t)
				if c.disk {
					p = onDisk(t)
				}
				keeps, lines := map[string][]byte{}, []sitestore.Reservation{}
				return history(t, rt, p, func(a *auditor, base privacy.Journal) (privacy.Journal, []privacy.Option) {
					if c.blind {
						return base, []privacy.Option{blindfold(a)}
					}
					f := &faulty{Journal: base, mine: map[string]bool{}}
					c.fault(f)
					switch c.name {
					case "key kept after the release":
						f.keeps = keeps
					case "retry charged again":
						f.lines = &lines
					}
					return f, nil
				})
			}).Example(seed)
			if err == nil {
				continue
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Fatalf("%s: %v", c.name, err)
			}
			caught++
		}
		if caught == 0 {
			t.Errorf("%s: caught in none of %d histories", c.name, seeds)
		}
		t.Logf("%s: caught in %d of %d histories", c.name, caught, seeds)
	}
}
