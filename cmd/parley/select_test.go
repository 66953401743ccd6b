package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

func TestParseCounts(t *testing.T) {
	for text, want := range map[string][]int{
		"3": {3}, "1..4": {1, 2, 3, 4}, "2,4,6..8": {2, 4, 6, 7, 8}, "5,1..3": {1, 2, 3, 5}, "2..3,3..4": {2, 3, 4}, " 1 , 2": {1, 2}, "7..7": {7},
	} {
		if got, err := parseCounts(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"": `"" is not a number`, "0": `"0" is not a number from 1`, "-1": "is not a number", "1..": `"" is not a number`, "..4": `"" is not a number`,
		"4..1": "4..1 ends before it begins", "1...3": `".3" is not a number`, "1-3": `"1-3" is not a number`, "1001": "from 1 to 1000", "99999999999999999999": "is not a number",
	} {
		if got, err := parseCounts(text); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "\n  hint: ") {
			t.Errorf("%q: %v, %v; want %q", text, got, err, want)
		}
	}
}

func FuzzParseCounts(f *testing.F) {
	for _, s := range []string{"1..8", "2,4,6..10", "", "1..1000", "3,,", "..", "1..2..3"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		list, err := parseCounts(s)
		if err != nil {
			return
		}
		if len(list) == 0 || !slices.IsSorted(list) || list[0] < 1 || list[len(list)-1] > maxCount || len(slices.Compact(slices.Clone(list))) != len(list) {
			t.Errorf("%q: %v", s, list)
		}
	})
}

// The time that is left is that of the rest at the speed so far.
func TestShareTellsWhatIsLeft(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(0, 0)
	cmd := &cobra.Command{}
	cmd.SetErr(&out)
	show := newProgress(cmd)
	share := show.share(func() time.Time { return now })
	for i := range 10 {
		now = now.Add(2 * time.Second)
		share(float64(i+1)*0.5, 5)
	}
	show.close()
	got := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(got) != 10 || got[0] != "10 % fitted; about 18s left" || got[4] != "50 % fitted; about 10s left" || got[9] != "100 % fitted; about 0s left" {
		t.Errorf("%q", got)
	}
}
