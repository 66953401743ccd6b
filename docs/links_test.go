package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

var (
	link    = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	named   = regexp.MustCompile(`<a (?:id|name)="([^"]+)"`)
	fenced  = regexp.MustCompile("(?ms)^```.*?^```")
)

// anchors are the names that links into a page can have: its headings as forges write them.
func anchors(page string) map[string]bool {
	all := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(page, -1) {
		text := regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(m[1], "$1")
		all[strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r):
				return unicode.ToLower(r)
			}
			return -1
		}, text)] = true
	}
	for _, m := range named.FindAllStringSubmatch(page, -1) {
		all[m[1]] = true
	}
	return all
}

// Every relative link of every page leads to a file, and to a heading of it.
func TestLinksLead(t *testing.T) {
	links := 0
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == "results") {
			return filepath.SkipDir
		}
		if filepath.Ext(path) != ".md" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range link.FindAllStringSubmatch(fenced.ReplaceAllString(string(text), ""), -1) {
			if strings.Contains(m[1], ":") {
				continue // elsewhere
			}
			links++
			file, anchor, _ := strings.Cut(m[1], "#")
			target := path
			if file != "" {
				target = filepath.Join(filepath.Dir(path), filepath.FromSlash(file))
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: no file %s", path, m[1])
				continue
			}
			if anchor == "" {
				continue
			}
			page, err := os.ReadFile(target)
			if err != nil {
				return err
			}
			if !anchors(fenced.ReplaceAllString(string(page), ""))[anchor] {
				t.Errorf("%s: %s has no heading #%s", path, target, anchor)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if links < 200 {
		t.Errorf("only %d links were found", links)
	}
}
