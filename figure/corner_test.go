package figure

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"
)

func TestDrawsAreThinnedByTheirWeights(t *testing.T) {
	k := Corner{}
	for _, c := range []struct {
		weights Numbers
		n       int
		want    string
	}{
		{Numbers{1, 1, 1, 1}, 10, "[0 1 2 3]"}, {Numbers{1, 1, 1, 1}, 2, "[1 3]"},
		{Numbers{0, 0, 5, 0}, 3, "[2]"}, {Numbers{2, 0, 7, 1}, 5, "[0 2]"}, {Numbers{0, math.NaN(), -1}, 3, "[]"},
	} {
		if got := fmt.Sprint(k.thinned(shares(c.weights, len(c.weights)), c.n)); got != c.want {
			t.Errorf("%d of %v: %s, want %s", c.n, c.weights, got, c.want)
		}
	}
}

func TestCornerSaysWhatItLeavesOut(t *testing.T) {
	var k Corner
	for p := range maxCorner + 1 {
		values := make(Numbers, 500)
		for i := range values {
			values[i] = math.Mod(float64(i*(p+7))*0.618, 1)
		}
		k.Parameters = append(k.Parameters, Parameter{Name: fmt.Sprintf("p%d", p), Values: values})
	}
	got := svg(t, Figure{ID: "corner", Chart: k})
	for _, want := range []string{"The first 12 of 13 parameters.", "Dots: 90 of 500 draws."} {
		if !bytes.Contains(got, []byte(want)) {
			t.Errorf("the picture does not say %q", want)
		}
	}
	if len(got) > 500_000 {
		t.Errorf("%d bytes", len(got))
	}
	if table := k.Table(); table.Len() != 500 || len(table.Columns) != 2+maxCorner+1 {
		t.Errorf("a table of %d rows and %d columns", table.Len(), len(table.Columns))
	}
}

// Every pair has its two regions, and every parameter its mean and interval.
func TestCornerDrawsEveryPair(t *testing.T) {
	k := Corner{Weights: Numbers{1, 1, 1, 1, 1, 0}, Parameters: []Parameter{
		{"weight", "one", Numbers{1, 2, 3, 4, 5, 100}}, {"mean", "one", Numbers{5, 3, 4, 1, 2, 100}}, {"mean", "two", Numbers{0, 1, 0, 1, 0, 0}}}}
	got := string(svg(t, Figure{ID: "corner", Chart: k}))
	for _, pair := range []string{"one, weight and one, mean", "one, weight and two, mean", "one, mean and two, mean"} {
		for _, share := range []string{"50", "90"} {
			if want := pair + ": holds " + share + " % of the draws"; !strings.Contains(got, want) {
				t.Errorf("%q is missing", want)
			}
		}
	}
	if want := "one, weight: mean 3, 90 % from 1 to 5"; !strings.Contains(got, want) {
		t.Errorf("%q is missing: a draw without weight takes part", want)
	}
}

func TestIntervalsAreGivenToTwoDigits(t *testing.T) {
	for _, c := range []struct {
		format       Format
		v, low, high float64
		want         string
	}{
		{General, 0.33412, 0.31, 0.35777, "0.334 (0.310 to 0.358)"}, {General, -4.0312, -4.2149, -3.8466, "−4.03 (−4.21 to −3.85)"},
		{General, 1234.5, 1100, 1399, "1234 (1100 to 1399)"}, {Percent, 0.33412, 0.31, 0.35777, "33.4 % (31.0 to 35.8)"},
		{Count, 3.2, 3, 4, "3 (3 to 4)"}, {General, 2, 2, 2, "2 (2 to 2)"}, {General, 2, math.NaN(), 3, "2 (n/a to 3)"},
	} {
		value, ends := interval(c.format, c.v, c.low, c.high, c.high-c.low)
		if got := value + " (" + ends + ")"; got != c.want {
			t.Errorf("%v in %v to %v: %q, want %q", c.v, c.low, c.high, got, c.want)
		}
	}
}

func TestTableWithIntervals(t *testing.T) {
	table := Table{Columns: []Column{{Name: "component", Text: []string{"1", "2"}},
		{Name: "weight", Format: Percent, Numbers: Numbers{0.25, 0.75}, Low: Numbers{0.2, 0.7}, High: Numbers{0.3, 0.8}}}}
	var csv, text, page bytes.Buffer
	for _, err := range []error{table.CSV(&csv), table.Text(&text), table.Head(1).HTML(&page)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if want := "component,weight (fraction),weight low (fraction),weight high (fraction)\n1,0.25,0.2,0.3\n2,0.75,0.7,0.8\n"; csv.String() != want {
		t.Errorf("CSV %q, want %q", csv.String(), want)
	}
	if want := "component           weight\n1          25 % (20 to 30)\n2          75 % (70 to 80)\n"; text.String() != want {
		t.Errorf("text %q, want %q", text.String(), want)
	}
	if want := `<td class="number">25 % <span class="interval">(20 to 30)</span></td>`; !strings.Contains(page.String(), want) || strings.Contains(page.String(), "75 %") {
		t.Errorf("%q is not in %s", want, page.String())
	}
}
