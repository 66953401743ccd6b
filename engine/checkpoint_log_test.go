package engine

import (
	"bytes"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"parley/internal/testkit"
)

// logOf writes the records one after another.
func logOf(t interface{ Fatal(...any) }, study string, records []logRecord) (log []byte, ends []logEnd) {
	end := logStart(study)
	for _, r := range records {
		frame, next, err := r.frame(end)
		if err != nil {
			t.Fatal(err)
		}
		log, end = append(log, frame...), next
		ends = append(ends, end)
	}
	return log, ends
}

func drawRecords(t *rapid.T) (records []logRecord) {
	for range rapid.IntRange(1, 6).Draw(t, "records") {
		r := logRecord{Rounds: []Round{}, History: [][]byte{}, Releases: [][]loggedClaim{}}
		for range rapid.IntRange(0, 3).Draw(t, "rounds") {
			r.Rounds = append(r.Rounds, Round{
				Round: rapid.IntRange(1, 10_000).Draw(t, "round"),
				Info:  map[string]float64{"x": rapid.Float64Range(-1, 1).Draw(t, "x")},
				Sites: []Exchange{{Site: rapid.String().Draw(t, "site"), Up: rapid.IntRange(0, 1<<30).Draw(t, "up")}},
			})
		}
		for range rapid.IntRange(0, 3).Draw(t, "entries") {
			r.History = append(r.History, rapid.SliceOfN(rapid.Byte(), 1, 9).Draw(t, "record"))
			r.Releases = append(r.Releases, []loggedClaim{})
		}
		records = append(records, r)
	}
	return records
}

// Every checkpoint finds what was written before it, whatever follows.
func TestLogIsReadUpToEveryCheckpoint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		records := drawRecords(t)
		log, ends := logOf(t, "study", records)
		var want logRecord
		for i, end := range ends {
			want.Rounds, want.History = append(want.Rounds, records[i].Rounds...),
				append(want.History, records[i].History...)
			got := testkit.Get(readLog(log, "study", end))(t)
			if len(got.Rounds) != len(want.Rounds) || len(got.History) != len(want.History) {
				t.Fatalf("checkpoint %d: %d rounds and %d entries, want %d and %d", i, len(got.Rounds),
					len(got.History), len(want.Rounds), len(want.History))
			}
			for j, r := range got.Rounds {
				if w := want.Rounds[j]; r.Round != w.Round || r.Sites[0].Site != w.Sites[0].Site ||
					r.Sites[0].Up != w.Sites[0].Up || !reflect.DeepEqual(r.Info, w.Info) {
					t.Fatalf("checkpoint %d, round %d: %+v, want %+v", i, j, r, w)
				}
			}
			for j, e := range got.History {
				if !bytes.Equal(e, want.History[j]) {
					t.Fatalf("checkpoint %d, entry %d differs", i, j)
				}
			}
		}
		if _, err := readLog(log, "another study", ends[len(ends)-1]); err == nil {
			t.Fatal("another study's log was read")
		}
	})
}

func TestLogEndsThatFitNothing(t *testing.T) {
	log, ends := logOf(t, "study", []logRecord{{History: [][]byte{{1}}, Releases: [][]loggedClaim{{}}},
		{History: [][]byte{{2}}, Releases: [][]loggedClaim{{}}}})
	for name, end := range map[string]logEnd{
		"negative":                 {Size: -1, Chain: ends[0].Chain},
		"beyond the log":           {Size: int64(len(log)) + 1, Chain: ends[1].Chain},
		"inside a record":          {Size: ends[0].Size + 1, Chain: ends[0].Chain},
		"inside a record's length": {Size: ends[0].Size + logLength, Chain: ends[0].Chain},
		"of another chain":         {Size: ends[0].Size, Chain: ends[1].Chain},
		"of no chain":              {Size: ends[0].Size},
		"the start of no study":    {},
	} {
		if _, err := readLog(log, "study", end); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// Whatever the files hold, decoding ends in an error or in what Marshal would
// write again; it never panics and allocates nothing on the word of a length.
func FuzzReadLog(f *testing.F) {
	log, ends := logOf(f, "study", []logRecord{
		{Rounds: []Round{{Round: 1, Info: map[string]float64{"x": 1}, Sites: []Exchange{{Site: "north", Up: 3}}}},
			History: [][]byte{{1}}, Releases: [][]loggedClaim{{}}},
		{History: [][]byte{{2}}, Releases: [][]loggedClaim{{}}},
	})
	f.Add(log, ends[1].Size, ends[1].Chain)
	f.Add(log, ends[0].Size, ends[0].Chain)
	f.Add(log, int64(-1), []byte(nil))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff}, int64(4), []byte(nil))
	f.Fuzz(func(t *testing.T, log []byte, size int64, chain []byte) {
		if _, err := readLog(log, "study", logEnd{size, chain}); err == nil && size > 0 {
			other := bytes.Clone(log)
			other[size-1] ^= 1
			if _, err := readLog(other, "study", logEnd{size, chain}); err == nil {
				t.Fatal("another bit, and still the same log")
			}
		}
		// Chance does not find a chain, so the bytes are tried as a payload too.
		start := logStart("study")
		frame, want := sealFrame(log, start)
		r, end, err := readFrame(append(frame, 1), start)
		if err != nil {
			return
		}
		if !reflect.DeepEqual(end, want) {
			t.Fatalf("the frame ends at %+v, want %+v", end, want)
		}
		if _, _, err := r.frame(start); err != nil {
			t.Fatalf("what was decoded cannot be encoded: %v", err)
		}
	})
}
