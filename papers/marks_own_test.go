package main

import (
	"strings"
	"testing"

	"parley/internal/testkit"
)

const command = "go run -C papers . run x"

const output = `Said before.

| of | value |
|---|---|
| a | 1.25 |
| b | −0.5 |

| of | seconds |
|---|---|
| a | 3 |
| b | 12345 |
`

const page = `# Page

<!-- measured: ` + command + ` -->
old
<!-- end -->
<!-- measured again: ` + command + ` | table 1 | rows b -->
<!-- end -->

Between.

<!-- quoted: ` + command + ` -->
It is 1.3 here, .50 there,
and 1.2 or 3 s.

No 7.5 of ours.
`

func TestBlocksShowWhatRecordsHold(t *testing.T) {
	p := testkit.Get(parseMarks(page))(t)
	if len(p.Blocks) != 2 || len(p.Again) != 1 || p.Again[0] != command || p.Blocks[1].Command != command ||
		p.Blocks[0].Text != "old\n" {
		t.Fatalf("%+v", p)
	}
	filled := testkit.Get(p.Fill(map[string]string{command: output}))(t)
	want := strings.Replace(page, "old\n", output, 1)
	want = strings.Replace(want, "rows b -->\n", "rows b -->\n| of | value |\n|---|---|\n| b | −0.5 |\n", 1)
	if filled != want {
		t.Errorf("filled:\n%s\nwant\n%s", filled, want)
	}
	if same, err := p.Fill(nil); err != nil || same != page {
		t.Errorf("without outputs the page changed: %v\n%s", err, same)
	}
}

func TestQuotedNumbersAreLookedFor(t *testing.T) {
	for text, missing := range map[string]string{
		"1.3 and .50, 1.2 or 3 s": "", "1.25 and 0.5": "", "1.24 and 0.5": "1.24", "1.250 1.251": "1.251", "0.6": "0.6",
		"3.0": "", "12 345 and 12 346 at 2022 012.": "12346",
	} {
		p := testkit.Get(parseMarks("<!-- quoted: " + command + " -->\n" + text))(t)
		found, got := p.Quotes[0].Numbers(output)
		if strings.Join(got, " ") != missing || found == 0 && len(got) == 0 {
			t.Errorf("%q: found %d, missing %q, want %q", text, found, got, missing)
		}
	}
	p, err := parseMarks(page)
	if err != nil || len(p.Quotes) != 1 || p.Quotes[0].Line != 12 || !strings.HasSuffix(p.Quotes[0].Text, "3 s.\n") {
		t.Errorf("%+v, %v", p.Quotes, err)
	}
}

func TestMarksThatMeanNothingAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"<!-- end -->":         "nothing is marked",
		"<!-- measured: x -->": "has no end",
		"<!-- measured: x -->\n<!-- measured: y -->\n<!-- end -->": "has not ended",
		"<!-- measured: x | table 0 -->\n<!-- end -->":             "a number from 1",
		"<!-- measured: x | rows a -->\n<!-- end -->":              "of which table",
		"<!-- measured: x | table 1 | column a -->\n<!-- end -->":  "want table",
	} {
		if _, err := parseMarks(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	for mark, want := range map[string]string{"table 3": "prints 2 tables", "table 2 | rows z": "no rows"} {
		p := testkit.Get(parseMarks("<!-- measured: x | " + mark + " -->\n<!-- end -->\n"))(t)
		if _, err := p.Fill(map[string]string{"x": output}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", mark, err, want)
		}
	}
}
