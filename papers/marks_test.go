package main

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Marks hold the documentation to what experiments find. A page marks what comes
// from one, whose record the documentation keeps:
//
//	<!-- measured: go run -C papers . run parley-private-sites | table 1 | rows 400 drawn -->
//	…
//	<!-- end -->
//
// Between the marks stands the first table that the command prints, and of this the rows
// with that text; without these words all that it prints.
//
//	<!-- quoted: go run -C papers . run parley-income -->
//
// on the line before a paragraph or a table says that its numbers with a decimal point, and
// those of thousands (12 345), are among those that the command prints, as they are or
// rounded. Several such lines name several commands. With "measured again" or "quoted again"
// the experiment takes seconds and has the same tables every time, to which a test holds it.

// shownBlock is what stands between two marks.
type shownBlock struct {
	Line    int // of the first mark, from 1
	Command string
	Text    string
	table   int    // from 1; 0 for all that is printed
	rows    string // text that rows have
}

// quote is a paragraph or a table with numbers that commands print.
type quote struct {
	Line     int // its first, from 1
	Commands []string
	Text     string
}

// markedPage is a page with its marks.
type markedPage struct {
	Blocks []shownBlock
	Quotes []quote
	Again  []string // commands that print the same again
	lines  []string
}

var mark = regexp.MustCompile(`^<!-- (measured|quoted)( again)?: (.*) -->$`)

const end = "<!-- end -->"

// parseMarks finds the marks of a page.
func parseMarks(text string) (*markedPage, error) {
	p := &markedPage{lines: strings.SplitAfter(text, "\n")}
	var open *shownBlock
	var quoted *quote
	for i, line := range p.lines {
		bare := strings.TrimSpace(line)
		m := mark.FindStringSubmatch(bare)
		switch {
		case bare == end && open != nil:
			p.Blocks, open = append(p.Blocks, *open), nil
		case bare == end:
			return nil, fmt.Errorf("line %d: nothing is marked that could end here", i+1)
		case m == nil && open != nil:
			open.Text += line
		case m == nil && quoted != nil && bare != "":
			quoted.Text += line
		case m == nil && quoted != nil:
			p.Quotes, quoted = append(p.Quotes, *quoted), nil
		case m == nil:
		case open != nil:
			return nil, fmt.Errorf("line %d: the block of line %d has not ended", i+1, open.Line)
		case m[1] == "quoted":
			if quoted == nil {
				quoted = &quote{}
			}
			quoted.Line, quoted.Commands = i+2, append(quoted.Commands, m[3])
		default:
			open = &shownBlock{Line: i + 1}
			if err := open.parse(m[3]); err != nil {
				return nil, fmt.Errorf("line %d: %w", i+1, err)
			}
		}
		if m != nil && m[2] != "" {
			command, _, _ := strings.Cut(m[3], " | ")
			p.Again = append(p.Again, command)
		}
	}
	if open != nil {
		return nil, fmt.Errorf("line %d: the block has no end", open.Line)
	}
	if quoted != nil {
		p.Quotes = append(p.Quotes, *quoted)
	}
	return p, nil
}

// Commands are those that the page shows or quotes, each once.
func (p *markedPage) Commands() (all []string) {
	for _, b := range p.Blocks {
		all = append(all, b.Command)
	}
	for _, q := range p.Quotes {
		all = append(all, q.Commands...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// parse reads what a mark says.
func (b *shownBlock) parse(text string) (err error) {
	parts := strings.Split(text, " | ")
	b.Command = parts[0]
	for _, part := range parts[1:] {
		switch key, value, _ := strings.Cut(part, " "); key {
		case "table":
			if b.table, err = strconv.Atoi(value); err != nil || b.table < 1 {
				return fmt.Errorf("%q: want a number from 1", part)
			}
		case "rows":
			b.rows = value
		default:
			return fmt.Errorf("%q: want table and a number, or rows and a text", part)
		}
	}
	if b.rows != "" && b.table == 0 {
		return fmt.Errorf("rows %s: of which table?", b.rows)
	}
	return nil
}

// Of returns what the block shows of a command's output.
func (b *shownBlock) Of(output string) (string, error) {
	if b.table == 0 {
		return output, nil
	}
	all := tables(output)
	if b.table > len(all) {
		return "", fmt.Errorf("%s prints %d tables, and no table %d", b.Command, len(all), b.table)
	}
	const head = 2 // and the rule below it
	table := all[b.table-1]
	shown := slices.Clone(table[:min(head, len(table))])
	for _, row := range table[len(shown):] {
		if strings.Contains(row, b.rows) {
			shown = append(shown, row)
		}
	}
	if len(shown) == head {
		return "", fmt.Errorf("%s: table %d has no rows with %q", b.Command, b.table, b.rows)
	}
	return strings.Join(shown, ""), nil
}

// tables returns the lines of every table.
func tables(output string) (all [][]string) {
	inside := false
	for line := range strings.Lines(output) {
		is := strings.HasPrefix(line, "|")
		if is && !inside {
			all = append(all, nil)
		}
		if is {
			all[len(all)-1] = append(all[len(all)-1], line)
		}
		inside = is
	}
	return all
}

// Fill returns the page with blocks that show what commands printed. Those that outputs
// does not have stay as they are.
func (p *markedPage) Fill(outputs map[string]string) (string, error) {
	var out strings.Builder
	next := 0
	for _, b := range p.Blocks {
		output, ok := outputs[b.Command]
		if !ok {
			continue
		}
		text, err := b.Of(output)
		if err != nil {
			return "", fmt.Errorf("line %d: %w", b.Line, err)
		}
		out.WriteString(strings.Join(p.lines[next:b.Line], ""))
		out.WriteString(text)
		next = b.Line + strings.Count(b.Text, "\n")
	}
	out.WriteString(strings.Join(p.lines[next:], ""))
	return out.String(), nil
}

var (
	stated = regexp.MustCompile(`\d*\.\d+|\b\d{1,3}( \d{3})+\b`)
	number = regexp.MustCompile(`\d*\.?\d+(e[+-]?\d+)?`)
)

// Numbers looks for the paragraph's numbers with a decimal point, and for those of thousands
// (12 345), among those of outputs, rounded to as many digits. It returns how many are there
// and which are not.
func (q *quote) Numbers(outputs ...string) (found int, missing []string) {
	var printed []float64
	for _, output := range outputs {
		for _, s := range number.FindAllString(output, -1) {
			if x, err := strconv.ParseFloat(s, 64); err == nil {
				printed = append(printed, x)
			}
		}
	}
	for _, s := range stated.FindAllString(q.Text, -1) {
		s = strings.ReplaceAll(s, " ", "")
		_, digits, _ := strings.Cut(s, ".")
		half := 0.5 * math.Pow10(-len(digits)) * (1 + 1e-9) // of a tie either neighbour will do
		x, err := strconv.ParseFloat(s, 64)
		if err == nil && slices.ContainsFunc(printed, func(y float64) bool { return math.Abs(y-x) <= half }) {
			found++
		} else {
			missing = append(missing, s)
		}
	}
	return found, missing
}
