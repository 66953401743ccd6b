// Command prose counts what makes the documentation hard to read: long sentences,
// passives, inverted clauses, and a "who" or "what" without the word that it stands for.
//
//	go run -C papers ./prose [-rev REVISION] [-list] [FILE...]
//
// Without files it reads README.md and every page below docs that people write. With a
// revision it reads the pages as they stood then. With -list it prints the sentences.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"text/tabwriter"
	"unicode"

	"parley/papers/internal/clone"
)

func main() {
	rev := flag.String("rev", "", "a revision of git; the working tree if empty")
	list := flag.Bool("list", false, "print the sentences that are long, inverted or without their word")
	flag.Parse()
	if err := errors.Join(clone.Enter(), run(*rev, *list, flag.Args())); err != nil {
		fmt.Fprintln(os.Stderr, "prose:", err)
		os.Exit(1)
	}
}

func run(rev string, list bool, pages []string) error {
	if len(pages) == 0 {
		var err error
		if pages, err = written(rev); err != nil {
			return err
		}
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "words\twords/sentence\tover 30\tpassive %\tinverted\theadless\tpage\t")
	var all counts
	for _, page := range pages {
		text, err := read(rev, page)
		if err != nil {
			return err
		}
		c := count(text, func(kind, sentence string) {
			if list {
				fmt.Printf("%s: %s: %s\n", page, kind, sentence)
			}
		})
		all.add(c)
		c.print(w, page)
	}
	all.print(w, "all")
	return w.Flush()
}

// written lists the pages that people write: those of docs/experiments are generated.
func written(rev string) (pages []string, err error) {
	args := []string{"ls-files"}
	if rev != "" {
		args = []string{"ls-tree", "-r", "--name-only", rev}
	}
	out, err := exec.Command("git", append(args, "README.md", "docs")...).Output()
	if err != nil {
		return nil, fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}
	for _, name := range strings.Fields(string(out)) {
		if filepath.Ext(name) == ".md" && !strings.HasPrefix(name, "docs/experiments/") {
			pages = append(pages, name)
		}
	}
	return pages, nil
}

func read(rev, page string) (string, error) {
	if rev == "" {
		data, err := os.ReadFile(page)
		return string(data), err
	}
	out, err := exec.Command("git", "show", rev+":"+page).Output()
	if err != nil {
		return "", fmt.Errorf("git show %s:%s: %w", rev, page, err)
	}
	return string(out), nil
}

// counts are what one page or several have.
type counts struct {
	words     int // of everything but code blocks; a bar of a table is none
	sentences int // outside tables and headings
	within    int // words of those sentences
	long      int // sentences of more than 30 words
	passive   int // sentences with a passive
	inverted  int // sentences whose verb stands before its subject
	headless  int // sentences with a who or what that refers to no word
}

func (c *counts) add(d counts) {
	c.words += d.words
	c.sentences += d.sentences
	c.within += d.within
	c.long += d.long
	c.passive += d.passive
	c.inverted += d.inverted
	c.headless += d.headless
}

func (c counts) print(w *tabwriter.Writer, page string) {
	n := float64(max(c.sentences, 1))
	fmt.Fprintf(w, "%d\t%.1f\t%d\t%.0f\t%d\t%d\t%s\t\n", c.words, float64(c.within)/n, c.long, 100*float64(c.passive)/n,
		c.inverted, c.headless, page)
}

var (
	fence    = regexp.MustCompile("(?ms)^```.*?^```[ \t]*$")
	comment  = regexp.MustCompile(`(?s)<!--.*?-->`)
	image    = regexp.MustCompile(`!\[[^\]]*\]\([^)]*\)`)
	link     = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	code     = regexp.MustCompile("`[^`]*`")
	emphasis = regexp.MustCompile(`[*_]{1,2}([^*_]+)[*_]{1,2}`)
	ending   = regexp.MustCompile(`([.!?])["”)]?(\s+|$)`)
	bullet   = regexp.MustCompile(`^\s*(?:[-*]|\d+\.)\s+`)

	passive = regexp.MustCompile(`(?i)\b(?:is|are|was|were|be|been|being)\s+(?:(?:not|then|also|never|only|\w+ly)\s+)?(?:\w+ed|made|given|taken|known|seen|shown|told|held|kept|left|drawn|found|sent|said|done|put|read|built|chosen|written|lost|paid|spent|bought|thought|understood|meant)\b`)
	// A verb before the subject, where no question is asked.
	inverted = regexp.MustCompile(`^(?:Nor|Neither|Never|Hardly|Here|Beside|Below|Above|Behind|Beyond|Among|With \w+|At \w+|From \w+|On \w+|In \w+)\s+(?:\w+\s+){0,3}?(?:is|are|stands?|lies?|comes?|belongs?|goes|does|do|has|have)\s+(?:the|a|an|its|their|this|that|what|who|it|they|one)\b`)
	headless = regexp.MustCompile(`\b(?:for|of|by|from|with|to|as|than|on) (?:who|whom)\s+(?:\w+s|has|have|is|are|may|can|knows?)\b|^Who \w+s? [^?]*\.$|^Of (?:a|an|the|its|those) [^,]{0,40}:`)
)

// count counts what is in a page, and tells of every sentence that it finds fault with.
func count(page string, fault func(kind, sentence string)) (c counts) {
	page = fence.ReplaceAllString(page, "\n")
	page = comment.ReplaceAllString(page, "")
	page = image.ReplaceAllString(page, "")
	page = link.ReplaceAllString(page, "$1")
	page = code.ReplaceAllString(page, "X")
	page = emphasis.ReplaceAllString(page, "$1")
	for _, field := range strings.Fields(page) {
		if strings.ContainsFunc(field, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			c.words++
		}
	}
	for _, paragraph := range paragraphs(page) {
		for _, s := range sentences(paragraph) {
			words := len(strings.Fields(s))
			c.sentences++
			c.within += words
			if words > 30 {
				c.long++
				fault("long", s)
			}
			if passive.MatchString(s) {
				c.passive++
			}
			if inverted.MatchString(s) {
				c.inverted++
				fault("inverted", s)
			}
			if headless.MatchString(s) {
				c.headless++
				fault("headless", s)
			}
		}
	}
	return c
}

// paragraphs are the page's paragraphs and items of lists, each on one line, without
// headings and tables.
func paragraphs(page string) (all []string) {
	open := false
	for _, line := range strings.Split(page, "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "" || strings.HasPrefix(trimmed, "#") || strings.HasPrefix(trimmed, "|"):
			open = false
		case open && !bullet.MatchString(line):
			all[len(all)-1] += " " + trimmed
		default:
			all = append(all, bullet.ReplaceAllString(trimmed, ""))
			open = true
		}
	}
	return all
}

// sentences splits a paragraph; what has fewer than three words is none.
func sentences(paragraph string) (all []string) {
	for paragraph != "" {
		s, rest := paragraph, ""
		for _, at := range ending.FindAllStringIndex(paragraph, -1) {
			if next := strings.TrimLeft(paragraph[at[1]:], `"“(`); next == "" || next[0] < 'a' || next[0] > 'z' { // not after "e.g."
				s, rest = paragraph[:at[1]], paragraph[at[1]:]
				break
			}
		}
		if s = strings.TrimSpace(s); len(strings.Fields(s)) >= 3 {
			all = append(all, s)
		}
		paragraph = rest
	}
	return all
}
